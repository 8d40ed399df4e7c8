/* contract_walk.c - walks over all partitions, and partitions whose names look alike. */
#include "base/test.h"
#include "store/key.h"
#include "store/test/contract.h"

#define SHARD(n) PARTITION_OF_SHARD(n)

static struct partition
task_list(struct slice name)
{
    return (struct partition){.kind = PARTITION_TASK_LIST, .name = name};
}

/* Walks a kind in pages and lists what it met, "shard:key". */
static const char *
walk_list(struct contract *contract, enum row_kind kind, size_t rows_max)
{
    const char *list = "";
    struct walk_row after;
    struct walk_rows rows = {.has_more = true};
    bool is_first = true;
    while (rows.has_more) {
        EXPECT_OK(store_walk(contract->store, kind, is_first ? NULL : &after, rows_max,
                             contract->arena, &rows));
        EXPECT(rows.count <= rows_max && (rows.count > 0 || !rows.has_more));
        for (size_t i = 0; i < rows.count; i++) {
            after = rows.row[i];
            list = arena_format(contract->arena, "%s%s:%.*s ", list,
                                partition_name(after.partition, contract->arena),
                                SLICE_ARG(after.key));
        }
        is_first = false;
    }
    return list;
}

void
contract_a_walk_meets_every_partition_once(struct contract *contract)
{
    contract_put(contract, PARTITION_OF_DOMAINS, 4, ROW_DOMAIN, TEXT("d"), TEXT(""));
    contract_put(contract, SHARD(300), 7, ROW_SHARD, TEXT("x"), TEXT(""));
    contract_put(contract, SHARD(2), 9, ROW_SHARD, TEXT("y"), TEXT(""));
    contract_put(contract, SHARD(2), 9, ROW_SHARD, TEXT("a"), TEXT(""));
    contract_put(contract, SHARD(2), 9, ROW_RUN, TEXT("not walked"), TEXT(""));
    contract_put(contract, SHARD(1), 1, ROW_HISTORY, TEXT("not this"), TEXT(""));
    contract_put(contract, task_list(TEXT("q")), 5, ROW_TASK_LIST, TEXT("t"), TEXT(""));
    contract_put(contract, task_list(TEXT("")), 6, ROW_TASK, TEXT("t"), TEXT(""));
    contract_flush(contract);
    for (size_t rows_max = 1; rows_max < 5; rows_max++) {
        EXPECT_TEXT(walk_list(contract, ROW_SHARD, rows_max), "shard 2:a shard 2:y shard 300:x ");
        EXPECT_TEXT(walk_list(contract, ROW_TASK_LIST, rows_max), "task list q:t ");
        EXPECT_TEXT(walk_list(contract, ROW_DEAD_LETTER, rows_max), "");
    }
}

void
contract_task_lists_with_names_alike_do_not_mix(struct contract *contract)
{
    static const struct slice names[] = {
        SLICE_LITERAL(""),      SLICE_LITERAL("a"),    SLICE_LITERAL("a\0"),
        SLICE_LITERAL("a\0\1"), SLICE_LITERAL("ab"),   SLICE_LITERAL("a\xff"),
        SLICE_LITERAL("\0"),    SLICE_LITERAL("\xff"), SLICE_LITERAL("a/b c\n"),
    };
    for (size_t i = 0; i < array_length(names); i++) {
        const char *value = arena_format(contract->arena, "%zu", i);
        contract_put(contract, task_list(names[i]), i + 1, ROW_TASK, TEXT("t"), slice_text(value));
    }
    contract_flush(contract);
    for (size_t i = 0; i < array_length(names); i++) {
        struct scan scan = {.partition = task_list(names[i]), .kind = ROW_TASK};
        EXPECT_TEXT(contract_list(contract, &scan), arena_format(contract->arena, "t=%zu", i));
        scan.is_backward = true;
        EXPECT_TEXT(contract_list(contract, &scan), arena_format(contract->arena, "t=%zu", i));
        EXPECT_EQ(contract_guard(contract, task_list(names[i])), i + 1);
    }
    struct batch *batch = batch_new(contract->arena, task_list(names[1]), 2);
    batch_delete_range(batch, ROW_TASK, TEXT(""), TEXT(""));
    contract_commit(contract, batch, 2);
    contract_flush(contract);
    for (size_t i = 0; i < array_length(names); i++)
        EXPECT((contract_get(contract, task_list(names[i]), ROW_TASK, TEXT("t")) == NULL) ==
               (i == 1));
}
