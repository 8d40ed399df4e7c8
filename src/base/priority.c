/* priority.c - a heap with four children per item.
 *
 * Four children make the heap half as deep as two, and stand in one or two cache lines. Items
 * repeat the key of their node, so that comparing does not touch the nodes, which are scattered.
 *
 * Invariants: no item is smaller than its parent; items[i].node->place == i + 1. */
#include "base/priority.h"

#include "base/check.h"
#include "base/memory.h"

#define CHILDREN       4
#define FIRST_CAPACITY 64

struct priority_item {
    int64_t key;
    uint64_t sequence;
    struct priority_node *node;
};

static bool
is_before(const struct priority_item *a, const struct priority_item *b)
{
    return a->key != b->key ? a->key < b->key : a->sequence < b->sequence;
}

static void
set(struct priority *queue, size_t index, struct priority_item item)
{
    queue->items[index] = item;
    item.node->place = index + 1;
}

/* Puts `item` at `index` or above it. */
static void
sift_up(struct priority *queue, size_t index, struct priority_item item)
{
    while (index > 0) {
        size_t parent = (index - 1) / CHILDREN;
        if (!is_before(&item, &queue->items[parent]))
            break;
        set(queue, index, queue->items[parent]);
        index = parent;
    }
    set(queue, index, item);
}

/* The smallest child of `index`, or `index` itself when it has none. */
static size_t
smallest_child(const struct priority *queue, size_t index)
{
    size_t first = index * CHILDREN + 1;
    if (first >= queue->count)
        return index;
    size_t end = first + CHILDREN < queue->count ? first + CHILDREN : queue->count;
    size_t best = first;
    for (size_t child = first + 1; child < end; child++)
        if (is_before(&queue->items[child], &queue->items[best]))
            best = child;
    return best;
}

/* Puts `item` at `index` or below it. */
static void
sift_down(struct priority *queue, size_t index, struct priority_item item)
{
    for (;;) {
        size_t child = smallest_child(queue, index);
        if (child == index || !is_before(&queue->items[child], &item))
            break;
        set(queue, index, queue->items[child]);
        index = child;
    }
    set(queue, index, item);
}

void
priority_free(struct priority *queue)
{
    for (size_t i = 0; i < queue->count; i++)
        queue->items[i].node->place = 0;
    memory_free(queue->items);
    *queue = (struct priority){0};
}

void
priority_push(struct priority *queue, struct priority_node *node)
{
    check(node->place == 0);
    if (queue->count == queue->capacity) {
        queue->capacity = queue->capacity == 0 ? FIRST_CAPACITY : queue->capacity * 2;
        queue->items = memory_realloc(queue->items, queue->capacity * sizeof *queue->items);
    }
    struct priority_item item = {.key = node->key, .sequence = node->sequence, .node = node};
    sift_up(queue, queue->count++, item);
}

void
priority_remove(struct priority *queue, struct priority_node *node)
{
    check(node->place > 0 && node->place <= queue->count);
    size_t index = node->place - 1;
    check(queue->items[index].node == node);
    node->place = 0;
    struct priority_item last = queue->items[--queue->count];
    if (index == queue->count)
        return;
    if (index > 0 && is_before(&last, &queue->items[(index - 1) / CHILDREN]))
        sift_up(queue, index, last);
    else
        sift_down(queue, index, last);
}

struct priority_node *
priority_first(const struct priority *queue)
{
    return queue->count == 0 ? NULL : queue->items[0].node;
}

struct priority_node *
priority_pop(struct priority *queue)
{
    struct priority_node *node = priority_first(queue);
    if (node != NULL)
        priority_remove(queue, node);
    return node;
}
