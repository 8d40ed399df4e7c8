/* rocks_test.c - the contract suite on rocks, on rows in memtables and on rows in table files; and
 * what only rocks has: range deletes by the thousand, cold reads, backup and restore. */
#include "base/check.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/linux/linux.h"
#include "store/contract.h"
#include "store/key.h"
#include "store/rocks/test_load.h"

/* ---- a ground and a folder for each test ---- */

struct place {
    struct arena *arena;
    char *folder, *data;
};

static struct store *
place_open(struct place *place)
{
    struct rocks_options options = load_options(place->data);
    struct store *store;
    EXPECT_OK(rocks_open(&options, place->arena, &store));
    return store;
}

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
    void (*run)(struct place *place);
    void (*contract)(struct contract *contract);
    bool is_flushed;
};

static void
visit_fiber(void *argument)
{
    struct visit *visit = argument;
    struct place place = {.arena = arena_new(0)};
    place.folder = folder_make_temporary(place.arena);
    place.data = arena_format(place.arena, "%s/data", place.folder);
    struct contract_engine engine = {.name = "rocks",
                                     .context = &place,
                                     .open = engine_open,
                                     .reopen = engine_reopen,
                                     .flush = visit->is_flushed ? engine_flush : NULL,
                                     .close = engine_close};
    if (visit->contract != NULL)
        contract_run(&engine, visit->contract);
    else
        visit->run(&place);
    folder_remove(place.folder);
    arena_free(place.arena);
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

static struct slice
number_key(uint64_t number, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_u64(&key, number);
    return key_end(&key);
}

static void
put(struct place *place, struct store *store, struct partition partition, enum row_kind kind,
    uint64_t number)
{
    uint64_t guard;
    EXPECT_OK(store_guard(store, partition, place->arena, &guard));
    struct batch *batch = batch_new(place->arena, partition, guard == 0 ? 1 : guard);
    batch_put(batch, kind, number_key(number, place->arena), slice_text("value"));
    EXPECT_OK(store_commit(store, batch, guard, place->arena));
}

static size_t
count_rows(struct place *place, struct store *store, struct partition partition, enum row_kind kind)
{
    struct rows rows;
    struct scan scan = {.partition = partition, .kind = kind};
    EXPECT_OK(store_scan(store, &scan, place->arena, &rows));
    return rows.count;
}

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
    on_ground((struct visit){.run = run_load});
}

/* More range deletes than a memtable may hold: reads stay right while the committer flushes for
 * them. */
static void
run_range_deletes(struct place *place)
{
    struct store *store = place_open(place);
    struct partition shard = PARTITION_OF_SHARD(3);
    struct writer *writer = writer_open(store, shard, 0, 64);
    for (uint64_t i = 0; i < 2500; i++) {
        struct batch *batch = batch_new(place->arena, shard, 1);
        batch_put(batch, ROW_HISTORY, number_key(i, place->arena), slice_text("x"));
        if (i > 0)
            batch_delete_range(batch, ROW_HISTORY, number_key(i - 1, place->arena),
                               number_key(i, place->arena));
        ticket_t ticket = writer_submit(writer, batch);
        if (!writer_has_room(writer))
            EXPECT_OK(writer_wait(writer, ticket - 32, place->arena));
    }
    EXPECT_OK(writer_wait(writer, writer_newest(writer), place->arena));
    writer_close(writer);
    EXPECT_EQ(count_rows(place, store, shard, ROW_HISTORY), 1);
    store_close(store);
}

TEST(rocks_alone, thousands_of_range_deletes_leave_what_is_not_in_them)
{
    on_ground((struct visit){.run = run_range_deletes});
}

/* After a reopening nothing is in the block cache: the first read goes to a thread, the second does
 * not. */
static void
run_cold_reads(struct place *place)
{
    struct store *store = place_open(place);
    for (uint64_t i = 0; i < 50; i++)
        put(place, store, PARTITION_OF_SHARD(1), ROW_RUN, i);
    store_close(store);
    store = place_open(place);
    struct rocks_stats before, first, second;
    rocks_stats(store, &before);
    EXPECT_EQ(count_rows(place, store, PARTITION_OF_SHARD(1), ROW_RUN), 50);
    rocks_stats(store, &first);
    EXPECT(first.cold_reads > before.cold_reads);
    EXPECT_EQ(count_rows(place, store, PARTITION_OF_SHARD(1), ROW_RUN), 50);
    rocks_stats(store, &second);
    EXPECT_EQ(second.cold_reads, first.cold_reads);
    store_close(store);
}

