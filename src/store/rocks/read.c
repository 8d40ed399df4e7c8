/* read.c - single rows, guards, and scans of one kind in one partition.
 *
 * A row is asked for in memory first, on the loop. If that would need the disk, the question is put
 * again on a thread. RocksDB pins the block a value lies in; the value is copied into the caller's
 * arena and the pin let go of. */
#include "base/check.h"
#include "base/vector.h"
#include "store/rocks/inside.h"

bool
read_is_cold(const char *failure)
{
    static const char incomplete[] = "Result incomplete";
    return failure != NULL && strncmp(failure, incomplete, sizeof incomplete - 1) == 0;
}

/* --- one row ---------------------------------------------------------------------------------- */

struct row_lookup {
    struct rocks *rocks;
    unsigned family;
    struct slice key;
    size_t prefix;                /* of kind and partition */
    rocksdb_pinnableslice_t *row; /* NULL: not there, or a failure */
    char *failure;
};

static void
lookup_run(struct row_lookup *row_lookup, rocksdb_readoptions_t *options)
{
    struct rocks *rocks = row_lookup->rocks;
    setup_thread();
    check(row_lookup->row == NULL && row_lookup->failure == NULL);
    row_lookup->row = rocksdb_get_pinned_cf(
        rocks->tables.db, options, rocks->tables.family[row_lookup->family],
        (const char *)row_lookup->key.data, row_lookup->key.length, &row_lookup->failure);
}

static void
lookup_run_cold(void *argument)
{
    struct row_lookup *row_lookup = argument;
    lookup_run(row_lookup, row_lookup->rocks->read_any);
}

/* The row's value as the tables have it, in the arena, found or not. Yields if it is cold. */
static struct error *
lookup_tables(struct row_lookup *row_lookup, struct arena *arena, bool *found, struct slice *value)
{
    row_lookup->row = NULL;
    lookup_run(row_lookup, row_lookup->rocks->read_cached);
    if (read_is_cold(row_lookup->failure)) {
        rocksdb_free(row_lookup->failure);
        row_lookup->failure = NULL;
        counter_add(row_lookup->rocks->metrics.cold_reads, 1);
        struct error *err = pool_run(lookup_run_cold, row_lookup, arena);
        if (err != NULL)
            return error_new(arena, ERR_UNAVAILABLE, "cold read: %s", err->message);
    }
    check(row_lookup->failure == NULL || row_lookup->row == NULL);
    if (row_lookup->failure != NULL)
        damage_read_failed(row_lookup->rocks, row_lookup->failure);
    if (row_lookup->failure != NULL)
        return setup_error(arena, row_lookup->failure, "read a row");
    *found = row_lookup->row != NULL;
    if (!*found)
        return NULL;
    size_t length;
    const char *bytes = rocksdb_pinnableslice_value(row_lookup->row, &length);
    *value = arena_slice(arena, slice_of(bytes, length));
    rocksdb_pinnableslice_destroy(row_lookup->row);
    return NULL;
}

/* The same of the newest state. What is fresh and settles meanwhile is in the tables by then. */
static struct error *
lookup_copy(struct row_lookup *row_lookup, struct arena *arena, bool *found, struct slice *value)
{
    struct fresh *fresh = row_lookup->rocks->fresh;
    uint64_t hidden = fresh_hidden(fresh);
    if (fresh_get(fresh, row_lookup->key, row_lookup->prefix, arena, found, value))
        return NULL;
    struct error *err = lookup_tables(row_lookup, arena, found, value);
    if (err != NULL || !*found || fresh_hidden(fresh) == hidden)
        return err;
    bool is_fresh = fresh_get(fresh, row_lookup->key, row_lookup->prefix, arena, found, value);
    (void)is_fresh; /* else the tables' row was not hidden, or is not any more */
    return NULL;
}

/* A read together with the guard of its moment. Guards only rise: if the guard is the same before
 * the read and after it, it was the same meanwhile. `read` is done again until it is. Yields. */
struct guarded_read {
    struct store *store;
    struct partition partition;
    struct error *(*read)(void *context, struct arena *arena);
    void *context;
};

static struct error *
read_guarded(const struct guarded_read *guarded_read, struct arena *arena, uint64_t *guard)
{
    uint64_t before;
    struct error *err = read_guard(guarded_read->store, guarded_read->partition, arena, guard);
    do {
        before = *guard;
        if (err == NULL)
            err = guarded_read->read(guarded_read->context, arena);
        if (err == NULL)
            err = read_guard(guarded_read->store, guarded_read->partition, arena, guard);
    } while (err == NULL && *guard != before);
    return err;
}

struct row_read {
    struct row_lookup lookup;
    bool *found;
    struct slice *value;
};

static struct error *
read_row_once(void *context, struct arena *arena)
{
    struct row_read *row_read = context;
    *row_read->found = false;
    return lookup_copy(&row_read->lookup, arena, row_read->found, row_read->value);
}

