/* contract_rows.c - rows are kept as they were put, and reads give exactly the rows asked for.
 *
 * The traps are neighbours: kinds and partitions lie side by side in an engine's order, and a scan
 * or range that goes one row too far shows somebody else's. So every test has neighbours. */
#include "base/test.h"
#include "store/key.h"
#include "store/test/contract.h"

#define SHARD(n) PARTITION_OF_SHARD(n)

void
contract_a_new_store_has_no_guards_and_no_rows(struct contract *contract)
{
    EXPECT_EQ(contract_guard(contract, SHARD(1)), 0);
    EXPECT(contract_get(contract, SHARD(1), ROW_RUN, TEXT("a")) == NULL);
    struct scan scan = {.partition = SHARD(1), .kind = ROW_RUN};
    EXPECT_TEXT(contract_list(contract, &scan), "");
    struct walk_rows rows;
    EXPECT_OK(store_walk(contract->store, ROW_SHARD, NULL, 10, contract->arena, &rows));
    EXPECT_EQ(rows.count, 0);
    EXPECT(!rows.has_more);
}

void
contract_a_row_is_read_as_it_was_put(struct contract *contract)
{
    contract_put(contract, SHARD(1), 1, ROW_RUN, TEXT("key"), TEXT("first"));
    contract_flush(contract);
    EXPECT_TEXT(contract_get(contract, SHARD(1), ROW_RUN, TEXT("key")), "first");
    contract_put(contract, SHARD(1), 1, ROW_RUN, TEXT("key"), TEXT("second"));
    EXPECT_TEXT(contract_get(contract, SHARD(1), ROW_RUN, TEXT("key")), "second");
    contract_flush(contract);
    EXPECT_TEXT(contract_get(contract, SHARD(1), ROW_RUN, TEXT("key")), "second");
    EXPECT(contract_get(contract, SHARD(1), ROW_RUN, TEXT("ke")) == NULL);
    EXPECT(contract_get(contract, SHARD(1), ROW_RUN, TEXT("key2")) == NULL);
    EXPECT(contract_get(contract, SHARD(1), ROW_PENDING, TEXT("key")) == NULL);
    EXPECT(contract_get(contract, SHARD(2), ROW_RUN, TEXT("key")) == NULL);
    contract_put(contract, SHARD(1), 1, ROW_SHARD, TEXT(""), TEXT("the empty key"));
    EXPECT_TEXT(contract_get(contract, SHARD(1), ROW_SHARD, TEXT("")), "the empty key");
}

void
contract_a_deleted_row_is_gone_and_its_neighbours_stay(struct contract *contract)
{
    struct batch *batch = batch_new(contract->arena, SHARD(1), 1);
    batch_put(batch, ROW_RUN, TEXT("a"), TEXT("1"));
    batch_put(batch, ROW_RUN, TEXT("ab"), TEXT("2"));
    batch_put(batch, ROW_RUN, TEXT("b"), TEXT("3"));
    contract_commit(contract, batch, 0);
    contract_flush(contract);
    batch = batch_new(contract->arena, SHARD(1), 1);
    batch_delete(batch, ROW_RUN, TEXT("ab"));
    batch_delete(batch, ROW_RUN, TEXT("never there"));
    contract_commit(contract, batch, 1);
    contract_flush(contract);
    struct scan scan = {.partition = SHARD(1), .kind = ROW_RUN};
    EXPECT_TEXT(contract_list(contract, &scan), "a=1 b=3");
    EXPECT(contract_get(contract, SHARD(1), ROW_RUN, TEXT("ab")) == NULL);
    contract_put(contract, SHARD(1), 1, ROW_RUN, TEXT("ab"), TEXT("again"));
    contract_flush(contract);
    EXPECT_TEXT(contract_list(contract, &scan), "a=1 ab=again b=3");
}

