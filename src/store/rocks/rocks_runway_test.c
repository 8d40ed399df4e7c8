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
inspect(struct place *place, struct arena *arena, struct wal_report *report)
{
    return wal_inspect(arena_format(arena, "%s/rocks", place->data), arena, report);
}

static void
expect_rows(struct place *place, size_t rows)
{
    struct store *store = place_open(place);
    EXPECT_EQ(place_count(place, store, PARTITION_OF_SHARD(1), ROW_RUN), rows);
    store_close(store);
}

static void
expect_refused(struct place *place, const char *words)
{
    struct rocks_options options = load_options(place->data);
    struct store *store;
    struct error *err = rocks_open(&options, place->arena, &store);
    EXPECT_KIND(err, ERR_CORRUPT);
    if (strstr(err->message, words) == NULL)
        TEST_FAIL("\"%s\" does not say \"%s\"", err->message, words);
}

/* ---- the runway ---- */

static void
run_is_laid(struct place *place)
{
    struct store *store = place_open(place);
    place_put(place, store, PARTITION_OF_SHARD(1), ROW_RUN, 0);
    long size = wal_size(place_find_file(place->arena, place->data, ".log"));
    EXPECT(size > 100000);
    for (uint64_t i = 1; i < 100; i++)
        place_put(place, store, PARTITION_OF_SHARD(1), ROW_RUN, i);
    EXPECT_EQ(wal_size(place_find_file(place->arena, place->data, ".log")), size);
    store_close(store);
}

TEST(rocks_runway, commits_do_not_change_the_size_of_the_log)
{
    place_run(run_is_laid);
}

static void
run_zeros_behind(struct place *place)
{
    static const size_t zeros[] = {0, 1, 6, 7, 8, 511, 512, 32768, RUNWAY};
    struct wal_copy log;
    struct wal_report report;
    wal_make(place, 100, &log);
    for (size_t i = 0; i < array_length(zeros); i++) {
        wal_write(&log, zeros[i]);
        EXPECT_OK(inspect(place, place->arena, &report));
        EXPECT(report.torn_file == NULL && report.gap_file == NULL && report.records > WAL_ROWS);
    }
    struct rocks_check check;
    EXPECT_OK(rocks_check(place->data, place->arena, &check));
    EXPECT(check.problems == 0 && check.info.note == NULL);
    expect_rows(place, WAL_ROWS + 1);
}

TEST(rocks_runway, zeros_behind_the_last_record_are_its_end)
{
    place_run(run_zeros_behind);
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
judge_torn(struct place *place, struct wal_copy *log, size_t begin, struct random *random)
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
    EXPECT_OK(inspect(place, arena, &report));
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
run_torn(struct place *place, size_t bytes, uint64_t seed)
{
    struct wal_copy log;
    struct random random;
    random_seed(&random, seed);
    wal_make(place, bytes, &log);
    wal_find_records(&log);
    size_t begin = log.record[log.count - 1];
    EXPECT_EQ(log.count, WAL_ROWS + 1);
    size_t rows = 0;
    for (int i = 0; i < 200; i++)
        rows = judge_torn(place, &log, begin, &random);
    expect_rows(place, rows);
}

static void
run_torn_all(struct place *place)
{
    static const size_t bytes[] = {10, 700, 20000, 100000};
    char *folder = place->data;
    for (int i = 0; i < test_seed_count(); i++) {
        place->data = arena_format(place->arena, "%s%d", folder, i);
        place_shell(arena_format(place->arena, "rm -rf '%s/copy'", place->folder));
        run_torn(place, bytes[i % (int)array_length(bytes)], test_seed(i));
    }
}

TEST(rocks_runway, any_sectors_of_the_last_record_may_be_missing)
{
    place_run(run_torn_all);
}

/* ---- damage ---- */

static void
judge_flip(struct place *place, struct wal_copy *log, size_t at, unsigned bit)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct wal_report report;
    log->bytes[at] ^= (uint8_t)(1U << bit);
    wal_write(log, 40000);
    log->bytes[at] ^= (uint8_t)(1U << bit);
    struct error *err = inspect(place, arena, &report);
    if (err == NULL)
        TEST_FAIL("bit %d of byte %d of %d is not found", (int)bit, (int)at, (int)log->size);
    EXPECT_KIND(err, ERR_CORRUPT);
}

static void
run_flips(struct place *place)
{
    struct wal_copy log;
    wal_make(place, 50, &log);
    for (size_t at = 0; at < log.size; at++)
        judge_flip(place, &log, at, (unsigned)(at % 8));
    wal_find_records(&log);
    for (unsigned i = 0; i < 8 * WAL_HEAD_BYTES; i++)
        judge_flip(place, &log, log.record[log.count - 1] + i / 8, i % 8);
    log.bytes[log.size - 20] ^= 1;
    wal_write(&log, RUNWAY);
    expect_refused(place, "no power cut leaves it so");
}

