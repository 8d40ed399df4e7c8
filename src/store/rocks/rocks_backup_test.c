/* rocks_backup_test.c - a backup is one moment of a store, a restored store knows what it is, and
 * half of either is nothing.
 *
 * The walks run a process that loads a store, backs it up and restores it, with a fault at one of
 * the calls that change the disk (see rocks_failure_test.c). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/linux/linux.h"
#include "store/rocks/test_crash.h"
#include "store/rocks/test_fixture.h"

/* What was there at the backup comes back, what came later does not, and shards are fenced from the
 * time that is lost. */
ROCKS_TEST(rocks_backup, a_restored_store_has_the_backup_and_higher_guards)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    rocks_fixture_put(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN, 1);
    rocks_fixture_put(rocks_fixture, store, PARTITION_OF_DOMAINS, ROW_DOMAIN, 1);
    char *backup = arena_format(rocks_fixture->arena, "%s/backup", rocks_fixture->folder);
    EXPECT_OK(rocks_backup(store, backup, rocks_fixture->arena));
    EXPECT_KIND(rocks_backup(store, backup, rocks_fixture->arena), ERR_BAD_REQUEST);
    rocks_fixture_put(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN, 2);
    EXPECT(rocks_memory(store) == STORE_WHOLE);
    store_close(store);

    EXPECT_KIND(rocks_restore(backup, rocks_fixture->data, rocks_fixture->arena), ERR_BAD_REQUEST);
    EXPECT_KIND(rocks_restore(rocks_fixture->data, backup, rocks_fixture->arena), ERR_BAD_REQUEST);
    rocks_fixture->data = arena_format(rocks_fixture->arena, "%s/restored", rocks_fixture->folder);
    EXPECT_OK(rocks_restore(backup, rocks_fixture->data, rocks_fixture->arena));
    store = rocks_fixture_open(rocks_fixture);
    EXPECT_EQ(rocks_fixture_count(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN), 1);
    EXPECT(rocks_memory(store) == STORE_RESTORED);
    uint64_t raised = rocks_fixture_guard(rocks_fixture, store, PARTITION_OF_SHARD(1));
    EXPECT(raised > 1000000 && raised <= (uint64_t)(clock_wall() / NS_PER_S));
    EXPECT_EQ(rocks_fixture_guard(rocks_fixture, store, PARTITION_OF_SHARD(0)),
              raised); /* never written: raised too */
    EXPECT_EQ(rocks_fixture_guard(rocks_fixture, store, PARTITION_OF_DOMAINS),
              1); /* a counter without gaps */
    store_close(store);

    store = rocks_fixture_open(rocks_fixture);
    EXPECT(rocks_memory(store) ==
           STORE_RESTORED); /* until it caught up, however often it is opened */
    EXPECT_EQ(rocks_fixture_guard(rocks_fixture, store, PARTITION_OF_SHARD(1)), raised);
    EXPECT_OK(rocks_set_whole(store, rocks_fixture->arena));
    store_close(store);
    store = rocks_fixture_open(rocks_fixture);
    EXPECT(rocks_memory(store) == STORE_WHOLE);
    store_close(store);
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

/* Over zeros ahead of the newest log a backup would have copied groups that were not whole. */
static void
expect_no_runway(struct rocks_fixture *rocks_fixture, const char *backup)
{
    const char *command = "log=$(ls '%s'/rocks/*.log | tail -1); test ! -s $log || "
                          "test $(tail -c 4096 $log | tr -d '\\0' | wc -c) -gt 0";
    int status = system(arena_format(rocks_fixture->arena, command, backup));
    EXPECT_EQ(status, 0);
}

/* A backup in the middle of a load is a moment of it: every shard whole, none behind what was told
 * before. */
static void
backup_under_load(struct rocks_fixture *rocks_fixture, uint64_t steps, size_t padding)
{
    struct backup_load work = {
        .load = {.store = rocks_fixture_open(rocks_fixture), .shards = 4, .steps = steps},
        .waiter = fiber_self()};
    work.load.padding = padding;
    fiber_start("load", backup_load_fiber, &work);
    while (work.load.acked[0] < 100)
        EXPECT_OK(fiber_sleep(NS_PER_MS, rocks_fixture->arena));
    uint64_t before[LOAD_SHARDS_MAX];
    memcpy(before, work.load.acked, sizeof before);
    char *backup = arena_format(rocks_fixture->arena, "%s/backup", rocks_fixture->folder);
    EXPECT_OK(rocks_backup(work.load.store, backup, rocks_fixture->arena));
    expect_no_runway(rocks_fixture, backup);
    while (!work.is_done)
        fiber_wait_uncancellable();
    EXPECT(!work.load.has_failed);
    store_close(work.load.store);
    rocks_fixture->data = arena_format(rocks_fixture->arena, "%s/restored", rocks_fixture->folder);
    EXPECT_OK(rocks_restore(backup, rocks_fixture->data, rocks_fixture->arena));
    struct store *store = rocks_fixture_open(rocks_fixture);
    EXPECT_TEXT(load_verify(store, 4, before, rocks_fixture->arena), NULL);
    store_close(store);
}

