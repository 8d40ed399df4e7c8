/* rocks_runway_test.c - logs with zeros ahead: what a power cut may leave of the last record, what
 * is damage, and that no record can be missing (test_wal.h has the method). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/random.h"
#include "base/test.h"
#include "store/rocks/inside.h"
#include "store/rocks/test_wal.h"

#define SECTOR 512
#define RUNWAY 100000 /* of these logs; enough to go on for some blocks */

static struct error *
inspect(struct rocks_fixture *rocks_fixture, struct arena *arena, struct wal_report *report)
{
    return wal_inspect(arena_format(arena, "%s/rocks", rocks_fixture->data), arena, report);
}

static void
expect_rows(struct rocks_fixture *rocks_fixture, size_t rows)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    EXPECT_EQ(rocks_fixture_count(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN), rows);
    store_close(store);
}

static void
expect_refused(struct rocks_fixture *rocks_fixture, const char *words)
{
    struct rocks_options options = load_options(rocks_fixture->data);
    struct store *store;
    struct error *err = rocks_open(&options, rocks_fixture->arena, &store);
    EXPECT_KIND(err, ERR_CORRUPT);
    if (strstr(err->message, words) == NULL)
        TEST_FAIL("\"%s\" does not say \"%s\"", err->message, words);
}

/* ---- the runway ---- */

ROCKS_TEST(rocks_runway, commits_do_not_change_the_size_of_the_log)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    rocks_fixture_put(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN, 0);
    long size =
        wal_size(rocks_fixture_find_file(rocks_fixture->arena, rocks_fixture->data, ".log"));
    EXPECT(size > 100000);
    for (uint64_t i = 1; i < 100; i++)
        rocks_fixture_put(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN, i);
    EXPECT_EQ(wal_size(rocks_fixture_find_file(rocks_fixture->arena, rocks_fixture->data, ".log")),
              size);
    store_close(store);
}

ROCKS_TEST(rocks_runway, zeros_behind_the_last_record_are_its_end)
{
    static const size_t zeros[] = {0, 1, 6, 7, 8, 511, 512, 32768, RUNWAY};
    struct wal_copy log;
    struct wal_report report;
    wal_make(rocks_fixture, 100, &log);
    for (size_t i = 0; i < array_length(zeros); i++) {
        wal_write(&log, zeros[i]);
        EXPECT_OK(inspect(rocks_fixture, rocks_fixture->arena, &report));
        EXPECT(report.torn_file == NULL && report.gap_file == NULL && report.records > WAL_ROWS);
    }
    struct store_check check;
    EXPECT_OK(rocks_check(rocks_fixture->data, rocks_fixture->arena, &check));
    EXPECT(check.problems == 0 && check.info.note == NULL);
    expect_rows(rocks_fixture, WAL_ROWS + 1);
}

/* ---- a power cut in the last record ---- */

/* Sectors of the log from `begin` on never came: each by a coin, or one, or all but one, or all
 * from one on. How many. */
static size_t
lose_sectors(struct wal_copy *log, size_t begin, struct random *random)
{
    size_t lost = 0;
    uint64_t way = random_below(random, 4);
    uint64_t sectors = log->size / SECTOR - begin / SECTOR + 1;
    uint64_t chosen = random_below(random, sectors);
    for (size_t at = begin, i = 0; at < log->size; i++) {
        size_t next = (at / SECTOR + 1) * SECTOR;
        next = next < log->size ? next : log->size;
        bool is_lost = way == 0   ? random_below(random, 2) == 0
                       : way == 1 ? i == chosen
                       : way == 2 ? i != chosen
                                  : i >= chosen;
        if (is_lost)
            memset(log->bytes + at, 0, next - at);
        lost += is_lost;
        at = next;
    }
    return lost;
}

