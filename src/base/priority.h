/* priority.h - a queue that gives the smallest first: timers by due time, a million of them.
 *
 * Order is by key, then by sequence, so that equal keys come out in a known order; give each node
 * its own sequence. A node is a member of what waits; nothing is allocated per node. Insertion,
 * removal from anywhere and taking the first are O(log n), looking at the first O(1). */
#ifndef CADENZA_BASE_PRIORITY_H
#define CADENZA_BASE_PRIORITY_H

#include "base/compiler.h"
#include "base/slice.h"

/* All zero: in no queue. Set key and sequence before it is pushed; not while it is queued. */
struct priority_node {
    int64_t key;
    uint64_t sequence;
    size_t place; /* the queue's: its index plus one, 0 when in none */
};

struct priority_item;

/* All zero is an empty queue. */
struct priority {
    struct priority_item *items;
    size_t count;
    size_t capacity;
};

/* Gives the queue's memory back and lets go of its nodes. */
void priority_free(struct priority *queue);
/* Adds a node that is in no queue. */
void priority_push(struct priority *queue, struct priority_node *node);
/* Takes a node out; it must be in this queue. */
void priority_remove(struct priority *queue, struct priority_node *node);
/* The smallest, left in the queue; NULL when empty. */
struct priority_node *priority_first(const struct priority *queue);
/* The smallest, taken out; NULL when empty. */
struct priority_node *priority_pop(struct priority *queue);

static inline bool
priority_is_queued(const struct priority_node *node)
{
    return node->place != 0;
}

#endif
