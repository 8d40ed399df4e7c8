/* map_test.c - the hash map against a plain list.
 *
 * Method: random calls on the map and on an array in order of insertion that is searched from the
 * front; keys come from a small space so that they meet, are removed and come back. */
#include "base/map.h"

#include <stdio.h>

#include "base/random.h"
#include "base/test.h"

enum { KEYS = 400 };

struct model {
    size_t count;
    uint64_t keys[KEYS];
    void *values[KEYS];
};

static size_t
model_find(const struct model *model, uint64_t key)
{
    size_t at = 0;
    while (at < model->count && model->keys[at] != key)
        at++;
    return at;
}

static void *
model_put(struct model *model, uint64_t key, void *value)
{
    size_t at = model_find(model, key);
    void *before = at < model->count ? model->values[at] : NULL;
    model->keys[at] = key;
    model->values[at] = value;
    model->count += at == model->count;
    return before;
}

static void *
model_remove(struct model *model, uint64_t key)
{
    size_t at = model_find(model, key);
    if (at == model->count)
        return NULL;
    void *before = model->values[at];
    model->count--;
    memmove(&model->keys[at], &model->keys[at + 1], (model->count - at) * sizeof model->keys[0]);
    memmove(&model->values[at], &model->values[at + 1],
            (model->count - at) * sizeof model->values[0]);
    return before;
}

static void *
model_get(const struct model *model, uint64_t key)
{
    size_t at = model_find(model, key);
    return at == model->count ? NULL : model->values[at];
}

/* Keys of different lengths, the empty one among them, some with NUL bytes. */
static struct slice
key_bytes(uint64_t key, char text[32])
{
    memset(text, 0, 32);
    snprintf(text, 32, "%d", (int)key);
    return slice_of(text, key % 20);
}

static uint64_t
distinct_key(struct random *random)
{
    return random_below(random, KEYS) * 20 + 10; /* ten bytes: all different */
}

static void
expect_same_order(const struct map *map, const struct map64 *map64, const struct model *model)
{
    size_t cursor = 0, cursor64 = 0;
    for (size_t i = 0; i < model->count; i++) {
        struct slice key;
        uint64_t number;
        void *value, *value64;
        char text[32];
        EXPECT(map_next(map, &cursor, &key, &value));
        EXPECT(map64_next(map64, &cursor64, &number, &value64));
        EXPECT(slice_equal(key, key_bytes(model->keys[i], text)));
        EXPECT(number == model->keys[i]);
        EXPECT(value == model->values[i] && value64 == model->values[i]);
    }
    EXPECT(!map_next(map, &cursor, NULL, NULL));
    EXPECT(!map64_next(map64, &cursor64, NULL, NULL));
}

static void
step(struct random *random, struct map *map, struct map64 *map64, struct model *model)
{
    static char values[100];
    uint64_t key = distinct_key(random);
    void *value = &values[random_below(random, sizeof values)];
    char text[32];
    struct slice bytes = key_bytes(key, text);
    if (random_below(random, 2) == 0) {
        void *before = model_put(model, key, value);
        EXPECT(map_put(map, bytes, value) == before);
        EXPECT(map64_put(map64, key, value) == before);
    } else {
        void *before = model_remove(model, key);
        EXPECT(map_remove(map, bytes) == before);
        EXPECT(map64_remove(map64, key) == before);
    }
    key = distinct_key(random);
    EXPECT(map_get(map, key_bytes(key, text)) == model_get(model, key));
    EXPECT(map64_get(map64, key) == model_get(model, key));
    EXPECT_EQ(map_count(map), model->count);
    EXPECT_EQ(map64_count(map64), model->count);
}

TEST(map, any_calls_give_what_a_list_gives_in_the_same_order)
{
    for (int s = 0; s < test_seed_count(); s++) {
        struct random random;
        random_seed(&random, test_seed(s));
        struct map *map = map_new();
        struct map64 *map64 = map64_new();
        struct model model = {0};
        for (int i = 0; i < 20000; i++) {
            step(&random, map, map64, &model);
            if (i % 200 == 0)
                expect_same_order(map, map64, &model);
        }
        map_free(map);
        map64_free(map64);
    }
}

