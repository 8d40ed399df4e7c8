/* damage_runs.c - how many runs have rows in places that cannot be read.
 *
 * Those rows cannot be counted, but most runs have other rows elsewhere, and keys say what belongs
 * together: a run is named by domain, workflow id and run id, its current-run row by the first two,
 * and the tree of its history has the uuid of the run. So the keys of runs and of current-run rows
 * are walked over once, and each is asked whether rows of its run may lie between the last key
 * before a damaged place and the first one behind it. The run on either edge counts, too, though it
 * may have lost nothing: the number is the most that it can be, unless a run lost both its rows or
 * has a history that another run began (a reset). */
#include "store/rocks/inside.h"

struct census {
    struct rocks *rocks;
    struct damage_range range[ROCKS_DAMAGES_MAX];
    size_t count;
    uint64_t runs;
    struct arena *arena; /* of one row */
};

/* May a key that begins with the prefix lie in a range? */
static bool
is_hit(const struct census *census, struct slice prefix)
{
    size_t length = prefix.length < DAMAGE_KEY_ROOM ? prefix.length : DAMAGE_KEY_ROOM;
    for (size_t i = 0; i < census->count; i++)
        if (memcmp(prefix.data, census->range[i].low, length) >= 0 &&
            memcmp(prefix.data, census->range[i].high, length) <= 0)
            return true;
    return false;
}

/* The same partition and beginning of a key, as another kind has it. */
static struct slice
as_kind(struct census *census, unsigned kind, struct slice key)
{
    uint8_t *bytes = arena_alloc(census->arena, key.length);
    memcpy(bytes, key.data, key.length);
    bytes[0] = (uint8_t)kind;
    return slice_of(bytes, key.length);
}

/* `key` is of a run: the rows of its workflow id, of what is pending, of its history. */
static bool
is_run_hit(struct census *census, struct slice key)
{
    unsigned kind;
    struct partition partition;
    struct slice rest = key, domain, workflow, run;
    struct uuid uuid;
    if (layout_take(&rest, census->arena, &kind, &partition) != NULL)
        return false;
    size_t head = key.length - rest.length;
    if (!key_take_text(&rest, census->arena, &domain) ||
        !key_take_text(&rest, census->arena, &workflow))
        return false;
    struct slice of_id = slice_of(key.data, key.length - rest.length);
    if (!key_take_text(&rest, census->arena, &run) || !uuid_parse(run, &uuid))
        return false;
    uint8_t *tree = arena_alloc(census->arena, head + sizeof uuid.bytes);
    memcpy(tree, key.data, head);
    tree[0] = ROW_HISTORY;
    memcpy(tree + head, uuid.bytes, sizeof uuid.bytes);
    return is_hit(census, as_kind(census, ROW_CURRENT, of_id)) ||
           is_hit(census, as_kind(census, ROW_PENDING, key)) ||
           is_hit(census, slice_of(tree, head + sizeof uuid.bytes));
}

/* The walk failed behind `last`: where it can go on; NULL: nowhere. */
static const uint8_t *
next_end(const struct census *census, struct slice last)
{
    uint8_t at[DAMAGE_KEY_ROOM] = {0};
    const uint8_t *next = NULL;
    memcpy(at, last.data, last.length < sizeof at ? last.length : sizeof at);
    for (size_t i = 0; i < census->count; i++) {
        const uint8_t *high = census->range[i].high;
        if (memcmp(high, at, sizeof at) > 0 && (next == NULL || memcmp(high, next, sizeof at) < 0))
            next = high;
    }
    return next;
}

static bool
has_failed(const rocksdb_iterator_t *rows)
{
    char *failure = NULL;
    rocksdb_iter_get_error(rows, &failure);
    rocksdb_free(failure);
    return failure != NULL;
}

/* Asks the rows of a kind from the cursor on, until one cannot be read; the cursor is then the key
 * of the last that could. */
static void
ask_rows(struct census *census, rocksdb_iterator_t *rows, enum row_kind kind, struct buffer *cursor)
{
    rocksdb_iter_seek(rows, (const char *)cursor->data, cursor->length);
    for (; rocksdb_iter_valid(rows); rocksdb_iter_next(rows)) {
        size_t length;
        const char *bytes = rocksdb_iter_key(rows, &length);
        struct slice key = slice_of(bytes, length);
        if (key.data[0] != kind)
            return;
        buffer_clear(cursor);
        buffer_append(cursor, key);
        census->runs += kind == ROW_RUN ? is_run_hit(census, key)
                                        : is_hit(census, as_kind(census, ROW_RUN, key));
        arena_reset(census->arena);
    }
}

/* With another iterator after each failure: one that has failed goes on failing. */
static void
walk_kind(struct census *census, rocksdb_readoptions_t *options, enum row_kind kind)
{
    const struct tables *tables = &census->rocks->tables;
    uint8_t first = (uint8_t)kind;
    struct buffer cursor = {0};
    buffer_append(&cursor, slice_of(&first, 1));
    const uint8_t *next = &first;
    for (size_t failures = 0; next != NULL && failures <= census->count; failures++) {
        rocksdb_iterator_t *rows =
            rocksdb_create_iterator_cf(tables->db, options, tables->family[FAMILY_FORWARD]);
        ask_rows(census, rows, kind, &cursor);
        next = has_failed(rows) ? next_end(census, buffer_slice(&cursor)) : NULL;
        rocksdb_iter_destroy(rows);
        buffer_clear(&cursor);
        if (next != NULL)
            buffer_append(&cursor, slice_of(next, DAMAGE_KEY_ROOM));
    }
    buffer_free(&cursor);
}

static void
walk_all(struct census *census)
{
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_verify_checksums(options, 1);
    rocksdb_readoptions_set_fill_cache(options, 0);
    walk_kind(census, options, ROW_CURRENT);
    walk_kind(census, options, ROW_RUN);
    rocksdb_readoptions_destroy(options);
}

void
damage_count_runs(struct rocks *rocks)
{
    struct damages *damages = &rocks->damages;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct census census = {.rocks = rocks, .arena = arena};
    lock_take(&damages->lock);
    for (size_t i = 0; i < damages->count; i++)
        if (damages->location[i].has_range)
            census.range[census.count++] = damages->location[i].range;
    lock_leave(&damages->lock);
    if (census.count > 0)
        walk_all(&census);
    lock_take(&damages->lock);
    damages->runs = census.runs;
    damages->has_runs = census.count > 0;
    lock_leave(&damages->lock);
    gauge_set(rocks->metrics.damaged_runs, (int64_t)census.runs);
}
