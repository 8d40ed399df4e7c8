/* vector.c - the part of vector.h that needs no type. */
#include "base/vector.h"

#define VECTOR_FIRST_CAPACITY ((size_t)8)

void *
vector_grow(struct arena *arena, void *items, size_t count, size_t *capacity, size_t wanted,
            size_t size)
{
    check(count <= *capacity && *capacity < wanted);
    check_that(wanted <= SIZE_MAX / 2 / size, "%zu items of %zu bytes wanted", wanted, size);
    size_t next = *capacity + *capacity / 2;
    next = next < VECTOR_FIRST_CAPACITY ? VECTOR_FIRST_CAPACITY : next;
    next = next < wanted ? wanted : next;
    *capacity = next;
    if (arena == NULL)
        return memory_realloc(items, next * size);
    void *moved = arena_alloc(arena, next * size);
    if (count > 0)
        memcpy(moved, items, count * size);
    return moved;
}

void
vector_close_gap(void *items, size_t *count, size_t index, size_t size)
{
    check(index < *count);
    char *gap = (char *)items + index * size;
    memmove(gap, gap + size, (*count - index - 1) * size);
    (*count)--;
}
