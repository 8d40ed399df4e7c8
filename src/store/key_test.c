/* key_test.c - keys sort as the tuples they were made of, and come back as them. */
#include "store/key.h"

#include "base/random.h"
#include "base/test.h"

static struct slice
text_key(struct arena *arena, struct slice text)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_text(&key, text);
    return key_end(&key);
}

ARENA_TEST(key, a_text_is_its_bytes_with_zeros_marked_and_an_end)
{
    struct slice wanted = SLICE_LITERAL("a\0\xff"
                                        "b\0\1");
    EXPECT(slice_equal(text_key(arena, slice_of("a\0b", 3)), wanted));
    struct slice nothing = SLICE_LITERAL("\0\1");
    EXPECT(slice_equal(text_key(arena, slice_of(NULL, 0)), nothing));
}

/* ---- order ---- */

struct tuple {
    struct slice text;
    int64_t signed_number;
    uint64_t number;
    uint64_t falling;
    uint32_t shard;
};

static struct tuple
tuple_random(struct random *random, struct arena *arena)
{
    static const uint8_t alphabet[] = {0, 1, 2, 'a', 0xfe, 0xff};
    static const uint64_t numbers[] = {0, 1, 255, 256, INT64_MAX, (uint64_t)INT64_MIN, UINT64_MAX};
    size_t length = random_below(random, 4);
    uint8_t *bytes = arena_alloc(arena, length);
    for (size_t i = 0; i < length; i++)
        bytes[i] = alphabet[random_below(random, sizeof alphabet)];
    struct tuple tuple = {.text = slice_of(bytes, length)};
    tuple.signed_number = (int64_t)numbers[random_below(random, array_length(numbers))];
    tuple.number = numbers[random_below(random, array_length(numbers))];
    tuple.falling = numbers[random_below(random, array_length(numbers))];
    tuple.shard = (uint32_t)numbers[random_below(random, array_length(numbers))];
    return tuple;
}

static int
order(bool is_less, bool is_more)
{
    return (int)is_more - (int)is_less;
}

static int
tuple_compare(const struct tuple *a, const struct tuple *b)
{
    int result = slice_compare(a->text, b->text);
    if (result == 0)
        result = order(a->signed_number<b->signed_number, a->signed_number> b->signed_number);
    if (result == 0)
        result = order(a->number<b->number, a->number> b->number);
    if (result == 0)
        result = order(a->falling > b->falling, a->falling < b->falling);
    return result;
}

static struct slice
tuple_key(const struct tuple *tuple, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_text(&key, tuple->text);
    key_i64(&key, tuple->signed_number);
    key_u64(&key, tuple->number);
    key_u64_descending(&key, tuple->falling);
    return key_end(&key);
}

TEST(key, keys_sort_as_their_tuples_and_read_back_as_them)
{
    for (int seed = 0; seed < test_seed_count(); seed++) {
        struct random random;
        random_seed(&random, test_seed(seed));
        scoped(arena_drop) struct arena *arena = arena_new(0);
        for (int i = 0; i < 5000; i++) {
            struct tuple a = tuple_random(&random, arena), b = tuple_random(&random, arena), back;
            int keys = slice_compare(tuple_key(&a, arena), tuple_key(&b, arena));
            int tuples = tuple_compare(&a, &b);
            EXPECT_EQ(order(keys<0, keys> 0), order(tuples<0, tuples> 0));
            struct slice key = tuple_key(&a, arena);
            EXPECT(key_take_text(&key, arena, &back.text) &&
                   key_take_i64(&key, &back.signed_number) && key_take_u64(&key, &back.number) &&
                   key_take_u64_descending(&key, &back.falling));
            EXPECT_EQ(key.length, 0);
            EXPECT_EQ(tuple_compare(&a, &back), 0);
            arena_reset(arena);
        }
    }
}