static void
run_small(struct rocks_fixture *rocks_fixture)
{
    backup_under_load(rocks_fixture, 800, 0);
}

static void
run_large(struct rocks_fixture *rocks_fixture)
{
    backup_under_load(rocks_fixture, 400, 20000); /* a runway is used up every few steps */
}

TEST(rocks_backup, a_backup_under_load_is_one_moment_of_it)
{
    rocks_fixture_run(run_small);
    rocks_fixture_run(run_large);
}

/* ---- a backup and the end of its store ---- */

struct closing {
    struct store *store;
    const char *folder;
    struct arena *arena;
    struct error *err;
    bool is_done;
};

static void
backup_fiber(void *argument)
{
    struct closing *closing = argument;
    closing->err = rocks_backup(closing->store, closing->folder, closing->arena);
    closing->is_done = true;
}

/* A close that begins while a backup runs waits for it; a backup that begins later is refused. */
ROCKS_TEST(rocks_backup, a_close_waits_for_a_backup)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    for (uint64_t i = 0; i < 20; i++)
        rocks_fixture_put(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN, i);
    struct closing closing = {.store = store, .arena = rocks_fixture->arena};
    closing.folder = arena_format(rocks_fixture->arena, "%s/backup", rocks_fixture->folder);
    fiber_start("backup", backup_fiber, &closing);
    fiber_yield();
    EXPECT(!closing.is_done);
    store_close(store);
    EXPECT(closing.is_done);
    EXPECT_OK(closing.err);
    rocks_fixture->data = arena_format(rocks_fixture->arena, "%s/restored", rocks_fixture->folder);
    EXPECT_OK(rocks_restore(closing.folder, rocks_fixture->data, rocks_fixture->arena));
    store = rocks_fixture_open(rocks_fixture);
    EXPECT_EQ(rocks_fixture_count(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN), 20);
    store_close(store);
}

/* ---- where a restore may go ---- */

/* A folder that has an identity had a database: losing it must not lead to another one under
 * the old name, or a crash in between opens as if nothing had been. */
ROCKS_TEST(rocks_backup, a_restore_goes_into_a_free_folder_and_half_of_one_does_not_open)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    rocks_fixture_put(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN, 1);
    char *backup = arena_format(rocks_fixture->arena, "%s/backup", rocks_fixture->folder);
    EXPECT_OK(rocks_backup(store, backup, rocks_fixture->arena));
    store_close(store);
    rocks_fixture_shell(
        arena_format(rocks_fixture->arena, "rm -r '%s/rocks'", rocks_fixture->data));
    struct error *err = rocks_restore(backup, rocks_fixture->data, rocks_fixture->arena);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "is a data folder already") != NULL);

    rocks_fixture->data = arena_format(rocks_fixture->arena, "%s/half", rocks_fixture->folder);
    EXPECT_OK(rocks_restore(backup, rocks_fixture->data, rocks_fixture->arena));
    rocks_fixture_shell(arena_format(
        rocks_fixture->arena, "sed -i 's/^database: made/database: being restored/' '%s/CADENZA'",
        rocks_fixture->data));
    struct rocks_options options = load_options(rocks_fixture->data);
    err = rocks_open(&options, rocks_fixture->arena, &store);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "that did not finish: remove it and restore again") != NULL);
    struct store_info info;
    EXPECT_KIND(rocks_info(rocks_fixture->data, rocks_fixture->arena, &info), ERR_BAD_REQUEST);
    char *third = arena_format(rocks_fixture->arena, "%s/third", rocks_fixture->folder);
    EXPECT_KIND(rocks_restore(rocks_fixture->data, third, rocks_fixture->arena), ERR_BAD_REQUEST);
}

/* ---- walks ---- */

#define WALK_SHARDS 2
#define WALK_STEPS  3
#define SEEDS_FEW   4 /* the default; with more (--seeds=) walks leave no call out */

struct judging {
    struct crash_fixture *crash_fixture;
    uint64_t reported_backup, reported_restore;
    bool has_restored; /* a store that works was found in DATA-restored */
    const char *complaint;
};

static bool
has_file(struct crash_fixture *crash_fixture, const char *folder, const char *name)
{
    return access(arena_format(crash_fixture->arena, "%s/%s", folder, name), F_OK) == 0;
}

/* A folder that opened: it must know that it was restored, and hold all. */
static const char *
judge_restored(struct judging *judging, struct store *store)
{
    struct crash_fixture *crash_fixture = judging->crash_fixture;
    uint64_t guard, done[LOAD_SHARDS_MAX];
    for (size_t i = 0; i < LOAD_SHARDS_MAX; i++)
        done[i] = WALK_STEPS;
    EXPECT_OK(store_guard(store, PARTITION_OF_SHARD(0), crash_fixture->arena, &guard));
    const char *complaint = load_verify(store, WALK_SHARDS, done, crash_fixture->arena);
    if (complaint == NULL && (rocks_memory(store) != STORE_RESTORED || guard < ROCKS_RESTORE_LEAP))
        complaint =
            arena_format(crash_fixture->arena, "it opened as if it had never been restored");
    return complaint;
}

