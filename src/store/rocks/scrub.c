/* scrub.c - reads everything once in a while, so that damage is found before somebody needs it.
 *
 * A fiber has a thread of the pool read a portion of rows, from where the last one ended, and
 * sleeps so long that the disk is left to others: SCRUB_RATE, or faster if the store is so large
 * that a pass would take longer than the interval. The next pass begins an interval after the one
 * before. Every block is checked as it is read, and none comes into the cache. Filters are not read
 * (a damaged one costs only time).
 *
 * Where rows cannot be read the pass goes on behind them: the first key that can be sought again is
 * found by halving the space of keys behind the last good one. */
#include "base/check.h"
#include "base/crc.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "store/rocks/inside.h"

#define PORTION_BYTES (1U << 20)
#define SCRUB_RATE    (1U << 20)      /* bytes a second, at the least */
#define LOOK_INTERVAL (10 * NS_PER_S) /* so often the age is told */
#define KEY_ROOM      DAMAGE_KEY_ROOM
#define HALVINGS_MAX  (8 * KEY_ROOM)

/* One portion, on a thread. */
struct portion {
    struct rocks *rocks;
    struct scrub *scrub;
    rocksdb_readoptions_t *options;
    uint64_t bytes;  /* of rows that were read */
    bool has_failed; /* for another reason than damage: it is read once more */
};

static void
keep_cursor(struct scrub *scrub, const void *key, size_t length)
{
    buffer_clear(&scrub->cursor);
    buffer_append(&scrub->cursor, slice_of(key, length));
}

static rocksdb_iterator_t *
new_iterator(struct portion *portion)
{
    const struct tables *tables = &portion->rocks->tables;
    check(portion->scrub->family < FAMILY_COUNT);
    return rocksdb_create_iterator_cf(tables->db, portion->options,
                                      tables->family[portion->scrub->family]);
}

/* Can the rows from this key on be read? By an iterator that has not failed yet: one that has fails
 * for keys behind the damage, too. */
static bool
can_seek(struct portion *portion, const uint8_t *key, size_t length)
{
    char *failure = NULL;
    rocksdb_iterator_t *rows = new_iterator(portion);
    rocksdb_iter_seek(rows, (const char *)key, length);
    rocksdb_iter_get_error(rows, &failure);
    rocksdb_iter_destroy(rows);
    bool is_good = failure == NULL;
    rocksdb_free(failure);
    return is_good;
}

/* The middle of two keys as fractions of KEY_ROOM digits; false: there is none between. */
static bool
halve(const uint8_t low[KEY_ROOM], const uint8_t high[KEY_ROOM], uint8_t middle[KEY_ROOM])
{
    unsigned sum[KEY_ROOM + 1] = {0}, carry = 0;
    for (size_t i = KEY_ROOM; i > 0; i--) {
        unsigned digit = low[i - 1] + high[i - 1] + carry;
        sum[i] = digit & 255;
        carry = digit >> 8;
    }
    sum[0] = carry;
    for (size_t i = 0; i < KEY_ROOM; i++)
        middle[i] = (uint8_t)((sum[i] & 1) << 7 | sum[i + 1] >> 1);
    return memcmp(middle, low, KEY_ROOM) != 0;
}

/* Rows behind the cursor cannot be read: it is set to the next key from which on they can. */
static struct damage_range
step_over(struct portion *portion)
{
    struct scrub *scrub = portion->scrub;
    struct damage_range range = {.high = {0xff}};
    uint8_t low[KEY_ROOM] = {0}, middle[KEY_ROOM], *high = range.high;
    size_t length = scrub->cursor.length < KEY_ROOM ? scrub->cursor.length : KEY_ROOM;
    if (length > 0)
        memcpy(low, scrub->cursor.data, length);
    memcpy(range.low, low, KEY_ROOM);
    for (int i = 0; i < HALVINGS_MAX && halve(low, high, middle); i++)
        memcpy(can_seek(portion, middle, KEY_ROOM) ? high : low, middle, KEY_ROOM);
    keep_cursor(scrub, high, KEY_ROOM);
    return range;
}

/* Tells of damage at the cursor and goes on behind it. Other failures end the portion. */
static void
meet_failure(struct portion *portion, const char *failure)
{
    struct scrub *scrub = portion->scrub;
    portion->has_failed = strncmp(failure, "Corruption", 10) != 0;
    if (portion->has_failed)
        return;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct slice before = arena_slice(arena, buffer_slice(&scrub->cursor));
    uint64_t location = 1 + crc32c(scrub->family, before); /* if the words name none */
    struct damage_range range = step_over(portion);
    damage_note(portion->rocks, failure, before, &range, location);
}

