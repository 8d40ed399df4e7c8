/* vector.h - an array that grows, typed by a macro.
 *
 *   vector_of(struct host *) hosts = {0};
 *   vector_push(&hosts, host);
 *   vector_each (at, &hosts)
 *       host_stop(*at);
 *   vector_free(&hosts);
 *
 * All zero is an empty vector. Its items live in base/memory.h and vector_free gives them back, or,
 * if it grows by the _in forms, in an arena; one vector keeps to one of the two. Growing moves the
 * items: keep indexes, not pointers. Growing in an arena leaves the old place behind, at most as
 * much again. */
#ifndef CADENZA_BASE_VECTOR_H
#define CADENZA_BASE_VECTOR_H

#include <stddef.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/memory.h"

#define vector_of(type)                                                                            \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count;                                                                              \
        size_t capacity;                                                                           \
    }

/* Room for at least `wanted` items in all. */
#define vector_reserve_in(vector, arena, wanted)                                                   \
    ((wanted) <= (vector)->capacity                                                                \
         ? (void)0                                                                                 \
         : (void)((vector)->items =                                                                \
                      vector_grow((arena), (vector)->items, (vector)->count, &(vector)->capacity,  \
                                  (wanted), sizeof *(vector)->items)))
#define vector_reserve(vector, wanted) vector_reserve_in(vector, NULL, wanted)

/* Appends one item. */
#define vector_push_in(vector, arena, ...)                                                         \
    (vector_reserve_in(vector, arena, (vector)->count + 1),                                        \
     (void)((vector)->items[(vector)->count++] = (__VA_ARGS__)))
#define vector_push(vector, ...) vector_push_in(vector, NULL, __VA_ARGS__)

/* The item at `index`, checked; may be assigned to. */
#define vector_at(vector, index)                                                                   \
    (*(check((size_t)(index) < (vector)->count), &(vector)->items[(index)]))
/* The last item, taken off; the vector must not be empty. */
#define vector_pop(vector) (check((vector)->count > 0), (vector)->items[--(vector)->count])
/* Takes the item at `index` out; the ones behind it move up. */
#define vector_remove(vector, index)                                                               \
    vector_close_gap((vector)->items, &(vector)->count, (index), sizeof *(vector)->items)
/* Forgets the items, keeps the room. */
#define vector_clear(vector) ((void)((vector)->count = 0))
/* Gives the memory of a vector that does not grow in an arena back; the vector is empty then. */
#define vector_free(vector)                                                                        \
    (memory_free((vector)->items), (vector)->items = NULL,                                         \
     (void)((vector)->count = (vector)->capacity = 0))

/* `item` points to each item in turn. The body must not change the vector. */
#define vector_each(item, vector)                                                                  \
    for (__typeof__(&(vector)->items[0]) item = (vector)->items;                                   \
         (vector)->count > 0 && item < (vector)->items + (vector)->count; item++)

/* Behind the macros: more room for items of `size` bytes, by half again or more. */
must_use void *vector_grow(struct arena *arena, void *items, size_t count, size_t *capacity,
                           size_t wanted, size_t size);
void vector_close_gap(void *items, size_t *count, size_t index, size_t size);

#endif
