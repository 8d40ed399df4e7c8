/* versions_test.c - version histories of one branch. */
#include "base/test.h"
#include "engine/test/history_sample.h"

/* Events 1 to 5 at the times 0 to 4; a failover from version 1 to 2 before the fourth. */
ARENA_TEST(versions, a_history_without_conflict_grows_as_the_table_says)
{
    static const int64_t version_at[] = {1, 1, 1, 2, 2};
    static const char *const expected[] = {"(1,1)", "(2,1)", "(3,1)", "(3,1)(4,2)", "(3,1)(5,2)"};
    struct versions versions = {0};
    for (int time = 0; time < 5; time++) {
        versions = versions_append(versions, ITEM(time + 1, version_at[time]), arena);
        EXPECT(versions_are_valid(versions));
        EXPECT_TEXT(sample_text(versions, arena), expected[time]);
    }
    for (int time = 0; time < 5; time++)
        EXPECT_EQ(versions_of_event(versions, time + 1), version_at[time]);
}

ARENA_TEST(versions, appending_leaves_the_list_before_as_it_was)
{
    struct versions before = VERSIONS({3, 1}, {5, 2});
    EXPECT_TEXT(sample_text(versions_append(before, ITEM(9, 2), arena), arena), "(3,1)(9,2)");
    EXPECT_TEXT(sample_text(versions_append(before, ITEM(9, 12), arena), arena),
                "(3,1)(5,2)(9,12)");
    EXPECT_TEXT(sample_text(before, arena), "(3,1)(5,2)");
}

TEST(versions, an_event_is_known_by_its_id_and_its_version)
{
    struct versions versions = VERSIONS({3, 1}, {5, 2});
    for (int64_t id = -1; id <= 7; id++) {
        EXPECT_EQ(versions_contain(versions, ITEM(id, 1)), id >= 1 && id <= 3);
        EXPECT_EQ(versions_contain(versions, ITEM(id, 2)), id == 4 || id == 5);
        EXPECT(!versions_contain(versions, ITEM(id, 0)) &&
               !versions_contain(versions, ITEM(id, 3)));
    }
}

ARENA_TEST(versions, a_list_is_cut_behind_any_of_its_events)
{
    struct versions versions = VERSIONS({3, 1}, {5, 2}, {9, 11});
    static const char *const expected[] = {"",
                                           "(1,1)",
                                           "(2,1)",
                                           "(3,1)",
                                           "(3,1)(4,2)",
                                           "(3,1)(5,2)",
                                           "(3,1)(5,2)(6,11)",
                                           "(3,1)(5,2)(7,11)",
                                           "(3,1)(5,2)(8,11)",
                                           "(3,1)(5,2)(9,11)"};
    for (int64_t id = 1; id <= 9; id++) {
        struct version_item event = {id, versions_of_event(versions, id)};
        EXPECT_TEXT(sample_text(versions_until(versions, event, arena), arena), expected[id]);
    }
}

TEST(versions, a_list_that_does_not_rise_is_not_valid)
{
    EXPECT(versions_are_valid(VERSIONS({1, 0})));
    EXPECT(versions_are_valid(VERSIONS({7, VERSION_NONE})));
    EXPECT(versions_are_valid(VERSIONS({2, 1}, {3, 2})));
    EXPECT(!versions_are_valid((struct versions){0}));
    EXPECT(!versions_are_valid(VERSIONS({0, 1})));
    EXPECT(!versions_are_valid(VERSIONS({1, -1})));
    EXPECT(!versions_are_valid(VERSIONS({2, 1}, {2, 2})));
    EXPECT(!versions_are_valid(VERSIONS({2, 2}, {3, 2})));
    EXPECT(!versions_are_valid(VERSIONS({2, 2}, {3, 1})));
}

static void
expect_common(struct versions one, struct versions other, int64_t id, int64_t version)
{
    struct version_item there = {0}, back = {0};
    EXPECT_EQ(versions_find_common(one, other, &there), id != 0);
    EXPECT_EQ(versions_find_common(other, one, &back), id != 0);
    if (id != 0)
        EXPECT(version_item_equal(there, ITEM(id, version)) && version_item_equal(there, back));
}

/* Data centers B and C of the worked example, and neighbours of it. */
TEST(versions, the_newest_common_event_is_found_from_either_side)
{
    struct versions base = VERSIONS({2, 1}, {3, 2});
    struct versions in_b = VERSIONS({2, 1}, {4, 2}), in_c = VERSIONS({2, 1}, {3, 2}, {4, 3});
    expect_common(in_b, in_c, 3, 2);
    expect_common(base, in_b, 3, 2);
    expect_common(base, in_c, 3, 2);
    expect_common(in_b, in_b, 4, 2);
    expect_common(VERSIONS({2, 1}), in_c, 2, 1);
    expect_common(VERSIONS({1, 1}, {9, 13}), in_c, 1, 1);
    expect_common(VERSIONS({2, 1}, {3, 2}, {9, 11}), VERSIONS({2, 1}, {8, 3}, {9, 12}), 2, 1);
    expect_common(VERSIONS({4, 5}), VERSIONS({4, 6}), 0, 0);
}

/* A version is written in one history alone: two that share one share what is before it. */
TEST(versions, lists_that_no_group_can_have_written_have_nothing_in_common)
{
    expect_common(VERSIONS({3, 1}, {5, 2}), VERSIONS({4, 1}, {6, 2}), 0, 0);
    expect_common(VERSIONS({3, 1}, {5, 3}), VERSIONS({3, 1}, {4, 2}, {6, 3}), 0, 0);
    expect_common(VERSIONS({5, 3}), VERSIONS({3, 1}, {6, 3}), 0, 0);
}

ARENA_TEST(versions, lists_pass_through_records_and_messages_unchanged)
{
    struct versions versions = VERSIONS({3, 1}, {5, 2}, {9, 11});
    struct versions read = versions_read(versions_store(versions, arena), versions.count, arena);
    struct versions received =
        versions_receive(versions_send(versions, arena), versions.count, arena);
    EXPECT(versions_equal(read, versions) && versions_equal(received, versions));
    EXPECT(!versions_equal(versions, VERSIONS({3, 1}, {5, 2}, {9, 12})));
    EXPECT(!versions_equal(versions, VERSIONS({3, 1}, {5, 2})));
}
