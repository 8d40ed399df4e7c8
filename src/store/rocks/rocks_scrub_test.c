/* rocks_scrub_test.c - damage that nobody has read yet: the pass over everything finds it, names
 * the file and goes on behind it; reads tell of what they meet; a backup does not copy it. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "store/key.h"
#include "store/rocks/test_fixture.h"
#include "store/rocks/test_wal.h"

#define ROWS       2000
#define ROW_BYTES  500
#define LARGE_ROWS 8
#define INTERVAL   (20 * NS_PER_MS)
#define PATIENCE   (60 * NS_PER_S)

/* Rows of histories in a table of many blocks, some of them large; runs in the other family. */
static void
fill(struct rocks_fixture *rocks_fixture)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    uint8_t bytes[10000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * i >> 3);
    for (uint64_t i = 0; i < ROWS; i++) {
        struct batch *batch = batch_new(rocks_fixture->arena, PARTITION_OF_SHARD(1), 1);
        bool is_large = i % (ROWS / LARGE_ROWS) == 0;
        batch_put(batch, ROW_HISTORY, rocks_fixture_key(rocks_fixture, i),
                  slice_of(bytes, is_large ? sizeof bytes : ROW_BYTES));
        EXPECT_OK(store_commit(store, batch, i == 0 ? 0 : 1, rocks_fixture->arena));
    }
    store_close(store);
}

static void
flip(const char *path, long at, int count)
{
    FILE *file = fopen(path, "r+");
    check(file != NULL);
    for (int i = 0; i < count; i++) {
        fseek(file, at + i, SEEK_SET);
        int byte = getc(file);
        fseek(file, at + i, SEEK_SET);
        putc(byte ^ 0x5a, file);
    }
    fclose(file);
}

static struct store *
open_scrubbed(struct rocks_fixture *rocks_fixture, struct metrics *metrics)
{
    struct rocks_options options = load_options(rocks_fixture->data);
    struct store *store;
    options.scrub_interval = INTERVAL;
    options.metrics = metrics;
    EXPECT_OK(rocks_open(&options, rocks_fixture->arena, &store));
    return store;
}

static int64_t
metric_value(struct rocks_fixture *rocks_fixture, struct metrics *metrics, const char *name)
{
    struct slice all = metrics_render(metrics, rocks_fixture->arena);
    char *text =
        arena_format(rocks_fixture->arena, "\n%.*s", (int)all.length, (const char *)all.data);
    char *at = strstr(text, arena_format(rocks_fixture->arena, "\n%s ", name));
    check_that(at != NULL, "%s", name);
    long long value = -1;
    int got = sscanf(at + strlen(name) + 2, "%lld", &value);
    check(got == 1);
    return value;
}

/* So many whole passes more. */
static void
await_passes(struct rocks_fixture *rocks_fixture, struct metrics *metrics, int64_t count)
{
    int64_t begun = clock_monotonic();
    int64_t wanted = metric_value(rocks_fixture, metrics, "cadenza_store_scrubs_total") + count;
    while (metric_value(rocks_fixture, metrics, "cadenza_store_scrubs_total") < wanted) {
        EXPECT(clock_monotonic() < begun + PATIENCE);
        EXPECT_OK(fiber_sleep(10 * NS_PER_MS, rocks_fixture->arena));
    }
}

ROCKS_TEST(rocks_scrub, a_store_that_is_whole_has_no_damage)
{
    fill(rocks_fixture);
    struct metrics *metrics = metrics_new();
    struct store *store = open_scrubbed(rocks_fixture, metrics);
    await_passes(rocks_fixture, metrics, 2);
    EXPECT(rocks_damage(store, rocks_fixture->arena) == NULL);
    EXPECT_EQ(metric_value(rocks_fixture, metrics, "cadenza_store_damaged_places"), 0);
    EXPECT(metric_value(rocks_fixture, metrics, "cadenza_store_scrubbed_bytes_total") >=
           ROWS * ROW_BYTES);
    EXPECT_OK(rocks_backup(store,
                           arena_format(rocks_fixture->arena, "%s/backup", rocks_fixture->folder),
                           rocks_fixture->arena));
    store_close(store);
    metrics_free(metrics);
}

/* How many of the rows can be read. */
static unsigned
count_readable(struct rocks_fixture *rocks_fixture, struct store *store)
{
    unsigned readable = 0;
    for (uint64_t i = 0; i < ROWS; i++) {
        bool found;
        struct slice value;
        struct error *err =
            store_get(store, PARTITION_OF_SHARD(1), ROW_HISTORY,
                      rocks_fixture_key(rocks_fixture, i), rocks_fixture->arena, &found, &value);
        EXPECT(err != NULL ? err->kind == ERR_CORRUPT : found);
        readable += err == NULL;
    }
    return readable;
}

