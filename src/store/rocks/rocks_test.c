/* rocks_test.c - the contract suite on rocks, on rows that are fresh and on rows in table files;
 * and what only rocks has: range deletes by the thousand, cold reads, guards that are forgotten. */
#include "base/check.h"
#include "base/test.h"
#include "fiber/linux/linux.h"
#include "store/contract.h"
#include "store/rocks/test_place.h"

/* ---- the contract ---- */

static struct store *
engine_open(void *context)
{
    return place_open(context);
}

static struct store *
engine_reopen(void *context, struct store *store)
{
    store_close(store);
    return place_open(context);
}

static void
engine_flush(void *context, struct store *store)
{
    struct place *place = context;
    EXPECT_OK(rocks_flush(store, place->arena));
}

static void
engine_close(void *context, struct store *store)
{
    struct place *place = context;
    store_close(store);
    folder_remove(place->data);
}

struct visit {
    void (*contract)(struct contract *contract);
    bool is_flushed;
};

static void
visit_fiber(void *argument)
{
    struct visit *visit = argument;
    struct place place;
    place_begin(&place);
    place.fresh_bytes_max = visit->is_flushed ? 1 : 64 << 20;
    struct contract_engine engine = {.name = "rocks",
                                     .context = &place,
                                     .open = engine_open,
                                     .reopen = engine_reopen,
                                     .flush = visit->is_flushed ? engine_flush : NULL,
                                     .close = engine_close};
    contract_run(&engine, visit->contract);
    place_end(&place);
}

static void
on_ground(struct visit visit)
{
    linux_run(&(struct linux_options){.loops = 2}, visit_fiber, &visit);
}

