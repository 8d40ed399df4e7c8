/* rows.c - the rows of a base: one ordered tree for rows, one for guards.
 *
 * A row's place is its kind, its partition and its key, so a kind's rows over all partitions are
 * one stretch of the tree (walks), and those of one partition a stretch of that (scans). */
#include "base/check.h"
#include "base/memory.h"
#include "store/key.h"
#include "store/memory/inside.h"

struct memory_value {
    size_t length;
    uint8_t bytes[];
};

#define PLACE_SMALL 256

/* A place on the stack if it is small, else in memory; let go of with place_free. */
struct row_position {
    struct slice bytes;
    uint8_t *block;
    uint8_t small[PLACE_SMALL];
};

static struct slice
place_make(struct row_position *row_position, enum row_kind kind, struct slice partition_key,
           struct slice key)
{
    size_t length = 1 + partition_key.length + key.length;
    row_position->block = length <= sizeof row_position->small ? NULL : memory_alloc(length);
    uint8_t *bytes = row_position->block == NULL ? row_position->small : row_position->block;
    bytes[0] = (uint8_t)kind;
    memcpy(bytes + 1, partition_key.data, partition_key.length);
    if (key.length > 0)
        memcpy(bytes + 1 + partition_key.length, key.data, key.length);
    row_position->bytes = slice_of(bytes, length);
    return row_position->bytes;
}

static void
place_free(struct row_position *row_position)
{
    memory_free(row_position->block);
}

/* The end of all places of a partition's kind. Partition keys never consist of FF bytes only, and
 * the kind in front is below FF: there is an end. */
static struct slice
place_make_end(struct row_position *row_position, enum row_kind kind, struct slice partition_key)
{
    struct slice bytes = place_make(row_position, kind, partition_key, slice_of(NULL, 0));
    uint8_t *last = (uint8_t *)bytes.data + bytes.length - 1;
    while (*last == 0xff) {
        last--;
        row_position->bytes.length--;
    }
    check(row_position->bytes.length > 0);
    ++*last;
    return row_position->bytes;
}

/* ---- the whole ---- */

void
memory_rows_init(struct memory_rows *rows)
{
    rows->rows = tree_new();
    rows->guards = tree_new();
}

static void
free_tree(struct tree *tree)
{
    for (struct tree_row *row = tree_first(tree); row != NULL; row = tree_next(row))
        memory_free(row->value);
    tree_free(tree);
}

void
memory_rows_free(struct memory_rows *rows)
{
    free_tree(rows->rows);
    free_tree(rows->guards);
}

static struct memory_value *
value_new(struct slice bytes)
{
    struct memory_value *value = memory_alloc(sizeof *value + bytes.length);
    value->length = bytes.length;
    if (bytes.length > 0)
        memcpy(value->bytes, bytes.data, bytes.length);
    return value;
}

static uint64_t *
guard_new(uint64_t guard)
{
    uint64_t *value = memory_alloc(sizeof *value);
    *value = guard;
    return value;
}

void
memory_rows_copy(struct memory_rows *to, const struct memory_rows *from)
{
    memory_rows_free(to);
    memory_rows_init(to);
    for (struct tree_row *row = tree_first(from->rows); row != NULL; row = tree_next(row)) {
        const struct memory_value *value = row->value;
        tree_put(to->rows, row->key, value_new(slice_of(value->bytes, value->length)));
    }
    for (struct tree_row *row = tree_first(from->guards); row != NULL; row = tree_next(row))
        tree_put(to->guards, row->key, guard_new(*(const uint64_t *)row->value));
}

/* ---- writing ---- */

uint64_t
memory_rows_guard(const struct memory_rows *rows, struct slice partition_key)
{
    const uint64_t *guard = tree_get(rows->guards, partition_key);
    return guard == NULL ? 0 : *guard;
}

static void
drop_value(void *context, void *value)
{
    memory_free(value);
}

