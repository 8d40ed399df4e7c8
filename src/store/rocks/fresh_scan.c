/* fresh_scan.c - reading fresh rows: one, or a range of them as it is at one moment. */
#include <stdlib.h>

#include "base/check.h"
#include "base/vector.h"
#include "store/rocks/shelf.h"

bool
fresh_get(struct fresh *fresh, struct slice key, size_t prefix, struct arena *arena, bool *found,
          struct slice *value)
{
    struct slice shelf = slice_of(key.data, prefix), rest = slice_skip(key, prefix);
    size_t index;
    lock_take(&fresh->lock);
    struct fresh_entry *entry = shelf_find(shelf_of(fresh->new, shelf), rest, &index);
    if (entry == NULL)
        entry = shelf_find(shelf_of(fresh->old, shelf), rest, &index);
    if (entry != NULL) {
        *found = !entry->is_gone;
        *value = arena_slice(arena, entry_value(entry));
    }
    lock_leave(&fresh->lock);
    return entry != NULL;
}

/* What a look finds in one shelf of each generation. */
struct fresh_stretch {
    const struct shelf *shelf[2];
    size_t first[2], last[2];
};

static struct fresh_stretch
stretch_of(const struct shelf *new, const struct shelf *old, const struct fresh_scan *fresh_rows)
{
    struct fresh_stretch fresh_stretch = {.shelf = {new, old}};
    for (int i = 0; i < 2; i++)
        if (fresh_stretch.shelf[i] != NULL)
            shelf_range_of(fresh_stretch.shelf[i], fresh_rows->from, fresh_rows->to,
                           &fresh_stretch.first[i], &fresh_stretch.last[i]);
    return fresh_stretch;
}

/* The next row at the end that is asked for; of one that both have, the new one. NULL: no more. */
static const struct fresh_entry *
stretch_next(struct fresh_stretch *fresh_stretch, bool is_backward)
{
    const struct fresh_entry *next[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++)
        if (fresh_stretch->first[i] < fresh_stretch->last[i])
            next[i] =
                fresh_stretch->shelf[i]
                    ->slots[is_backward ? fresh_stretch->last[i] - 1 : fresh_stretch->first[i]]
                    .entry;
    int order = next[0] == NULL   ? 1
                : next[1] == NULL ? -1
                                  : slice_compare(entry_key(next[0]), entry_key(next[1]));
    if (is_backward && next[0] != NULL && next[1] != NULL)
        order = -order;
    for (int i = 0; i < 2; i++)
        if (next[i] != NULL && (order == 0 || (order < 0) == (i == 0))) {
            if (is_backward)
                fresh_stretch->last[i]--;
            else
                fresh_stretch->first[i]++;
        }
    return order <= 0 ? next[0] : next[1];
}

struct finding {
    vector_of(struct fresh_row) rows;
    size_t living;
};

/* False: the limit was reached. */
static bool
scan_shelf(struct fresh_scan *fresh_rows, struct finding *finding,
           struct fresh_stretch fresh_stretch, struct arena *arena)
{
    const struct fresh_entry *entry;
    while ((entry = stretch_next(&fresh_stretch, fresh_rows->is_backward)) != NULL) {
        if (fresh_rows->rows_max > 0 && finding->living >= fresh_rows->rows_max)
            return false;
        if (fresh_rows->gone_max > 0 &&
            finding->rows.count - finding->living >= fresh_rows->gone_max)
            return false;
        vector_push_in(&finding->rows, arena, entry_row(entry));
        finding->living += !entry->is_gone;
    }
    return true;
}

static int
compare_shelves(const void *one, const void *other)
{
    const struct shelf *const *left = one, *const *right = other;
    return slice_compare((*left)->prefix, (*right)->prefix);
}

static struct shelf **
shelves_in_order(const struct generation *generation, struct arena *arena)
{
    const struct map *shelves = generation == NULL ? NULL : generation->shelves;
    size_t count = map_count(shelves), at = 0, cursor = 0;
    struct shelf **order = arena_zalloc(arena, count + 1, sizeof *order);
    void *shelf;
    while (map_next(shelves, &cursor, NULL, &shelf))
        order[at++] = shelf;
    qsort(order, count, sizeof *order, compare_shelves);
    return order;
}

/* Shelves of both generations in one order: for those who look at all partitions. */
static void
scan_shelves(struct fresh *fresh, struct fresh_scan *fresh_rows, struct finding *finding,
             struct arena *arena)
{
    check(!fresh_rows->is_backward);
    struct shelf *const *new = shelves_in_order(fresh->new, arena);
    struct shelf *const *old = shelves_in_order(fresh->old, arena);
    while ((*new != NULL || *old != NULL) && !fresh_rows->is_cut) {
        int order = *new == NULL   ? 1
                    : *old == NULL ? -1
                                   : slice_compare((*new)->prefix, (*old)->prefix);
        struct fresh_stretch fresh_stretch =
            stretch_of(order <= 0 ? *new : NULL, order >= 0 ? *old : NULL, fresh_rows);
        fresh_rows->is_cut = !scan_shelf(fresh_rows, finding, fresh_stretch, arena);
        new += order <= 0;
        old += order >= 0;
    }
}

void
fresh_scan_begin(struct fresh *fresh, struct fresh_scan *fresh_rows, struct arena *arena)
{
    struct finding finding = {0};
    check(fresh_rows->prefix > 0 && fresh_rows->pinned[0] == NULL);
    lock_take(&fresh->lock);
    fresh_rows->is_cut = false;
    if (fresh_rows->prefix > 1) {
        struct slice prefix = slice_of(fresh_rows->from.data, fresh_rows->prefix);
        struct fresh_stretch fresh_stretch =
            stretch_of(shelf_of(fresh->new, prefix), shelf_of(fresh->old, prefix), fresh_rows);
        fresh_rows->is_cut = !scan_shelf(fresh_rows, &finding, fresh_stretch, arena);
    } else {
        scan_shelves(fresh, fresh_rows, &finding, arena);
    }
    fresh_rows->row = finding.rows.items;
    fresh_rows->count = finding.rows.count;
    if (fresh_rows->count == 0)
        return;
    check(fresh->new->pins > 0 && (fresh->old == NULL || fresh->old->pins > 0));
    fresh_rows->pinned[0] = fresh->new;
    fresh_rows->pinned[1] = fresh->old;
    fresh->new->pins++;
    if (fresh->old != NULL)
        fresh->old->pins++;
}

void
fresh_scan_made(struct fresh *fresh)
{
    lock_leave(&fresh->lock);
}

void
fresh_scan_end(struct fresh *fresh, struct fresh_scan *fresh_rows)
{
    for (int i = 0; i < 2; i++) {
        struct generation *generation = fresh_rows->pinned[i];
        if (generation == NULL)
            continue;
        lock_take(&fresh->lock);
        bool is_free = generation_unpin(generation);
        lock_leave(&fresh->lock);
        if (is_free)
            generation_free(generation);
        fresh_rows->pinned[i] = NULL;
    }
}