#define X(title)                                                                                   \
    TEST(rocks, title)                                                                             \
    {                                                                                              \
        on_ground((struct visit){.contract = contract_##title});                                   \
    }                                                                                              \
    TEST(rocks_flushed, title)                                                                     \
    {                                                                                              \
        on_ground((struct visit){.contract = contract_##title, .is_flushed = true});               \
    }
CONTRACT_TESTS(X)
#undef X

/* ---- rocks alone ---- */

/* A load on several shards leaves exactly what it says, through flushes and compactions of small
 * memtables. */
static void
run_load(struct place *place)
{
    struct load load = {.store = place_open(place), .shards = 8, .steps = 600};
    load_run(&load);
    EXPECT(!load.has_failed);
    EXPECT_TEXT(load_verify(load.store, 8, load.acked, place->arena), NULL);
    struct rocks_stats stats;
    rocks_stats(load.store, &stats);
    EXPECT_EQ(stats.commits, 8 * 600 + 8);
    EXPECT(stats.groups < stats.commits); /* they shared syncs */
    EXPECT(stats.disk_bytes > 0 && stats.queue_bytes == 0);
    EXPECT(stats.memtable_bytes <
           8 << 20); /* two families, three of 1 MB each, and their last blocks */
    store_close(load.store);
    load.store = place_open(place);
    EXPECT_TEXT(load_verify(load.store, 8, load.acked, place->arena), NULL);
    store_close(load.store);
    struct rocks_check check;
    EXPECT_OK(rocks_check(place->data, place->arena, &check));
    EXPECT_EQ(check.problems, 0);
    EXPECT_EQ(check.partitions, 8);
    EXPECT_EQ(check.info.kinds[ROW_RUN].rows, 8 * 600);
    EXPECT_EQ(check.info.kinds[ROW_TRANSFER].rows, 8 * 8);
}

TEST(rocks_alone, a_load_through_many_flushes_leaves_exactly_its_rows)
{
    place_run(run_load);
}

/* Each commit deletes the row that the one before put, often of the same group, and so not in the
 * database yet: the committer has to find it there too. */
static void
run_range_deletes(struct place *place)
{
    struct store *store = place_open(place);
    struct partition shard = PARTITION_OF_SHARD(3);
    struct writer *writer = writer_open(store, shard, 0, 64);
    for (uint64_t i = 0; i < 2500; i++) {
        struct batch *batch = batch_new(place->arena, shard, 1);
        batch_put(batch, ROW_HISTORY, place_key(place, i), slice_text("x"));
        if (i > 0)
            batch_delete_range(batch, ROW_HISTORY, place_key(place, i - 1), place_key(place, i));
        ticket_t ticket = writer_submit(writer, batch);
        if (!writer_has_room(writer))
            EXPECT_OK(writer_wait(writer, ticket - 32, place->arena));
    }
    EXPECT_OK(writer_wait(writer, writer_newest(writer), place->arena));
    writer_close(writer);
    EXPECT_EQ(place_count(place, store, shard, ROW_HISTORY), 1);
    store_close(store);
}

TEST(rocks_alone, thousands_of_range_deletes_leave_what_is_not_in_them)
{
    place_run(run_range_deletes);
}

/* After a reopening nothing is in the block cache: the first read goes to a thread, the second does
 * not. */
static void
run_cold_reads(struct place *place)
{
    struct store *store = place_open(place);
    for (uint64_t i = 0; i < 50; i++)
        place_put(place, store, PARTITION_OF_SHARD(1), ROW_RUN, i);
    store_close(store);
    store = place_open(place);
    struct rocks_stats before, first, second;
    rocks_stats(store, &before);
    EXPECT_EQ(place_count(place, store, PARTITION_OF_SHARD(1), ROW_RUN), 50);
    rocks_stats(store, &first);
    EXPECT(first.cold_reads > before.cold_reads);
    EXPECT_EQ(place_count(place, store, PARTITION_OF_SHARD(1), ROW_RUN), 50);
    rocks_stats(store, &second);
    EXPECT_EQ(second.cold_reads, first.cold_reads);
    store_close(store);
}

TEST(rocks_alone, a_cold_read_goes_to_a_thread_and_a_warm_one_does_not)
{
    place_run(run_cold_reads);
}

/* What is in memory but too much for a loop is read by a thread. */
static void
run_long_scan(struct place *place)
{
    enum { ROWS = 3000 };
    struct store *store = place_open(place);
    struct batch *batch = batch_new(place->arena, PARTITION_OF_SHARD(1), 1);
    for (uint64_t i = 0; i < ROWS; i++)
        batch_put(batch, ROW_RUN, place_key(place, i), slice_text("value"));
    EXPECT_OK(store_commit(store, batch, 0, place->arena));
    struct rocks_stats before, after;
    rocks_stats(store, &before);
    EXPECT_EQ(place_count(place, store, PARTITION_OF_SHARD(1), ROW_RUN), ROWS);
    rocks_stats(store, &after);
    EXPECT(after.cold_reads > before.cold_reads);
    store_close(store);
}

TEST(rocks_alone, a_long_scan_does_not_hold_the_loop)
{
    place_run(run_long_scan);
}

/* Thousands of rows that are marked as gone lie before those that a short scan wants: more than a
 * loop may climb over, so a thread does. */
static void
run_many_gone(struct place *place)
{
    enum { ROWS = 9000, GONE = 8000 };
    place->fresh_bytes_max = 1; /* what is put settles with the next commit */
    struct store *store = place_open(place);
    struct batch *batch = batch_new(place->arena, PARTITION_OF_SHARD(1), 1);
    for (uint64_t i = 0; i < ROWS; i++)
        batch_put(batch, ROW_VISIBLE, place_key(place, i), slice_text("value"));
    EXPECT_OK(store_commit(store, batch, 0, place->arena));
    for (uint64_t i = 0; i < 50; i++)
        place_put(place, store, PARTITION_OF_SHARD(2), ROW_RUN, i);
    batch = batch_new(place->arena, PARTITION_OF_SHARD(1), 1);
    batch_delete_range(batch, ROW_VISIBLE, place_key(place, 0), place_key(place, GONE));
    EXPECT_OK(store_commit(store, batch, 1, place->arena));
    struct rocks_stats before, after;
    rocks_stats(store, &before);
    struct scan scan = {.partition = PARTITION_OF_SHARD(1), .kind = ROW_VISIBLE, .rows_max = 10};
    struct rows rows;
    EXPECT_OK(store_scan(store, &scan, place->arena, &rows));
    EXPECT_EQ(rows.count, 10);
    EXPECT(slice_equal(rows.row[0].key, place_key(place, GONE)) && rows.has_more);
    rocks_stats(store, &after);
    EXPECT(after.cold_reads > before.cold_reads);
    EXPECT_EQ(place_count(place, store, PARTITION_OF_SHARD(1), ROW_VISIBLE), ROWS - GONE);
    store_close(store);
}

TEST(rocks_alone, a_scan_behind_thousands_of_deleted_rows_does_not_hold_the_loop)
{
    place_run(run_many_gone);
}

/* ---- guards that are forgotten ---- */

/* One round: a new owner raises the guard of `owned`, another partition is written, the old owner
 * tries once more, and the new one goes on. All of them wait in the same group: the committer is
 * busy with a batch before them. */
static void
race_owners(struct place *place, struct store *store, struct partition owned, uint64_t guard)
{
    struct partition other = PARTITION_OF_SHARD(2 + guard % 8);
    struct partition busy = PARTITION_OF_SHARD(0);
    struct writer *first = writer_open(store, busy, place_guard(place, store, busy), 1);
    struct writer *new_owner = writer_open(store, owned, guard, 2);
    struct writer *neighbour = writer_open(store, other, place_guard(place, store, other), 1);
    struct writer *old_owner = writer_open(store, owned, guard, 1);
    struct batch *raise = batch_new(place->arena, owned, guard + 1);
    struct batch *aside = batch_new(place->arena, other, writer_guard(neighbour) + 1);
    struct batch *stale = batch_new(place->arena, owned, guard);
    struct batch *next = batch_new(place->arena, owned, guard + 1);
    batch_put(raise, ROW_SHARD, slice_text("owner"), slice_text("new"));
    batch_put(stale, ROW_SHARD, slice_text("owner"), slice_text("old"));
    writer_submit(first, batch_new(place->arena, busy, writer_guard(first) + 1));
    writer_submit(new_owner, raise);
    writer_submit(neighbour, aside);
    writer_submit(old_owner, stale);
    writer_submit(new_owner, next);
    EXPECT_KIND(writer_wait(old_owner, 1, place->arena), ERR_FENCED);
    EXPECT_OK(writer_wait(neighbour, 1, place->arena));
    EXPECT_OK(writer_wait(new_owner, 2, place->arena));
    EXPECT_OK(writer_wait(first, 1, place->arena));
    writer_close(first);
    writer_close(old_owner);
    writer_close(neighbour);
    writer_close(new_owner);
}

/* The committer may keep one guard in memory and has to forget all the time. What it forgets in
 * the middle of a group it would read as it was before that group. */
static void
run_forgotten_guards(struct place *place)
{
    struct rocks_options options = load_options(place->data);
    options.guards_max = 1;
    struct store *store;
    EXPECT_OK(rocks_open(&options, place->arena, &store));
    struct partition owned = PARTITION_OF_SHARD(1);
    place_put(place, store, owned, ROW_RUN, 1);
    for (uint64_t guard = 1; guard < 100; guard++)
        race_owners(place, store, owned, guard);
    bool found;
    struct slice owner;
    EXPECT_OK(
        store_get(store, owned, ROW_SHARD, slice_text("owner"), place->arena, &found, &owner));
    EXPECT(found && slice_equal(owner, slice_text("new")));
    EXPECT_EQ(place_guard(place, store, owned), 100);
    store_close(store);
}

TEST(rocks_alone, an_old_owner_is_fenced_though_guards_are_forgotten)
{
    place_run(run_forgotten_guards);
}
