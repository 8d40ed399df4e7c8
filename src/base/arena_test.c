/* arena_test.c - arenas, and the slices and vectors that live in them. */
#include "base/arena.h"

#include "base/list.h"
#include "base/random.h"
#include "base/test.h"
#include "base/vector.h"

TEST(arena, what_was_handed_out_is_aligned_and_does_not_overlap)
{
    for (int s = 0; s < test_seed_count(); s++) {
        struct random random;
        random_seed(&random, test_seed(s));
        scoped(arena_drop) struct arena *arena = arena_new(random_below(&random, 200));
        uint8_t *pieces[300];
        size_t sizes[300];
        for (size_t i = 0; i < 300; i++) {
            sizes[i] = random_below(&random, random_below(&random, 20) == 0 ? 5000000 : 300);
            pieces[i] = arena_alloc(arena, sizes[i]);
            EXPECT((uintptr_t)pieces[i] % 16 == 0);
            memset(pieces[i], (int)i, sizes[i]);
        }
        for (size_t i = 0; i < 300; i++)
            for (size_t j = 0; j < sizes[i]; j += 1 + sizes[i] / 100)
                EXPECT_EQ(pieces[i][j], (uint8_t)i);
    }
}

TEST(arena, a_piece_written_from_its_end_takes_no_more_than_its_bytes)
{
    for (int s = 0; s < test_seed_count(); s++) {
        struct random random;
        random_seed(&random, test_seed(s));
        scoped(arena_drop) struct arena *arena = arena_new(random_below(&random, 2000));
        uint8_t *pieces[300];
        size_t sizes[300];
        for (size_t i = 0; i < 300; i++) {
            sizes[i] = random_below(&random, random_below(&random, 20) == 0 ? 50000 : 300);
            struct arena_room room = arena_open_room(arena, sizes[i]);
            EXPECT((size_t)(room.end - room.start) >= sizes[i]);
            pieces[i] = i % 2 == 0 ? room.end - sizes[i] : room.end;
            arena_close_room(room, pieces[i]);
            if (i % 2 != 0)
                pieces[i] = arena_alloc(arena, sizes[i]);
            memset(pieces[i], (int)i, sizes[i]);
        }
        for (size_t i = 0; i < 300; i++)
            for (size_t j = 0; j < sizes[i]; j++)
                EXPECT_EQ(pieces[i][j], (uint8_t)i);
    }
}

TEST(arena, a_reset_arena_forgets_what_was_written_from_its_end)
{
    scoped(arena_drop) struct arena *arena = arena_new(1000);
    size_t fresh = arena_footprint(arena);
    for (int round = 0; round < 100; round++) {
        struct arena_room room = arena_open_room(arena, 500);
        memset(room.end - 500, 1, 500);
        arena_close_room(room, room.end - 500);
        EXPECT_EQ(arena_footprint(arena), fresh);
        arena_reset(arena);
    }
}

TEST(arena, a_reset_arena_is_as_small_as_a_new_one_and_usable)
{
    scoped(arena_drop) struct arena *arena = arena_new(1000);
    size_t fresh = arena_footprint(arena);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1000; i++)
            memset(arena_alloc(arena, 1000), 1, 1000);
        EXPECT(arena_footprint(arena) >= 1000 * 1000);
        arena_reset(arena);
        EXPECT_EQ(arena_footprint(arena), fresh);
    }
}

TEST(arena, a_reset_arena_uses_its_first_chunk_again)
{
    scoped(arena_drop) struct arena *arena = arena_new(1000);
    size_t fresh = arena_footprint(arena);
    for (int round = 0; round < 100; round++) {
        memset(arena_alloc(arena, 500), 1, 500);
        EXPECT_EQ(arena_footprint(arena), fresh);
        arena_reset(arena);
    }
}

TEST(arena, a_large_piece_does_not_waste_the_current_chunk)
{
    scoped(arena_drop) struct arena *arena = arena_new(100);
    for (int i = 0; i < 1000; i++)
        memset(arena_alloc(arena, 100), 1, 100);
    size_t before = arena_footprint(arena);
    for (int i = 0; i < 10; i++) {
        memset(arena_alloc(arena, 1 << 20), 1, 1 << 20);
        memset(arena_alloc(arena, 16), 1, 16);
    }
    EXPECT(arena_footprint(arena) - before < 10 * ((1 << 20) + 200));
}

