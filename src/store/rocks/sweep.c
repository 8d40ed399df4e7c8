/* sweep.c - a range delete, done as deletes of the rows that are in the range.
 *
 * RocksDB has range deletes, and they are not used. Measured on 7.8.3: a pass that may not touch
 * the disk (range.c) sometimes ends early over a family with range deletes and does not say
 * "incomplete": 4 of 4500 passes over random tables lost rows, against none without deletes or with
 * plain ones. Reads from memory first rest on that word. Whether a disk error is hidden in the same
 * way was not tried.
 *
 * So the committer finds the rows itself, before it writes the group: those that are in the tables
 * or on their way there are deleted one by one in the record. For fresh rows the range itself is in
 * the record, and finds them when it is applied: also those that steps before it put. A replay need
 * not look into the tables. Rows that are not in memory make the committer wait for the disk:
 * a caller that deletes old rows should have read them before.
 *
 * Task lists delete [0, acknowledged) again and again. Each time the dead rows of the times before
 * would be climbed over; so each partition remembers the range that was swept last, until a row is
 * put into it. */
#include "base/check.h"
#include "base/memory.h"
#include "store/rocks/inside.h"

/* ---- what was swept last ---- */

void
sweep_forget(struct guard *guard)
{
    memory_free(guard->swept);
    guard->swept = NULL;
}

static struct slice
swept_begin(const struct swept *swept)
{
    return slice_of(swept->bytes, swept->from_length);
}

static struct slice
swept_end(const struct swept *swept)
{
    return slice_of(swept->bytes + swept->from_length, swept->to_length);
}

static bool
is_inside(const struct swept *swept, struct slice key)
{
    return slice_compare(key, swept_begin(swept)) >= 0 && slice_compare(key, swept_end(swept)) < 0;
}

void
sweep_note_put(struct guard *guard, const struct fresh_location *location)
{
    if (guard->swept == NULL || guard->swept->bytes[0] != location->kind)
        return; /* of another kind */
    scoped(arena_drop) struct arena *arena = arena_new(0);
    if (is_inside(guard->swept,
                  layout_key(arena, location->kind, location->partition_key, location->key)))
        sweep_forget(guard);
}

/* Remembers [from, to) as empty. */
static void
remember(struct guard *guard, struct slice from, struct slice to)
{
    check(slice_compare(from, to) < 0);
    struct swept *swept = memory_alloc(sizeof *swept + from.length + to.length);
    swept->from_length = from.length;
    swept->to_length = to.length;
    memcpy(swept->bytes, from.data, from.length);
    memcpy(swept->bytes + from.length, to.data, to.length);
    sweep_forget(guard);
    guard->swept = swept;
}

/* ---- finding rows ---- */

/* Deletes of single rows, behind the range in the record. */
struct range_sweep {
    struct rocks *rocks;
    struct fresh_location location; /* kind and partition */
};

static void
delete_row(void *context, struct slice key)
{
    const struct range_sweep *range_sweep = context;
    struct commit_step step = {BATCH_DELETE, range_sweep->location.kind, key, slice_of(NULL, 0)};
    commit_append_step(&range_sweep->rocks->committer.record, &step);
}

/* Of those that are fresh, too, the fresh ones count. */
static bool
delete_stored(const struct range_sweep *range_sweep, struct slice first, struct slice to,
              char **failure)
{
    const struct rocks *rocks = range_sweep->rocks;
    rocksdb_column_family_handle_t *family =
        rocks->tables.family[layout_family(range_sweep->location.kind)];
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_iterate_upper_bound(options, (const char *)to.data, to.length);
    rocksdb_readoptions_set_fill_cache(options, 0); /* nobody reads them again */
    rocksdb_iterator_t *rows = rocksdb_create_iterator_cf(rocks->tables.db, options, family);
    rocksdb_iter_seek(rows, (const char *)first.data, first.length);
    for (; rocksdb_iter_valid(rows); rocksdb_iter_next(rows)) {
        size_t length;
        const char *bytes = rocksdb_iter_key(rows, &length);
        struct slice key = slice_of(bytes, length);
        struct fresh_location row = range_sweep->location;
        check(slice_compare(key, to) < 0);
        row.key = slice_skip(key, 1 + row.partition_key.length);
        if (!fresh_knows(rocks->fresh, &row))
            delete_row((void *)(uintptr_t)range_sweep, row.key);
    }
    rocksdb_iter_get_error(rows, failure);
    rocksdb_iter_destroy(rows);
    rocksdb_readoptions_destroy(options);
    return *failure == NULL;
}

bool
sweep_range(struct rocks *rocks, struct slice partition_key, const struct commit_step *range,
            struct guard *guard, char **failure)
{
    check(range->verb == BATCH_DELETE_RANGE && row_traits(range->kind)->life != ROW_ONCE);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct slice from = layout_key(arena, range->kind, partition_key, range->key), first = from;
    struct slice to = range->value.length > 0
                          ? layout_key(arena, range->kind, partition_key, range->value)
                          : layout_end(arena, range->kind, partition_key);
    if (guard->swept != NULL && is_inside(guard->swept, from)) {
        first = arena_slice(arena, swept_end(guard->swept));
        from = arena_slice(arena, swept_begin(guard->swept));
    }
    if (slice_compare(first, to) >= 0)
        return true;
    struct commit_step rest = *range; /* of the range, where rows may be */
    rest.key = slice_skip(first, 1 + partition_key.length);
    commit_append_step(&rocks->committer.record, &rest);
    struct range_sweep range_sweep = {rocks, {range->kind, partition_key, rest.key}};
    fresh_each_settling(rocks->fresh, &range_sweep.location, range->value, delete_row,
                        &range_sweep);
    if (!delete_stored(&range_sweep, first, to, failure))
        return false;
    remember(guard, from, to);
    return true;
}
