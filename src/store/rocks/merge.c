/* merge.c - rows of the tables and fresh ones, in one order: of a row that both have the fresh one
 * counts, and one that is gone there is gone. */
#include "base/check.h"
#include "store/rocks/inside.h"

/* Below 0: the fresh row comes first; above: the iterator's; 0: they are one. */
static int
merge_order(const struct merge *merge, const struct fresh_row *fresh, struct slice *key)
{
    if (merge->is_ended)
        return -1;
    key->data = (const uint8_t *)rocksdb_iter_key(merge->tables, &key->length);
    if (fresh == NULL)
        return 1;
    int order = slice_compare(fresh->key, *key);
    return merge->fresh->is_backward ? -order : order;
}

/* False: the tables failed; what they would have had next is not known. */
static bool
merge_step(struct merge *merge)
{
    if (merge->is_taken && merge->fresh->is_backward)
        rocksdb_iter_prev(merge->tables);
    else if (merge->is_taken)
        rocksdb_iter_next(merge->tables);
    merge->is_taken = false;
    if (!merge->is_ended && !rocksdb_iter_valid(merge->tables)) {
        merge->is_ended = true;
        rocksdb_iter_get_error(merge->tables, &merge->failure);
    }
    return merge->failure == NULL;
}

bool
merge_next(struct merge *merge, struct slice *key, struct slice *value)
{
    const struct fresh_look *look = merge->fresh;
    while (merge_step(merge)) {
        const struct fresh_row *fresh = merge->at < look->count ? &look->row[merge->at] : NULL;
        if (fresh == NULL && (merge->is_ended || look->is_cut))
            return false; /* behind a cut nobody knows what is gone */
        int order = merge_order(merge, fresh, key);
        merge->is_taken = order >= 0;
        if (order > 0) {
            value->data = (const uint8_t *)rocksdb_iter_value(merge->tables, &value->length);
            return true;
        }
        merge->at++;
        if (fresh->is_gone)
            continue;
        *key = fresh->key;
        *value = fresh->value;
        return true;
    }
    return false;
}
