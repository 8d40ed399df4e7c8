/* rocks_log_test.c - what a log may look like after a crash and still open, what refuses, and that
 * looking judges as opening does. (test_wal.h has the method). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/test.h"
#include "store/rocks/inside.h"
#include "store/rocks/test_trial.h"
#include "store/rocks/test_wal.h"

/* ---- a bad header ---- */

/* One bit of a header is another: refused, wherever it is. */
static void
judge_flip(struct place *place, struct wal_copy *log, size_t record, size_t byte, uint8_t mask)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    uint8_t *changed = &log->bytes[log->record[record] + byte];
    *changed ^= mask;
    wal_write(log, 0);
    *changed ^= mask;
    struct wal_report report;
    struct error *err = wal_inspect(arena_format(arena, "%s/rocks", place->data), arena, &report);
    EXPECT_KIND(err, ERR_CORRUPT);
}

/* The length is what leads to the next record: a wrong one must not hide all that follow. */
static void
run_headers(struct place *place)
{
    struct wal_copy log;
    wal_make(place, 0, &log);
    wal_find_records(&log);
    EXPECT(log.count >= WAL_ROWS);
    for (size_t record = 0; record < log.count; record++)
        for (size_t byte = 0; byte < WAL_HEAD_BYTES; byte++)
            for (unsigned bit = 0; bit < 8; bit++)
                judge_flip(place, &log, record, byte, (uint8_t)(1U << bit));
    log.bytes[log.record[1] + 5] ^= 0x80;
    wal_write(&log, 0);
    struct rocks_options options = load_options(place->data);
    struct store *store;
    EXPECT_KIND(rocks_open(&options, place->arena, &store), ERR_CORRUPT);
}

TEST(rocks_log, a_bad_header_is_damage)
{
    place_run(run_headers);
}

/* ---- looking at an unfinished write ---- */

static void
expect_note(struct place *place, const struct wal_copy *log)
{
    struct rocks_check check;
    EXPECT_OK(rocks_check(place->data, place->arena, &check));
    EXPECT_EQ(check.problems, 0);
    EXPECT(check.info.torn_bytes > 0 && check.info.torn_bytes < log->size);
    EXPECT(strstr(check.info.note, "ends in an unfinished write of ") != NULL);
    EXPECT_EQ(check.info.kinds[ROW_RUN].rows, WAL_ROWS);
    struct rocks_info info;
    EXPECT_OK(rocks_info(place->data, place->arena, &info));
    EXPECT_EQ(info.torn_bytes, check.info.torn_bytes);
    EXPECT_EQ(wal_size(log->path), (long)log->size);
}

/* The last record spans blocks; some of its pages never came to the disk, or its end did not.
 * Looking tells of it and changes nothing; opening sets it aside. */
static void
run_torn(struct place *place, size_t zeros, size_t cut)
{
    struct wal_copy log;
    wal_make(place, 200000, &log);
    EXPECT(log.size > 200000);
    memset(log.bytes + 65536 + 4096, 0, zeros);
    log.size -= cut;
    wal_write(&log, 0);
    expect_note(place, &log);
    struct store *store = place_open(place);
    EXPECT_EQ(place_count(place, store, PARTITION_OF_SHARD(1), ROW_RUN), WAL_ROWS);
    store_close(store);
    EXPECT(access(arena_format(place->arena, "%s/torn", place->data), F_OK) == 0);
    struct rocks_info info;
    EXPECT_OK(rocks_info(place->data, place->arena, &info));
    EXPECT(info.torn_bytes == 0 && info.note == NULL);
}

static void
run_missing_pages(struct place *place)
{
    run_torn(place, 8192, 0);
}

static void
run_missing_end(struct place *place)
{
    run_torn(place, 0, 3);
}

TEST(rocks_log, a_check_tells_of_an_unfinished_write_and_calls_it_no_problem)
{
    place_run(run_missing_pages);
    place_run(run_missing_end);
}

/* What a start refuses is a problem for a check. */
static void
run_no_log(struct place *place)
{
    struct wal_copy log;
    wal_make(place, 0, &log);
    place_shell(arena_format(place->arena, "rm '%s'/rocks/*.log", place->data));
    struct rocks_check check;
    EXPECT_OK(rocks_check(place->data, place->arena, &check));
    EXPECT_EQ(check.problems, 1);
    EXPECT(strstr(check.sentence[0], "is missing") != NULL);
    struct rocks_info info;
    EXPECT_KIND(rocks_info(place->data, place->arena, &info), ERR_CORRUPT);
}

TEST(rocks_log, a_check_finds_that_the_log_is_missing)
{
    place_run(run_no_log);
}

/* ---- the power goes while the end is set aside ---- */

#define OPENING_CALLS 40 /* more than it takes to cut the log */

