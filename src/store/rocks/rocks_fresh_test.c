/* rocks_fresh_test.c - fresh rows over tables, against one plain map of all rows.
 *
 * What settles is written to a map that plays the tables. After every change a row, and now and
 * then a range in either direction, is read as range.c and read.c do it, and has to be what the
 * plain map says; and what settles must be needed there. */
#include "base/check.h"
#include "base/random.h"
#include "base/test.h"
#include "base/tree.h"
#include "store/rocks/inside.h"

#define PARTITIONS 3
#define KEYS       40
#define STEPS      4000

static const enum row_kind kinds[] = {ROW_RUN, ROW_HISTORY, ROW_TRANSFER};

struct trial {
    struct random random;
    struct arena *arena;
    struct fresh *fresh;
    struct tree *model;  /* whole key → value */
    struct tree *tables; /* likewise what has settled */
    uint64_t values;     /* given out */
};

/* --- places ----------------------------------------------------------------------------------- */

static struct fresh_place
some_place(struct trial *trial)
{
    uint32_t shard = (uint32_t)random_below(&trial->random, PARTITIONS);
    struct key_writer key;
    key_begin(&key, trial->arena);
    key_u64(&key, random_below(&trial->random, KEYS) << (8 * random_below(&trial->random, 3)));
    if (random_below(&trial->random, 2) == 0)
        key_text(&key, slice_text("more"));
    return (struct fresh_place){
        .kind = kinds[random_below(&trial->random, array_length(kinds))],
        .partition_key = partition_key(PARTITION_OF_SHARD(shard), trial->arena),
        .key = key_end(&key),
    };
}

static struct slice
whole(struct trial *trial, const struct fresh_place *place)
{
    return layout_key(trial->arena, place->kind, place->partition_key, place->key);
}

static char *
some_value(struct trial *trial)
{
    return arena_format(trial->arena, "value %d", (int)++trial->values);
}

/* --- changes ---------------------------------------------------------------------------------- */

static void
do_put(struct trial *trial)
{
    struct fresh_place place = some_place(trial);
    struct slice key = whole(trial, &place);
    if (row_facts(place.kind)->life != ROW_MANY && tree_get(trial->model, key) != NULL)
        return;
    char *value = some_value(trial);
    tree_put(trial->model, key, value);
    struct slice kept = fresh_keep(trial->fresh, slice_text(value));
    fresh_change_begin(trial->fresh);
    fresh_put(trial->fresh, &place, kept);
    fresh_change_end(trial->fresh);
}

static void
do_delete(struct trial *trial)
{
    struct fresh_place place = some_place(trial);
    struct slice key = whole(trial, &place);
    if (place.kind == ROW_HISTORY || tree_get(trial->model, key) == NULL)
        return;
    tree_remove(trial->model, key);
    fresh_change_begin(trial->fresh);
    fresh_delete(trial->fresh, &place);
    fresh_change_end(trial->fresh);
}

struct found {
    struct trial *trial;
    struct fresh_place place;
    vector_of(struct slice) keys;
};

static void
note_found(void *context, struct slice key)
{
    struct found *found = context;
    vector_push_in(&found->keys, found->trial->arena, key);
}

static void
do_delete_range(struct trial *trial)
{
    struct fresh_place place = some_place(trial), other = some_place(trial);
    if (place.kind == ROW_TRANSFER)
        return;
    other.kind = place.kind;
    other.partition_key = place.partition_key;
    struct slice from = whole(trial, &place), to = whole(trial, &other);
    if (slice_compare(from, to) >= 0)
        return;
    tree_remove_range(trial->model, from, to, NULL, NULL);
    struct found found = {trial, place};
    fresh_each_settling(trial->fresh, &place, other.key, note_found, &found);
    struct tree_row *row = tree_at_least(trial->tables, from);
    for (; row != NULL && slice_compare(row->key, to) < 0; row = tree_next(row)) {
        struct fresh_place one = place;
        one.key = slice_skip(row->key, 1 + place.partition_key.length);
        if (!fresh_knows(trial->fresh, &one))
            note_found(&found, one.key);
    }
    fresh_change_begin(trial->fresh);
    fresh_delete_range(trial->fresh, &place, other.key);
    vector_each(key, &found.keys) {
        struct fresh_place one = place;
        one.key = *key;
        fresh_delete(trial->fresh, &one);
    }
    fresh_change_end(trial->fresh);
}