TEST(map, keys_are_copied_and_the_empty_key_is_a_key)
{
    struct map *map = map_new();
    char key[] = "key";
    EXPECT(map_get(map, slice_text(key)) == NULL);
    EXPECT(map_remove(map, slice_text(key)) == NULL);
    map_put(map, slice_text(key), "1");
    map_put(map, slice_text(""), "2");
    key[0] = 'X';
    EXPECT_TEXT(map_get(map, slice_text("key")), "1");
    EXPECT_TEXT(map_get(map, (struct slice){0}), "2");
    EXPECT(map_get(map, slice_of("key\0", 4)) == NULL);
    map_free(map);
    map_free(NULL);
}

TEST(map, no_map_at_all_is_an_empty_one)
{
    size_t cursor = 0;
    EXPECT_EQ(map_count(NULL) + map64_count(NULL), 0);
    EXPECT(map_get(NULL, slice_text("key")) == NULL && map64_get(NULL, 1) == NULL);
    EXPECT(map_remove(NULL, slice_text("key")) == NULL && map64_remove(NULL, 1) == NULL);
    EXPECT(!map_next(NULL, &cursor, NULL, NULL) && !map64_next(NULL, &cursor, NULL, NULL));
    map_free(NULL);
    map64_free(NULL);
}

/* Numbers are told apart by their hashes alone: no two may share one. */
TEST(map, numbers_that_differ_in_any_two_bits_are_different_keys)
{
    struct map64 *map = map64_new();
    for (int i = 0; i < 64; i++)
        for (int j = 0; j <= i; j++)
            EXPECT(map64_put(map, UINT64_C(1) << i | UINT64_C(1) << j, "x") == NULL);
    EXPECT(map64_put(map, 0, "x") == NULL);
    EXPECT_EQ(map64_count(map), 64 * 65 / 2 + 1);
    map64_free(map);
}

TEST(map, all_entries_can_be_removed_while_iterating)
{
    struct map64 *map = map64_new();
    for (uint64_t i = 0; i < 1000; i++)
        map64_put(map, i * i, "x");
    size_t cursor = 0;
    uint64_t key, seen = 0;
    while (map64_next(map, &cursor, &key, NULL)) {
        EXPECT(key == seen * seen);
        EXPECT(map64_remove(map, key) != NULL);
        seen++;
    }
    EXPECT_EQ(seen, 1000);
    EXPECT_EQ(map64_count(map), 0);
    map64_free(map);
}

TEST(map, a_queue_of_entries_that_come_and_go_does_not_grow)
{
    struct map64 *map = map64_new();
    for (uint64_t i = 0; i < 1000000; i++) {
        map64_put(map, i, "x");
        size_t cursor = 0;
        uint64_t oldest;
        EXPECT(map64_next(map, &cursor, &oldest, NULL));
        EXPECT(oldest == (i < 10 ? 0 : i - 10));
        if (i >= 10)
            EXPECT(map64_remove(map, oldest) != NULL);
    }
    EXPECT_EQ(map64_count(map), 10);
    map64_free(map);
}

/* The hash decides only cost, but a change of it should be noticed. */
TEST(map, hashes_are_the_same_on_every_machine)
{
    EXPECT(map_hash(slice_text("")) != map_hash(slice_text("a")));
    EXPECT(map_hash(slice_of("a\0", 2)) != map_hash(slice_text("a")));
    EXPECT_EQ(map_hash(slice_text("cadenza")), (int64_t)UINT64_C(0x5c17b368db66c429));
    EXPECT_EQ(map_hash(slice_text("cadenza-")), (int64_t)UINT64_C(0x9f00b69c77de5bca));
    EXPECT_EQ(map_hash(slice_text("cadenza-cadenza")), (int64_t)UINT64_C(0x99aa44cb9a078e5e));
}