/* The rows that an opening has to show then. */
static size_t
judge_torn(struct rocks_fixture *rocks_fixture, struct wal_copy *log, size_t begin,
           struct random *random)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct wal_copy torn = *log;
    torn.bytes = arena_alloc(arena, log->size);
    memcpy(torn.bytes, log->bytes, log->size);
    size_t lost = lose_sectors(&torn, begin, random);
    wal_write(&torn, random_below(random, 2) == 0 ? RUNWAY : random_below(random, 2000));
    size_t last = log->size;
    while (torn.bytes[last - 1] == 0)
        last--;
    struct wal_report report;
    EXPECT_OK(inspect(rocks_fixture, arena, &report));
    if (lost == 0 || last <= begin) {
        EXPECT(report.torn_file == NULL);
        return WAL_ROWS + (lost == 0);
    }
    EXPECT(report.torn_file != NULL);
    EXPECT_EQ(report.torn_offset, begin);
    EXPECT_EQ(report.torn_bytes, last - begin);
    return WAL_ROWS;
}

static void
run_torn(struct rocks_fixture *rocks_fixture, size_t bytes, uint64_t seed)
{
    struct wal_copy log;
    struct random random;
    random_seed(&random, seed);
    wal_make(rocks_fixture, bytes, &log);
    wal_find_records(&log);
    size_t begin = log.record[log.count - 1];
    EXPECT_EQ(log.count, WAL_ROWS + 1);
    size_t rows = 0;
    for (int i = 0; i < 200; i++)
        rows = judge_torn(rocks_fixture, &log, begin, &random);
    expect_rows(rocks_fixture, rows);
}

ROCKS_TEST(rocks_runway, any_sectors_of_the_last_record_may_be_missing)
{
    static const size_t bytes[] = {10, 700, 20000, 100000};
    char *folder = rocks_fixture->data;
    for (int i = 0; i < test_seed_count(); i++) {
        rocks_fixture->data = arena_format(rocks_fixture->arena, "%s%d", folder, i);
        rocks_fixture_shell(
            arena_format(rocks_fixture->arena, "rm -rf '%s/copy'", rocks_fixture->folder));
        run_torn(rocks_fixture, bytes[i % (int)array_length(bytes)], test_seed(i));
    }
}

/* ---- damage ---- */

static void
judge_flip(struct rocks_fixture *rocks_fixture, struct wal_copy *log, size_t at, unsigned bit)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct wal_report report;
    log->bytes[at] ^= (uint8_t)(1U << bit);
    wal_write(log, 40000);
    log->bytes[at] ^= (uint8_t)(1U << bit);
    struct error *err = inspect(rocks_fixture, arena, &report);
    if (err == NULL)
        TEST_FAIL("bit %d of byte %d of %d is not found", (int)bit, (int)at, (int)log->size);
    EXPECT_KIND(err, ERR_CORRUPT);
}

static void
run_flips(struct rocks_fixture *rocks_fixture)
{
    struct wal_copy log;
    wal_make(rocks_fixture, 50, &log);
    for (size_t at = 0; at < log.size; at++)
        judge_flip(rocks_fixture, &log, at, (unsigned)(at % 8));
    wal_find_records(&log);
    for (unsigned i = 0; i < 8 * WAL_HEAD_BYTES; i++)
        judge_flip(rocks_fixture, &log, log.record[log.count - 1] + i / 8, i % 8);
    log.bytes[log.size - 20] ^= 1;
    wal_write(&log, RUNWAY);
    expect_refused(rocks_fixture, "no power cut leaves it so");
}

static void
run_flips_in_a_chain(struct rocks_fixture *rocks_fixture)
{
    struct wal_copy log;
    wal_make(rocks_fixture, 100000, &log);
    for (size_t at = 0; at < log.size; at += 1009)
        judge_flip(rocks_fixture, &log, at, (unsigned)(at % 8));
    for (unsigned i = 0; i < 24 * WAL_HEAD_BYTES; i++) /* the heads of three blocks */
        judge_flip(rocks_fixture, &log,
                   32768 * (1 + i / 8 / WAL_HEAD_BYTES) + i / 8 % WAL_HEAD_BYTES, i % 8);
}

TEST(rocks_runway, a_bit_that_is_another_is_damage_though_zeros_follow)
{
    rocks_fixture_run(run_flips);
    rocks_fixture_run(run_flips_in_a_chain);
}

