/* rocks_test.c - the contract suite on rocks, on rows that are fresh and on rows in table files;
 * and what only rocks has: range deletes by the thousand, cold reads, guards that are forgotten. */
#include "base/check.h"
#include "base/test.h"
#include "fiber/linux/linux.h"
#include "store/rocks/test_fixture.h"
#include "store/test/contract.h"

/* ---- the contract ---- */

static struct store *
engine_open(void *context)
{
    return rocks_fixture_open(context);
}

static struct store *
engine_reopen(void *context, struct store *store)
{
    store_close(store);
    return rocks_fixture_open(context);
}

static void
engine_flush(void *context, struct store *store)
{
    struct rocks_fixture *rocks_fixture = context;
    EXPECT_OK(rocks_flush(store, rocks_fixture->arena));
}

static void
engine_close(void *context, struct store *store)
{
    struct rocks_fixture *rocks_fixture = context;
    store_close(store);
    folder_remove(rocks_fixture->data);
}

struct contract_call {
    void (*contract)(struct contract *contract);
    bool is_flushed;
};

static void
contract_call_fiber(void *argument)
{
    struct contract_call *contract_call = argument;
    struct rocks_fixture rocks_fixture;
    rocks_fixture_begin(&rocks_fixture);
    rocks_fixture.fresh_bytes_max = contract_call->is_flushed ? 1 : 64 << 20;
    struct contract_engine engine = {.name = "rocks",
                                     .context = &rocks_fixture,
                                     .open = engine_open,
                                     .reopen = engine_reopen,
                                     .flush = contract_call->is_flushed ? engine_flush : NULL,
                                     .close = engine_close};
    contract_run(&engine, contract_call->contract);
    rocks_fixture_end(&rocks_fixture);
}

static void
on_platform(struct contract_call contract_call)
{
    linux_run(&(struct linux_options){.loops = 2}, contract_call_fiber, &contract_call);
}

