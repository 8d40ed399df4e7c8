/* tree.c - a treap whose nodes are also linked in order.
 *
 * Each node draws a priority from a generator that belongs to the tree and begins with a fixed
 * seed: the shape is random to anybody who chooses keys, and the same in each replay. A treap needs
 * no rebalancing cases: splitting a subtree by a key and merging two neighbours is all there is,
 * both as loops, since a fiber's stack is short. The order links make steps O(1) and let a range be
 * cut out whole.
 *
 * Invariants (tree_check):
 *   1. In-order, keys rise strictly.
 *   2. No child has a higher priority than its parent.
 *   3. The order links name the same nodes in the same order, `count` of them. */
#include "base/tree.h"

#include "base/check.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/random.h"

struct tree_node {
    struct tree_row row; /* first: a row is its node */
    struct tree_node *left;
    struct tree_node *right;
    struct list link;
    struct tree *tree; /* to know the ends from a row */
    uint64_t priority;
    uint8_t key[]; /* what row.key points to */
};

struct tree {
    struct tree_node *root;
    struct list order;
    size_t count;
    struct random random;
};

static struct tree_node *
node_of(const struct tree_row *row)
{
    return (struct tree_node *)row;
}

static struct tree_row *
row_at(const struct tree *tree, const struct list *link)
{
    return link == &tree->order ? NULL : &list_entry(link, struct tree_node, link)->row;
}

struct tree *
tree_new(void)
{
    struct tree *tree = memory_zalloc(1, sizeof *tree);
    list_init(&tree->order);
    random_seed(&tree->random, 0x7265657274); /* any constant does */
    return tree;
}

void
tree_free(struct tree *tree)
{
    if (tree == NULL)
        return;
    list_each_safe(link, &tree->order)
        memory_free(list_entry(link, struct tree_node, link));
    memory_free(tree);
}

size_t
tree_count(const struct tree *tree)
{
    return tree->count;
}

/* ---- the two operations on shape ---- */

/* Splits `node` into what is below `key` and the rest. */
static void
split(struct tree_node *node, struct slice key, struct tree_node **below, struct tree_node **rest)
{
    while (node != NULL) {
        if (slice_compare(node->row.key, key) < 0) {
            *below = node;
            below = &node->right;
            node = node->right;
        } else {
            *rest = node;
            rest = &node->left;
            node = node->left;
        }
    }
    *below = NULL;
    *rest = NULL;
}

/* Joins two subtrees; all keys of `low` are below those of `high`. */
static struct tree_node *
merge(struct tree_node *low, struct tree_node *high)
{
    struct tree_node *root = NULL;
    struct tree_node **place = &root;
    while (low != NULL && high != NULL) {
        if (low->priority >= high->priority) {
            *place = low;
            place = &low->right;
            low = low->right;
        } else {
            *place = high;
            place = &high->left;
            high = high->left;
        }
    }
    *place = low != NULL ? low : high;
    return root;
}

/* ---- rows ---- */

static struct tree_node *
node_new(struct tree *tree, struct slice key, void *value)
{
    struct tree_node *node = memory_alloc(sizeof *node + key.length);
    if (key.length > 0)
        memcpy(node->key, key.data, key.length);
    node->row = (struct tree_row){.key = slice_of(node->key, key.length), .value = value};
    node->tree = tree;
    node->priority = random_next(&tree->random);
    return node;
}

/* The link that holds the key's node, or NULL when the key is not there. */
static struct tree_node **
find(struct tree_node *const *root, struct slice key)
{
    struct tree_node **place = (struct tree_node **)root;
    while (*place != NULL) {
        int order = slice_compare(key, (*place)->row.key);
        if (order == 0)
            return place;
        place = order < 0 ? &(*place)->left : &(*place)->right;
    }
    return NULL;
}

/* Walks down to where `node` belongs by its priority and makes what is there its children. The last
 * turn to the left, here or in the split, was at its successor. */
static void
insert(struct tree *tree, struct tree_node *node)
{
    struct tree_node **place = &tree->root;
    while (*place != NULL && (*place)->priority >= node->priority) {
        int order = slice_compare(node->row.key, (*place)->row.key);
        check(order != 0);
        place = order < 0 ? &(*place)->left : &(*place)->right;
    }
    split(*place, node->row.key, &node->left, &node->right);
    *place = node;
    tree->count++;
}

