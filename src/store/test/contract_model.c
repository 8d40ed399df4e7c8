/* contract_model.c - random batches and reads, on the store and on a model too simple to be wrong.
 *
 * The keys are all strings of up to three of the bytes 00 01 7f ff, in order; the model is an array
 * of values by partition, kind and number of the key. Rows that are put once are put once. */
#include "base/random.h"
#include "base/test.h"
#include "store/key.h"
#include "store/test/contract.h"

#define KEYS       85 /* 1 + 4 + 16 + 64 */
#define KINDS      4
#define PARTITIONS 4
#define ACTS       400

struct model {
    struct contract *contract;
    struct random random;
    struct slice keys[KEYS];
    uint64_t guards[PARTITIONS];
    uint64_t values[PARTITIONS][KINDS][KEYS]; /* 0: no such row */
    bool was_put[PARTITIONS][KINDS][KEYS];
    uint64_t value_newest;
};

static const enum row_kind shard_kinds[KINDS] = {ROW_RUN, ROW_DEAD_LETTER, ROW_TRANSFER,
                                                 ROW_HISTORY};
static const enum row_kind list_kinds[KINDS] = {ROW_TASK_LIST, ROW_TASK, ROW_TASK_LIST, ROW_TASK};

static struct partition
model_partition(size_t index)
{
    if (index < 2)
        return PARTITION_OF_SHARD((uint32_t)index + 255);
    struct slice name = index == 2 ? TEXT("a") : TEXT("a\0b");
    return (struct partition){.kind = PARTITION_TASK_LIST, .name = name};
}

/* Task lists have two kinds only. */
static size_t
model_kinds(size_t partition)
{
    return partition < 2 ? KINDS : 2;
}

static enum row_kind
model_kind(size_t partition, size_t kind)
{
    return partition < 2 ? shard_kinds[kind] : list_kinds[kind];
}

static size_t
below(struct model *model, size_t bound)
{
    return (size_t)random_below(&model->random, bound);
}

static void
add_keys(struct model *model, size_t *count, const uint8_t *bytes, size_t length)
{
    model->keys[(*count)++] = arena_slice(model->contract->arena, slice_of(bytes, length));
    static const uint8_t alphabet[] = {0x00, 0x01, 0x7f, 0xff};
    uint8_t longer[3];
    for (size_t i = 0; length < 3 && i < sizeof alphabet; i++) {
        memcpy(longer, bytes, length);
        longer[length] = alphabet[i];
        add_keys(model, count, longer, length + 1);
    }
}

/* The value's number, then zeros: lengths differ, so limits by bytes do too. */
static struct slice
value_bytes(struct model *model, uint64_t value)
{
    size_t length = 8 + value % 40;
    uint8_t *bytes = arena_zalloc(model->contract->arena, 1, length);
    memcpy(bytes, &value, 8);
    return slice_of(bytes, length);
}

static void
expect_value(struct model *model, struct slice found, uint64_t value)
{
    EXPECT(value != 0 && slice_equal(found, value_bytes(model, value)));
}

/* ---- writing ---- */

static void
add_put(struct model *model, struct batch *batch, size_t partition, size_t kind)
{
    size_t key = below(model, KEYS);
    const struct row_traits *traits = row_traits(model_kind(partition, kind));
    if (traits->life != ROW_MANY && model->was_put[partition][kind][key])
        return;
    uint64_t value = ++model->value_newest;
    batch_put(batch, model_kind(partition, kind), model->keys[key], value_bytes(model, value));
    model->values[partition][kind][key] = value;
    model->was_put[partition][kind][key] = true;
}

static void
add_delete(struct model *model, struct batch *batch, size_t partition, size_t kind)
{
    size_t key = below(model, KEYS);
    const struct row_traits *traits = row_traits(model_kind(partition, kind));
    if (traits->life == ROW_ONCE_RANGE)
        return;
    if (traits->life == ROW_ONCE && model->values[partition][kind][key] == 0)
        return;
    batch_delete(batch, model_kind(partition, kind), model->keys[key]);
    model->values[partition][kind][key] = 0;
}

