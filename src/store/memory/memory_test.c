/* memory_test.c - the contract on the memory engine, on real threads and without delays; and what a
 * broken disk does. Crashes are in memory_sim_test.c. */
#include "base/test.h"
#include "fiber/linux/linux.h"
#include "store/memory/memory.h"
#include "store/memory/test_fixture.h"
#include "store/test/contract.h"

#define SHARD(n) PARTITION_OF_SHARD(n)

static void
on_linux(void (*test)(struct contract *contract))
{
    struct memory_fixture memory_fixture = {.test = test};
    linux_run(&(struct linux_options){.loops = 2}, memory_fixture_fiber, &memory_fixture);
    memory_base_free(memory_fixture.base);
}

#define X(title)                                                                                   \
    TEST(memory, title)                                                                            \
    {                                                                                              \
        on_linux(contract_##title);                                                                \
    }
CONTRACT_TESTS(X)
#undef X

/* ---- a broken disk ---- */

static struct batch *
put_batch(struct contract *contract, uint32_t shard, uint64_t number)
{
    struct batch *batch = batch_new(contract->arena, SHARD(shard), 1);
    batch_put(batch, ROW_DEAD_LETTER, contract_key(contract, number), TEXT("v"));
    return batch;
}

/* What replay shows is a prefix of what was submitted. */
static void
expect_prefix(struct contract *contract, uint32_t shard, size_t count_min, size_t count_max)
{
    struct scan scan = {.partition = SHARD(shard), .kind = ROW_DEAD_LETTER};
    struct rows rows;
    EXPECT_OK(store_scan(contract->store, &scan, contract->arena, &rows));
    EXPECT(rows.count >= count_min && rows.count <= count_max);
    for (size_t i = 0; i < rows.count; i++)
        EXPECT(slice_equal(rows.row[i].key, contract_key(contract, i + 1)));
}

TEST_IN(memory, a_broken_disk_fails_all_that_waits_and_all_that_comes, struct contract *contract,
        on_linux(body))
{
    struct memory_fixture *memory_fixture = contract->engine->context;
    struct writer *one = writer_open(contract->store, SHARD(1), 0, 10);
    struct writer *other = writer_open(contract->store, SHARD(2), 0, 10);
    EXPECT_OK(writer_wait(one, writer_submit(one, put_batch(contract, 1, 1)), contract->arena));
    memory_base_break(memory_fixture->base);
    for (uint64_t i = 2; i <= 5; i++)
        writer_submit(one, put_batch(contract, 1, i));
    writer_submit(other, put_batch(contract, 2, 1));
    EXPECT_KIND(writer_wait(other, 1, contract->arena), ERR_OUTCOME_UNKNOWN);
    EXPECT_KIND(writer_wait(one, 5, contract->arena), ERR_OUTCOME_UNKNOWN);
    EXPECT_OK(writer_wait(one, 1, contract->arena));
    memory_base_repair(
        memory_fixture->base); /* it does not matter before the store is opened again */
    EXPECT(store_failure(contract->store) != NULL);
    struct error *err =
        store_commit(contract->store, put_batch(contract, 3, 1), 0, contract->arena);
    EXPECT_KIND(err, ERR_UNAVAILABLE);
    uint64_t guard;
    err = store_guard(contract->store, SHARD(1), contract->arena, &guard);
    EXPECT_KIND(err, ERR_UNAVAILABLE);
    writer_close(one);
    writer_close(other);
    contract_reopen(contract);
    EXPECT(store_failure(contract->store) == NULL);
    EXPECT_EQ(contract_guard(contract, SHARD(3)), 0);
    expect_prefix(contract, 1, 1, 5);
    expect_prefix(contract, 2, 0, 1);
    contract_commit(contract, put_batch(contract, 3, 1), 0);
}
