/* tree.h - an ordered map from bytes to a pointer, in memory. Made for millions of rows.
 *
 * Order is that of slice_compare. Keys are copied into the tree; values are the caller's, never
 * NULL, never freed here. Lookup, insertion, removal and seek take O(log n) expected; a step to a
 * neighbour O(1). The shape depends only on the sequence of calls, never on addresses.
 *
 * A row (and its key) stays where it is until it is removed: it can be kept as a cursor while other
 * rows come and go. Not for sharing between threads. */
#ifndef CADENZA_BASE_TREE_H
#define CADENZA_BASE_TREE_H

#include "base/compiler.h"
#include "base/slice.h"

struct tree;

/* What a seek finds. Read-only for callers. */
struct tree_row {
    struct slice key; /* lives in the tree */
    void *value;
};

/* An empty tree, freed by tree_free; its rows come from base/memory.h. */
must_use struct tree *tree_new(void);
/* Frees the tree and its keys, not the values. NULL is fine. */
void tree_free(struct tree *tree);
size_t tree_count(const struct tree *tree);

/* Inserts or replaces; returns the value it replaced, or NULL. */
void *tree_put(struct tree *tree, struct slice key, void *value);
/* The value of the key, or NULL. */
void *tree_get(const struct tree *tree, struct slice key);
/* Removes the row and returns its value; NULL when there was none. */
void *tree_remove(struct tree *tree, struct slice key);
/* Removes all rows with from <= key < to, gives each value to `drop` in key order (NULL: to nobody)
 * and returns how many there were. O(log n + rows). `drop` must not use the tree. */
size_t tree_remove_range(struct tree *tree, struct slice from, struct slice to,
                         void (*drop)(void *context, void *value), void *context);

/* The ends; NULL when empty. */
struct tree_row *tree_first(const struct tree *tree);
struct tree_row *tree_last(const struct tree *tree);
/* The first row with a key >= `key`, the last one with a key <= `key`; NULL when there is none. */
struct tree_row *tree_at_least(const struct tree *tree, struct slice key);
struct tree_row *tree_at_most(const struct tree *tree, struct slice key);
/* Neighbours; NULL past the ends. */
struct tree_row *tree_next(const struct tree_row *row);
struct tree_row *tree_prev(const struct tree_row *row);

/* Walks the whole tree and checks every invariant; for tests. */
void tree_check(const struct tree *tree);

#endif
