/* branches_test.c - all histories of a run: how they grow, which one is current, their record. */
#include "base/test.h"
#include "engine/test/history_sample.h"
#include "wire/message.h"

/* The run of the worked example with conflict, before it: (2,1)(3,2). */
static struct run_branches
begin_example(struct arena *arena)
{
    struct history_branch root = sample_branch('a');
    return branches_begin(&root, VERSIONS({2, 1}, {3, 2}), arena);
}

ARENA_TEST(branches, the_history_with_the_highest_version_is_current)
{
    struct run_branches branches = begin_example(arena);
    branches = branches_append(&branches, 0, ITEM(20, 2), arena); /* long, and of a low version */
    EXPECT_TEXT(sample_branches(&branches, arena), "(2,1)(20,2)");
    branches =
        branches_fork(&branches, 0, ITEM(3, 2), sample_branch('c').branch, ITEM(4, 3), arena);
    EXPECT_TEXT(sample_branches(&branches, arena), "(2,1)(3,2)(4,3) | (2,1)(20,2)");
    branches = branches_append(&branches, 1, ITEM(21, 2), arena);
    EXPECT_TEXT(sample_branches(&branches, arena), "(2,1)(3,2)(4,3) | (2,1)(21,2)");
    branches = branches_append(&branches, 1, ITEM(22, 12), arena);
    EXPECT_TEXT(sample_branches(&branches, arena), "(2,1)(21,2)(22,12) | (2,1)(3,2)(4,3)");
}

ARENA_TEST(branches, a_fork_stands_on_the_nodes_of_its_base)
{
    struct run_branches branches = begin_example(arena);
    branches = branches_append(&branches, 0, ITEM(5, 2), arena);
    branches =
        branches_fork(&branches, 0, ITEM(3, 2), sample_branch('c').branch, ITEM(6, 3), arena);
    branches =
        branches_fork(&branches, 0, ITEM(5, 3), sample_branch('d').branch, ITEM(7, 4), arena);
    EXPECT_TEXT(sample_branches(&branches, arena),
                "(2,1)(3,2)(5,3)(7,4) | (2,1)(5,2) | (2,1)(3,2)(6,3)");
    const struct history_lineage *lineage = &branches.branch[0].lineage;
    static const char holder[] = "?aaaccdd";
    for (int64_t id = 1; id <= 7; id++)
        EXPECT_EQ(history_lineage_holder(lineage, id).branch.bytes[0], holder[id]);
}

ARENA_TEST(branches, an_event_is_found_on_the_history_that_has_it)
{
    struct run_branches branches = begin_example(arena);
    branches = branches_append(&branches, 0, ITEM(4, 2), arena);
    branches =
        branches_fork(&branches, 0, ITEM(3, 2), sample_branch('c').branch, ITEM(4, 3), arena);
    EXPECT_EQ(branches_find_event(&branches, ITEM(4, 3)), 0);
    EXPECT_EQ(branches_find_event(&branches, ITEM(4, 2)), 1); /* the seed's task A: not current */
    EXPECT_EQ(branches_find_event(&branches, ITEM(3, 2)), 0);
    EXPECT_EQ(branches_find_event(&branches, ITEM(5, 3)), 2);
}

ARENA_TEST(branches, the_record_of_a_run_keeps_them)
{
    struct run_branches branches = begin_example(arena);
    branches = branches_append(&branches, 0, ITEM(4, 2), arena);
    branches =
        branches_fork(&branches, 0, ITEM(3, 2), sample_branch('c').branch, ITEM(6, 3), arena);
    branches =
        branches_fork(&branches, 0, ITEM(5, 3), sample_branch('d').branch, ITEM(7, 4), arena);
    STORED(RunRecord) *core = STORED_NEW(arena, run_record);
    branches_store(&branches, core, arena);
    struct slice bytes = message_encode(arena, &core->base);
    STORED(RunRecord) *again = NULL;
    EXPECT_OK(message_decode(arena, STORED_TYPE(run_record), bytes, &again));
    struct run_branches read = branches_read(again, arena);
    branches_check(&read);
    EXPECT_TEXT(sample_branches(&read, arena), sample_branches(&branches, arena));
    for (size_t i = 0; i < read.count; i++) {
        const struct history_lineage *one = &read.branch[i].lineage,
                                     *other = &branches.branch[i].lineage;
        EXPECT_EQ(one->count, other->count);
        EXPECT(memcmp(&one->tree, &other->tree, sizeof one->tree) == 0);
        EXPECT(memcmp(one->spans, other->spans, one->count * sizeof *one->spans) == 0);
    }
}

