/* spare.c - blocks that come and go with every call, kept by the thread that gives them back.
 *
 * malloc does that with small ones, but the chunks of arenas are larger than those, and it would
 * join and split them each time. So each thread has a stack of spare blocks for each size; a block
 * may be taken by one thread and given back by another. What is above the bound goes to malloc, and
 * so does everything when the thread ends.
 *
 * The stacks are arrays beside the blocks, not links in them: a block that is taken may have left
 * the cache, but it is about to be written to, and a write does not wait for memory as reading a
 * link would.
 *
 * Nothing is kept under AddressSanitizer, which must see blocks go, and never a block of a heap. */
#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"

/* Sizes are rounded up, so that blocks of about the same size are of use to each other. */
#define SMALL_STEP  ((size_t)64)
#define SMALL_MAX   ((size_t)8192)
#define LARGE_STEP  ((size_t)4096)
#define LARGE_MAX   ((size_t)65536)              /* larger ones are not kept */
#define SMALL_SIZES (SMALL_MAX / SMALL_STEP + 1) /* the first is no bytes */
#define SPARE_SIZES (SMALL_SIZES + (LARGE_MAX - SMALL_MAX) / LARGE_STEP)
/* How many are kept of a size, per thread. */
#define SPARES_KEPT 31

struct spares {
    unsigned count;
    void *blocks[SPARES_KEPT];
};

/* For each size; NULL until the thread gives its first block back. */
static _Thread_local struct spares *spares;

/* tidy: allow global - the way in which POSIX says that a thread ends */
static struct {
    pthread_once_t once;
    pthread_key_t key;
} thread_end = {.once = PTHREAD_ONCE_INIT};

/* ---- the end of a thread ---- */

static void
free_spares(void *argument)
{
    struct spares *all = argument;
    for (size_t i = 0; i < SPARE_SIZES; i++)
        for (unsigned j = 0; j < all[i].count; j++)
            free(all[i].blocks[j]);
    free(all);
    spares = NULL; /* should another library give a block back after this */
}

static void
make_key(void)
{
    int failed = pthread_key_create(&thread_end.key, free_spares);
    check(failed == 0);
}

static seldom void
make_spares(void)
{
    pthread_once(&thread_end.once, make_key);
    spares = calloc(SPARE_SIZES, sizeof *spares);
    check(spares != NULL);
    int failed = pthread_setspecific(thread_end.key, spares);
    check(failed == 0);
}

/* ---- blocks ---- */

/* Which spares a block of this size is among; SPARE_SIZES or more: none. */
static size_t
index_of(size_t size)
{
    if (size <= SMALL_MAX)
        return (size + SMALL_STEP - 1) / SMALL_STEP;
    return SMALL_SIZES + (size - SMALL_MAX - 1) / LARGE_STEP;
}

/* The size of all blocks there. */
static size_t
size_at(size_t index)
{
    return index < SMALL_SIZES ? index * SMALL_STEP
                               : SMALL_MAX + (index + 1 - SMALL_SIZES) * LARGE_STEP;
}

/* A block where none is spare. */
static seldom void *
take_new(size_t size, size_t index)
{
    bool is_exact = IS_ADDRESS_SANITIZED || index >= SPARE_SIZES;
    return memory_alloc(is_exact ? size : size_at(index));
}

void *
memory_take(size_t size)
{
    if (heap_selected() != NULL)
        return memory_alloc(size);
    size_t index = index_of(size);
    if (index >= SPARE_SIZES || spares == NULL || spares[index].count == 0)
        return take_new(size, index);
    struct spares *same = &spares[index];
    check(same->count <= SPARES_KEPT);
    return same->blocks[--same->count];
}

void
memory_give(void *block, size_t size)
{
    check(block != NULL);
    size_t index = index_of(size);
    if (IS_ADDRESS_SANITIZED || index >= SPARE_SIZES || heap_has(block)) {
        memory_free(block);
        return;
    }
    if (spares == NULL)
        make_spares();
    struct spares *same = &spares[index];
    if (same->count == SPARES_KEPT) {
        memory_free(block);
        return;
    }
    same->blocks[same->count++] = block;
}