void
contract_steps_of_a_batch_take_effect_in_their_order(struct contract *contract)
{
    contract_put(contract, SHARD(1), 1, ROW_PENDING, TEXT("a"), TEXT("old"));
    contract_flush(contract);
    struct batch *batch = batch_new(contract->arena, SHARD(1), 1);
    batch_put(batch, ROW_PENDING, TEXT("b"), TEXT("swept"));
    batch_delete_range(batch, ROW_PENDING, TEXT("a"), TEXT("z"));
    batch_put(batch, ROW_PENDING, TEXT("a"), TEXT("1"));
    batch_put(batch, ROW_PENDING, TEXT("a"), TEXT("2"));
    batch_put(batch, ROW_PENDING, TEXT("c"), TEXT("3"));
    batch_delete(batch, ROW_PENDING, TEXT("c"));
    batch_delete(batch, ROW_PENDING, TEXT("d"));
    batch_put(batch, ROW_PENDING, TEXT("d"), TEXT("4"));
    contract_commit(contract, batch, 1);
    contract_flush(contract);
    struct scan scan = {.partition = SHARD(1), .kind = ROW_PENDING};
    EXPECT_TEXT(contract_list(contract, &scan), "a=2 d=4");

    /* A range that was emptied, filled and emptied again; small rows and large ones. */
    struct slice large = slice_of(arena_zalloc(contract->arena, 1, 5000), 5000);
    batch = batch_new(contract->arena, SHARD(1), 1);
    batch_put(batch, ROW_VISIBLE, TEXT("a"), TEXT("old"));
    contract_commit(contract, batch, 1);
    batch = batch_new(contract->arena, SHARD(1), 1);
    batch_delete_range(batch, ROW_VISIBLE, TEXT("a"), TEXT("z"));
    batch_put(batch, ROW_VISIBLE, TEXT("b"), TEXT("1"));
    batch_put(batch, ROW_VISIBLE, TEXT("c"), large);
    batch_delete_range(batch, ROW_VISIBLE, TEXT("a"), TEXT("z"));
    batch_put(batch, ROW_VISIBLE, TEXT("d"), large);
    batch_put(batch, ROW_VISIBLE, TEXT("e"), TEXT("2"));
    contract_commit(contract, batch, 1);
    contract_flush(contract);
    scan = (struct scan){.partition = SHARD(1), .kind = ROW_VISIBLE};
    struct rows rows;
    EXPECT_OK(store_scan(contract->store, &scan, contract->arena, &rows));
    EXPECT_EQ(rows.count, 2);
    EXPECT(slice_equal(rows.row[0].key, TEXT("d")) && slice_equal(rows.row[1].key, TEXT("e")));
}

/* Keys in the order that must come out, with every boundary byte. */
static const struct slice odd_keys[] = {
    SLICE_LITERAL(""),          SLICE_LITERAL("\0"),       SLICE_LITERAL("\0\0"),
    SLICE_LITERAL("\0\1"),      SLICE_LITERAL("\0\xff"),   SLICE_LITERAL("\1"),
    SLICE_LITERAL("a"),         SLICE_LITERAL("a\0"),      SLICE_LITERAL("a\xff"),
    SLICE_LITERAL("a\xff\xff"), SLICE_LITERAL("b"),        SLICE_LITERAL("\x7f"),
    SLICE_LITERAL("\x80"),      SLICE_LITERAL("\xfe\xff"), SLICE_LITERAL("\xff"),
    SLICE_LITERAL("\xff\0"),    SLICE_LITERAL("\xff\xff"), SLICE_LITERAL("\xff\xff\xff\xff\xff"),
};

static void
expect_odd_keys(struct contract *contract, struct partition partition, enum row_kind kind,
                bool is_backward)
{
    struct scan scan = {.partition = partition, .kind = kind, .is_backward = is_backward};
    struct rows rows;
    EXPECT_OK(store_scan(contract->store, &scan, contract->arena, &rows));
    size_t count = array_length(odd_keys);
    EXPECT_EQ(rows.count, count);
    for (size_t i = 0; i < count; i++) {
        EXPECT(slice_equal(rows.row[i].key, odd_keys[is_backward ? count - 1 - i : i]));
        EXPECT(slice_equal(rows.row[i].key, rows.row[i].value));
    }
}