struct error *
read_row(struct store *store, struct partition partition, enum row_kind kind, struct slice key,
         struct arena *arena, bool *found, struct slice *value, uint64_t *guard)
{
    struct row_lookup row_lookup = {.rocks = rocks_of(store), .family = layout_family(kind)};
    struct slice prefix = partition_key(partition, arena);
    row_lookup.key = layout_key(arena, kind, prefix, key);
    row_lookup.prefix = 1 + prefix.length;
    if (guard == NULL)
        return lookup_copy(&row_lookup, arena, found, value);
    struct row_read row_read = {row_lookup, found, value};
    return read_guarded(&(struct guarded_read){store, partition, read_row_once, &row_read}, arena,
                        guard);
}

struct error *
read_guard(struct store *store, struct partition partition, struct arena *arena, uint64_t *guard)
{
    struct row_lookup row_lookup = {.rocks = rocks_of(store), .family = FAMILY_ORDERED};
    row_lookup.key =
        layout_key(arena, LAYOUT_GUARD, partition_key(partition, arena), slice_of(NULL, 0));
    row_lookup.prefix = row_lookup.key.length;
    bool found;
    struct slice value;
    struct error *err = lookup_copy(&row_lookup, arena, &found, &value);
    *guard = 0;
    if (err != NULL || !found)
        return err;
    if (!layout_guard_read(value, guard))
        return error_new(arena, ERR_CORRUPT, "the guard of %s has %zu bytes, not 8",
                         partition_name(partition, arena), value.length);
    return NULL;
}

/* --- scans ------------------------------------------------------------------------------------ */

struct scan_pass {
    const struct scan *scan;
    struct arena *arena;
    size_t prefix_length; /* of kind and partition, which the caller does not see */
    vector_of(struct row) rows;
    size_t bytes;
    bool has_more;
};

/* Would `bytes` more pass a limit? The first row always fits. */
static bool
scan_is_full(const struct scan_pass *pass, size_t bytes)
{
    const struct scan *scan = pass->scan;
    if (scan->rows_max > 0 && pass->rows.count >= scan->rows_max)
        return true;
    return scan->bytes_max > 0 && pass->rows.count > 0 && pass->bytes + bytes > scan->bytes_max;
}

static bool
scan_take(void *context, struct slice key, struct slice value)
{
    struct scan_pass *pass = context;
    check(key.length >= pass->prefix_length && key.data[0] == pass->scan->kind);
    struct slice row_key = slice_skip(key, pass->prefix_length);
    size_t bytes = row_key.length + value.length;
    if (scan_is_full(pass, bytes)) {
        pass->has_more = true; /* this row */
        return false;
    }
    struct row row = {.key = arena_slice(pass->arena, row_key),
                      .value = arena_slice(pass->arena, value)};
    pass->bytes += bytes;
    vector_push_in(&pass->rows, pass->arena, row);
    return true;
}

static void
scan_restart(void *context)
{
    struct scan_pass *pass = context;
    vector_clear(&pass->rows);
    pass->bytes = 0;
    pass->has_more = false;
}

static struct error *
scan_once(struct rocks *rocks, const struct scan *scan, struct arena *arena, struct rows *rows)
{
    struct slice partition = partition_key(scan->partition, arena);
    struct scan_pass pass = {.scan = scan, .arena = arena, .prefix_length = 1 + partition.length};
    struct range range = {.family = layout_family(scan->kind),
                          .from = layout_key(arena, scan->kind, partition, scan->from),
                          .prefix = pass.prefix_length,
                          .rows_max = scan->rows_max,
                          .is_backward = scan->is_backward,
                          .take = scan_take,
                          .restart = scan_restart,
                          .context = &pass};
    range.to = scan->to.length > 0 ? layout_key(arena, scan->kind, partition, scan->to)
                                   : layout_end(arena, scan->kind, partition);
    struct error *err = range_read(rocks, &range, arena);
    if (err != NULL)
        return err;
    *rows =
        (struct rows){.row = pass.rows.items, .count = pass.rows.count, .has_more = pass.has_more};
    return NULL;
}

struct range_scan {
    struct rocks *rocks;
    const struct scan *scan;
    struct rows *rows;
};

static struct error *
read_scan_once(void *context, struct arena *arena)
{
    struct range_scan *range_scan = context;
    return scan_once(range_scan->rocks, range_scan->scan, arena, range_scan->rows);
}

struct error *
read_scan(struct store *store, const struct scan *scan, struct arena *arena, struct rows *rows)
{
    struct range_scan range_scan = {rocks_of(store), scan, rows};
    if (!scan->wants_guard)
        return read_scan_once(&range_scan, arena);
    uint64_t guard;
    struct error *err = read_guarded(
        &(struct guarded_read){store, scan->partition, read_scan_once, &range_scan}, arena, &guard);
    if (err == NULL)
        rows->guard = guard;
    return err;
}