static void
add_delete_range(struct model *model, struct batch *batch, size_t partition, size_t kind)
{
    if (row_traits(model_kind(partition, kind))->life == ROW_ONCE)
        return;
    size_t from = below(model, KEYS);
    size_t to = from + below(model, 8);
    to = to > KEYS ? KEYS : to;
    if (to == 0)
        return; /* an empty `to` is the end of the kind */
    batch_delete_range(batch, model_kind(partition, kind), model->keys[from],
                       to == KEYS ? TEXT("") : model->keys[to]);
    for (size_t key = from; key < to; key++)
        model->values[partition][kind][key] = 0;
}

/* Writes nothing, since the guard is another. */
static void
act_commit_stale(struct model *model)
{
    struct contract *contract = model->contract;
    size_t partition = below(model, PARTITIONS);
    uint64_t guard = model->guards[partition];
    uint64_t stale = guard == 0 || below(model, 2) == 0 ? guard + 1 : guard - 1;
    struct batch *batch = batch_new(contract->arena, model_partition(partition), guard + 1);
    batch_put(batch, model_kind(partition, 0), model->keys[below(model, KEYS)], TEXT("stale"));
    EXPECT_KIND(store_commit(contract->store, batch, stale, contract->arena), ERR_FENCED);
}

static void
act_commit(struct model *model)
{
    size_t partition = below(model, PARTITIONS);
    uint64_t guard = model->guards[partition];
    uint64_t next = guard == 0 || below(model, 4) == 0 ? guard + 1 : guard;
    struct batch *batch = batch_new(model->contract->arena, model_partition(partition), next);
    for (size_t steps = below(model, 12); steps > 0; steps--) {
        size_t kind = below(model, model_kinds(partition));
        size_t chance = below(model, 10);
        if (chance < 6)
            add_put(model, batch, partition, kind);
        else if (chance < 9)
            add_delete(model, batch, partition, kind);
        else
            add_delete_range(model, batch, partition, kind);
    }
    contract_commit(model->contract, batch, guard);
    model->guards[partition] = next;
}

/* ---- reading ---- */

static void
act_get(struct model *model)
{
    size_t partition = below(model, PARTITIONS);
    size_t kind = below(model, model_kinds(partition));
    size_t key = below(model, KEYS);
    bool found;
    struct slice value;
    EXPECT_OK(store_get(model->contract->store, model_partition(partition),
                        model_kind(partition, kind), model->keys[key], model->contract->arena,
                        &found, &value));
    EXPECT_EQ(found, model->values[partition][kind][key] != 0);
    if (found)
        expect_value(model, value, model->values[partition][kind][key]);
    EXPECT_EQ(contract_guard(model->contract, model_partition(partition)),
              model->guards[partition]);
}

/* Expects the rows of values[from .. to - 1], in the scan's direction, up to its limits. */
static void
expect_scan(struct model *model, const struct scan *scan, const uint64_t *values, size_t from,
            size_t to)
{
    struct rows rows;
    EXPECT_OK(store_scan(model->contract->store, scan, model->contract->arena, &rows));
    size_t seen = 0, bytes = 0;
    bool is_cut = false;
    for (size_t i = from; i < to && !is_cut; i++) {
        size_t key = scan->is_backward ? to - 1 - (i - from) : i;
        if (values[key] == 0)
            continue;
        bytes += model->keys[key].length + 8 + values[key] % 40;
        is_cut = (scan->rows_max > 0 && seen == scan->rows_max) ||
                 (scan->bytes_max > 0 && seen > 0 && bytes > scan->bytes_max);
        if (is_cut)
            break;
        EXPECT(seen < rows.count);
        EXPECT(slice_equal(rows.row[seen].key, model->keys[key]));
        expect_value(model, rows.row[seen++].value, values[key]);
    }
    EXPECT_EQ(rows.count, seen);
    EXPECT_EQ(rows.has_more, is_cut);
}

