/* memory.c - malloc that cannot fail, and heaps that can be dropped whole.
 *
 * The problem: memory_free must know whether a block belongs to a heap, yet outside simulation a
 * block shall cost nothing over malloc. A header on every block would cost 16 bytes and hide
 * overruns from AddressSanitizer; building the libraries twice would double everything. So:
 *
 *   - A block taken while no heap is selected is exactly what malloc returned.
 *   - A block taken while a heap is selected is preceded by a struct block that links it into the
 * heap, and its address is in `tracked`, a set of the addresses of all such blocks of the process.
 *   - As long as the process has no heap, nobody looks at the set: one relaxed load and a branch.
 *
 * Invariants:
 *   1. An address is in the set if and only if a struct block precedes it.
 *   2. A block stays in its heap until it is freed, whichever heap is selected then.
 *   3. While the set is not empty, heap_count > 0.
 *
 * The set and its lock are the only process-wide variables of the tree: addresses are process-wide
 * too. The set orders nothing that anybody can see; heap_free walks the heap's list, which is in
 * the order of allocation. */
#include "base/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/list.h"

struct heap {
    struct list blocks; /* of struct block, oldest first */
    size_t block_count;
    size_t byte_count; /* as asked for, without headers */
};

/* Before the bytes of a tracked block. 32 bytes, so that these stay aligned to 16. */
struct heap_block {
    struct list link;
    struct heap *heap;
    size_t size;
};
_Static_assert(sizeof(struct heap_block) % 16 == 0, "the bytes after it are aligned for any type");