static void
expect_backup_refused(struct rocks_fixture *rocks_fixture, struct store *store)
{
    char *folder = arena_format(rocks_fixture->arena, "%s/backup", rocks_fixture->folder);
    struct error *err = rocks_backup(store, folder, rocks_fixture->arena);
    EXPECT_KIND(err, ERR_CORRUPT);
    EXPECT(strstr(err->message, "what was copied is damaged, and was not kept") != NULL);
    EXPECT(access(folder, F_OK) != 0);
}

/* Eight bytes of two blocks: both are found, the rows behind them are read, the estimate is near.
 */
ROCKS_TEST(rocks_scrub, damage_in_a_table_is_found_before_somebody_reads_it)
{
    fill(rocks_fixture);
    char *table = rocks_fixture_find_file(rocks_fixture->arena, rocks_fixture->data, ".sst");
    long size = wal_size(table);
    flip(table, size / 4, 8);
    flip(table, size / 2, 8);
    struct metrics *metrics = metrics_new();
    struct store *store = open_scrubbed(rocks_fixture, metrics);
    await_passes(rocks_fixture, metrics, 2);
    const char *damage = rocks_damage(store, rocks_fixture->arena);
    EXPECT(damage != NULL && strstr(damage, strrchr(table, '/') + 1) != NULL);
    EXPECT(strstr(damage, " places, about ") != NULL);
    EXPECT(strstr(damage, "shard 1") != NULL);
    int64_t places = metric_value(rocks_fixture, metrics, "cadenza_store_damaged_places");
    EXPECT(places >= 2); /* more if eight bytes are of two blocks */
    EXPECT_EQ(metric_value(rocks_fixture, metrics, "cadenza_store_damaged_reads_total"), 0);
    unsigned lost = ROWS - count_readable(rocks_fixture, store);
    int64_t about = metric_value(rocks_fixture, metrics, "cadenza_store_damaged_rows");
    EXPECT(lost > 0 && about >= lost / 2 && about <= lost * 2);
    EXPECT_EQ(metric_value(rocks_fixture, metrics, "cadenza_store_damaged_reads_total"), lost);
    EXPECT_EQ(metric_value(rocks_fixture, metrics, "cadenza_store_damaged_places"), places);
    EXPECT(metric_value(rocks_fixture, metrics, "cadenza_store_scrubbed_bytes_total") >
           2 * (ROWS - lost) * ROW_BYTES);
    expect_backup_refused(rocks_fixture, store);
    store_close(store);
    metrics_free(metrics);
}

ROCKS_TEST(rocks_scrub, damage_of_a_large_value_is_found_before_somebody_reads_it)
{
    fill(rocks_fixture);
    char *file = rocks_fixture_find_file(rocks_fixture->arena, rocks_fixture->data, ".blob");
    flip(file, wal_size(file) / 2, 8);
    struct metrics *metrics = metrics_new();
    struct store *store = open_scrubbed(rocks_fixture, metrics);
    await_passes(rocks_fixture, metrics, 2);
    const char *damage = rocks_damage(store, rocks_fixture->arena);
    EXPECT(damage != NULL && strstr(damage, "large values (1 place, about 1 rows") != NULL);
    EXPECT_EQ(count_readable(rocks_fixture, store), ROWS - 1);
    expect_backup_refused(rocks_fixture, store);
    store_close(store);
    metrics_free(metrics);
}

/* Without passes a read tells. */
ROCKS_TEST(rocks_scrub, a_read_that_meets_damage_reports_it)
{
    fill(rocks_fixture);
    char *table = rocks_fixture_find_file(rocks_fixture->arena, rocks_fixture->data, ".sst");
    flip(table, wal_size(table) / 2, 8);
    struct store *store = rocks_fixture_open(rocks_fixture);
    EXPECT(rocks_damage(store, rocks_fixture->arena) == NULL);
    EXPECT(count_readable(rocks_fixture, store) < ROWS);
    const char *damage = rocks_damage(store, rocks_fixture->arena);
    EXPECT(damage != NULL && strstr(damage, strrchr(table, '/') + 1) != NULL);
    store_close(store);
}

/* ---- runs ---- */

/* As engine/run has them: a current-run row is the beginning of the key of a run. */
static struct slice
run_key(struct rocks_fixture *rocks_fixture, uint64_t number, bool is_current)
{
    struct key_writer key;
    key_begin(&key, rocks_fixture->arena);
    key_text(&key, slice_text("00000000-0000-4000-8000-000000000000"));
    key_text(&key, slice_text(arena_format(rocks_fixture->arena, "order-%04llu",
                                           (unsigned long long)number)));
    if (!is_current)
        key_text(&key,
                 slice_text(arena_format(rocks_fixture->arena, "00000000-0000-4000-8000-%012llu",
                                         (unsigned long long)number)));
    return key_end(&key);
}

