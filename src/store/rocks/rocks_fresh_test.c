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

struct fresh_fixture {
    struct random random;
    struct arena *arena;
    struct fresh *fresh;
    struct tree *model;  /* whole key → value */
    struct tree *tables; /* likewise what has settled */
    uint64_t values;     /* given out */
};

/* --- places ----------------------------------------------------------------------------------- */

static struct fresh_location
some_location(struct fresh_fixture *fresh_fixture)
{
    uint32_t shard = (uint32_t)random_below(&fresh_fixture->random, PARTITIONS);
    struct key_writer key;
    key_begin(&key, fresh_fixture->arena);
    key_u64(&key, random_below(&fresh_fixture->random, KEYS)
                      << (8 * random_below(&fresh_fixture->random, 3)));
    if (random_below(&fresh_fixture->random, 2) == 0)
        key_text(&key, slice_text("more"));
    return (struct fresh_location){
        .kind = kinds[random_below(&fresh_fixture->random, array_length(kinds))],
        .partition_key = partition_key(PARTITION_OF_SHARD(shard), fresh_fixture->arena),
        .key = key_end(&key),
    };
}

static struct slice
whole(struct fresh_fixture *fresh_fixture, const struct fresh_location *location)
{
    return layout_key(fresh_fixture->arena, location->kind, location->partition_key, location->key);
}

static char *
some_value(struct fresh_fixture *fresh_fixture)
{
    return arena_format(fresh_fixture->arena, "value %d", (int)++fresh_fixture->values);
}

/* --- changes ---------------------------------------------------------------------------------- */

static void
do_put(struct fresh_fixture *fresh_fixture)
{
    struct fresh_location location = some_location(fresh_fixture);
    struct slice key = whole(fresh_fixture, &location);
    if (row_traits(location.kind)->life != ROW_MANY && tree_get(fresh_fixture->model, key) != NULL)
        return;
    char *value = some_value(fresh_fixture);
    tree_put(fresh_fixture->model, key, value);
    struct slice kept = fresh_keep(fresh_fixture->fresh, slice_text(value));
    fresh_change_begin(fresh_fixture->fresh);
    fresh_put(fresh_fixture->fresh, &location, kept);
    fresh_change_end(fresh_fixture->fresh);
}

static void
do_delete(struct fresh_fixture *fresh_fixture)
{
    struct fresh_location location = some_location(fresh_fixture);
    struct slice key = whole(fresh_fixture, &location);
    if (location.kind == ROW_HISTORY || tree_get(fresh_fixture->model, key) == NULL)
        return;
    tree_remove(fresh_fixture->model, key);
    fresh_change_begin(fresh_fixture->fresh);
    fresh_delete(fresh_fixture->fresh, &location);
    fresh_change_end(fresh_fixture->fresh);
}

struct found {
    struct fresh_fixture *fresh_fixture;
    struct fresh_location location;
    vector_of(struct slice) keys;
};

static void
note_found(void *context, struct slice key)
{
    struct found *found = context;
    vector_push_in(&found->keys, found->fresh_fixture->arena, key);
}

static void
do_delete_range(struct fresh_fixture *fresh_fixture)
{
    struct fresh_location location = some_location(fresh_fixture),
                          other = some_location(fresh_fixture);
    if (location.kind == ROW_TRANSFER)
        return;
    other.kind = location.kind;
    other.partition_key = location.partition_key;
    struct slice from = whole(fresh_fixture, &location), to = whole(fresh_fixture, &other);
    if (slice_compare(from, to) >= 0)
        return;
    tree_remove_range(fresh_fixture->model, from, to, NULL, NULL);
    struct found found = {fresh_fixture, location};
    fresh_each_settling(fresh_fixture->fresh, &location, other.key, note_found, &found);
    struct tree_row *row = tree_at_least(fresh_fixture->tables, from);
    for (; row != NULL && slice_compare(row->key, to) < 0; row = tree_next(row)) {
        struct fresh_location one = location;
        one.key = slice_skip(row->key, 1 + location.partition_key.length);
        if (!fresh_knows(fresh_fixture->fresh, &one))
            note_found(&found, one.key);
    }
    fresh_change_begin(fresh_fixture->fresh);
    fresh_delete_range(fresh_fixture->fresh, &location, other.key);
    vector_each(key, &found.keys) {
        struct fresh_location one = location;
        one.key = *key;
        fresh_delete(fresh_fixture->fresh, &one);
    }
    fresh_change_end(fresh_fixture->fresh);
}

static void expect_row(struct fresh_fixture *fresh_fixture, struct slice key, size_t prefix);

