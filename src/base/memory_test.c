/* memory_test.c - blocks, and heaps that are dropped whole.
 *
 * What is at stake: in a simulation a block that goes back to the wrong heap is a leak of one host
 * and a double free of another. AddressSanitizer watches all of this. */
#include "base/memory.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/random.h"
#include "base/test.h"

TEST(memory, blocks_are_aligned_for_any_type)
{
    for (size_t size = 0; size < 100; size++) {
        void *block = memory_alloc(size);
        EXPECT((uintptr_t)block % 16 == 0);
        memset(block, 1, size);
        memory_free(block);
    }
}

TEST(memory, zalloc_gives_zeroes_and_realloc_keeps_the_bytes)
{
    uint8_t *block = memory_zalloc(10, 10);
    for (int i = 0; i < 100; i++)
        EXPECT_EQ(block[i], 0);
    memset(block, 7, 100);
    block = memory_realloc(block, 10000);
    EXPECT_EQ(block[99], 7);
    block = memory_realloc(block, 3);
    EXPECT_EQ(block[2], 7);
    memory_free(block);
    memory_free(NULL);
}

TEST(memory, a_heap_counts_its_blocks_and_takes_them_with_it)
{
    struct heap *heap = heap_new();
    EXPECT(heap_select(heap) == NULL);
    for (int i = 0; i < 5000; i++)
        memset(memory_alloc(100), 1, 100);
    EXPECT(heap_select(NULL) == heap);
    EXPECT_EQ(heap_blocks(heap), 5000);
    EXPECT_EQ(heap_bytes(heap), 500000);
    heap_free(heap); /* LeakSanitizer sees what it forgets */
}

TEST(memory, a_block_goes_back_to_the_heap_it_came_from)
{
    struct heap *east = heap_new(), *west = heap_new();
    void *plain = memory_alloc(10);
    heap_select(east);
    void *from_east = memory_alloc(20);
    heap_select(west);
    void *from_west = memory_alloc(30);
    from_east = memory_realloc(from_east, 2000);
    plain = memory_realloc(plain, 1000);
    EXPECT_EQ(heap_bytes(east), 2000);
    EXPECT_EQ(heap_bytes(west), 30);
    memory_free(from_east);
    memory_free(plain);
    EXPECT_EQ(heap_blocks(east), 0);
    EXPECT_EQ(heap_blocks(west), 1);
    heap_select(NULL);
    memory_free(from_west);
    EXPECT_EQ(heap_blocks(west), 0);
    heap_free(east);
    heap_free(west);
}

TEST(memory, tracked_blocks_are_aligned_too_and_zeroed_by_zalloc)
{
    struct heap *heap = heap_new();
    heap_select(heap);
    for (size_t size = 0; size < 100; size++) {
        uint8_t *block = memory_zalloc(1, size);
        EXPECT((uintptr_t)block % 16 == 0);
        for (size_t i = 0; i < size; i++)
            EXPECT_EQ(block[i], 0);
    }
    heap_select(NULL);
    heap_free(heap);
}

/* Method: random allocation, growth, freeing and dropping of heaps; each block is filled with a
 * pattern of its own that must survive whatever happens to the others. */
enum { SLOTS = 300, HEAPS = 4 };

struct world {
    struct random random;
    struct heap *heaps[HEAPS]; /* [0] is NULL: plain blocks */
    struct {
        uint8_t *bytes;
        size_t size;
        int heap;
    } slots[SLOTS];
};

static void
expect_pattern(const struct world *world, size_t slot, size_t size)
{
    for (size_t i = 0; i < size; i++)
        EXPECT_EQ(world->slots[slot].bytes[i], (uint8_t)(slot * 7 + 1));
}

static void
world_fill(struct world *world, size_t slot, size_t size)
{
    world->slots[slot].size = size;
    memset(world->slots[slot].bytes, (uint8_t)(slot * 7 + 1), size);
}

static void
world_step(struct world *world)
{
    size_t slot = random_below(&world->random, SLOTS);
    size_t size = random_below(&world->random, 200);
    int heap = (int)random_below(&world->random, HEAPS);
    heap_select(world->heaps[heap]);
    if (world->slots[slot].bytes == NULL) {
        world->slots[slot].bytes = memory_alloc(size);
        world->slots[slot].heap = heap;
        world_fill(world, slot, size);
    } else if (random_below(&world->random, 3) == 0) {
        size_t kept = size < world->slots[slot].size ? size : world->slots[slot].size;
        world->slots[slot].bytes = memory_realloc(world->slots[slot].bytes, size);
        expect_pattern(world, slot, kept);
        world_fill(world, slot, size);
    } else {
        expect_pattern(world, slot, world->slots[slot].size);
        memory_free(world->slots[slot].bytes);
        world->slots[slot].bytes = NULL;
    }
    heap_select(NULL);
}

