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