ARENA_TEST(branches, they_survive_the_way_between_owners)
{
    struct run_branches branches = begin_example(arena);
    branches = branches_append(&branches, 0, ITEM(4, 2), arena);
    branches =
        branches_fork(&branches, 0, ITEM(3, 2), sample_branch('c').branch, ITEM(6, 3), arena);
    INTERNAL(BranchesOfRun) message = INTERNAL_VALUE(BRANCHES_OF_RUN__INIT), *again = NULL;
    branches_to_message(&branches, arena, &message);
    struct slice bytes = message_encode(arena, &message.base);
    EXPECT_OK(message_decode(arena, INTERNAL_TYPE(branches_of_run), bytes, &again));
    struct run_branches read = branches_from_message(again, arena);
    branches_check(&read);
    EXPECT_TEXT(sample_branches(&read, arena), "(2,1)(3,2)(6,3) | (2,1)(4,2)");
    for (size_t i = 0; i < read.count; i++)
        EXPECT(memcmp(read.branch[i].lineage.spans, branches.branch[i].lineage.spans,
                      read.branch[i].lineage.count * sizeof(struct history_span)) == 0);
}

/* A run that never met another cluster's events: the record is as it always was. */
ARENA_TEST(branches, a_record_without_conflicts_has_one_history)
{
    struct run_branches branches = begin_example(arena);
    STORED(RunRecord) *core = STORED_NEW(arena, run_record);
    branches_store(&branches, core, arena);
    EXPECT(core->n_ancestors == 0 && core->n_side_branches == 0 && core->n_versions == 2);
    struct run_branches read = branches_read(core, arena);
    EXPECT_TEXT(sample_branches(&read, arena), "(2,1)(3,2)");
}

static void
expect_range(const struct run_branches *branches, const struct version_item *after,
             const struct version_item *before, const char *expected)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct branch_range range;
    const char *text = "none";
    if (branches_find_range(branches, after, before, &range))
        text = arena_format(arena, "%s: %lld to %lld",
                            sample_text(branches->branch[range.branch].versions, arena),
                            (long long)range.from_event_id, (long long)range.to_event_id);
    EXPECT_TEXT(text, expected);
}

/* The run of Cadence's test of raw history: 14 events of version 21, then 15 to 20 of version 30,
 * and 15 and 16 of version 31 with 17 of version 32. */
ARENA_TEST(branches, a_range_is_read_from_where_both_ends_part)
{
    struct history_branch root = sample_branch('a');
    struct run_branches branches = branches_begin(&root, VERSIONS({14, 21}), arena);
    branches = branches_append(&branches, 0, ITEM(20, 30), arena);
    branches =
        branches_fork(&branches, 0, ITEM(14, 21), sample_branch('b').branch, ITEM(16, 31), arena);
    branches = branches_append(&branches, 0, ITEM(17, 32), arena);
    struct version_item fork = {14, 21}, lost = {20, 30}, lost_middle = {17, 30}, last = {17, 32};
    struct version_item zero = {0, 21}, behind = {18, 32}, unknown = {15, 33};
    expect_range(&branches, &fork, &lost, "(14,21)(20,30): 15 to 20");
    expect_range(&branches, &lost_middle, &last, "(14,21)(16,31)(17,32): 15 to 17");
    expect_range(&branches, &fork, NULL, "(14,21)(16,31)(17,32): 15 to 18");
    expect_range(&branches, NULL, &last, "(14,21)(16,31)(17,32): 1 to 17");
    expect_range(&branches, NULL, NULL, "(14,21)(16,31)(17,32): 1 to 18");
    expect_range(&branches, &zero, &behind, "(14,21)(16,31)(17,32): 1 to 18");
    expect_range(&branches, &last, &behind, "(14,21)(16,31)(17,32): 18 to 18");
    expect_range(&branches, &lost, &fork, "(14,21)(16,31)(17,32): 14 to 14");
    expect_range(&branches, &unknown, NULL, "none");
    expect_range(&branches, NULL, &unknown, "none");
}
