/* memory.h - where all memory of the process comes from.
 *
 * Lack of memory aborts: no caller checks for NULL. Most code asks an arena (arena.h); what
 * outlives every arena (connections, tables) asks here.
 *
 * Heaps: a simulation holds many hosts in one process, and a crashed host frees nothing. So each
 * host has a heap, a list of all its blocks; the simulation selects the heap of the host it runs,
 * and a crash frees the heap as a whole. Outside simulation no heap is selected and a block is
 * plain malloc. */
#ifndef CADENZA_BASE_MEMORY_H
#define CADENZA_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

/* A block of `size` bytes, not initialised. */
must_use void *memory_alloc(size_t size);
/* A block of `count` * `size` zero bytes. */
must_use void *memory_zalloc(size_t count, size_t size);
/* The block with another size; it may move. `block` may be NULL. It stays in the heap it came from.
 */
must_use void *memory_realloc(void *block, size_t size);
/* Gives a block back, to the heap it came from. NULL is fine. */
void memory_free(void *block);

/* The same for blocks that come and go with every call, as those of arenas (spare.c): the thread
 * that gives one back keeps some of each size for the next request. `size` is what was asked
 * for. */
must_use void *memory_take(size_t size);
void memory_give(void *block, size_t size);

struct heap; /* all blocks of one simulated host */

/* A new heap, empty. Itself taken from no heap. */
struct heap *heap_new(void);
/* Frees every block of the heap and the heap. */
void heap_free(struct heap *heap);
/* Selects the heap of this thread's next allocations (NULL: none); returns the one before. */
struct heap *heap_select(struct heap *heap);
struct heap *heap_selected(void);
/* Does the block belong to any heap? */
bool heap_has(const void *block);
/* Bytes and blocks in use: a host that stopped cleanly leaves 0 blocks. */
size_t heap_bytes(const struct heap *heap);
size_t heap_blocks(const struct heap *heap);

#endif
