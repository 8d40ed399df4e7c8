/* rocks_large_test.c - values in files of their own: read as others are, and their room comes back.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/random.h"
#include "base/test.h"
#include "store/key.h"
#include "store/rocks/rocks.h"
#include "store/rocks/test_fixture.h"

#define SHARD PARTITION_OF_SHARD(1)

/* Bytes that cannot be made fewer, of the key alone. */
static struct slice
value_of(uint64_t key, size_t length, struct arena *arena)
{
    struct random random;
    uint8_t *bytes = arena_alloc(arena, length);
    random_seed(&random, key);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)random_next(&random);
    return slice_of(bytes, length);
}

static uint64_t
number_of(struct slice key)
{
    uint64_t number = 0;
    bool is_number = key_take_u64(&key, &number);
    check(is_number);
    return number;
}

/* --- any rows --------------------------------------------------------------------------------- */

#define KEYS  400
#define STEPS 1500

/* A store, and what should be in it. */
struct pair {
    struct rocks_fixture *rocks_fixture;
    struct store *store;
    struct random random;
    struct arena *arena;    /* of a step */
    uint32_t lengths[KEYS]; /* 0: no row */
};

static uint64_t
below(struct pair *pair, uint64_t bound)
{
    return random_below(&pair->random, bound);
}

static void
put_some(struct pair *pair)
{
    static const uint32_t lengths[] = {20, 2047, 2048, 2500, 9000, 40000};
    uint64_t from = below(pair, KEYS);
    struct batch *batch = batch_new(pair->arena, SHARD, 1);
    for (uint64_t key = from; key < from + 5 && key < KEYS; key++) {
        if (pair->lengths[key] != 0)
            continue; /* history is put once */
        pair->lengths[key] = lengths[below(pair, array_length(lengths))];
        batch_put(batch, ROW_HISTORY, rocks_fixture_key(pair->rocks_fixture, key),
                  value_of(key, pair->lengths[key], pair->arena));
    }
    if (batch->count > 0)
        EXPECT_OK(store_commit(pair->store, batch, 1, pair->arena));
}

static void
delete_some(struct pair *pair)
{
    uint64_t from = below(pair, KEYS), to = from + below(pair, 60);
    struct batch *batch = batch_new(pair->arena, SHARD, 1);
    batch_delete_range(batch, ROW_HISTORY, rocks_fixture_key(pair->rocks_fixture, from),
                       rocks_fixture_key(pair->rocks_fixture, to + 1));
    for (uint64_t key = from; key <= to && key < KEYS; key++)
        pair->lengths[key] = 0;
    EXPECT_OK(store_commit(pair->store, batch, 1, pair->arena));
}

static void
expect_row(struct pair *pair, const struct row *row, uint64_t key)
{
    EXPECT_EQ(number_of(row->key), key);
    EXPECT(slice_equal(row->value, value_of(key, pair->lengths[key], pair->arena)));
}

static void
scan_some(struct pair *pair)
{
    uint64_t from = below(pair, KEYS), to = from + below(pair, KEYS - from + 1);
    struct rows rows;
    struct scan scan = {.partition = SHARD,
                        .kind = ROW_HISTORY,
                        .from = rocks_fixture_key(pair->rocks_fixture, from),
                        .to = rocks_fixture_key(pair->rocks_fixture, to),
                        .is_backward = below(pair, 2) == 0,
                        .rows_max = below(pair, 3) == 0 ? 1 + below(pair, 30) : 0};
    EXPECT_OK(store_scan(pair->store, &scan, pair->arena, &rows));
    size_t count = 0;
    for (uint64_t i = from; i < to; i++) {
        uint64_t key = scan.is_backward ? to - 1 - (i - from) : i;
        if (pair->lengths[key] == 0)
            continue;
        if (scan.rows_max > 0 && count == scan.rows_max) {
            EXPECT(rows.has_more);
            break;
        }
        EXPECT(count < rows.count);
        expect_row(pair, &rows.row[count++], key);
    }
    EXPECT_EQ(rows.count, count);
}

static void
get_some(struct pair *pair)
{
    uint64_t key = below(pair, KEYS);
    bool found;
    struct slice value;
    EXPECT_OK(store_get(pair->store, SHARD, ROW_HISTORY,
                        rocks_fixture_key(pair->rocks_fixture, key), pair->arena, &found, &value));
    EXPECT_EQ(found, pair->lengths[key] != 0);
    if (found)
        EXPECT(slice_equal(value, value_of(key, pair->lengths[key], pair->arena)));
}