#define X(title)                                                                                   \
    TEST(rocks, title)                                                                             \
    {                                                                                              \
        on_platform((struct contract_call){.contract = contract_##title});                         \
    }                                                                                              \
    TEST(rocks_flushed, title)                                                                     \
    {                                                                                              \
        on_platform((struct contract_call){.contract = contract_##title, .is_flushed = true});     \
    }
CONTRACT_TESTS(X)
#undef X

/* ---- rocks alone ---- */

/* A load on several shards leaves exactly what it says, through flushes and compactions of small
 * memtables. */
ROCKS_TEST(rocks_alone, a_load_through_many_flushes_leaves_exactly_its_rows)
{
    struct load load = {.store = rocks_fixture_open(rocks_fixture), .shards = 8, .steps = 600};
    load_run(&load);
    EXPECT(!load.has_failed);
    EXPECT_TEXT(load_verify(load.store, 8, load.acked, rocks_fixture->arena), NULL);
    struct rocks_stats stats;
    rocks_stats(load.store, &stats);
    EXPECT_EQ(stats.commits, 8 * 600 + 8);
    EXPECT(stats.groups < stats.commits); /* they shared syncs */
    EXPECT(stats.disk_bytes > 0 && stats.queue_bytes == 0);
    EXPECT(stats.memtable_bytes <
           8 << 20); /* two families, three of 1 MB each, and their last blocks */
    store_close(load.store);
    load.store = rocks_fixture_open(rocks_fixture);
    EXPECT_TEXT(load_verify(load.store, 8, load.acked, rocks_fixture->arena), NULL);
    store_close(load.store);
    struct store_check check;
    EXPECT_OK(rocks_check(rocks_fixture->data, rocks_fixture->arena, &check));
    EXPECT_EQ(check.problems, 0);
    EXPECT_EQ(check.partitions, 8);
    EXPECT_EQ(check.info.kinds[ROW_RUN].rows, 8 * 600);
    EXPECT_EQ(check.info.kinds[ROW_TRANSFER].rows, 8 * 8);
}

/* Not even a sync of its own. */
ROCKS_TEST(rocks_alone, a_confirmation_is_no_group)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    struct writer *writer = writer_open(store, PARTITION_OF_SHARD(3), 0, 64);
    writer_submit(writer, batch_new(rocks_fixture->arena, PARTITION_OF_SHARD(3), 1));
    EXPECT_OK(writer_wait(writer, writer_confirm(writer), rocks_fixture->arena));
    struct rocks_stats before, after;
    rocks_stats(store, &before);
    for (int i = 0; i < 100; i++)
        EXPECT_OK(writer_wait(writer, writer_confirm(writer), rocks_fixture->arena));
    rocks_stats(store, &after);
    EXPECT_EQ(before.groups, 1);
    EXPECT_EQ(after.groups, 1);
    EXPECT_EQ(after.commits, 1);
    EXPECT_EQ(after.bytes, before.bytes);
    writer_close(writer);
    store_close(store);
}

/* Each commit deletes the row that the one before put, often of the same group, and so not in the
 * database yet: the committer has to find it there too. */
ROCKS_TEST(rocks_alone, thousands_of_range_deletes_leave_what_is_not_in_them)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    struct partition shard = PARTITION_OF_SHARD(3);
    struct writer *writer = writer_open(store, shard, 0, 64);
    for (uint64_t i = 0; i < 2500; i++) {
        struct batch *batch = batch_new(rocks_fixture->arena, shard, 1);
        batch_put(batch, ROW_HISTORY, rocks_fixture_key(rocks_fixture, i), slice_text("x"));
        if (i > 0)
            batch_delete_range(batch, ROW_HISTORY, rocks_fixture_key(rocks_fixture, i - 1),
                               rocks_fixture_key(rocks_fixture, i));
        ticket_t ticket = writer_submit(writer, batch);
        if (!writer_has_room(writer))
            EXPECT_OK(writer_wait(writer, ticket - 32, rocks_fixture->arena));
    }
    EXPECT_OK(writer_wait(writer, writer_newest(writer), rocks_fixture->arena));
    writer_close(writer);
    EXPECT_EQ(rocks_fixture_count(rocks_fixture, store, shard, ROW_HISTORY), 1);
    store_close(store);
}

/* After a reopening nothing is in the block cache: the first read goes to a thread, the second does
 * not. */
ROCKS_TEST(rocks_alone, a_cold_read_goes_to_a_thread_and_a_warm_one_does_not)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    for (uint64_t i = 0; i < 50; i++)
        rocks_fixture_put(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN, i);
    store_close(store);
    store = rocks_fixture_open(rocks_fixture);
    struct rocks_stats before, first, second;
    rocks_stats(store, &before);
    EXPECT_EQ(rocks_fixture_count(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN), 50);
    rocks_stats(store, &first);
    EXPECT(first.cold_reads > before.cold_reads);
    EXPECT_EQ(rocks_fixture_count(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN), 50);
    rocks_stats(store, &second);
    EXPECT_EQ(second.cold_reads, first.cold_reads);
    store_close(store);
}

/* What is in memory but too much for a loop is read by a thread. */
ROCKS_TEST(rocks_alone, a_long_scan_does_not_hold_the_loop)
{
    enum { ROWS = 3000 };
    struct store *store = rocks_fixture_open(rocks_fixture);
    struct batch *batch = batch_new(rocks_fixture->arena, PARTITION_OF_SHARD(1), 1);
    for (uint64_t i = 0; i < ROWS; i++)
        batch_put(batch, ROW_RUN, rocks_fixture_key(rocks_fixture, i), slice_text("value"));
    EXPECT_OK(store_commit(store, batch, 0, rocks_fixture->arena));
    struct rocks_stats before, after;
    rocks_stats(store, &before);
    EXPECT_EQ(rocks_fixture_count(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN), ROWS);
    rocks_stats(store, &after);
    EXPECT(after.cold_reads > before.cold_reads);
    store_close(store);
}

/* Thousands of rows that are marked as gone lie before those that a short scan wants: more than a
 * loop may climb over, so a thread does. */
ROCKS_TEST(rocks_alone, a_scan_behind_thousands_of_deleted_rows_does_not_hold_the_loop)
{
    enum { ROWS = 9000, GONE = 8000 };
    rocks_fixture->fresh_bytes_max = 1; /* what is put settles with the next commit */
    struct store *store = rocks_fixture_open(rocks_fixture);
    struct batch *batch = batch_new(rocks_fixture->arena, PARTITION_OF_SHARD(1), 1);
    for (uint64_t i = 0; i < ROWS; i++)
        batch_put(batch, ROW_VISIBLE, rocks_fixture_key(rocks_fixture, i), slice_text("value"));
    EXPECT_OK(store_commit(store, batch, 0, rocks_fixture->arena));
    for (uint64_t i = 0; i < 50; i++)
        rocks_fixture_put(rocks_fixture, store, PARTITION_OF_SHARD(2), ROW_RUN, i);
    batch = batch_new(rocks_fixture->arena, PARTITION_OF_SHARD(1), 1);
    batch_delete_range(batch, ROW_VISIBLE, rocks_fixture_key(rocks_fixture, 0),
                       rocks_fixture_key(rocks_fixture, GONE));
    EXPECT_OK(store_commit(store, batch, 1, rocks_fixture->arena));
    struct rocks_stats before, after;
    rocks_stats(store, &before);
    struct scan scan = {.partition = PARTITION_OF_SHARD(1), .kind = ROW_VISIBLE, .rows_max = 10};
    struct rows rows;
    EXPECT_OK(store_scan(store, &scan, rocks_fixture->arena, &rows));
    EXPECT_EQ(rows.count, 10);
    EXPECT(slice_equal(rows.row[0].key, rocks_fixture_key(rocks_fixture, GONE)) && rows.has_more);
    rocks_stats(store, &after);
    EXPECT(after.cold_reads > before.cold_reads);
    EXPECT_EQ(rocks_fixture_count(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_VISIBLE),
              ROWS - GONE);
    store_close(store);
}

/* ---- guards that are forgotten ---- */

/* One round: a new owner raises the guard of `owned`, another partition is written, the old owner
 * tries once more, and the new one goes on. All of them wait in the same group: the committer is
 * busy with a batch before them. */
static void
race_owners(struct rocks_fixture *rocks_fixture, struct store *store, struct partition owned,
            uint64_t guard)
{
    struct partition other = PARTITION_OF_SHARD(2 + guard % 8);
    struct partition busy = PARTITION_OF_SHARD(0);
    struct writer *first =
        writer_open(store, busy, rocks_fixture_guard(rocks_fixture, store, busy), 1);
    struct writer *new_owner = writer_open(store, owned, guard, 2);
    struct writer *neighbour =
        writer_open(store, other, rocks_fixture_guard(rocks_fixture, store, other), 1);
    struct writer *old_owner = writer_open(store, owned, guard, 1);
    struct batch *raise = batch_new(rocks_fixture->arena, owned, guard + 1);
    struct batch *aside = batch_new(rocks_fixture->arena, other, writer_guard(neighbour) + 1);
    struct batch *stale = batch_new(rocks_fixture->arena, owned, guard);
    struct batch *next = batch_new(rocks_fixture->arena, owned, guard + 1);
    batch_put(raise, ROW_SHARD, slice_text("owner"), slice_text("new"));
    batch_put(stale, ROW_SHARD, slice_text("owner"), slice_text("old"));
    writer_submit(first, batch_new(rocks_fixture->arena, busy, writer_guard(first) + 1));
    writer_submit(new_owner, raise);
    writer_submit(neighbour, aside);
    writer_submit(old_owner, stale);
    writer_submit(new_owner, next);
    EXPECT_KIND(writer_wait(old_owner, 1, rocks_fixture->arena), ERR_FENCED);
    EXPECT_OK(writer_wait(neighbour, 1, rocks_fixture->arena));
    EXPECT_OK(writer_wait(new_owner, 2, rocks_fixture->arena));
    EXPECT_OK(writer_wait(first, 1, rocks_fixture->arena));
    writer_close(first);
    writer_close(old_owner);
    writer_close(neighbour);
    writer_close(new_owner);
}

/* The committer may keep one guard in memory and has to forget all the time. What it forgets in
 * the middle of a group it would read as it was before that group. */
ROCKS_TEST(rocks_alone, an_old_owner_is_fenced_though_guards_are_forgotten)
{
    struct rocks_options options = load_options(rocks_fixture->data);
    options.guards_max = 1;
    struct store *store;
    EXPECT_OK(rocks_open(&options, rocks_fixture->arena, &store));
    struct partition owned = PARTITION_OF_SHARD(1);
    rocks_fixture_put(rocks_fixture, store, owned, ROW_RUN, 1);
    for (uint64_t guard = 1; guard < 100; guard++)
        race_owners(rocks_fixture, store, owned, guard);
    bool found;
    struct slice owner;
    EXPECT_OK(store_get(store, owned, ROW_SHARD, slice_text("owner"), rocks_fixture->arena, &found,
                        &owner));
    EXPECT(found && slice_equal(owner, slice_text("new")));
    EXPECT_EQ(rocks_fixture_guard(rocks_fixture, store, owned), 100);
    store_close(store);
}