static void
delete_range(struct memory_rows *rows, struct slice partition_key, const struct commit_step *step)
{
    struct row_position from, to;
    place_make(&from, step->kind, partition_key, step->key);
    if (step->value.length > 0)
        place_make(&to, step->kind, partition_key, step->value);
    else
        place_make_end(&to, step->kind, partition_key);
    tree_remove_range(rows->rows, from.bytes, to.bytes, drop_value, NULL);
    place_free(&from);
    place_free(&to);
}

/* An engine may forget a put and a delete of a row that is put once as a pair, so a second put is a
 * bug that only shows later and elsewhere. Here it shows at once. */
static void
put(struct memory_rows *rows, struct slice row_position, const struct commit_step *step)
{
    struct memory_value *before = tree_put(rows->rows, row_position, value_new(step->value));
    check_that(before == NULL || row_traits(step->kind)->life == ROW_MANY, "a %s row was put twice",
               row_traits(step->kind)->name);
    memory_free(before);
}

/* The same of a second delete: it may take away a row that comes later under the same key. */
static void delete (struct memory_rows *rows, struct slice row_position,
                    const struct commit_step *step)
{
    struct memory_value *before = tree_remove(rows->rows, row_position);
    check_that(before != NULL || row_traits(step->kind)->life != ROW_ONCE,
               "a %s row was deleted that is not there", row_traits(step->kind)->name);
    memory_free(before);
}

static void
perform(struct memory_rows *rows, struct slice partition_key, const struct commit_step *step)
{
    if (step->verb == BATCH_DELETE_RANGE) {
        delete_range(rows, partition_key, step);
        return;
    }
    struct row_position row_position;
    place_make(&row_position, step->kind, partition_key, step->key);
    if (step->verb == BATCH_PUT)
        put(rows, row_position.bytes, step);
    else
        delete (rows, row_position.bytes, step);
    place_free(&row_position);
}

void
memory_rows_apply(struct memory_rows *rows, struct slice partition_key, uint64_t guard_next,
                  struct slice steps)
{
    struct commit_step step;
    while (commit_next_step(&steps, &step))
        perform(rows, partition_key, &step);
    uint64_t *before = tree_put(rows->guards, partition_key, guard_new(guard_next));
#ifndef CADENZA_FAULT_accept_stale_guard
    check(before == NULL || *before <= guard_next);
#endif
    memory_free(before);
}

/* ---- reading ---- */

static struct slice
value_copy(const struct memory_value *value, struct arena *arena)
{
    return arena_slice(arena, slice_of(value->bytes, value->length));
}

bool
memory_rows_get(const struct memory_rows *rows, struct slice partition_key, enum row_kind kind,
                struct slice key, struct arena *arena, struct slice *value)
{
    struct row_position row_position;
    const struct memory_value *found =
        tree_get(rows->rows, place_make(&row_position, kind, partition_key, key));
    place_free(&row_position);
    if (found != NULL)
        *value = value_copy(found, arena);
    return found != NULL;
}

/* A stretch of the tree, walked in one direction. */
struct row_stretch {
    struct slice from, to; /* from <= place < to */
    bool is_backward;
};

static struct tree_row *
stretch_bound(const struct row_stretch *row_stretch, struct tree_row *row)
{
    if (row == NULL || slice_compare(row->key, row_stretch->from) < 0 ||
        slice_compare(row->key, row_stretch->to) >= 0)
        return NULL;
    return row;
}

static struct tree_row *
stretch_first(const struct row_stretch *row_stretch, const struct tree *tree)
{
    if (!row_stretch->is_backward)
        return stretch_bound(row_stretch, tree_at_least(tree, row_stretch->from));
    struct tree_row *row = tree_at_most(tree, row_stretch->to);
    if (row != NULL && slice_equal(row->key, row_stretch->to))
        row = tree_prev(row);
    return stretch_bound(row_stretch, row);
}

