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
#include "store/rocks/test_crash.h"
#include "store/rocks/test_wal.h"

/* ---- a bad header ---- */

/* One bit of a header is another: refused, wherever it is. */
static void
judge_flip(struct rocks_fixture *rocks_fixture, struct wal_copy *log, size_t record, size_t byte,
           uint8_t mask)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    uint8_t *changed = &log->bytes[log->record[record] + byte];
    *changed ^= mask;
    wal_write(log, 0);
    *changed ^= mask;
    struct wal_report report;
    struct error *err =
        wal_inspect(arena_format(arena, "%s/rocks", rocks_fixture->data), arena, &report);
    EXPECT_KIND(err, ERR_CORRUPT);
}

/* The length is what leads to the next record: a wrong one must not hide all that follow. */
ROCKS_TEST(rocks_log, a_bad_header_is_damage)
{
    struct wal_copy log;
    wal_make(rocks_fixture, 0, &log);
    wal_find_records(&log);
    EXPECT(log.count >= WAL_ROWS);
    for (size_t record = 0; record < log.count; record++)
        for (size_t byte = 0; byte < WAL_HEAD_BYTES; byte++)
            for (unsigned bit = 0; bit < 8; bit++)
                judge_flip(rocks_fixture, &log, record, byte, (uint8_t)(1U << bit));
    log.bytes[log.record[1] + 5] ^= 0x80;
    wal_write(&log, 0);
    struct rocks_options options = load_options(rocks_fixture->data);
    struct store *store;
    EXPECT_KIND(rocks_open(&options, rocks_fixture->arena, &store), ERR_CORRUPT);
}

/* ---- looking at an unfinished write ---- */

static void
expect_note(struct rocks_fixture *rocks_fixture, const struct wal_copy *log)
{
    struct store_check check;
    EXPECT_OK(rocks_check(rocks_fixture->data, rocks_fixture->arena, &check));
    EXPECT_EQ(check.problems, 0);
    EXPECT(check.info.torn_bytes > 0 && check.info.torn_bytes < log->size);
    EXPECT(strstr(check.info.note, "ends in an unfinished write of ") != NULL);
    EXPECT_EQ(check.info.kinds[ROW_RUN].rows, WAL_ROWS);
    struct store_info info;
    EXPECT_OK(rocks_info(rocks_fixture->data, rocks_fixture->arena, &info));
    EXPECT_EQ(info.torn_bytes, check.info.torn_bytes);
    EXPECT_EQ(wal_size(log->path), (long)log->size);
}

/* The last record spans blocks; some of its pages never came to the disk, or its end did not.
 * Looking tells of it and changes nothing; opening sets it aside. */
static void
run_torn(struct rocks_fixture *rocks_fixture, size_t zeros, size_t cut)
{
    struct wal_copy log;
    wal_make(rocks_fixture, 200000, &log);
    EXPECT(log.size > 200000);
    memset(log.bytes + 65536 + 4096, 0, zeros);
    log.size -= cut;
    wal_write(&log, 0);
    expect_note(rocks_fixture, &log);
    struct store *store = rocks_fixture_open(rocks_fixture);
    EXPECT_EQ(rocks_fixture_count(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN), WAL_ROWS);
    store_close(store);
    EXPECT(access(arena_format(rocks_fixture->arena, "%s/torn", rocks_fixture->data), F_OK) == 0);
    struct store_info info;
    EXPECT_OK(rocks_info(rocks_fixture->data, rocks_fixture->arena, &info));
    EXPECT(info.torn_bytes == 0 && info.note == NULL);
}

static void
run_missing_pages(struct rocks_fixture *rocks_fixture)
{
    run_torn(rocks_fixture, 8192, 0);
}

static void
run_missing_end(struct rocks_fixture *rocks_fixture)
{
    run_torn(rocks_fixture, 0, 3);
}

TEST(rocks_log, a_check_reports_an_unfinished_write_and_calls_it_no_problem)
{
    rocks_fixture_run(run_missing_pages);
    rocks_fixture_run(run_missing_end);
}

/* What a start refuses is a problem for a check. */
ROCKS_TEST(rocks_log, a_check_finds_that_the_log_is_missing)
{
    struct wal_copy log;
    wal_make(rocks_fixture, 0, &log);
    rocks_fixture_shell(
        arena_format(rocks_fixture->arena, "rm '%s'/rocks/*.log", rocks_fixture->data));
    struct store_check check;
    EXPECT_OK(rocks_check(rocks_fixture->data, rocks_fixture->arena, &check));
    EXPECT_EQ(check.problems, 1);
    EXPECT(strstr(check.sentence[0], "is missing") != NULL);
    struct store_info info;
    EXPECT_KIND(rocks_info(rocks_fixture->data, rocks_fixture->arena, &info), ERR_CORRUPT);
}

/* ---- the power goes while the end is set aside ---- */

#define OPENING_CALLS 40 /* more than it takes to cut the log */