static void
act_scan(struct model *model)
{
    size_t partition = below(model, PARTITIONS);
    size_t kind = below(model, model_kinds(partition));
    struct scan scan = {.partition = model_partition(partition)};
    scan.kind = model_kind(partition, kind);
    size_t from = below(model, 3) == 0 ? 0 : below(model, KEYS);
    size_t to = below(model, 3) == 0 ? KEYS : 1 + below(model, KEYS - 1);
    scan.from = model->keys[from];
    scan.to = to == KEYS ? TEXT("") : model->keys[to];
    scan.rows_max = below(model, 2) * below(model, 12);
    scan.bytes_max = below(model, 2) * below(model, 300);
    scan.is_backward = row_traits(scan.kind)->access == ROW_ORDERED && below(model, 2) == 0;
    expect_scan(model, &scan, model->values[partition][kind], from, to < from ? from : to);
}

/* Rows of a kind over the partitions that may have it, which are `first` and the one after it. */
static void
expect_walk(struct model *model, size_t first, size_t kind, size_t rows_max)
{
    struct walk_row after;
    struct walk_rows rows = {0};
    size_t seen = 0;
    bool is_first = true;
    for (size_t partition = first; partition < first + 2; partition++)
        for (size_t key = 0; key < KEYS; key++) {
            if (model->values[partition][kind][key] == 0)
                continue;
            if (seen == rows.count) {
                EXPECT_OK(store_walk(model->contract->store, model_kind(first, kind),
                                     is_first ? NULL : &after, rows_max, model->contract->arena,
                                     &rows));
                is_first = false;
                seen = 0;
                EXPECT(rows.count > 0);
            }
            after = rows.row[seen++];
            EXPECT(partition_equal(after.partition, model_partition(partition)));
            EXPECT(slice_equal(after.key, model->keys[key]));
            expect_value(model, after.value, model->values[partition][kind][key]);
        }
    EXPECT_EQ(seen, rows.count);
    EXPECT(!rows.has_more);
}

static void
expect_everything(struct model *model)
{
    for (size_t partition = 0; partition < PARTITIONS; partition++)
        for (size_t kind = 0; kind < model_kinds(partition); kind++) {
            struct scan scan = {.partition = model_partition(partition)};
            scan.kind = model_kind(partition, kind);
            expect_scan(model, &scan, model->values[partition][kind], 0, KEYS);
        }
    expect_walk(model, 0, 1, 1 + below(model, 20));
    expect_walk(model, 0, 3, 1 + below(model, 20));
    expect_walk(model, 2, 1, 1 + below(model, 20));
}

static void
model_act(struct model *model)
{
    size_t chance = below(model, 100);
    if (chance < 40)
        act_commit(model);
    else if (chance < 45)
        act_commit_stale(model);
    else if (chance < 65)
        act_get(model);
    else if (chance < 95)
        act_scan(model);
    else if (chance < 98)
        contract_flush(model->contract);
    else if (chance == 98)
        contract_reopen(model->contract);
    else
        expect_everything(model);
}

void
contract_random_batches_leave_what_a_naive_model_says(struct contract *contract)
{
    struct arena *arena = arena_new(0);
    for (int i = 0; i < test_seed_count(); i++) {
        struct model *model = arena_make(arena, struct model);
        model->contract = contract;
        random_seed(&model->random, test_seed(i));
        size_t count = 0;
        add_keys(model, &count, (const uint8_t *)"", 0);
        EXPECT_EQ(count, KEYS);
        for (int act = 0; act < ACTS; act++)
            model_act(model);
        expect_everything(model);
        if (i + 1 < test_seed_count()) {
            contract->engine->close(contract->engine->context, contract->store);
            contract->store = contract->engine->open(contract->engine->context);
        }
        arena_reset(arena);
    }
    arena_free(arena);
}