static struct tree_row *
stretch_next(const struct row_stretch *row_stretch, const struct tree_row *row)
{
    return stretch_bound(row_stretch, row_stretch->is_backward ? tree_prev(row) : tree_next(row));
}

/* How many rows of the stretch the limits of the scan allow. */
static size_t
scan_count(const struct scan *scan, const struct row_stretch *row_stretch, const struct tree *tree,
           size_t head, bool *has_more)
{
    size_t count = 0, bytes = 0;
    struct tree_row *row = stretch_first(row_stretch, tree);
    for (; row != NULL; row = stretch_next(row_stretch, row)) {
        const struct memory_value *value = row->value;
        bytes += row->key.length - head + value->length;
        if (scan->rows_max > 0 && count == scan->rows_max)
            break;
        if (scan->bytes_max > 0 && count > 0 && bytes > scan->bytes_max)
            break;
        count++;
    }
    *has_more = row != NULL;
    return count;
}

void
memory_rows_scan(const struct memory_rows *rows, const struct scan *scan, struct arena *arena,
                 struct rows *found)
{
    struct slice partition = partition_key(scan->partition, arena);
    struct row_position from, to;
    struct row_stretch row_stretch = {.is_backward = scan->is_backward};
    row_stretch.from = place_make(&from, scan->kind, partition, scan->from);
    row_stretch.to = scan->to.length > 0 ? place_make(&to, scan->kind, partition, scan->to)
                                         : place_make_end(&to, scan->kind, partition);
    size_t head = 1 + partition.length;
    size_t count = scan_count(scan, &row_stretch, rows->rows, head, &found->has_more);
    found->row = arena_zalloc(arena, count, sizeof *found->row);
    struct tree_row *row = stretch_first(&row_stretch, rows->rows);
    for (; found->count < count; row = stretch_next(&row_stretch, row))
        found->row[found->count++] = (struct row){
            .key = arena_slice(arena, slice_skip(row->key, head)),
            .value = value_copy(row->value, arena),
        };
    place_free(&from);
    place_free(&to);
}

size_t
memory_rows_count(const struct memory_rows *rows, enum row_kind kind)
{
    uint8_t first = (uint8_t)kind, end = (uint8_t)(kind + 1);
    struct row_stretch row_stretch = {.from = slice_of(&first, 1), .to = slice_of(&end, 1)};
    size_t count = 0;
    struct tree_row *row = stretch_first(&row_stretch, rows->rows);
    for (; row != NULL; row = stretch_next(&row_stretch, row))
        count++;
    return count;
}

static size_t
smaller(size_t one, size_t other)
{
    return one < other ? one : other;
}

void
memory_rows_walk(const struct memory_rows *rows, enum row_kind kind, const struct walk_row *after,
                 size_t rows_max, struct arena *arena, struct walk_rows *found)
{
    struct slice partition = slice_of(NULL, 0), key = slice_of(NULL, 0);
    if (after != NULL) {
        partition = partition_key(after->partition, arena);
        key = key_after(after->key, arena);
    }
    uint8_t first = (uint8_t)kind;
    struct row_position row_position = {.bytes = slice_of(&first, 1)};
    if (after != NULL)
        place_make(&row_position, kind, partition, key);
    uint8_t end = (uint8_t)(kind + 1);
    struct row_stretch row_stretch = {.from = row_position.bytes, .to = slice_of(&end, 1)};
    struct tree_row *row = stretch_first(&row_stretch, rows->rows);
    found->row = arena_zalloc(arena, smaller(rows_max, tree_count(rows->rows)), sizeof *found->row);
    for (; row != NULL && found->count < rows_max; row = stretch_next(&row_stretch, row)) {
        struct walk_row *next = &found->row[found->count++];
        struct slice rest = slice_skip(row->key, 1);
        bool is_known = partition_take(&rest, arena, &next->partition);
        check(is_known);
        next->key = arena_slice(arena, rest);
        next->value = value_copy(row->value, arena);
    }
    found->has_more = row != NULL;
    place_free(&row_position);
}