void
contract_keys_of_any_bytes_come_in_order(struct contract *contract)
{
    size_t count = array_length(odd_keys);
    struct batch *batch = batch_new(contract->arena, SHARD(UINT32_MAX), 1);
    for (size_t i = 0; i < count; i++) {
        struct slice key = odd_keys[i * 7 % count]; /* not in order: 7 and 18 share no divisor */
        batch_put(batch, ROW_RUN, key, key);
        batch_put(batch, ROW_DEAD_LETTER, key, key);
    }
    contract_commit(contract, batch, 0);
    contract_flush(contract);
    expect_odd_keys(contract, SHARD(UINT32_MAX), ROW_RUN, false);
    expect_odd_keys(contract, SHARD(UINT32_MAX), ROW_DEAD_LETTER, false);
    expect_odd_keys(contract, SHARD(UINT32_MAX), ROW_DEAD_LETTER, true);
}

/* Puts the rows "a" and "\xff" of every kind of shard rows into some shards. */
static void
fill_neighbours(struct contract *contract)
{
    static const uint32_t numbers[] = {0, 1, 2, 255, 256, UINT32_MAX};
    for (size_t i = 0; i < array_length(numbers); i++) {
        struct batch *batch = batch_new(contract->arena, SHARD(numbers[i]), 1);
        for (enum row_kind kind = 1; kind < ROW_KIND_END; kind++) {
            if (row_traits(kind)->partition != PARTITION_SHARD)
                continue;
            const char *value = arena_format(contract->arena, "%u/%d", numbers[i], (int)kind);
            batch_put(batch, kind, TEXT("a"), slice_text(value));
            batch_put(batch, kind, TEXT("\xff"), slice_text(value));
        }
        contract_commit(contract, batch, 0);
    }
    contract_flush(contract);
}

void
contract_a_scan_stays_inside_its_kind_and_partition(struct contract *contract)
{
    static const uint32_t numbers[] = {0, 1, 2, 255, 256, UINT32_MAX};
    fill_neighbours(contract);
    for (size_t i = 0; i < array_length(numbers); i++)
        for (enum row_kind kind = ROW_SHARD; kind <= ROW_DEAD_LETTER; kind++) {
            struct scan scan = {.partition = SHARD(numbers[i]), .kind = kind};
            const char *wanted = arena_format(contract->arena, "a=%u/%d \xff=%u/%d", numbers[i],
                                              (int)kind, numbers[i], (int)kind);
            EXPECT_TEXT(contract_list(contract, &scan), wanted);
            if (row_traits(kind)->access != ROW_ORDERED)
                continue;
            scan.is_backward = true;
            wanted = arena_format(contract->arena, "\xff=%u/%d a=%u/%d", numbers[i], (int)kind,
                                  numbers[i], (int)kind);
            EXPECT_TEXT(contract_list(contract, &scan), wanted);
        }
    struct scan nobody = {.partition = SHARD(3), .kind = ROW_DEAD_LETTER};
    EXPECT_TEXT(contract_list(contract, &nobody), "");
    nobody.is_backward = true;
    EXPECT_TEXT(contract_list(contract, &nobody), "");
}

static void
fill_letters(struct contract *contract, enum row_kind kind)
{
    struct batch *batch = batch_new(contract->arena, SHARD(1), 1);
    for (const char *letter = "abcdef"; *letter != '\0'; letter++)
        batch_put(batch, kind, slice_of(letter, 1), slice_of(letter, 1));
    contract_commit(contract, batch, contract_guard(contract, SHARD(1)));
    contract_flush(contract);
}

void
contract_a_scan_obeys_from_and_to(struct contract *contract)
{
    fill_letters(contract, ROW_RUN);
    struct scan scan = {.partition = SHARD(1), .kind = ROW_RUN};
    scan.from = TEXT("b");
    scan.to = TEXT("d");
    EXPECT_TEXT(contract_list(contract, &scan), "b=b c=c");
    scan.from = TEXT("bb");
    scan.to = TEXT("dd");
    EXPECT_TEXT(contract_list(contract, &scan), "c=c d=d");
    scan.from = TEXT("e");
    scan.to = TEXT("");
    EXPECT_TEXT(contract_list(contract, &scan), "e=e f=f");
    scan.from = TEXT("");
    scan.to = TEXT("b");
    EXPECT_TEXT(contract_list(contract, &scan), "a=a");
    scan.from = TEXT("c");
    scan.to = TEXT("c");
    EXPECT_TEXT(contract_list(contract, &scan), "");
    scan.to = TEXT("a");
    EXPECT_TEXT(contract_list(contract, &scan), "");
    scan.from = TEXT("g");
    scan.to = TEXT("");
    EXPECT_TEXT(contract_list(contract, &scan), "");
}