static void expect_row(struct trial *trial, struct slice key, size_t prefix);

/* A large row: it is in the tables, and not to be seen before the change. */
static void
do_put_elsewhere(struct trial *trial)
{
    struct fresh_place place = some_place(trial);
    place.kind = ROW_HISTORY;
    struct slice key = whole(trial, &place);
    if (tree_get(trial->model, key) != NULL || !fresh_hide(trial->fresh, &place))
        return;
    char *value = some_value(trial);
    tree_put(trial->tables, key, value);
    expect_row(trial, key, 1 + place.partition_key.length);
    fresh_change_begin(trial->fresh);
    fresh_reveal(trial->fresh, &place);
    fresh_change_end(trial->fresh);
    tree_put(trial->model, key, value);
}

static void
settle_one(struct trial *trial, const struct fresh_row *row)
{
    bool is_there = tree_get(trial->tables, row->key) != NULL;
    EXPECT(row->is_below || !is_there); /* else two puts would meet one single delete */
    if (row->is_gone)
        tree_remove(trial->tables, row->key);
    else
        tree_put(trial->tables, row->key, arena_text_of(trial->arena, row->value));
}

static void
do_settle(struct trial *trial)
{
    struct fresh_row row;
    if (!fresh_has_old(trial->fresh)) {
        fresh_freeze(trial->fresh);
        EXPECT_EQ(fresh_bytes(trial->fresh), 0);
        return;
    }
    for (uint64_t left = random_below(&trial->random, 30); left > 0; left--) {
        if (!fresh_next_old(trial->fresh, &row)) {
            fresh_drop_old(trial->fresh);
            return;
        }
        settle_one(trial, &row);
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

static void
expect_row(struct trial *trial, struct slice key, size_t prefix)
{
    bool found;
    struct slice value;
    const char *wanted = tree_get(trial->model, key);
    if (!fresh_get(trial->fresh, key, prefix, trial->arena, &found, &value)) {
        value = slice_text(tree_get(trial->tables, key));
        found = value.length > 0;
    }
    EXPECT(found == (wanted != NULL));
    EXPECT(!found || slice_equal(value, slice_text(wanted)));
}

/* The next row of a tree in either direction, inside the bounds. */
static struct tree_row *
bounded(struct tree_row *row, const struct fresh_look *look)
{
    bool is_inside = row != NULL && slice_compare(row->key, look->from) >= 0 &&
                     slice_compare(row->key, look->to) < 0;
    return is_inside ? row : NULL;
}

static struct tree_row *
first_of(const struct tree *tree, const struct fresh_look *look)
{
    struct tree_row *row;
    if (!look->is_backward)
        return bounded(tree_at_least(tree, look->from), look);
    row = tree_at_most(tree, look->to);
    if (row != NULL && slice_equal(row->key, look->to))
        row = tree_prev(row);
    return bounded(row, look);
}

static struct tree_row *
next_of(const struct tree_row *row, const struct fresh_look *look)
{
    return bounded(look->is_backward ? tree_prev(row) : tree_next(row), look);
}

/* Fresh rows of a look are those of the model or gone, in order; and what the model has more is in
 * the tables. */
static void
expect_look(struct trial *trial, const struct fresh_look *look)
{
    struct tree_row *row = first_of(trial->model, look);
    size_t living = 0;
    for (size_t i = 0; i < look->count; i++) {
        const struct fresh_row *fresh = &look->row[i];
        for (; row != NULL && !slice_equal(row->key, fresh->key); row = next_of(row, look)) {
            int order = slice_compare(row->key, fresh->key);
            if (look->is_backward ? order < 0 : order > 0)
                break;
            EXPECT_TEXT(tree_get(trial->tables, row->key), row->value);
        }
        bool is_same = row != NULL && slice_equal(row->key, fresh->key);
        EXPECT(is_same == !fresh->is_gone);
        if (is_same) {
            EXPECT(slice_equal(fresh->value, slice_text(row->value)));
            row = next_of(row, look);
            living++;
        }
    }
    EXPECT(!look->is_cut || living == look->rows_max || look->count - living == look->gone_max);
    for (; row != NULL && !look->is_cut; row = next_of(row, look))
        EXPECT_TEXT(tree_get(trial->tables, row->key), row->value);
}

static void
do_look(struct trial *trial)
{
    struct fresh_place place = some_place(trial), other = some_place(trial);
    struct fresh_look look = {.from = whole(trial, &place),
                              .to = whole(trial, &other),
                              .prefix = 1,
                              .rows_max = random_below(&trial->random, 8),
                              .gone_max = random_below(&trial->random, 8)};
    if (random_below(&trial->random, 4) > 0) {
        other.kind = place.kind;
        other.partition_key = place.partition_key;
        look.to = random_below(&trial->random, 3) == 0
                      ? layout_end(trial->arena, place.kind, place.partition_key)
                      : whole(trial, &other);
        look.prefix = 1 + place.partition_key.length;
        look.is_backward = random_below(&trial->random, 2) == 0;
    }
    if (slice_compare(look.from, look.to) > 0)
        return;
    fresh_look_begin(trial->fresh, &look, trial->arena);
    fresh_look_made(trial->fresh);
    expect_look(trial, &look);
    if (random_below(&trial->random, 4) == 0)
        do_settle(trial); /* what is looked at stays where it is */
    for (size_t i = 0; i < look.count; i++)
        EXPECT(look.row[i].is_gone || look.row[i].value.data[0] == 'v');
    fresh_look_end(trial->fresh, &look);
}

TEST(fresh, rows_over_tables_are_what_was_put)
{
    static void (*const acts[])(struct trial * trial) = {
        do_put,          do_put,           do_put,    do_put, do_delete,
        do_delete_range, do_put_elsewhere, do_settle, do_look};
    for (int seed = 0; seed < test_seed_count(); seed++) {
        struct trial trial = {
            .arena = arena_new(0), .fresh = fresh_new(), .model = tree_new(), .tables = tree_new()};
        random_seed(&trial.random, test_seed(seed));
        for (int step = 0; step < STEPS; step++) {
            acts[random_below(&trial.random, array_length(acts))](&trial);
            struct fresh_place place = some_place(&trial);
            expect_row(&trial, whole(&trial, &place), 1 + place.partition_key.length);
        }
        tree_free(trial.model);
        tree_free(trial.tables);
        fresh_free(trial.fresh);
        arena_free(trial.arena);
    }
}

/* What comes and goes in one generation leaves nothing to settle. */
TEST(fresh, a_row_that_is_put_once_and_deleted_does_not_settle)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct fresh *fresh = fresh_new();
    struct fresh_place place = {ROW_TRANSFER, partition_key(PARTITION_OF_SHARD(7), arena),
                                slice_text("key")};
    struct fresh_row row;
    fresh_change_begin(fresh);
    fresh_put(fresh, &place, fresh_keep(fresh, slice_text("value")));
    fresh_delete(fresh, &place);
    fresh_change_end(fresh);
    fresh_freeze(fresh);
    EXPECT(!fresh_next_old(fresh, &row));
    fresh_drop_old(fresh);

    /* After a crash nobody knows: it may have settled before. */
    fresh_expect_below(fresh);
    fresh_change_begin(fresh);
    fresh_put(fresh, &place, fresh_keep(fresh, slice_text("value")));
    fresh_delete(fresh, &place);
    fresh_change_end(fresh);
    fresh_freeze(fresh);
    EXPECT(fresh_next_old(fresh, &row) && row.is_gone && row.is_below);
    EXPECT(!fresh_next_old(fresh, &row));
    fresh_drop_old(fresh);
    fresh_free(fresh);
}
