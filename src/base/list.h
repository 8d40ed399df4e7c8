/* list.h - an intrusive doubly linked ring. A node is a member of what it links; nothing is
 * allocated. */
#ifndef CADENZA_BASE_LIST_H
#define CADENZA_BASE_LIST_H

#include <stdbool.h>

#include "base/compiler.h"

struct list {
    struct list *next;
    struct list *prev;
};

#define LIST_INIT(list)                                                                            \
    {                                                                                              \
        &(list), &(list)                                                                           \
    }

/* An empty list, or a node in no list: it points to itself. */
static inline void
list_init(struct list *list)
{
    list->next = list->prev = list;
}

static inline bool
list_is_empty(const struct list *list)
{
    return list->next == list;
}

static inline void
list_insert_before(struct list *position, struct list *node)
{
    node->prev = position->prev;
    node->next = position;
    position->prev->next = node;
    position->prev = node;
}

static inline void
list_push_back(struct list *list, struct list *node)
{
    list_insert_before(list, node);
}

static inline void
list_push_front(struct list *list, struct list *node)
{
    list_insert_before(list->next, node);
}

/* Takes a node out of whatever list it is in; harmless for an initialised node in none. */
static inline void
list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* The first node, taken out; NULL when empty. */
static inline struct list *
list_pop_front(struct list *list)
{
    struct list *node = list->next;
    if (node == list)
        return NULL;
    list_remove(node);
    return node;
}

/* Moves all nodes of `from` to the end of `to`. */
static inline void
list_splice_back(struct list *to, struct list *from)
{
    if (list_is_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#define list_entry(node, type, member) container_of(node, type, member)
#define list_each(node, head_)                                                                     \
    for (struct list *node = (head_)->next; node != (head_); node = node->next)
/* The body may remove `node`. */
#define list_each_safe(node, head_)                                                                \
    for (struct list *node = (head_)->next, *node##_next = node->next; node != (head_);            \
         node = node##_next, node##_next = node->next)

#endif