void
contract_a_scan_backwards_is_a_scan_turned_round(struct contract *contract)
{
    fill_letters(contract, ROW_DEAD_LETTER);
    struct scan scan = {.partition = SHARD(1), .kind = ROW_DEAD_LETTER, .is_backward = true};
    EXPECT_TEXT(contract_list(contract, &scan), "f=f e=e d=d c=c b=b a=a");
    scan.to = TEXT("d");
    EXPECT_TEXT(contract_list(contract, &scan), "c=c b=b a=a");
    scan.to = TEXT("dd");
    scan.from = TEXT("b");
    EXPECT_TEXT(contract_list(contract, &scan), "d=d c=c b=b");
    scan.rows_max = 1;
    EXPECT_TEXT(contract_list(contract, &scan), "d=d +");
    scan.to = TEXT("d");
    EXPECT_TEXT(contract_list(contract, &scan), "c=c +");
    scan.to = TEXT("c");
    EXPECT_TEXT(contract_list(contract, &scan), "b=b");
    scan.to = TEXT("b");
    EXPECT_TEXT(contract_list(contract, &scan), "");
}

/* Reads a kind in pages and expects rows 0 .. count - 1 once each, in order. */
static void
expect_pages(struct contract *contract, struct scan scan, size_t count)
{
    size_t seen = 0;
    struct rows rows = {.has_more = true};
    while (rows.has_more) {
        EXPECT_OK(store_scan(contract->store, &scan, contract->arena, &rows));
        EXPECT(rows.count > 0);
        size_t bytes = 0;
        for (size_t i = 0; i < rows.count; i++, seen++) {
            uint64_t number = scan.is_backward ? count - 1 - seen : seen;
            EXPECT(slice_equal(rows.row[i].key, contract_key(contract, number)));
            EXPECT_EQ(rows.row[i].value.length, number % 50);
            bytes += rows.row[i].key.length + rows.row[i].value.length;
        }
        EXPECT(scan.rows_max == 0 || rows.count <= scan.rows_max);
        EXPECT(scan.bytes_max == 0 || bytes <= scan.bytes_max || rows.count == 1);
        struct slice last = rows.row[rows.count - 1].key;
        if (scan.is_backward)
            scan.to = last;
        else
            scan.from = key_after(last, contract->arena);
    }
    EXPECT_EQ(seen, count);
}

void
contract_pages_by_rows_or_bytes_add_up_to_the_whole(struct contract *contract)
{
    uint8_t bytes[50] = {0};
    struct batch *batch = batch_new(contract->arena, SHARD(1), 1);
    for (uint64_t i = 0; i < 200; i++)
        batch_put(batch, ROW_DEAD_LETTER, contract_key(contract, i), slice_of(bytes, i % 50));
    contract_commit(contract, batch, 0);
    contract_flush(contract);
    static const size_t limits[] = {0, 1, 2, 7, 100, 199, 200, 201};
    for (size_t i = 0; i < array_length(limits); i++)
        for (int is_backward = 0; is_backward <= 1; is_backward++) {
            struct scan scan = {.partition = SHARD(1), .kind = ROW_DEAD_LETTER};
            scan.is_backward = is_backward;
            scan.rows_max = limits[i];
            expect_pages(contract, scan, 200);
            scan.bytes_max = limits[i] * 10;
            expect_pages(contract, scan, 200);
            scan.rows_max = 0;
            expect_pages(contract, scan, 200);
        }
}