/* A large row: it is in the tables, and not to be seen before the change. */
static void
do_put_elsewhere(struct fresh_fixture *fresh_fixture)
{
    struct fresh_location location = some_location(fresh_fixture);
    location.kind = ROW_HISTORY;
    struct slice key = whole(fresh_fixture, &location);
    if (tree_get(fresh_fixture->model, key) != NULL || !fresh_hide(fresh_fixture->fresh, &location))
        return;
    char *value = some_value(fresh_fixture);
    tree_put(fresh_fixture->tables, key, value);
    expect_row(fresh_fixture, key, 1 + location.partition_key.length);
    fresh_change_begin(fresh_fixture->fresh);
    fresh_reveal(fresh_fixture->fresh, &location);
    fresh_change_end(fresh_fixture->fresh);
    tree_put(fresh_fixture->model, key, value);
}

static void
settle_one(struct fresh_fixture *fresh_fixture, const struct fresh_row *row)
{
    bool is_there = tree_get(fresh_fixture->tables, row->key) != NULL;
    EXPECT(row->is_below || !is_there); /* else two puts would meet one single delete */
    if (row->is_gone)
        tree_remove(fresh_fixture->tables, row->key);
    else
        tree_put(fresh_fixture->tables, row->key, arena_text_of(fresh_fixture->arena, row->value));
}