static void
read_rows(struct portion *portion, rocksdb_iterator_t *rows)
{
    struct scrub *scrub = portion->scrub;
    rocksdb_iter_seek(rows, (const char *)scrub->cursor.data, scrub->cursor.length);
    while (rocksdb_iter_valid(rows) && portion->bytes < PORTION_BYTES) {
        size_t key_length, value_length;
        const char *key = rocksdb_iter_key(rows, &key_length);
        rocksdb_iter_value(rows, &value_length);
        portion->bytes += key_length + value_length;
        keep_cursor(scrub, key, key_length);
        buffer_append(&scrub->cursor, slice_of("", 1)); /* behind it */
        rocksdb_iter_next(rows);
    }
    char *failure = NULL;
    bool is_over = !rocksdb_iter_valid(rows);
    rocksdb_iter_get_error(rows, &failure);
    if (failure != NULL)
        meet_failure(portion, failure);
    else if (is_over)
        scrub->family++;
    if (failure == NULL && is_over)
        buffer_clear(&scrub->cursor);
    rocksdb_free(failure);
}

static void
read_portion(void *argument)
{
    struct portion *portion = argument;
    setup_thread();
    portion->options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_verify_checksums(portion->options, 1);
    rocksdb_readoptions_set_fill_cache(portion->options, 0);
    rocksdb_iterator_t *rows = new_iterator(portion);
    read_rows(portion, rows);
    rocksdb_iter_destroy(rows);
    rocksdb_readoptions_destroy(portion->options);
}

/* --- the fiber -------------------------------------------------------------------------------- */

/* How long a portion of so many bytes may take. */
static int64_t
pause_after(const struct rocks *rocks, uint64_t bytes)
{
    uint64_t all = tables_property(&rocks->tables, FAMILY_ORDERED, "rocksdb.live-sst-files-size") +
                   tables_property(&rocks->tables, FAMILY_FORWARD, "rocksdb.live-sst-files-size") +
                   large_count(&rocks->tables).bytes;
    double rate = (double)all * (double)NS_PER_S / (double)rocks->scrub.interval;
    rate = rate < SCRUB_RATE ? SCRUB_RATE : rate;
    return (int64_t)((double)bytes * (double)NS_PER_S / rate);
}

/* Sleeps until then, and tells the age meanwhile. */
static void
rest_until(struct rocks *rocks, int64_t time)
{
    struct scrub *scrub = &rocks->scrub;
    enum wake wake = WAKE_READY;
    while (!scrub->is_ending && wake != WAKE_CANCELLED) {
        int64_t now = clock_monotonic(), look = now + LOOK_INTERVAL;
        gauge_set(rocks->metrics.scrub_age, (now - scrub->passed_time) / NS_PER_S);
        if (time <= now)
            return;
        wake = fiber_wait(time < look ? time : look);
    }
    scrub->is_ending = true;
}

static void
count_runs(void *argument)
{
    setup_thread();
    damage_count_runs(argument);
}

static void
end_pass(struct rocks *rocks, struct arena *arena)
{
    struct scrub *scrub = &rocks->scrub;
    damage_pass_over(rocks);
    struct error *busy = pool_run(count_runs, rocks, arena);
    (void)busy; /* they are counted after the next pass */
    counter_add(rocks->metrics.scrubs, 1);
    scrub->family = 0;
    scrub->passed_time = clock_monotonic();
}

static void
scrub_fiber(void *argument)
{
    struct rocks *rocks = argument;
    struct scrub *scrub = &rocks->scrub;
    int64_t begun = clock_monotonic();
    scrub->passed_time = begun;
    while (!scrub->is_ending) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct portion portion = {.rocks = rocks, .scrub = scrub};
        struct error *busy = pool_run(read_portion, &portion, arena);
        counter_add(rocks->metrics.scrubbed_bytes, portion.bytes);
        int64_t next = clock_monotonic() + (busy != NULL || portion.has_failed
                                                ? LOOK_INTERVAL
                                                : pause_after(rocks, portion.bytes));
        if (scrub->family == FAMILY_COUNT) {
            end_pass(rocks, arena);
            next = begun = begun + scrub->interval > next ? begun + scrub->interval : next;
        }
        rest_until(rocks, next);
    }
    scrub->fiber = NULL;
    latch_done(&scrub->done);
}

void
scrub_begin(struct rocks *rocks, int64_t interval)
{
    struct scrub *scrub = &rocks->scrub;
    latch_init(&scrub->done, interval > 0 ? 1 : 0);
    scrub->interval = interval;
    if (interval > 0)
        scrub->fiber = fiber_start("scrub", scrub_fiber, rocks);
}

void
scrub_end(struct rocks *rocks)
{
    struct scrub *scrub = &rocks->scrub;
    scrub->is_ending = true;
    if (scrub->fiber != NULL)
        fiber_wake(scrub->fiber);
    latch_wait(&scrub->done);
    buffer_free(&scrub->cursor);
}
