/* test_fixture.c - see test_fixture.h. */
#include "store/memory/test_fixture.h"

static struct store *
bench_open(void *context)
{
    struct memory_fixture *memory_fixture = context;
    memory_base_free(memory_fixture->base);
    memory_fixture->base = memory_base_new(memory_fixture->seed);
    return memory_open(memory_fixture->base);
}

static struct store *
bench_reopen(void *context, struct store *store)
{
    struct memory_fixture *memory_fixture = context;
    store_close(store);
    return memory_open(memory_fixture->base);
}

static void
bench_close(void *context, struct store *store)
{
    store_close(store);
}

void
memory_fixture_fiber(void *argument)
{
    struct memory_fixture *memory_fixture = argument;
    struct contract_engine engine = {.name = "memory", .context = memory_fixture};
    engine.open = bench_open;
    engine.reopen = bench_reopen;
    engine.close = bench_close;
    contract_run(&engine, memory_fixture->test);
}
