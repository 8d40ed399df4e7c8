/* spare.c - blocks that come and go with every call, kept by the thread that gives them back.
 *
 * malloc does that with small ones, but the chunks of arenas are larger than those, and it would
 * join and split them each time. So each thread has a stack of spare blocks for each size; a block
 * may be taken by one thread and given back by another. What is above the bound goes to malloc, and
 * so does everything when the thread ends.
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
#define LARGE_MAX   ((size_t)65536) /* larger ones are not kept */
#define SMALL_SIZES (SMALL_MAX / SMALL_STEP)
#define SPARE_SIZES (SMALL_SIZES + (LARGE_MAX - SMALL_MAX) / LARGE_STEP)
/* How many are kept of a size, per thread. */
#define SMALL_KEPT 32
#define LARGE_KEPT 31

/* The beginning of a spare block. */
struct spare {
    struct spare *next;
};

struct spares {
    struct spare *first;
    unsigned count;
};

static _Thread_local struct spares spares[SPARE_SIZES];
static _Thread_local bool is_end_watched; /* of this thread */

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
    for (size_t i = 0; i < SPARE_SIZES; i++) {
        for (struct spare *spare = all[i].first, *next; spare != NULL; spare = next) {
            next = spare->next;
            memory_free(spare);
        }
        all[i] = (struct spares){0};
    }
    is_end_watched = false; /* should another library give a block back after this */
}

static void
make_key(void)
{
    int failed = pthread_key_create(&thread_end.key, free_spares);
    check(failed == 0);
}

static seldom void
watch_end(void)
{
    pthread_once(&thread_end.once, make_key);
    int failed = pthread_setspecific(thread_end.key, spares);
    check(failed == 0);
    is_end_watched = true;
}

/* ---- blocks ---- */

/* Which spares a block of this size is among; SPARE_SIZES or more: none. */
static size_t
index_of(size_t size)
{
    if (size <= SMALL_MAX)
        return size == 0 ? 0 : (size - 1) / SMALL_STEP;
    return SMALL_SIZES + (size - SMALL_MAX - 1) / LARGE_STEP;
}

static bool
has_room(size_t index)
{
    unsigned most = index < SMALL_SIZES ? SMALL_KEPT : LARGE_KEPT;
    return index < SPARE_SIZES && !IS_ADDRESS_SANITIZED && spares[index].count < most;
}

/* The size of all blocks there. */
static size_t
size_at(size_t index)
{
    return index < SMALL_SIZES ? (index + 1) * SMALL_STEP
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
    if (index >= SPARE_SIZES || spares[index].first == NULL)
        return take_new(size, index);
    struct spare *spare = spares[index].first;
    check(spares[index].count > 0);
    spares[index].first = spare->next;
    spares[index].count--;
    return spare;
}

void
memory_give(void *block, size_t size)
{
    bool is_tracked = heap_has(block);
    size_t index = index_of(size);
    if (is_tracked || !has_room(index)) {
        memory_free(block);
        return;
    }
    if (!is_end_watched)
        watch_end();
    struct spare *spare = block;
    spare->next = spares[index].first;
    spares[index].first = spare;
    spares[index].count++;
}