void *
tree_put(struct tree *tree, struct slice key, void *value)
{
    check(value != NULL);
    struct tree_row *after = tree_at_least(tree, key);
    if (after != NULL && slice_equal(after->key, key)) {
        void *before = after->value;
        after->value = value;
        return before;
    }
    struct tree_node *node = node_new(tree, key, value);
    list_insert_before(after == NULL ? &tree->order : &node_of(after)->link, &node->link);
    insert(tree, node);
    return NULL;
}

void *
tree_get(const struct tree *tree, struct slice key)
{
    struct tree_node **place = find(&tree->root, key);
    return place == NULL ? NULL : (*place)->row.value;
}

void *
tree_remove(struct tree *tree, struct slice key)
{
    struct tree_node **place = find(&tree->root, key);
    if (place == NULL)
        return NULL;
    struct tree_node *node = *place;
    void *value = node->row.value;
    *place = merge(node->left, node->right);
    list_remove(&node->link);
    memory_free(node);
    check(tree->count > 0);
    tree->count--;
    return value;
}

size_t
tree_remove_range(struct tree *tree, struct slice from, struct slice to,
                  void (*drop)(void *context, void *value), void *context)
{
    if (slice_compare(from, to) >= 0)
        return 0;
    struct tree_row *row = tree_at_least(tree, from);
    struct tree_node *low, *middle, *high;
    split(tree->root, from, &low, &middle);
    split(middle, to, &middle, &high);
    tree->root = merge(low, high);
    size_t removed = 0;
    while (row != NULL && slice_compare(row->key, to) < 0) {
        struct tree_node *node = node_of(row);
        row = tree_next(row);
        list_remove(&node->link);
        if (drop != NULL)
            drop(context, node->row.value);
        memory_free(node);
        removed++;
    }
    check(tree->count >= removed);
    tree->count -= removed;
    return removed;
}

/* ---- seeking ---- */

struct tree_row *
tree_first(const struct tree *tree)
{
    return row_at(tree, tree->order.next);
}

struct tree_row *
tree_last(const struct tree *tree)
{
    return row_at(tree, tree->order.prev);
}

struct tree_row *
tree_at_least(const struct tree *tree, struct slice key)
{
    struct tree_row *best = NULL;
    struct tree_node *node = tree->root;
    while (node != NULL) {
        bool is_below = slice_compare(node->row.key, key) < 0;
        if (!is_below)
            best = &node->row;
        node = is_below ? node->right : node->left;
    }
    return best;
}

struct tree_row *
tree_at_most(const struct tree *tree, struct slice key)
{
    struct tree_row *best = NULL;
    struct tree_node *node = tree->root;
    while (node != NULL) {
        bool is_above = slice_compare(node->row.key, key) > 0;
        if (!is_above)
            best = &node->row;
        node = is_above ? node->left : node->right;
    }
    return best;
}

struct tree_row *
tree_next(const struct tree_row *row)
{
    const struct tree_node *node = node_of(row);
    return row_at(node->tree, node->link.next);
}

struct tree_row *
tree_prev(const struct tree_row *row)
{
    const struct tree_node *node = node_of(row);
    return row_at(node->tree, node->link.prev);
}

/* ---- for tests ---- */

/* Checks invariant 2 below `node`; returns the number of its nodes. */
static size_t
check_shape(const struct tree_node *node)
{
    size_t count = 1;
    const struct tree_node *const children[] = {node->left, node->right};
    for (size_t i = 0; i < array_length(children); i++) {
        if (children[i] == NULL)
            continue;
        check(children[i]->priority <= node->priority);
        int side = slice_compare(children[i]->row.key, node->row.key);
        check(i == 0 ? side < 0 : side > 0);
        count += check_shape(children[i]);
    }
    return count;
}

void
tree_check(const struct tree *tree)
{
    size_t reached = tree->root == NULL ? 0 : check_shape(tree->root);
    check(reached == tree->count);
    size_t linked = 0;
    for (struct tree_row *row = tree_first(tree); row != NULL; row = tree_next(row)) {
        struct tree_row *next = tree_next(row);
        check(next == NULL || slice_compare(row->key, next->key) < 0);
        struct tree_node **place = find(&tree->root, row->key);
        check(place != NULL && &(*place)->row == row);
        linked++;
    }
    check(linked == tree->count);
}
