/* sticky_test.c - lists that belong to one worker: their tasks go to the normal list when it is
 * gone. In simulation. */
#include "base/test.h"
#include "matching/test/fixture.h"

#define SHORT (100 * NS_PER_MS)

static void
sticky(struct matching_fixture *matching_fixture)
{
    fixture_add(matching_fixture, STICKY, 1, 1); /* nobody ever polled it */
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 1);

    EXPECT_EQ(fixture_take(matching_fixture, STICKY, SHORT), 0);
    fixture_sleep(matching_fixture, 9 * NS_PER_S);
    fixture_add(matching_fixture, STICKY, 2, 2); /* polled lately: it waits for its worker */
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 0);
    EXPECT_EQ(fixture_take(matching_fixture, STICKY, SHORT), 2);

    fixture_sleep(matching_fixture, 11 * NS_PER_S);
    int64_t began = clock_monotonic();
    fixture_add(matching_fixture, STICKY, 3, 3);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, NS_PER_S), 3);
    EXPECT(clock_monotonic() - began < SHORT); /* at once */
}

TEST(sticky, a_sticky_list_without_a_poll_in_ten_seconds_passes_tasks_on_at_once, "A-090")
{
    fixture_run(sticky, NULL, 1);
    fixture_run(sticky, NULL, 3);
}

static void
sticky_worker_dies(struct matching_fixture *matching_fixture)
{
    struct test_poll one, two;
    test_poll_start(matching_fixture, STICKY, &one, NS_PER_S);
    test_poll_start(matching_fixture, STICKY, &two, NS_PER_S);
    fixture_sleep(matching_fixture, SHORT);
    fixture_add(matching_fixture, STICKY, 1, 1);
    EXPECT_EQ(test_poll_wait(&one), POLL_MATCHED);
    matching_withdraw(matching_fixture->matching, &two.poll);
    EXPECT_EQ(test_poll_wait(&two), POLL_WITHDRAWN);
    matching_return(matching_fixture->matching,
                    one.poll.task); /* the connection broke under the answer */
    arena_free(one.poll.task_arena);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 1);
    fixture_add(matching_fixture, STICKY, 2, 2);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 2);
}

TEST(sticky, when_the_last_poll_of_a_sticky_list_is_withdrawn_its_tasks_go_to_the_normal_list,
     "A-090")
{
    fixture_run(sticky_worker_dies, NULL, 1);
    fixture_run(sticky_worker_dies, NULL, 3);
}

MATCHING_TEST(
    sticky, what_a_sticky_list_cannot_hold_goes_to_the_normal_list_and_is_not_stored,
    fixture_run(body,
                "matching.maxTasksInMemory: [{value: 3, constraints: {taskListName: 'host:1'}}]",
                2))
{
    EXPECT_EQ(fixture_take(matching_fixture, STICKY, SHORT), 0);
    fixture_add(matching_fixture, STICKY, 1, 5);
    fixture_sleep(matching_fixture, SHORT);
    fixture_expect(matching_fixture, STICKY, 1, 3);
    fixture_expect(matching_fixture, DECISIONS, 4, 5);
    EXPECT_EQ(memory_base_rows(matching_fixture->base), 0);
}

/* Somebody polls a list as sticky that workflows were started on. */
MATCHING_TEST(
    sticky, tasks_that_have_no_other_list_are_stored_when_they_are_too_many,
    fixture_run(body,
                "matching.maxTasksInMemory: [{value: 3, constraints: {taskListName: 'host:1'}}]",
                2))
{
    struct spot spot = {TASK_DECISION, LIST_NORMAL, "host:1", ""};
    EXPECT_EQ(fixture_take(matching_fixture, STICKY, SHORT), 0);
    fixture_add(matching_fixture, STICKY, 1, 2); /* they wait: the list is a sticky one */
    fixture_add(matching_fixture, spot, 3, 8);
    fixture_sleep(matching_fixture, SHORT);
    EXPECT(memory_base_rows(matching_fixture->base) > 0);
    fixture_expect(matching_fixture, STICKY, 1, 4);
    fixture_expect(matching_fixture, spot, 5, 8);
}

/* --- divided lists, rates
 * -------------------------------------------------------------------------
 */

#define THREE                                                                                      \
    "matching.numTasklistReadPartitions: [{value: 3}]\n"                                           \
    "matching.numTasklistWritePartitions: [{value: 3}]\n"

static void
undivided(struct matching_fixture *matching_fixture)
{
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 0); /* the normal list is divided */
    struct test_poll test_poll;
    for (uint64_t row = 1; row <= 6; row++) {
        test_poll_start(matching_fixture, STICKY, &test_poll, NS_PER_S);
        EXPECT_EQ(test_poll.poll.partition, 0);
        fixture_sleep(matching_fixture, SHORT);
        fixture_add(matching_fixture, STICKY, row, row);
        EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
        EXPECT_EQ(test_poll.poll.task->partition, 0);
        test_poll_finish(matching_fixture, &test_poll);
    }
    fixture_add(matching_fixture, STICKY, 7, 7); /* pollers of the normal list get nothing of it */
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 0);
    fixture_sleep(matching_fixture, 25 * NS_PER_S); /* only when its own worker is gone */
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 7);
    EXPECT_EQ(memory_base_commits(matching_fixture->base), 1); /* that the normal list is divided */
}

TEST(sticky, a_sticky_list_has_no_partitions_and_stores_nothing, "C-032")
{
    fixture_run(undivided, THREE, 1);
    fixture_run(undivided, THREE, 3);
}

MATCHING_TEST(
    sticky, the_rate_of_the_normal_list_counts_for_those_that_go_with_it,
    fixture_run(body,
                "matching.overrideTaskListRps: [{value: 10, constraints: {taskListName: orders}}]",
                2),
    "C-026", "C-010")
{
    struct spot spot = {TASK_ACTIVITY, LIST_EPHEMERAL, "host:1", "orders"};
    EXPECT_EQ(fixture_take(matching_fixture, spot, SHORT), 0);
    fixture_add(matching_fixture, spot, 1, 40);
    int64_t began = clock_monotonic();
    for (int i = 0; i < 35; i++)
        EXPECT(fixture_take(matching_fixture, spot, NS_PER_S) > 0);
    int64_t waited = (clock_monotonic() - began) / NS_PER_MS;
    EXPECT(waited >= 2400 && waited <= 2600); /* 10 at once, 10 in each second */
}