void
contract_a_range_delete_takes_exactly_its_range(struct contract *contract)
{
    fill_letters(contract, ROW_PENDING);
    fill_letters(contract, ROW_HISTORY);
    contract_put(contract, SHARD(2), 1, ROW_PENDING, TEXT("c"), TEXT("other shard"));
    contract_flush(contract);
    struct batch *batch = batch_new(contract->arena, SHARD(1), 1);
    batch_delete_range(batch, ROW_PENDING, TEXT("b"), TEXT("d"));
    batch_delete_range(batch, ROW_PENDING, TEXT("e"), TEXT("e"));
    batch_delete_range(batch, ROW_HISTORY, TEXT("dd"), TEXT(""));
    contract_commit(contract, batch, 1);
    struct scan pending = {.partition = SHARD(1), .kind = ROW_PENDING};
    struct scan history = {.partition = SHARD(1), .kind = ROW_HISTORY};
    EXPECT_TEXT(contract_list(contract, &pending), "a=a d=d e=e f=f");
    EXPECT_TEXT(contract_list(contract, &history), "a=a b=b c=c d=d");
    contract_flush(contract);
    EXPECT_TEXT(contract_list(contract, &pending), "a=a d=d e=e f=f");
    EXPECT_TEXT(contract_list(contract, &history), "a=a b=b c=c d=d");
    history.is_backward = true;
    EXPECT_TEXT(contract_list(contract, &history), "d=d c=c b=b a=a");
    EXPECT(contract_get(contract, SHARD(1), ROW_PENDING, TEXT("c")) == NULL);
    EXPECT_TEXT(contract_get(contract, SHARD(2), ROW_PENDING, TEXT("c")), "other shard");
    EXPECT(contract_get(contract, SHARD(1), ROW_DEAD_LETTER, TEXT("a")) == NULL);
}

void
contract_rows_put_once_are_deleted_once(struct contract *contract)
{
    struct batch *batch = batch_new(contract->arena, SHARD(1), 1);
    for (uint64_t i = 0; i < 100; i++) {
        batch_put(batch, ROW_TRANSFER, contract_key(contract, i), TEXT("t"));
        batch_put(batch, ROW_TIMER, contract_key(contract, i), TEXT("t"));
    }
    contract_commit(contract, batch, 0);
    contract_flush(contract);
    batch = batch_new(contract->arena, SHARD(1), 1);
    for (uint64_t i = 0; i < 100; i++)
        if (i != 50)
            batch_delete(batch, ROW_TRANSFER, contract_key(contract, i));
    contract_commit(contract, batch, 1);
    contract_flush(contract);
    struct scan scan = {.partition = SHARD(1), .kind = ROW_TRANSFER};
    struct rows rows;
    EXPECT_OK(store_scan(contract->store, &scan, contract->arena, &rows));
    EXPECT_EQ(rows.count, 1);
    EXPECT(slice_equal(rows.row[0].key, contract_key(contract, 50)));
    scan.kind = ROW_TIMER;
    EXPECT_OK(store_scan(contract->store, &scan, contract->arena, &rows));
    EXPECT_EQ(rows.count, 100);
    contract_reopen(contract);
    EXPECT_OK(store_scan(contract->store, &scan, contract->arena, &rows));
    EXPECT_EQ(rows.count, 100);
}

void
contract_a_value_may_be_empty_or_eight_mebibytes(struct contract *contract)
{
    size_t size = 8 << 20;
    uint8_t *bytes = arena_alloc(contract->arena, size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 31 + (i >> 12));
    contract_put(contract, SHARD(1), 1, ROW_RUN, TEXT("big"), slice_of(bytes, size));
    contract_put(contract, SHARD(1), 1, ROW_RUN, TEXT("none"), TEXT(""));
    contract_flush(contract);
    for (int i = 0; i < 2; i++) {
        struct scan scan = {.partition = SHARD(1), .kind = ROW_RUN, .bytes_max = 100};
        struct rows rows;
        EXPECT_OK(store_scan(contract->store, &scan, contract->arena, &rows));
        EXPECT_EQ(rows.count, 1);
        EXPECT(rows.has_more);
        EXPECT(slice_equal(rows.row[0].value, slice_of(bytes, size)));
        EXPECT_TEXT(contract_get(contract, SHARD(1), ROW_RUN, TEXT("none")), "");
        contract_reopen(contract);
    }
}