static void
world_crash(struct world *world, int heap)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (world->slots[i].heap == heap)
            world->slots[i].bytes = NULL;
    heap_free(world->heaps[heap]);
    world->heaps[heap] = heap_new();
}

static void
world_compare(const struct world *world)
{
    size_t blocks[HEAPS] = {0}, bytes[HEAPS] = {0};
    for (size_t i = 0; i < SLOTS; i++) {
        if (world->slots[i].bytes == NULL)
            continue;
        blocks[world->slots[i].heap]++;
        bytes[world->slots[i].heap] += world->slots[i].size;
    }
    for (int i = 1; i < HEAPS; i++) {
        EXPECT_EQ(heap_blocks(world->heaps[i]), blocks[i]);
        EXPECT_EQ(heap_bytes(world->heaps[i]), bytes[i]);
    }
}

TEST(memory, any_mix_of_heaps_and_plain_blocks_adds_up)
{
    for (int s = 0; s < test_seed_count(); s++) {
        struct world world = {0};
        random_seed(&world.random, test_seed(s));
        for (int i = 1; i < HEAPS; i++)
            world.heaps[i] = heap_new();
        for (int step = 0; step < 20000; step++) {
            world_step(&world);
            if (step % 997 == 0)
                world_crash(&world, 1 + (int)random_below(&world.random, HEAPS - 1));
            if (step % 100 == 0)
                world_compare(&world);
        }
        for (int i = 1; i < HEAPS; i++)
            world_crash(&world, i), heap_free(world.heaps[i]);
        for (size_t i = 0; i < SLOTS; i++)
            memory_free(world.slots[i].bytes);
    }
}

static void *
churn(void *context)
{
    struct heap *heap = context;
    heap_select(heap);
    for (int i = 0; i < 5000; i++)
        memory_free(memory_alloc(50));
    void *kept = memory_alloc(1);
    heap_select(NULL);
    return kept;
}

TEST(memory, the_selected_heap_belongs_to_the_thread)
{
    struct heap *heap = heap_new();
    pthread_t threads[2];
    EXPECT(pthread_create(&threads[0], NULL, churn, heap) == 0);
    EXPECT(pthread_create(&threads[1], NULL, churn, NULL) == 0);
    void *tracked, *plain;
    pthread_join(threads[0], &tracked);
    pthread_join(threads[1], &plain);
    EXPECT_EQ(heap_blocks(heap), 1);
    heap_free(heap);
    memory_free(plain);
}

/* What is at stake: a block that two owners get. Method: many of random sizes, filled and looked
 * at; another thread gives half of them back and ends. */
static void *
give_half(void *argument)
{
    void **blocks = argument;
    for (size_t i = 0; i < 1000; i += 2)
        memory_give(blocks[i], i * 70);
    return NULL;
}

TEST(memory, blocks_that_were_given_back_are_nobody_elses_when_they_are_taken_again)
{
    void *blocks[1000];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 1000; i++) {
            blocks[i] = memory_take(i * 70);
            EXPECT((uintptr_t)blocks[i] % 16 == 0);
            memset(blocks[i], (int)i, i * 70);
        }
        for (size_t i = 0; i < 1000; i++)
            for (size_t j = 0; j < i * 70; j += 23)
                EXPECT_EQ(((uint8_t *)blocks[i])[j], (uint8_t)i);
        pthread_t thread;
        EXPECT_EQ(pthread_create(&thread, NULL, give_half, blocks), 0);
        for (size_t i = 1; i < 1000; i += 2)
            memory_give(blocks[i], i * 70);
        EXPECT_EQ(pthread_join(thread, NULL), 0);
    }
}

TEST(memory, a_block_of_a_heap_is_not_kept_for_others)
{
    struct heap *heap = heap_new();
    heap_select(heap);
    void *block = memory_take(1000);
    EXPECT_EQ(heap_blocks(heap), 1);
    heap_select(NULL);
    void *plain = memory_take(1000);
    memory_give(block, 1000);
    EXPECT_EQ(heap_blocks(heap), 0);
    memory_give(plain, 1000);
    heap_select(heap);
    block = memory_take(1000);
    EXPECT(block != plain);
    EXPECT_EQ(heap_blocks(heap), 1);
    memory_give(block, 1000);
    EXPECT(heap_select(NULL) == heap);
    heap_free(heap);
}