/* The bytes are in the log, or in torn/, after every cut. */
TEST(rocks_log, an_unfinished_write_is_kept_though_the_power_goes_while_it_is_set_aside)
{
    struct trial trial;
    trial_begin(&trial, 1, UINT64_MAX / 2);
    struct trial_run kill = {.kill_after = 10};
    EXPECT_EQ(trial_run(&trial, &kill), TRIAL_KILLED);
    char *log = place_find_file(trial.arena, trial.data, ".log");
    place_drop_runway(log);
    long size = wal_size(log) - 3;
    EXPECT_EQ(truncate(log, size), 0);
    place_shell(arena_format(trial.arena, "cp -a '%s' '%s/saved'", trial.data, trial.folder));
    trial.steps = 0;
    int aside = 0;
    for (uint64_t at = 1; at <= OPENING_CALLS; at++) {
        struct trial_run cut = {.action = "power", .at = at, .seed = at};
        EXPECT_EQ(trial_run(&trial, &cut), TRIAL_POWER);
        char *torn = arena_format(trial.arena, "ls '%s'/torn/*.log-* >%s/torn 2>&1", trial.data,
                                  trial.folder);
        bool is_aside = system(torn) == 0;
        if (wal_size(log) != size && !is_aside)
            TEST_FAIL("after a cut at call %d it is nowhere", (int)at);
        aside += is_aside;
        place_shell(arena_format(trial.arena, "rm -r '%s' && cp -a '%s/saved' '%s'", trial.data,
                                 trial.folder, trial.data));
    }
    EXPECT(aside > 0 && aside < OPENING_CALLS);
    trial_end(&trial);
}

/* ---- a log that was cut ---- */

/* Enough commits for several notes; the store is copied as a kill would leave it. */
static void
fill_log(struct place *place, struct wal_copy *log)
{
    struct store *store = place_open(place);
    uint8_t bytes[1500];
    memset(bytes, 'x', sizeof bytes);
    for (uint64_t i = 0; i < 200; i++) {
        struct batch *batch = batch_new(place->arena, PARTITION_OF_SHARD(1), 1);
        batch_put(batch, ROW_RUN, place_key(place, i), slice_of(bytes, sizeof bytes));
        EXPECT_OK(store_commit(store, batch, i == 0 ? 0 : 1, place->arena));
    }
    char *copy = arena_format(place->arena, "%s/copy", place->folder);
    place_shell(arena_format(place->arena, "cp -a '%s' '%s'", place->data, copy));
    store_close(store);
    place->data = copy;
    *log = (struct wal_copy){.path = place_find_file(place->arena, place->data, ".log")};
    place_drop_runway(log->path);
    log->size = (size_t)wal_size(log->path);
}

static void
expect_cut_refused(struct place *place, const char *path, size_t size)
{
    int failed = truncate(path, (off_t)size);
    check(failed == 0);
    struct rocks_options options = load_options(place->data);
    struct store *store;
    struct error *err = rocks_open(&options, place->arena, &store);
    EXPECT_KIND(err, ERR_CORRUPT);
    EXPECT(strstr(err->message, ".log was cut: it ends before row ") != NULL);
    struct rocks_check check;
    EXPECT_OK(rocks_check(place->data, place->arena, &check));
    EXPECT_EQ(check.problems, 1);
}

/* In a record, between any two, and before the first: what is gone was acknowledged. */
static void
run_cut(struct place *place)
{
    struct wal_copy log;
    fill_log(place, &log);
    EXPECT(log.size > 4 * MARK_BYTES);
    for (size_t size = log.size / 3 * 2; size > 1000; size -= 997)
        expect_cut_refused(place, log.path, size);
    expect_cut_refused(place, log.path, 0);
}

TEST(rocks_log, a_log_that_was_cut_in_its_middle_is_refused)
{
    place_run(run_cut);
}

/* What was written behind the last note may be torn, and a note that is damaged says nothing. */
static void
run_torn_behind_mark(struct place *place)
{
    struct wal_copy log;
    fill_log(place, &log);
    char *mark = arena_format(place->arena, "%s/log.mark", place->data);
    EXPECT_EQ(wal_size(mark), 20);
    int failed = truncate(log.path, (off_t)log.size - 100);
    check(failed == 0);
    struct store *store = place_open(place);
    EXPECT_EQ(place_count(place, store, PARTITION_OF_SHARD(1), ROW_RUN), 199);
    store_close(store);
    EXPECT_OK(rocks_check(place->data, place->arena, &(struct rocks_check){0}));
    failed = truncate(mark, 10);
    check(failed == 0);
    store_close(place_open(place));
}

TEST(rocks_log, a_log_that_is_torn_behind_what_was_noted_opens)
{
    place_run(run_torn_behind_mark);
}
