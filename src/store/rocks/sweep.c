/* sweep.c - a range delete, done as deletes of the rows that are in the range.
 *
 * RocksDB has range deletes, and they are not used. Measured on 7.8.3: a pass that may not touch
 * the disk (range.c) sometimes ends early over a family with range deletes and does not say
 * "incomplete": 4 of 4500 passes over random tables lost rows, against none without deletes or with
 * plain ones. Reads from memory first rest on that word. Whether a disk error is hidden in the same
 * way was not tried.
 *
 * So the committer finds the rows itself: in the database, which holds all groups before this one,
 * and among the steps of this group that come before. Rows that are not in memory make the
 * committer wait for the disk: whoever deletes old rows does well to have read them.
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

static bool
is_inside(const struct swept *swept, struct slice key)
{
    struct slice from = slice_of(swept->bytes, swept->from_length);
    struct slice to = slice_of(swept->bytes + swept->from_length, swept->to_length);
    return slice_compare(key, from) >= 0 && slice_compare(key, to) < 0;
}

void
sweep_note_put(struct guard *guard, struct slice key)
{
    if (guard->swept != NULL && is_inside(guard->swept, key))
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

static void
delete_row(struct rocks *rocks, unsigned family, struct slice key)
{
    rocksdb_writebatch_delete_cf(rocks->committer.batch, rocks->family[family],
                                 (const char *)key.data, key.length);
}

/* Rows that the database holds. */
static void
sweep_stored(struct rocks *rocks, unsigned family, struct slice from, struct slice to,
             char **failure)
{
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_iterate_upper_bound(options, (const char *)to.data, to.length);
    rocksdb_readoptions_set_fill_cache(options, 0); /* nobody reads them again */
    rocksdb_iterator_t *rows =
        rocksdb_create_iterator_cf(rocks->db, options, rocks->family[family]);
    rocksdb_iter_seek(rows, (const char *)from.data, from.length);
    for (; rocksdb_iter_valid(rows); rocksdb_iter_next(rows)) {
        size_t length;
        const char *key = rocksdb_iter_key(rows, &length);
        check(slice_compare(slice_of(key, length), to) < 0);
        delete_row(rocks, family, slice_of(key, length));
    }
    rocksdb_iter_get_error(rows, failure);
    rocksdb_iter_destroy(rows);
    rocksdb_readoptions_destroy(options);
}

/* Rows put by one commit, up to where `rest` of its steps begins. */
static void
sweep_commit(struct rocks *rocks, const struct commit *commit, const struct commit_step *range,
             struct slice rest)
{
    struct slice steps = commit->steps;
    struct commit_step step;
    while (steps.data != rest.data && commit_next_step(&steps, &step)) {
        if (step.verb != BATCH_PUT || step.kind != range->kind ||
            slice_compare(step.key, range->key) < 0)
            continue;
        if (range->value.length > 0 && slice_compare(step.key, range->value) >= 0)
            continue;
        struct buffer *row = &rocks->committer.row;
        buffer_clear(row);
        layout_append(row, step.kind, commit->partition_key, step.key);
        delete_row(rocks, layout_family(step.kind), buffer_slice(row));
    }
}

/* Rows put by earlier commits of this group, and by earlier steps of this one. */
static void
sweep_group(struct rocks *rocks, const struct taking *taking, const struct commit_step *range)
{
    list_each(node, taking->group) {
        const struct commit *other = list_entry(node, struct commit, letter.node);
        bool is_same = slice_equal(other->partition_key, taking->commit->partition_key);
        if (is_same && !other->failed)
            sweep_commit(rocks, other, range,
                         other == taking->commit ? taking->rest : slice_of(NULL, 0));
    }
}

bool
sweep_range(struct rocks *rocks, const struct taking *taking, const struct commit_step *range)
{
    struct buffer *begin = &rocks->committer.key, *end = &rocks->committer.end;
    check(range->verb == BATCH_DELETE_RANGE && row_facts(range->kind)->life != ROW_ONCE);
    struct slice partition_key = taking->commit->partition_key;
    buffer_clear(begin);
    buffer_clear(end);
    layout_append(begin, range->kind, partition_key, range->key);
    if (range->value.length > 0)
        layout_append(end, range->kind, partition_key, range->value);
    else
        layout_append_end(end, range->kind, partition_key);
    struct slice from = buffer_slice(begin), to = buffer_slice(end);
    if (slice_compare(from, to) >= 0)
        return true;

    struct slice first = from; /* of what has to be looked at */
    struct swept *swept = taking->guard->swept;
    if (swept != NULL && is_inside(swept, from)) {
        first = slice_of(swept->bytes + swept->from_length, swept->to_length);
        from = slice_of(swept->bytes, swept->from_length);
    }
    if (slice_compare(first, to) >= 0)
        return true;
    sweep_stored(rocks, layout_family(range->kind), first, to, taking->failure);
    if (*taking->failure != NULL)
        return false;
    sweep_group(rocks, taking, range);
    remember(taking->guard, from, to);
    return true;
}