static const char *
judge_folder(struct judging *judging, const char *folder, bool must_open)
{
    struct crash_fixture *crash_fixture = judging->crash_fixture;
    bool had_identity = has_file(crash_fixture, folder, "CADENZA");
    if (!had_identity && !has_file(crash_fixture, folder, "rocks"))
        return must_open ? "there is nothing" : NULL;
    struct rocks_options options = load_options(folder);
    struct store *store;
    struct error *err = rocks_open(&options, crash_fixture->arena, &store);
    if (err != NULL && !must_open && err->kind == ERR_BAD_REQUEST)
        return NULL;
    if (err != NULL)
        return err->message;
    const char *complaint = judge_restored(judging, store);
    store_close(store);
    return complaint;
}

/* What the process left: DATA-restored, and whether DATA-backup is a backup. */
static void
judge(void *argument)
{
    struct judging *judging = argument;
    struct crash_fixture *crash_fixture = judging->crash_fixture;
    char *backup = arena_format(crash_fixture->arena, "%s-backup", crash_fixture->data);
    char *restored = arena_format(crash_fixture->arena, "%s-restored", crash_fixture->data);
    char *again = arena_format(crash_fixture->arena, "%s-again", crash_fixture->data);
    judging->complaint = judge_folder(judging, restored, judging->reported_restore > 0);
    if (judging->complaint != NULL)
        return;
    struct error *err = rocks_restore(backup, again, crash_fixture->arena);
    if (err == NULL)
        judging->complaint = judge_folder(judging, again, true);
    else if (judging->reported_backup > 0 || err->kind != ERR_BAD_REQUEST)
        judging->complaint = err->message;
}

/* The number of calls, with or without a backup at the end. */
static uint64_t
count_calls(bool has_backup)
{
    struct crash_fixture crash_fixture;
    crash_begin(&crash_fixture, WALK_SHARDS, WALK_STEPS);
    struct crash_run run = {.action = "none", .has_backup = has_backup};
    EXPECT_EQ(crash_run(&crash_fixture, &run), CRASH_DONE);
    EXPECT_EQ(crash_fixture.acked[BACKUP_REPORTED], has_backup);
    EXPECT_EQ(crash_fixture.acked[RESTORE_REPORTED], has_backup);
    uint64_t calls = crash_calls(&crash_fixture);
    crash_end(&crash_fixture);
    return calls;
}

/* One process with a fault at that call; how it ended. */
static int
walk_one(const char *action, uint64_t at, bool *has_half)
{
    struct crash_fixture crash_fixture;
    crash_begin(&crash_fixture, WALK_SHARDS, WALK_STEPS);
    struct crash_run run = {.action = action, .at = at, .seed = at, .has_backup = true};
    int end = crash_run(&crash_fixture, &run);
    struct judging judging = {.crash_fixture = &crash_fixture,
                              .reported_backup = crash_fixture.acked[BACKUP_REPORTED],
                              .reported_restore = crash_fixture.acked[RESTORE_REPORTED]};
    char *backup = arena_format(crash_fixture.arena, "%s-backup", crash_fixture.data);
    *has_half = judging.reported_backup == 0 && access(backup, F_OK) == 0;
    linux_run(&(struct linux_options){.loops = 1, .pool_threads = 2}, judge, &judging);
    if (judging.complaint == NULL)
        judging.complaint = crash_judge(&crash_fixture, NULL);
    if (judging.complaint != NULL)
        TEST_FAIL("%s at call %" PRIu64 ": %s; the process ended with %d: %s", action, at,
                  judging.complaint, end, crash_output(&crash_fixture));
    crash_end(&crash_fixture);
    return end;
}

/* From a little before the backup to the end; every `stride`-th call, or all. */
static void
walk(const char *action, uint64_t stride, int end_expected)
{
    stride = test_seed_count() > SEEDS_FEW ? 1 : stride;
    uint64_t first = count_calls(false) * 3 / 4, last = count_calls(true), hits = 0, halves = 0;
    EXPECT(last > first + 30);
    for (uint64_t at = first + test_seed(test_seed_count() - 1) % stride; at <= last;
         at += stride) {
        bool has_half;
        hits += walk_one(action, at, &has_half) == end_expected;
        halves += has_half;
        if (has_half && end_expected != CRASH_POWER) /* a backup that failed is removed */
            TEST_FAIL("half a backup is left after %s at call %" PRIu64, action, at);
    }
    EXPECT(hits > (last - first) / stride / 2);
    EXPECT(end_expected != CRASH_POWER || halves > 0); /* there were cuts in the middle of it */
}

TEST(rocks_backup, a_power_cut_leaves_no_half_backup_that_is_believed)
{
    walk("power", 3, CRASH_POWER);
}

TEST(rocks_backup, an_io_error_leaves_no_half_backup_at_all)
{
    walk("eio", 6, CRASH_DONE);
}