static void
do_some(struct pair *pair)
{
    uint64_t what = below(pair, 100);
    if (what < 40)
        put_some(pair);
    else if (what < 48)
        delete_some(pair);
    else if (what < 75)
        scan_some(pair);
    else if (what < 97)
        get_some(pair);
    else if (what < 99)
        EXPECT_OK(rocks_flush(pair->store, pair->arena));
    else {
        store_close(pair->store);
        pair->store = rocks_fixture_open(pair->rocks_fixture);
    }
}

/* Method: rows below and above the size that makes them large, on their way and flushed, read in
 * both directions by loops, which read no disk, and by threads. */
ROCKS_TEST(rocks_large, rows_of_any_size_are_read_as_they_were_put)
{
    struct pair pair = {.rocks_fixture = rocks_fixture, .store = rocks_fixture_open(rocks_fixture)};
    rocks_fixture_put(rocks_fixture, pair.store, SHARD, ROW_RUN, 1); /* the guard is 1 */
    random_seed(&pair.random, test_seed(0));
    for (int i = 0; i < STEPS; i++) {
        pair.arena = arena_new(0);
        do_some(&pair);
        arena_free(pair.arena);
    }
    struct rocks_stats stats;
    rocks_stats(pair.store, &stats);
    EXPECT(stats.cold_reads > 0);
    store_close(pair.store);
}

/* --- room ------------------------------------------------------------------------------------- */

#define PORTION   64 /* rows that come together */
#define KEPT      4  /* of them stay, the others go later */
#define LATER     8  /* portions */
#define ROW_BYTES 16000
#define PORTIONS  250
#define DISK_MAX  ((uint64_t)100 << 20) /* they are 250 MB, and 22 MB of them live */

static void
add_portion(struct rocks_fixture *rocks_fixture, struct store *store, uint64_t portion)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct batch *batch = batch_new(arena, SHARD, 1);
    for (uint64_t key = portion * PORTION; key < (portion + 1) * PORTION; key++)
        batch_put(batch, ROW_HISTORY, rocks_fixture_key(rocks_fixture, key),
                  value_of(key, ROW_BYTES, arena));
    if (portion >= LATER)
        batch_delete_range(batch, ROW_HISTORY,
                           rocks_fixture_key(rocks_fixture, (portion - LATER) * PORTION + KEPT),
                           rocks_fixture_key(rocks_fixture, (portion - LATER + 1) * PORTION));
    EXPECT_OK(store_commit(store, batch, 1, arena));
}

static uint64_t
disk_bytes(const struct store *store)
{
    struct rocks_stats stats;
    rocks_stats(store, &stats);
    return stats.disk_bytes;
}

static void
expect_portions(struct rocks_fixture *rocks_fixture, struct store *store, uint64_t portions)
{
    for (uint64_t portion = 0; portion < portions; portion++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct rows rows;
        struct scan scan = {.partition = SHARD,
                            .kind = ROW_HISTORY,
                            .from = rocks_fixture_key(rocks_fixture, portion * PORTION),
                            .to = rocks_fixture_key(rocks_fixture, (portion + 1) * PORTION)};
        EXPECT_OK(store_scan(store, &scan, arena, &rows));
        EXPECT_EQ(rows.count, portion + LATER < portions ? KEPT : PORTION);
        for (size_t i = 0; i < rows.count; i++) {
            uint64_t key = portion * PORTION + i;
            EXPECT_EQ(number_of(rows.row[i].key), key);
            EXPECT(slice_equal(rows.row[i].value, value_of(key, ROW_BYTES, arena)));
        }
    }
}

/* Method: a few rows of each portion stay for ever. An engine that only deletes files in which
 * nothing lives would keep them all. */
ROCKS_TEST(rocks_large, room_of_deleted_rows_comes_back_though_their_neighbours_stay)
{
    struct store *store = rocks_fixture_open(rocks_fixture);
    rocks_fixture_put(rocks_fixture, store, SHARD, ROW_RUN, 1);
    uint64_t portions = 0;
    while (portions < PORTIONS || (disk_bytes(store) > DISK_MAX && portions < 2 * PORTIONS))
        add_portion(rocks_fixture, store, portions++);
    printf("  %" PRIu64 " MB on disk after %" PRIu64 " MB\n", disk_bytes(store) >> 20,
           portions * PORTION * ROW_BYTES >> 20);
    EXPECT(disk_bytes(store) <= DISK_MAX);
    expect_portions(rocks_fixture, store, portions);
    store_close(store);
    store = rocks_fixture_open(rocks_fixture);
    expect_portions(rocks_fixture, store, portions);
    store_close(store);
}