ROCKS_TEST(rocks_runway, a_value_may_be_of_zeros)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    struct batch *batch = batch_new(rocks_fixture->arena, PARTITION_OF_SHARD(1), 1);
    struct slice zeros = slice_of(arena_zalloc(rocks_fixture->arena, 1, 100000), 100000);
    batch_put(batch, ROW_RUN, rocks_fixture_key(rocks_fixture, 0), zeros);
    EXPECT_OK(store_commit(store, batch, 0, rocks_fixture->arena));
    char *copy = arena_format(rocks_fixture->arena, "%s/copy", rocks_fixture->folder);
    rocks_fixture_shell(
        arena_format(rocks_fixture->arena, "cp -a '%s' '%s'", rocks_fixture->data, copy));
    store_close(store);
    rocks_fixture->data = copy;
    struct wal_report report;
    EXPECT_OK(inspect(rocks_fixture, rocks_fixture->arena, &report));
    EXPECT(report.torn_file == NULL && report.records > 0);
    expect_rows(rocks_fixture, 1);
}

/* ---- records that are missing ---- */

/* Writes records from .. to - 1 of the log as a log of that number, and zeros behind them. */
static char *
write_part(struct rocks_fixture *rocks_fixture, const struct wal_copy *log, size_t from, size_t to,
           uint64_t number)
{
    size_t end = to == log->count ? log->size : log->record[to];
    struct wal_copy part = {.bytes = log->bytes + log->record[from],
                            .size = end - log->record[from]};
    part.path =
        arena_format(rocks_fixture->arena, "%s/rocks/%06d.log", rocks_fixture->data, (int)number);
    wal_write(&part, 5000);
    return part.path;
}

/* The log in three parts: as RocksDB writes them when memtables are changed. */
ROCKS_TEST(rocks_runway, a_log_that_is_missing_between_others_or_lost_its_end_refuses_to_open)
{
    struct wal_copy log;
    wal_make(rocks_fixture, 0, &log);
    wal_find_records(&log);
    uint64_t number = strtoull(strrchr(log.path, '/') + 1, NULL, 10);
    write_part(rocks_fixture, &log, 0, 4, number);
    char *middle = write_part(rocks_fixture, &log, 4, 8, number + 100);
    write_part(rocks_fixture, &log, 8, log.count, number + 200);
    unlink(middle);
    expect_refused(rocks_fixture, "are missing");
    write_part(rocks_fixture, &log, 4, 7, number + 100);
    expect_refused(rocks_fixture, "are missing");
    write_part(rocks_fixture, &log, 4, 8, number + 100);
    expect_rows(rocks_fixture, WAL_ROWS);
}

/* The second of three records is cut out of a log. */
ROCKS_TEST(rocks_runway, a_record_that_is_missing_inside_a_log_refuses_to_open)
{
    struct wal_copy log;
    wal_make(rocks_fixture, 0, &log);
    wal_find_records(&log);
    size_t from = log.record[5], to = log.record[6];
    memmove(log.bytes + from, log.bytes + to, log.size - to);
    log.size -= to - from;
    wal_write(&log, RUNWAY);
    expect_refused(rocks_fixture, "has to be");
}

/* RocksDB needs logs from some number on; what is before may have any gap. */
ROCKS_TEST(rocks_runway, a_log_that_is_no_longer_needed_does_not_count)
{
    struct wal_copy log;
    struct store *store = rocks_fixture_open(rocks_fixture);
    rocks_fixture_put(rocks_fixture, store, PARTITION_OF_SHARD(1), ROW_RUN, 0);
    store_close(store); /* from now on older logs are not needed */
    wal_make(rocks_fixture, 0, &log);
    wal_find_records(&log);
    write_part(rocks_fixture, &log, 0, 3, 1);
    struct wal_report report;
    EXPECT_OK(inspect(rocks_fixture, rocks_fixture->arena, &report));
    EXPECT(report.gap_file != NULL);
    expect_rows(rocks_fixture, WAL_ROWS);
}
