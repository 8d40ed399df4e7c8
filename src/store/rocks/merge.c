/* merge.c - rows of the tables and fresh ones, in one order: of a row that both have the fresh one
 * counts, and one that is gone there is gone. */
#include "base/check.h"
#include "store/rocks/inside.h"

/* Below 0: the fresh row comes first; above: the iterator's; 0: they are one. */
static int
merge_order(const struct row_merge *row_merge, const struct fresh_row *fresh, struct slice *key)
{
    if (row_merge->is_ended)
        return -1;
    key->data = (const uint8_t *)rocksdb_iter_key(row_merge->tables, &key->length);
    if (fresh == NULL)
        return 1;
    int order = slice_compare(fresh->key, *key);
    return row_merge->fresh->is_backward ? -order : order;
}

/* False: the tables failed; what they would have had next is not known. */
static bool
merge_step(struct row_merge *row_merge)
{
    if (row_merge->is_taken && row_merge->fresh->is_backward)
        rocksdb_iter_prev(row_merge->tables);
    else if (row_merge->is_taken)
        rocksdb_iter_next(row_merge->tables);
    row_merge->is_taken = false;
    if (!row_merge->is_ended && !rocksdb_iter_valid(row_merge->tables)) {
        row_merge->is_ended = true;
        rocksdb_iter_get_error(row_merge->tables, &row_merge->failure);
    }
    return row_merge->failure == NULL;
}

bool
row_merge_next(struct row_merge *row_merge, struct slice *key, struct slice *value)
{
    const struct fresh_scan *fresh_rows = row_merge->fresh;
    while (merge_step(row_merge)) {
        const struct fresh_row *fresh =
            row_merge->at < fresh_rows->count ? &fresh_rows->row[row_merge->at] : NULL;
        if (fresh == NULL && (row_merge->is_ended || fresh_rows->is_cut))
            return false; /* behind a cut nobody knows what is gone */
        int order = merge_order(row_merge, fresh, key);
        row_merge->is_taken = order >= 0;
        if (order > 0) {
            value->data = (const uint8_t *)rocksdb_iter_value(row_merge->tables, &value->length);
            return true;
        }
        row_merge->at++;
        if (fresh->is_gone)
            continue;
        *key = fresh->key;
        *value = fresh->value;
        return true;
    }
    return false;
}
