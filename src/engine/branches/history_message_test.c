/* history_message_test.c - lineages and pages of histories survive the way between owners. */
#include "engine/branches/history_message.h"

#include "base/test.h"
#include "engine/test/history_sample.h"
#include "wire/message.h"

ARENA_TEST(history_message, a_lineage_survives_the_way)
{
    struct history_branch one = sample_branch('A'), other = sample_branch('B');
    struct history_lineage root = history_lineage_root(&one, arena);
    struct history_lineage fork = history_lineage_fork(&root, 4, other.branch, arena);
    struct slice bytes = message_encode(arena, &history_lineage_to_message(&fork, arena)->base);
    INTERNAL(Lineage) *message = NULL;
    EXPECT_OK(message_decode(arena, INTERNAL_TYPE(lineage), bytes, &message));
    struct history_lineage read = history_lineage_from_message(message, arena);
    EXPECT_EQ(read.count, 2);
    EXPECT(memcmp(&read.tree, &fork.tree, sizeof fork.tree) == 0);
    EXPECT(memcmp(read.spans, fork.spans, 2 * sizeof *fork.spans) == 0);
}

ARENA_TEST(history_message, a_page_survives_the_way)
{
    struct history_node nodes[] = {
        {1, 3, 4, 5, slice_text("\xff one")},
        {3, 9, 6, UINT64_MAX, {0}},
    };
    struct history_page page = {nodes, 2, 11};
    struct slice bytes = message_encode(arena, &history_page_to_message(&page, arena)->base);
    INTERNAL(HistoryPage) *message = NULL;
    EXPECT_OK(message_decode(arena, INTERNAL_TYPE(history_page), bytes, &message));
    struct history_page read = history_page_from_message(message, arena);
    EXPECT_EQ(read.count, 2);
    EXPECT_EQ(read.next_event_id, 11);
    for (size_t i = 0; i < read.count; i++) {
        EXPECT_EQ(read.node[i].first_event_id, nodes[i].first_event_id);
        EXPECT_EQ(read.node[i].next_event_id, nodes[i].next_event_id);
        EXPECT_EQ(read.node[i].range_id, nodes[i].range_id);
        EXPECT_EQ(read.node[i].sequence, nodes[i].sequence);
        EXPECT(slice_equal(read.node[i].events, nodes[i].events));
    }
}