static void
do_settle(struct fresh_fixture *fresh_fixture)
{
    struct fresh_row row;
    if (!fresh_has_old(fresh_fixture->fresh)) {
        fresh_freeze(fresh_fixture->fresh);
        EXPECT_EQ(fresh_bytes(fresh_fixture->fresh), 0);
        return;
    }
    for (uint64_t left = random_below(&fresh_fixture->random, 30); left > 0; left--) {
        if (!fresh_next_old(fresh_fixture->fresh, &row)) {
            fresh_drop_old(fresh_fixture->fresh);
            return;
        }
        settle_one(fresh_fixture, &row);
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

static void
expect_row(struct fresh_fixture *fresh_fixture, struct slice key, size_t prefix)
{
    bool found;
    struct slice value;
    const char *wanted = tree_get(fresh_fixture->model, key);
    if (!fresh_get(fresh_fixture->fresh, key, prefix, fresh_fixture->arena, &found, &value)) {
        value = slice_text(tree_get(fresh_fixture->tables, key));
        found = value.length > 0;
    }
    EXPECT(found == (wanted != NULL));
    EXPECT(!found || slice_equal(value, slice_text(wanted)));
}

/* The next row of a tree in either direction, inside the bounds. */
static struct tree_row *
bounded(struct tree_row *row, const struct fresh_scan *fresh_rows)
{
    bool is_inside = row != NULL && slice_compare(row->key, fresh_rows->from) >= 0 &&
                     slice_compare(row->key, fresh_rows->to) < 0;
    return is_inside ? row : NULL;
}

static struct tree_row *
first_of(const struct tree *tree, const struct fresh_scan *fresh_rows)
{
    struct tree_row *row;
    if (!fresh_rows->is_backward)
        return bounded(tree_at_least(tree, fresh_rows->from), fresh_rows);
    row = tree_at_most(tree, fresh_rows->to);
    if (row != NULL && slice_equal(row->key, fresh_rows->to))
        row = tree_prev(row);
    return bounded(row, fresh_rows);
}

static struct tree_row *
next_of(const struct tree_row *row, const struct fresh_scan *fresh_rows)
{
    return bounded(fresh_rows->is_backward ? tree_prev(row) : tree_next(row), fresh_rows);
}

/* Fresh rows of a look are those of the model or gone, in order; and what the model has more is in
 * the tables. */
static void
expect_scan(struct fresh_fixture *fresh_fixture, const struct fresh_scan *fresh_rows)
{
    struct tree_row *row = first_of(fresh_fixture->model, fresh_rows);
    size_t living = 0;
    for (size_t i = 0; i < fresh_rows->count; i++) {
        const struct fresh_row *fresh = &fresh_rows->row[i];
        for (; row != NULL && !slice_equal(row->key, fresh->key); row = next_of(row, fresh_rows)) {
            int order = slice_compare(row->key, fresh->key);
            if (fresh_rows->is_backward ? order < 0 : order > 0)
                break;
            EXPECT_TEXT(tree_get(fresh_fixture->tables, row->key), row->value);
        }
        bool is_same = row != NULL && slice_equal(row->key, fresh->key);
        EXPECT(is_same == !fresh->is_gone);
        if (is_same) {
            EXPECT(slice_equal(fresh->value, slice_text(row->value)));
            row = next_of(row, fresh_rows);
            living++;
        }
    }
    EXPECT(!fresh_rows->is_cut || living == fresh_rows->rows_max ||
           fresh_rows->count - living == fresh_rows->gone_max);
    for (; row != NULL && !fresh_rows->is_cut; row = next_of(row, fresh_rows))
        EXPECT_TEXT(tree_get(fresh_fixture->tables, row->key), row->value);
}

static void
do_scan(struct fresh_fixture *fresh_fixture)
{
    struct fresh_location location = some_location(fresh_fixture),
                          other = some_location(fresh_fixture);
    struct fresh_scan fresh_rows = {.from = whole(fresh_fixture, &location),
                                    .to = whole(fresh_fixture, &other),
                                    .prefix = 1,
                                    .rows_max = random_below(&fresh_fixture->random, 8),
                                    .gone_max = random_below(&fresh_fixture->random, 8)};
    if (random_below(&fresh_fixture->random, 4) > 0) {
        other.kind = location.kind;
        other.partition_key = location.partition_key;
        fresh_rows.to =
            random_below(&fresh_fixture->random, 3) == 0
                ? layout_end(fresh_fixture->arena, location.kind, location.partition_key)
                : whole(fresh_fixture, &other);
        fresh_rows.prefix = 1 + location.partition_key.length;
        fresh_rows.is_backward = random_below(&fresh_fixture->random, 2) == 0;
    }
    if (slice_compare(fresh_rows.from, fresh_rows.to) > 0)
        return;
    fresh_scan_begin(fresh_fixture->fresh, &fresh_rows, fresh_fixture->arena);
    fresh_scan_made(fresh_fixture->fresh);
    expect_scan(fresh_fixture, &fresh_rows);
    if (random_below(&fresh_fixture->random, 4) == 0)
        do_settle(fresh_fixture); /* what is looked at stays where it is */
    for (size_t i = 0; i < fresh_rows.count; i++)
        EXPECT(fresh_rows.row[i].is_gone || fresh_rows.row[i].value.data[0] == 'v');
    fresh_scan_end(fresh_fixture->fresh, &fresh_rows);
}

TEST(fresh, rows_over_tables_are_what_was_put)
{
    static void (*const acts[])(struct fresh_fixture * fresh_fixture) = {
        do_put,          do_put,           do_put,    do_put, do_delete,
        do_delete_range, do_put_elsewhere, do_settle, do_scan};
    for (int seed = 0; seed < test_seed_count(); seed++) {
        struct fresh_fixture fresh_fixture = {
            .arena = arena_new(0), .fresh = fresh_new(), .model = tree_new(), .tables = tree_new()};
        random_seed(&fresh_fixture.random, test_seed(seed));
        for (int step = 0; step < STEPS; step++) {
            acts[random_below(&fresh_fixture.random, array_length(acts))](&fresh_fixture);
            struct fresh_location location = some_location(&fresh_fixture);
            expect_row(&fresh_fixture, whole(&fresh_fixture, &location),
                       1 + location.partition_key.length);
        }
        tree_free(fresh_fixture.model);
        tree_free(fresh_fixture.tables);
        fresh_free(fresh_fixture.fresh);
        arena_free(fresh_fixture.arena);
    }
}

/* What comes and goes in one generation leaves nothing to settle. */
ARENA_TEST(fresh, a_row_that_is_put_once_and_deleted_does_not_settle)
{
    struct fresh *fresh = fresh_new();
    struct fresh_location location = {ROW_TRANSFER, partition_key(PARTITION_OF_SHARD(7), arena),
                                      slice_text("key")};
    struct fresh_row row;
    fresh_change_begin(fresh);
    fresh_put(fresh, &location, fresh_keep(fresh, slice_text("value")));
    fresh_delete(fresh, &location);
    fresh_change_end(fresh);
    fresh_freeze(fresh);
    EXPECT(!fresh_next_old(fresh, &row));
    fresh_drop_old(fresh);

    /* After a crash nobody knows: it may have settled before. */
    fresh_expect_below(fresh);
    fresh_change_begin(fresh);
    fresh_put(fresh, &location, fresh_keep(fresh, slice_text("value")));
    fresh_delete(fresh, &location);
    fresh_change_end(fresh);
    fresh_freeze(fresh);
    EXPECT(fresh_next_old(fresh, &row) && row.is_gone && row.is_below);
    EXPECT(!fresh_next_old(fresh, &row));
    fresh_drop_old(fresh);
    fresh_free(fresh);
}
