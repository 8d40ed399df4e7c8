/* tree_test.c - the ordered map against a sorted array, and with a million rows. */
#include "base/tree.h"

#include <stdio.h>

#include "base/random.h"
#include "base/test.h"

enum { KEYS = 500 };

/* Key i of the space is present if values[i] is not NULL; keys rise with i. */
struct model {
    void *values[KEYS];
};

static struct slice
key_of(uint64_t number, char text[16])
{
    snprintf(text, 16, "%03d", (int)number / 2);
    /* Odd ones are the even one before them and a byte more: prefixes of each other. */
    return slice_of(text, number % 2 == 0 ? 3 : 4);
}

static int
model_at_least(const struct model *model, int number)
{
    while (number < KEYS && model->values[number] == NULL)
        number++;
    return number < KEYS ? number : -1;
}

static int
model_at_most(const struct model *model, int number)
{
    while (number >= 0 && model->values[number] == NULL)
        number--;
    return number;
}

static void
expect_row(const struct tree_row *row, const struct model *model, int number)
{
    char text[16];
    if (number < 0) {
        EXPECT(row == NULL);
        return;
    }
    EXPECT(row != NULL);
    EXPECT(slice_equal(row->key, key_of((uint64_t)number, text)));
    EXPECT(row->value == model->values[number]);
}

static void
expect_seeks(const struct tree *tree, const struct model *model, int number)
{
    char text[16];
    struct slice key = key_of((uint64_t)number, text);
    int above = model_at_least(model, number), below = model_at_most(model, number);
    struct tree_row *at_least = tree_at_least(tree, key), *at_most = tree_at_most(tree, key);
    expect_row(at_least, model, above);
    expect_row(at_most, model, below);
    EXPECT(tree_get(tree, key) == model->values[number]);
    if (above >= 0)
        expect_row(tree_next(at_least), model,
                   above + 1 < KEYS ? model_at_least(model, above + 1) : -1);
    if (below >= 0)
        expect_row(tree_prev(at_most), model, model_at_most(model, below - 1));
}

struct dropped {
    const struct model *model;
    int next; /* the values must come in order of their keys */
    size_t count;
};

static void
expect_dropped(void *context, void *value)
{
    struct dropped *dropped = context;
    dropped->next = model_at_least(dropped->model, dropped->next);
    EXPECT(dropped->next >= 0);
    EXPECT(dropped->model->values[dropped->next] == value);
    dropped->next++;
    dropped->count++;
}

static void
remove_range(struct random *random, struct tree *tree, struct model *model)
{
    int from = (int)random_below(random, KEYS);
    int to = from - 5 + (int)random_below(random, 40);
    to = to < 0 ? 0 : to >= KEYS ? KEYS - 1 : to;
    char from_text[16], to_text[16];
    struct dropped dropped = {.model = model, .next = from};
    size_t removed = tree_remove_range(tree, key_of((uint64_t)from, from_text),
                                       key_of((uint64_t)to, to_text), expect_dropped, &dropped);
    size_t wanted = 0;
    for (int i = from; i < to; i++) {
        wanted += model->values[i] != NULL;
        model->values[i] = NULL;
    }
    EXPECT_EQ(removed, wanted);
    EXPECT_EQ(dropped.count, wanted);
}

static void
step(struct random *random, struct tree *tree, struct model *model)
{
    static char values[100];
    int number = (int)random_below(random, KEYS);
    char text[16];
    struct slice key = key_of((uint64_t)number, text);
    uint64_t choice = random_below(random, 100);
    if (choice < 60) {
        void *value = &values[random_below(random, sizeof values)];
        EXPECT(tree_put(tree, key, value) == model->values[number]);
        model->values[number] = value;
    } else if (choice < 95) {
        EXPECT(tree_remove(tree, key) == model->values[number]);
        model->values[number] = NULL;
    } else {
        remove_range(random, tree, model);
    }
    expect_seeks(tree, model, (int)random_below(random, KEYS));
}

TEST(tree, any_calls_give_what_a_sorted_array_gives)
{
    for (int s = 0; s < test_seed_count(); s++) {
        struct random random;
        random_seed(&random, test_seed(s));
        struct tree *tree = tree_new();
        struct model model = {0};
        for (int i = 0; i < 20000; i++) {
            step(&random, tree, &model);
            if (i % 250 == 0)
                tree_check(tree);
        }
        expect_row(tree_first(tree), &model, model_at_least(&model, 0));
        expect_row(tree_last(tree), &model, model_at_most(&model, KEYS - 1));
        tree_free(tree);
    }
}

TEST(tree, an_empty_tree_has_no_ends_and_the_empty_key_is_a_key)
{
    struct tree *tree = tree_new();
    EXPECT(tree_first(tree) == NULL && tree_last(tree) == NULL);
    EXPECT(tree_at_least(tree, slice_text("")) == NULL);
    EXPECT(tree_remove(tree, slice_text("x")) == NULL);
    tree_put(tree, (struct slice){0}, "empty");
    EXPECT_TEXT(tree_get(tree, slice_text("")), "empty");
    EXPECT_EQ(tree_count(tree), 1);
    tree_free(tree);
    tree_free(NULL);
}

TEST(tree, a_row_kept_as_a_cursor_survives_what_happens_around_it)
{
    struct tree *tree = tree_new();
    for (int i = 0; i < 100; i++) {
        char text[16];
        tree_put(tree, key_of((uint64_t)i * 2, text), "x");
    }
    struct tree_row *row = tree_at_least(tree, slice_text("050"));
    tree_remove_range(tree, slice_text("000"), slice_text("050"), NULL, NULL);
    tree_remove_range(tree, slice_text("051"), slice_text("098"), NULL, NULL);
    EXPECT(tree_prev(row) == NULL);
    EXPECT(slice_equal(tree_next(row)->key, slice_text("098")));
    EXPECT_EQ(tree_count(tree), 3);
    tree_check(tree);
    tree_free(tree);
}

/* The memory store keeps this many. Rising keys are what a log writes; they are also what a
 * careless tree turns into a list, and a list would not end in this lifetime. */
static void
expect_million(struct tree *tree, uint64_t factor)
{
    const uint64_t rows = 1000000;
    char text[32];
    for (uint64_t i = 0; i < rows; i++) {
        snprintf(text, sizeof text, "shard/7/%010d", (int)(i * factor % rows));
        tree_put(tree, slice_text(text), "x");
    }
    EXPECT_EQ(tree_count(tree), rows);
    struct tree_row *row = tree_first(tree);
    for (uint64_t i = 0; i < rows; i++, row = tree_next(row)) {
        if (i % 1000 != 0)
            continue;
        snprintf(text, sizeof text, "shard/7/%010d", (int)i);
        EXPECT(slice_equal(row->key, slice_text(text)));
        EXPECT(tree_at_least(tree, slice_text(text)) == row);
    }
    EXPECT(row == NULL);
    EXPECT_EQ(tree_remove_range(tree, slice_text("shard/7/0000000500"),
                                slice_text("shard/7/0000999000"), NULL, NULL),
              998500);
    tree_check(tree);
}

TEST(tree, a_million_rows_in_rising_order_are_no_problem)
{
    struct tree *tree = tree_new();
    expect_million(tree, 1);
    tree_free(tree);
}

TEST(tree, a_million_rows_in_scattered_order_are_no_problem)
{
    struct tree *tree = tree_new();
    expect_million(tree, 387420489);
    tree_free(tree);
}
