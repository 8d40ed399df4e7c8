/* test_bench.c - see test_bench.h. */
#include "store/memory/test_bench.h"

static struct store *
bench_open(void *context)
{
    struct bench *bench = context;
    memory_base_free(bench->base);
    bench->base = memory_base_new(bench->seed);
    return memory_open(bench->base);
}

static struct store *
bench_reopen(void *context, struct store *store)
{
    struct bench *bench = context;
    store_close(store);
    return memory_open(bench->base);
}

static void
bench_close(void *context, struct store *store)
{
    store_close(store);
}

void
bench_fiber(void *argument)
{
    struct bench *bench = argument;
    struct contract_engine engine = {.name = "memory", .context = bench};
    engine.open = bench_open;
    engine.reopen = bench_reopen;
    engine.close = bench_close;
    contract_run(&engine, bench->test);
}