static void
fill_runs(struct rocks_fixture *rocks_fixture)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    uint8_t bytes[ROW_BYTES];
    memset(bytes, 'x', sizeof bytes);
    for (uint64_t i = 0; i < ROWS; i++) {
        struct batch *batch = batch_new(rocks_fixture->arena, PARTITION_OF_SHARD(1), 1);
        batch_put(batch, ROW_CURRENT, run_key(rocks_fixture, i, true), slice_text("run"));
        batch_put(batch, ROW_RUN, run_key(rocks_fixture, i, false), slice_of(bytes, sizeof bytes));
        EXPECT_OK(store_commit(store, batch, i == 0 ? 0 : 1, rocks_fixture->arena));
    }
    store_close(store);
}

static unsigned
count_lost_runs(struct rocks_fixture *rocks_fixture, struct store *store)
{
    unsigned lost = 0;
    for (uint64_t i = 0; i < ROWS; i++) {
        bool found;
        struct slice value;
        lost += store_get(store, PARTITION_OF_SHARD(1), ROW_RUN, run_key(rocks_fixture, i, false),
                          rocks_fixture->arena, &found, &value) != NULL;
    }
    return lost;
}

/* Two blocks of runs are lost: their current-run rows tell how many there were. */
ROCKS_TEST(rocks_scrub, runs_with_rows_in_damaged_places_are_counted)
{
    fill_runs(rocks_fixture);
    char *table = rocks_fixture_find_file(rocks_fixture->arena, rocks_fixture->data, ".sst");
    flip(table, wal_size(table) / 3, 8);
    flip(table, wal_size(table) / 2, 8);
    struct metrics *metrics = metrics_new();
    struct store *store = open_scrubbed(rocks_fixture, metrics);
    await_passes(rocks_fixture, metrics, 2);
    unsigned lost = count_lost_runs(rocks_fixture, store);
    int64_t counted = metric_value(rocks_fixture, metrics, "cadenza_store_damaged_runs");
    int64_t edges = 2 * metric_value(rocks_fixture, metrics, "cadenza_store_damaged_places");
    EXPECT(lost > 0 && counted >= lost && counted <= lost + edges);
    EXPECT(strstr(rocks_damage(store, rocks_fixture->arena),
                  arena_format(rocks_fixture->arena, "; %lld runs at the most have rows there",
                               (long long)counted)) != NULL);
    store_close(store);
    metrics_free(metrics);
}

/* ---- compaction ---- */

/* Puts rows of runs, which are overwritten again and again. */
static struct error *
put_runs(struct rocks_fixture *rocks_fixture, struct store *store, uint64_t from, uint64_t step,
         uint64_t guard)
{
    uint8_t bytes[ROW_BYTES];
    memset(bytes, 'x', sizeof bytes);
    struct batch *batch = batch_new(rocks_fixture->arena, PARTITION_OF_SHARD(1), 1);
    for (uint64_t i = from; i < ROWS; i += step)
        batch_put(batch, ROW_RUN, rocks_fixture_key(rocks_fixture, i),
                  slice_of(bytes, sizeof bytes));
    return store_commit(store, batch, guard, rocks_fixture->arena);
}

/* RocksDB stops writing then, and so does the store, with the words that name the file. Method: so
 * many small tables that RocksDB merges them with the damaged one. */
ROCKS_TEST(rocks_scrub, damage_that_compaction_meets_ends_the_store_with_its_name)
{
    rocks_fixture->fresh_bytes_max = 1; /* rows come to the tables at once */
    struct store *store = rocks_fixture_open(rocks_fixture);
    for (uint64_t i = 0; i < 100; i++)
        EXPECT_OK(put_runs(rocks_fixture, store, i, 100, i == 0 ? 0 : 1));
    store_close(store);
    char *table = rocks_fixture_find_file(rocks_fixture->arena, rocks_fixture->data, ".sst");
    flip(table, wal_size(table) / 4, 8);
    store = rocks_fixture_open(rocks_fixture);
    struct error *err = NULL;
    int64_t begun = clock_monotonic();
    for (int i = 0; err == NULL; i++) {
        err = put_runs(rocks_fixture, store, 0, 100, 1);
        EXPECT(clock_monotonic() < begun + PATIENCE);
        if (err == NULL && i < 40)
            err = rocks_flush(store, rocks_fixture->arena);
    }
    EXPECT(strstr(err->message, "Corruption") != NULL);
    EXPECT(strstr(err->message, strrchr(table, '/') + 1) != NULL);
    store_close(store);
}