ARENA_TEST(arena, texts_and_slices_are_copies)
{
    char text[] = "cadenza";
    char *copy = arena_text(arena, text);
    struct slice slice = arena_slice(arena, slice_text(text));
    char *cut = arena_text_of(arena, slice_of(text, 3));
    text[0] = 'X';
    EXPECT_TEXT(copy, "cadenza");
    EXPECT(slice_equal(slice, slice_text("cadenza")));
    EXPECT_TEXT(cut, "cad");
    EXPECT_TEXT(arena_format(arena, "%d-%s", 7, "x"), "7-x");
    EXPECT_EQ(arena_slice(arena, (struct slice){0}).length, 0);
    EXPECT_TEXT(arena_text_of(arena, (struct slice){0}), "");
    arena_free(NULL);
}

ARENA_TEST(arena, zalloc_gives_zeroes_in_used_memory_too)
{
    memset(arena_alloc(arena, 1000), 0xff, 1000);
    arena_reset(arena);
    uint8_t *bytes = arena_zalloc(arena, 10, 100);
    for (int i = 0; i < 1000; i++)
        EXPECT_EQ(bytes[i], 0);
}

TEST(slice, order_is_bytewise_and_a_prefix_comes_first)
{
    EXPECT(slice_compare(slice_text("a"), slice_text("b")) < 0);
    EXPECT(slice_compare(slice_text("a"), slice_text("aa")) < 0);
    EXPECT(slice_compare(slice_text("\xff"), slice_text("a")) > 0);
    EXPECT(slice_compare(slice_text(""), slice_text(NULL)) == 0);
    EXPECT(slice_starts_with(slice_text("abc"), slice_text("ab")));
    EXPECT(!slice_starts_with(slice_text("a"), slice_text("ab")));
    EXPECT(slice_equal(slice_skip(slice_text("abc"), 2), slice_text("c")));
    EXPECT_EQ(slice_skip((struct slice){0}, 0).length, 0);
}

struct guest {
    int number;
    struct list link;
};

TEST(list, nodes_come_out_in_order_and_leave_from_anywhere)
{
    struct list hall = LIST_INIT(hall), door = LIST_INIT(door);
    struct guest guests[5];
    for (int i = 0; i < 5; i++) {
        guests[i].number = i;
        list_push_back(i < 3 ? &hall : &door, &guests[i].link);
    }
    list_splice_back(&hall, &door);
    EXPECT(list_is_empty(&door));
    list_remove(&guests[2].link);
    list_remove(&guests[2].link);
    list_push_front(&hall, &guests[2].link);
    const int wanted[] = {2, 0, 1, 3, 4};
    int at = 0;
    list_each_safe(node, &hall) {
        EXPECT_EQ(list_entry(node, struct guest, link)->number, wanted[at++]);
        list_remove(node);
    }
    EXPECT_EQ(at, 5);
    EXPECT(list_pop_front(&hall) == NULL);
}

TEST(vector, items_stay_in_order_while_it_grows)
{
    vector_of(int) numbers = {0};
    vector_each(number, &numbers)
        TEST_FAIL("%d in an empty vector", *number);
    for (int i = 0; i < 1000; i++)
        vector_push(&numbers, i);
    EXPECT_EQ(numbers.count, 1000);
    EXPECT_EQ(vector_pop(&numbers), 999);
    vector_remove(&numbers, 0);
    vector_at(&numbers, 0) += 10;
    EXPECT_EQ(numbers.items[0], 11);
    int sum = 0;
    vector_each(number, &numbers)
        sum += *number;
    EXPECT_EQ(sum, 999 * 998 / 2 + 10);
    vector_free(&numbers);
    EXPECT_EQ(numbers.count, 0);
}

ARENA_TEST(vector, an_arena_holds_one_as_well)
{
    vector_of(struct slice) words = {0};
    for (int i = 0; i < 100; i++)
        vector_push_in(&words, arena, slice_text(arena_format(arena, "%d", i)));
    EXPECT(slice_equal(vector_at(&words, 73), slice_text("73")));
    vector_clear(&words);
    vector_reserve_in(&words, arena, 1000);
    EXPECT(words.capacity >= 1000);
}
