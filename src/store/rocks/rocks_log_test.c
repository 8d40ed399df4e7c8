/* rocks_log_test.c - what a log may look like after a crash and still open, what refuses, and that
 * looking judges as opening does.
 *
 * Method: a store that has written and not closed is copied as it lies on the disk, which is what a
 * killed process leaves; then the copy's log is changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/test.h"
#include "store/rocks/inside.h"
#include "store/rocks/test_place.h"
#include "store/rocks/test_trial.h"

#define ROWS       12
#define HEAD_BYTES 7 /* of a fragment: checksum 4, length 2, type 1 */

/* ---- a log to damage ---- */

struct log_copy {
    char *path;
    uint8_t *bytes;
    size_t size;
    size_t record[64]; /* where records begin */
    size_t count;
};

static long
size_of(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 ? facts.st_size : -1;
}

static void
read_log(struct place *place, struct log_copy *log)
{
    *log = (struct log_copy){.path = place_find_file(place->arena, place->data, ".log")};
    log->size = (size_t)size_of(log->path);
    log->bytes = arena_alloc(place->arena, log->size);
    FILE *file = fopen(log->path, "r");
    check(file != NULL);
    size_t count = fread(log->bytes, 1, log->size, file);
    fclose(file);
    check(count == log->size);
}

static void
write_log(const struct log_copy *log)
{
    FILE *file = fopen(log->path, "w");
    check(file != NULL);
    fwrite(log->bytes, 1, log->size, file);
    fclose(file);
}

/* For a log of one block. */
static void
find_records(struct log_copy *log)
{
    check(log->size < 32768);
    for (size_t at = 0; at < log->size;) {
        check(log->count < array_length(log->record) && log->bytes[at + 6] == 1);
        log->record[log->count++] = at;
        at += HEAD_BYTES + log->bytes[at + 4] + ((size_t)log->bytes[at + 5] << 8);
    }
}

/* ROWS commits of a row each, then one of `last_bytes` if not 0; the place's data folder is then
 * the copy. */
static void
make_copy(struct place *place, size_t last_bytes, struct log_copy *log)
{
    struct store *store = place_open(place);
    for (uint64_t i = 0; i < ROWS; i++)
        place_put(place, store, PARTITION_OF_SHARD(1), ROW_RUN, i);
    struct batch *batch = batch_new(place->arena, PARTITION_OF_SHARD(1), 1);
    uint8_t *bytes = arena_zalloc(place->arena, 1, last_bytes);
    memset(bytes, 'x', last_bytes);
    batch_put(batch, ROW_RUN, place_key(place, ROWS), slice_of(bytes, last_bytes));
    if (last_bytes > 0)
        EXPECT_OK(store_commit(store, batch, 1, place->arena));
    char *copy = arena_format(place->arena, "%s/copy", place->folder);
    place_shell(arena_format(place->arena, "cp -a '%s' '%s'", place->data, copy));
    store_close(store);
    place->data = copy;
    read_log(place, log);
}

/* ---- a bad header ---- */

/* One byte of a header is another. In the last record: an unfinished write that begins there. */
static void
judge_flip(struct place *place, struct log_copy *log, size_t record, size_t byte, uint8_t mask)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    uint8_t *changed = &log->bytes[log->record[record] + byte];
    *changed ^= mask;
    write_log(log);
    *changed ^= mask;
    struct wal_report report;
    struct error *err = wal_inspect(arena_format(arena, "%s/rocks", place->data), arena, &report);
    if (record + 1 < log->count) {
        EXPECT_KIND(err, ERR_CORRUPT);
        return;
    }
    EXPECT_OK(err);
    EXPECT(report.torn_file != NULL);
    EXPECT_EQ(report.torn_offset, log->record[record]);
    EXPECT_EQ(report.torn_bytes, log->size - log->record[record]);
}

/* The length is what leads to the next record: a wrong one must not hide all that follow. */
static void
run_headers(struct place *place)
{
    struct log_copy log;
    make_copy(place, 0, &log);
    find_records(&log);
    EXPECT(log.count >= ROWS);
    for (size_t record = 0; record < log.count; record++)
        for (size_t byte = 0; byte < HEAD_BYTES; byte++)
            for (unsigned bit = 0; bit < 8; bit++)
                judge_flip(place, &log, record, byte, (uint8_t)(1U << bit));
    log.bytes[log.record[1] + 5] ^= 0x80;
    write_log(&log);
    struct rocks_options options = load_options(place->data);
    struct store *store;
    EXPECT_KIND(rocks_open(&options, place->arena, &store), ERR_CORRUPT);
}

TEST(rocks_log, a_bad_header_is_an_unfinished_write_in_the_last_record_only)
{
    place_run(run_headers);
}

/* ---- looking at an unfinished write ---- */

static void
expect_note(struct place *place, const struct log_copy *log)
{
    struct rocks_check check;
    EXPECT_OK(rocks_check(place->data, place->arena, &check));
    EXPECT_EQ(check.problems, 0);
    EXPECT(check.info.torn_bytes > 0 && check.info.torn_bytes < log->size);
    EXPECT(strstr(check.info.note, "ends in an unfinished write of ") != NULL);
    EXPECT_EQ(check.info.kinds[ROW_RUN].rows, ROWS);
    struct rocks_info info;
    EXPECT_OK(rocks_info(place->data, place->arena, &info));
    EXPECT_EQ(info.torn_bytes, check.info.torn_bytes);
    EXPECT_EQ(size_of(log->path), (long)log->size);
}

/* The last record spans blocks; some of its pages never came to the disk, or its end did not.
 * Looking tells of it and changes nothing; opening sets it aside. */
static void
run_torn(struct place *place, size_t zeros, size_t cut)
{
    struct log_copy log;
    make_copy(place, 200000, &log);
    EXPECT(log.size > 200000);
    memset(log.bytes + 65536 + 4096, 0, zeros);
    log.size -= cut;
    write_log(&log);
    expect_note(place, &log);
    struct store *store = place_open(place);
    EXPECT_EQ(place_count(place, store, PARTITION_OF_SHARD(1), ROW_RUN), ROWS);
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
    struct log_copy log;
    make_copy(place, 0, &log);
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
    long size = size_of(log) - 3;
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
        if (size_of(log) != size && !is_aside)
            TEST_FAIL("after a cut at call %d it is nowhere", (int)at);
        aside += is_aside;
        place_shell(arena_format(trial.arena, "rm -r '%s' && cp -a '%s/saved' '%s'", trial.data,
                                 trial.folder, trial.data));
    }
    EXPECT(aside > 0 && aside < OPENING_CALLS);
    trial_end(&trial);
}