/* Open addressing, linear probing, removal by moving back: no tombstones. 0 is an empty slot. */
struct address_set {
    uintptr_t *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

/* tidy: allow global - free() knows an address and no value that could lead to the heaps */
static struct {
    pthread_mutex_t lock;
    struct address_set set;   /* guarded by the lock, as are all heaps' lists */
    atomic_size_t heap_count; /* written under the lock */
} tracked = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct heap *selected;

/* calloc does not use what malloc keeps per thread: small blocks are cleared by hand. */
#define CLEARED_MAX ((size_t)1024)

static void *block_alloc(struct heap *heap, size_t size);
static void *block_realloc(struct heap_block *block, size_t size);
static void block_free(struct heap_block *block);
static struct heap_block *block_find(const void *bytes);

static void *
must_have(void *bytes, size_t size)
{
    check_that(bytes != NULL, "out of memory, %zu bytes wanted", size);
    return bytes;
}

void *
memory_alloc(size_t size)
{
    if (selected != NULL)
        return block_alloc(selected, size);
    return must_have(malloc(size == 0 ? 1 : size), size);
}

void *
memory_zalloc(size_t count, size_t size)
{
    size_t total;
    bool is_too_much = __builtin_mul_overflow(count, size, &total);
    check_that(!is_too_much, "%zu blocks of %zu bytes wanted", count, size);
    if (total <= CLEARED_MAX || selected != NULL)
        return memset(memory_alloc(total), 0, total);
    return must_have(calloc(1, total), total);
}

void *
memory_realloc(void *bytes, size_t size)
{
    if (bytes == NULL)
        return memory_alloc(size);
    struct heap_block *block = block_find(bytes);
    if (block != NULL)
        return block_realloc(block, size);
    return must_have(realloc(bytes, size == 0 ? 1 : size), size);
}

void
memory_free(void *bytes)
{
    if (bytes == NULL)
        return;
    struct heap_block *block = block_find(bytes);
    if (block != NULL)
        block_free(block);
    else
        free(bytes);
}

struct heap *
heap_new(void)
{
    struct heap *heap = must_have(calloc(1, sizeof *heap), sizeof *heap);
    list_init(&heap->blocks);
    pthread_mutex_lock(&tracked.lock);
    tracked.heap_count++;
    pthread_mutex_unlock(&tracked.lock);
    return heap;
}

struct heap *
heap_select(struct heap *heap)
{
    struct heap *before = selected;
    selected = heap;
    return before;
}

struct heap *
heap_selected(void)
{
    return selected;
}

bool
heap_has(const void *bytes)
{
    return block_find(bytes) != NULL;
}

size_t
heap_bytes(const struct heap *heap)
{
    return heap->byte_count;
}

size_t
heap_blocks(const struct heap *heap)
{
    return heap->block_count;
}

/* ---- the set of tracked addresses; the caller holds the lock ---- */

static size_t
set_first_slot(const struct address_set *set, uintptr_t address)
{
    return (size_t)((address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (set->capacity - 1);
}

/* The slot that holds the address, or the empty one where it would go. */
static size_t
set_slot(const struct address_set *set, uintptr_t address)
{
    size_t slot = set_first_slot(set, address);
    while (set->slots[slot] != 0 && set->slots[slot] != address)
        slot = (slot + 1) & (set->capacity - 1);
    return slot;
}

static void
set_grow(struct address_set *set)
{
    struct address_set old = *set;
    set->capacity = old.capacity == 0 ? 1024 : old.capacity * 2;
    set->slots = must_have(calloc(set->capacity, sizeof *set->slots), set->capacity);
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i] != 0)
            set->slots[set_slot(set, old.slots[i])] = old.slots[i];
    free(old.slots);
}

static void
set_add(struct address_set *set, const void *bytes)
{
    if ((set->count + 1) * 2 > set->capacity)
        set_grow(set);
    size_t slot = set_slot(set, (uintptr_t)bytes);
    check(set->slots[slot] == 0); /* invariant 1 */
    set->slots[slot] = (uintptr_t)bytes;
    set->count++;
}

static void
set_remove(struct address_set *set, const void *bytes)
{
    size_t mask = set->capacity - 1;
    size_t hole = set_slot(set, (uintptr_t)bytes);
    check(set->slots[hole] == (uintptr_t)bytes); /* invariant 1 */
    for (size_t next = (hole + 1) & mask; set->slots[next] != 0; next = (next + 1) & mask) {
        size_t distance = (next - set_first_slot(set, set->slots[next])) & mask;
        if (distance < ((next - hole) & mask))
            continue; /* it would land before its home */
        set->slots[hole] = set->slots[next];
        hole = next;
    }
    set->slots[hole] = 0;
    set->count--;
}

static void
set_empty(struct address_set *set)
{
    free(set->slots);
    *set = (struct address_set){0};
}

/* ---- tracked blocks ---- */

static void *
block_alloc(struct heap *heap, size_t size)
{
    size_t total;
    /* At least one byte: the address of an empty block would be that of whatever malloc puts next.
     */
    bool is_too_much =
        __builtin_add_overflow(size == 0 ? 1 : size, sizeof(struct heap_block), &total);
    check_that(!is_too_much, "%zu bytes wanted", size);
    struct heap_block *block = must_have(malloc(total), total);
    *block = (struct heap_block){.heap = heap, .size = size};
    pthread_mutex_lock(&tracked.lock);
    list_push_back(&heap->blocks, &block->link);
    heap->block_count++;
    heap->byte_count += size;
    set_add(&tracked.set, block + 1);
    pthread_mutex_unlock(&tracked.lock);
    return block + 1;
}

/* Takes the block out of its heap and the set; the caller holds the lock. */
static void
block_unlink(struct heap_block *block)
{
    check(block->heap->block_count > 0 && block->heap->byte_count >= block->size);
    list_remove(&block->link);
    block->heap->block_count--;
    block->heap->byte_count -= block->size;
    set_remove(&tracked.set, block + 1);
}

/* A new block of the same heap (invariant 2) rather than realloc: the links point to the old place.
 */
static void *
block_realloc(struct heap_block *block, size_t size)
{
    void *bytes = block_alloc(block->heap, size);
    memcpy(bytes, block + 1, size < block->size ? size : block->size);
    block_free(block);
    return bytes;
}

static void
block_free(struct heap_block *block)
{
    pthread_mutex_lock(&tracked.lock);
    block_unlink(block);
    pthread_mutex_unlock(&tracked.lock);
    free(block);
}

/* The header of a tracked block; NULL for a plain one. */
static struct heap_block *
block_find(const void *bytes)
{
    if (atomic_load_explicit(&tracked.heap_count, memory_order_relaxed) == 0)
        return NULL;
    pthread_mutex_lock(&tracked.lock);
    bool is_tracked =
        tracked.set.count > 0 &&
        tracked.set.slots[set_slot(&tracked.set, (uintptr_t)bytes)] == (uintptr_t)bytes;
    pthread_mutex_unlock(&tracked.lock);
    return is_tracked ? (struct heap_block *)bytes - 1 : NULL;
}

void
heap_free(struct heap *heap)
{
    if (heap == NULL)
        return;
    check(selected != heap);
    pthread_mutex_lock(&tracked.lock);
    list_each_safe(node, &heap->blocks) {
        struct heap_block *block = list_entry(node, struct heap_block, link);
        block_unlink(block);
        free(block);
    }
    check(heap->block_count == 0 && heap->byte_count == 0);
    check(tracked.heap_count > 0);
    if (--tracked.heap_count == 0) {
        check(tracked.set.count == 0); /* invariant 3 */
        set_empty(&tracked.set);
    }
    pthread_mutex_unlock(&tracked.lock);
    free(heap);
}