/* The bytes are in the log, or in torn/, after every cut. */
TEST(rocks_log, an_unfinished_write_is_kept_though_the_power_goes_while_it_is_set_aside)
{
    struct crash_fixture crash_fixture;
    crash_begin(&crash_fixture, 1, UINT64_MAX / 2);
    struct crash_run kill = {.kill_after = 10};
    EXPECT_EQ(crash_run(&crash_fixture, &kill), CRASH_KILLED);
    char *log = rocks_fixture_find_file(crash_fixture.arena, crash_fixture.data, ".log");
    rocks_fixture_drop_runway(log);
    long size = wal_size(log) - 3;
    EXPECT_EQ(truncate(log, size), 0);
    rocks_fixture_shell(arena_format(crash_fixture.arena, "cp -a '%s' '%s/saved'",
                                     crash_fixture.data, crash_fixture.folder));
    crash_fixture.steps = 0;
    int aside = 0;
    for (uint64_t at = 1; at <= OPENING_CALLS; at++) {
        struct crash_run cut = {.action = "power", .at = at, .seed = at};
        EXPECT_EQ(crash_run(&crash_fixture, &cut), CRASH_POWER);
        char *torn = arena_format(crash_fixture.arena, "ls '%s'/torn/*.log-* >%s/torn 2>&1",
                                  crash_fixture.data, crash_fixture.folder);
        bool is_aside = system(torn) == 0;
        if (wal_size(log) != size && !is_aside)
            TEST_FAIL("after a cut at call %d it is nowhere", (int)at);
        aside += is_aside;
        rocks_fixture_shell(arena_format(crash_fixture.arena, "rm -r '%s' && cp -a '%s/saved' '%s'",
                                         crash_fixture.data, crash_fixture.folder,
                                         crash_fixture.data));
    }
    EXPECT(aside > 0 && aside < OPENING_CALLS);
    crash_end(&crash_fixture);
}

/* ---- a log that was cut ---- */

/* Enough commits for several notes; the store is copied as a kill would leave it. */
static void
fill_log(struct rocks_fixture *rocks_fixture, struct wal_copy *log)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    uint8_t bytes[1500];
    memset(bytes, 'x', sizeof bytes);
    for (uint64_t i = 0; i < 200; i++) {
        struct batch *batch = batch_new(rocks_fixture->arena, PARTITION_OF_SHARD(1), 1);
        batch_put(batch, ROW_RUN, rocks_fixture_key(rocks_fixture, i),
                  slice_of(bytes, sizeof bytes));
        EXPECT_OK(store_commit(store, batch, i == 0 ? 0 : 1, rocks_fixture->arena));
    }
    char *copy = arena_format(rocks_fixture->arena, "%s/copy", rocks_fixture->folder);
    rocks_fixture_shell(
        arena_format(rocks_fixture->arena, "cp -a '%s' '%s'", rocks_fixture->data, copy));
    store_close(store);
    rocks_fixture->data = copy;
    *log = (struct wal_copy){
        .path = rocks_fixture_find_file(rocks_fixture->arena, rocks_fixture->data, ".log")};
    rocks_fixture_drop_runway(log->path);
    log->size = (size_t)wal_size(log->path);
}

static void
expect_cut_refused(struct rocks_fixture *rocks_fixture, const char *path, size_t size)
{
    int failed = truncate(path, (off_t)size);
    check(failed == 0);
    struct rocks_options options = load_options(rocks_fixture->data);
    struct store *store;
    struct error *err = rocks_open(&options, rocks_fixture->arena, &store);
    EXPECT_KIND(err, ERR_CORRUPT);
    EXPECT(strstr(err->message, ".log was cut: it ends before row ") != NULL);
    struct store_check check;
    EXPECT_OK(rocks_check(rocks_fixture->data, rocks_fixture->arena, &check));
    EXPECT_EQ(check.problems, 1);
}

/* In a record, between any two, and before the first: what is gone was acknowledged. */
ROCKS_TEST(rocks_log, a_log_that_was_cut_in_its_middle_is_refused)
{
    struct wal_copy log;
    fill_log(rocks_fixture, &log);
    EXPECT(log.size > 4 * WATERMARK_BYTES);
    for (size_t size = log.size / 3 * 2; size > 1000; size -= 997)
        expect_cut_refused(rocks_fixture, log.path, size);
    expect_cut_refused(rocks_fixture, log.path, 0);
}

/* What was written behind the last note may be torn, and a note that is damaged says nothing. */
ROCKS_TEST(rocks_log, a_log_that_is_torn_behind_what_was_noted_opens)
{
    struct wal_copy log;
    fill_log(rocks_fixture, &log);
    char *mark = arena_format(rocks_fixture->arena, "%s/log.mark", rocks_fixture->data);
    EXPECT_EQ(wal_size(mark), 20);
    int failed = truncate(log.path, (off_t)log.size - 100);
    check(failed == 0);
    struct store *store = rocks_fixture_open(rocks_fixture);
    EXPECT_EQ(rocks_fixture_count(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN), 199);
    store_close(store);
    EXPECT_OK(rocks_check(rocks_fixture->data, rocks_fixture->arena, &(struct store_check){0}));
    failed = truncate(mark, 10);
    check(failed == 0);
    store_close(rocks_fixture_open(rocks_fixture));
}