ARENA_TEST(key, what_is_no_key_is_refused_and_stays_where_it_is)
{
    static const struct slice bad[] = {SLICE_LITERAL(""),        SLICE_LITERAL("a"),
                                       SLICE_LITERAL("a\0"),     SLICE_LITERAL("\0\2"),
                                       SLICE_LITERAL("a\0\0\1"), SLICE_LITERAL("a\0\xff\0"),
                                       SLICE_LITERAL("\1")};
    for (size_t i = 0; i < array_length(bad); i++) {
        struct slice key = bad[i], text;
        EXPECT(!key_take_text(&key, arena, &text));
        EXPECT(slice_equal(key, bad[i]));
        uint64_t number;
        struct uuid uuid;
        EXPECT(!key_take_u64(&key, &number) && !key_take_uuid(&key, &uuid));
    }
}

ARENA_TEST(key, the_key_after_a_prefix_is_above_all_that_begin_with_it)
{
    EXPECT(slice_equal(key_after_prefix(slice_text("ab"), arena), slice_text("ac")));
    EXPECT(slice_equal(key_after_prefix(slice_text("a\xff\xff"), arena), slice_text("b")));
    EXPECT_EQ(key_after_prefix(slice_text("\xff\xff"), arena).length, 0);
    EXPECT_EQ(key_after_prefix(slice_of(NULL, 0), arena).length, 0);
    EXPECT(slice_equal(key_after(slice_text("a"), arena), slice_of("a\0", 2)));
    EXPECT(slice_equal(key_after(slice_of(NULL, 0), arena), slice_of("\0", 1)));
}

/* ---- partitions ---- */

ARENA_TEST(key, a_partition_reads_back_and_no_key_of_one_begins_anothers)
{
    struct partition partitions[] = {
        PARTITION_OF_SYSTEM,
        PARTITION_OF_DOMAINS,
        PARTITION_OF_SHARD(0),
        PARTITION_OF_SHARD(1),
        PARTITION_OF_SHARD(256),
        PARTITION_OF_SHARD(UINT32_MAX),
        {.kind = PARTITION_TASK_LIST},
        {.kind = PARTITION_TASK_LIST, .name = slice_of("\0", 1)},
        {.kind = PARTITION_TASK_LIST, .name = slice_of("a", 1)},
        {.kind = PARTITION_TASK_LIST, .name = slice_of("a\0", 2)},
        {.kind = PARTITION_TASK_LIST, .name = slice_of("ab", 2)},
    };
    for (size_t i = 0; i < array_length(partitions); i++) {
        struct slice key = partition_key(partitions[i], arena), rest = key;
        struct partition back;
        EXPECT(partition_take(&rest, arena, &back));
        EXPECT(rest.length == 0 && partition_equal(back, partitions[i]));
        for (size_t k = i + 1; k < array_length(partitions); k++) {
            struct slice above = partition_key(partitions[k], arena);
            EXPECT(slice_compare(key, above) < 0 && !slice_starts_with(above, key));
        }
    }
    EXPECT_TEXT(partition_name(partitions[4], arena), "shard 256");
    EXPECT_TEXT(partition_name(partitions[8], arena), "task list a");
}

TEST(rows, every_kind_has_facts_and_nothing_else_has)
{
    EXPECT(row_traits(0) == NULL);
    EXPECT(row_traits(ROW_KIND_END) == NULL);
    EXPECT(row_traits((enum row_kind)1000) == NULL);
    for (enum row_kind kind = 1; kind < ROW_KIND_END; kind++) {
        EXPECT(row_traits(kind) != NULL && row_traits(kind)->name != NULL);
        EXPECT(row_traits(kind)->partition < PARTITION_KIND_END);
    }
    EXPECT_TEXT(row_traits(ROW_HISTORY)->name, "history-node");
    EXPECT(row_traits(ROW_TIMER)->life == ROW_ONCE && row_traits(ROW_TIMER)->access == ROW_FORWARD);
}