static void
run_flips_in_a_chain(struct place *place)
{
    struct wal_copy log;
    wal_make(place, 100000, &log);
    for (size_t at = 0; at < log.size; at += 1009)
        judge_flip(place, &log, at, (unsigned)(at % 8));
    for (unsigned i = 0; i < 24 * WAL_HEAD_BYTES; i++) /* the heads of three blocks */
        judge_flip(place, &log, 32768 * (1 + i / 8 / WAL_HEAD_BYTES) + i / 8 % WAL_HEAD_BYTES,
                   i % 8);
}

TEST(rocks_runway, a_bit_that_is_another_is_damage_though_zeros_follow)
{
    place_run(run_flips);
    place_run(run_flips_in_a_chain);
}

static void
run_zeros_in_a_value(struct place *place)
{
    struct store *store = place_open(place);
    struct batch *batch = batch_new(place->arena, PARTITION_OF_SHARD(1), 1);
    struct slice zeros = slice_of(arena_zalloc(place->arena, 1, 100000), 100000);
    batch_put(batch, ROW_RUN, place_key(place, 0), zeros);
    EXPECT_OK(store_commit(store, batch, 0, place->arena));
    char *copy = arena_format(place->arena, "%s/copy", place->folder);
    place_shell(arena_format(place->arena, "cp -a '%s' '%s'", place->data, copy));
    store_close(store);
    place->data = copy;
    struct wal_report report;
    EXPECT_OK(inspect(place, place->arena, &report));
    EXPECT(report.torn_file == NULL && report.records > 0);
    expect_rows(place, 1);
}

TEST(rocks_runway, a_value_may_be_of_zeros)
{
    place_run(run_zeros_in_a_value);
}

/* ---- records that are missing ---- */

/* Writes records from .. to - 1 of the log as a log of that number, and zeros behind them. */
static char *
write_part(struct place *place, const struct wal_copy *log, size_t from, size_t to, uint64_t number)
{
    size_t end = to == log->count ? log->size : log->record[to];
    struct wal_copy part = {.bytes = log->bytes + log->record[from],
                            .size = end - log->record[from]};
    part.path = arena_format(place->arena, "%s/rocks/%06d.log", place->data, (int)number);
    wal_write(&part, 5000);
    return part.path;
}

/* The log in three parts: as RocksDB writes them when memtables are changed. */
static void
run_parts(struct place *place)
{
    struct wal_copy log;
    wal_make(place, 0, &log);
    wal_find_records(&log);
    uint64_t number = strtoull(strrchr(log.path, '/') + 1, NULL, 10);
    write_part(place, &log, 0, 4, number);
    char *middle = write_part(place, &log, 4, 8, number + 100);
    write_part(place, &log, 8, log.count, number + 200);
    unlink(middle);
    expect_refused(place, "are missing");
    write_part(place, &log, 4, 7, number + 100);
    expect_refused(place, "are missing");
    write_part(place, &log, 4, 8, number + 100);
    expect_rows(place, WAL_ROWS);
}

TEST(rocks_runway, a_log_that_is_missing_between_others_or_lost_its_end_refuses_to_open)
{
    place_run(run_parts);
}

/* The second of three records is cut out of a log. */
static void
run_cut_out(struct place *place)
{
    struct wal_copy log;
    wal_make(place, 0, &log);
    wal_find_records(&log);
    size_t from = log.record[5], to = log.record[6];
    memmove(log.bytes + from, log.bytes + to, log.size - to);
    log.size -= to - from;
    wal_write(&log, RUNWAY);
    expect_refused(place, "has to be");
}

TEST(rocks_runway, a_record_that_is_missing_inside_a_log_refuses_to_open)
{
    place_run(run_cut_out);
}

/* RocksDB needs logs from some number on; what is before may have any gap. */
static void
run_old_log(struct place *place)
{
    struct wal_copy log;
    struct store *store = place_open(place);
    place_put(place, store, PARTITION_OF_SHARD(1), ROW_RUN, 0);
    store_close(store); /* from now on older logs are not needed */
    wal_make(place, 0, &log);
    wal_find_records(&log);
    write_part(place, &log, 0, 3, 1);
    struct wal_report report;
    EXPECT_OK(inspect(place, place->arena, &report));
    EXPECT(report.gap_file != NULL);
    expect_rows(place, WAL_ROWS);
}

TEST(rocks_runway, a_log_that_is_no_longer_needed_does_not_count)
{
    place_run(run_old_log);
}