TEST(rocks_alone, a_cold_read_goes_to_a_thread_and_a_warm_one_does_not)
{
    on_ground((struct visit){.run = run_cold_reads});
}

/* ---- backup ---- */

static uint64_t
guard_of(struct place *place, struct store *store, struct partition partition)
{
    uint64_t guard;
    EXPECT_OK(store_guard(store, partition, place->arena, &guard));
    return guard;
}

/* What was there at the backup comes back, what came later does not, and shards are fenced from the
 * time that is lost. */
static void
run_backup(struct place *place)
{
    struct store *store = place_open(place);
    put(place, store, PARTITION_OF_SHARD(1), ROW_RUN, 1);
    put(place, store, PARTITION_OF_DOMAINS, ROW_DOMAIN, 1);
    char *backup = arena_format(place->arena, "%s/backup", place->folder);
    EXPECT_OK(rocks_backup(store, backup, place->arena));
    EXPECT_KIND(rocks_backup(store, backup, place->arena), ERR_BAD_REQUEST);
    put(place, store, PARTITION_OF_SHARD(1), ROW_RUN, 2);
    EXPECT(!rocks_is_restored(store));
    store_close(store);

    EXPECT_KIND(rocks_restore(backup, place->data, place->arena), ERR_BAD_REQUEST);
    EXPECT_KIND(rocks_restore(place->data, backup, place->arena), ERR_BAD_REQUEST);
    place->data = arena_format(place->arena, "%s/restored", place->folder);
    EXPECT_OK(rocks_restore(backup, place->data, place->arena));
    store = place_open(place);
    EXPECT_EQ(count_rows(place, store, PARTITION_OF_SHARD(1), ROW_RUN), 1);
    EXPECT(rocks_is_restored(store));
    uint64_t raised = guard_of(place, store, PARTITION_OF_SHARD(1));
    EXPECT(raised > 1000000 && raised <= (uint64_t)(clock_wall() / NS_PER_S));
    EXPECT_EQ(guard_of(place, store, PARTITION_OF_SHARD(0)),
              raised);                                          /* never written: raised too */
    EXPECT_EQ(guard_of(place, store, PARTITION_OF_DOMAINS), 1); /* a counter without gaps */
    store_close(store);

    store = place_open(place);
    EXPECT(rocks_is_restored(store)); /* until it caught up, however often it is opened */
    EXPECT_EQ(guard_of(place, store, PARTITION_OF_SHARD(1)), raised);
    EXPECT_OK(rocks_set_caught_up(store, place->arena));
    store_close(store);
    store = place_open(place);
    EXPECT(!rocks_is_restored(store));
    store_close(store);
}

TEST(rocks_alone, a_restored_store_has_the_backup_and_higher_guards)
{
    on_ground((struct visit){.run = run_backup});
}

struct backup_load {
    struct load load;
    struct fiber *waiter;
    bool is_done;
};

static void
backup_load_fiber(void *argument)
{
    struct backup_load *work = argument;
    load_run(&work->load);
    work->is_done = true;
    fiber_wake(work->waiter);
}

/* A backup in the middle of a load is a moment of it: every shard whole, none behind what was told
 * before. */
static void
run_backup_under_load(struct place *place)
{
    struct backup_load work = {.load = {.store = place_open(place), .shards = 4, .steps = 800},
                               .waiter = fiber_self()};
    fiber_start("load", backup_load_fiber, &work);
    while (work.load.acked[0] < 100)
        EXPECT_OK(fiber_sleep(NS_PER_MS, place->arena));
    uint64_t before[LOAD_SHARDS_MAX];
    memcpy(before, work.load.acked, sizeof before);
    char *backup = arena_format(place->arena, "%s/backup", place->folder);
    EXPECT_OK(rocks_backup(work.load.store, backup, place->arena));
    while (!work.is_done)
        fiber_wait_uncancellable();
    EXPECT(!work.load.has_failed);
    store_close(work.load.store);
    place->data = arena_format(place->arena, "%s/restored", place->folder);
    EXPECT_OK(rocks_restore(backup, place->data, place->arena));
    struct store *store = place_open(place);
    EXPECT_TEXT(load_verify(store, 4, before, place->arena), NULL);
    store_close(store);
}

TEST(rocks_alone, a_backup_under_load_is_one_moment_of_it)
{
    on_ground((struct visit){.run = run_backup_under_load});
}
