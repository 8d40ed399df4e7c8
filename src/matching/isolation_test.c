/* isolation_test.c - tasks and pollers of isolation groups. In simulation. */
#include "base/test.h"
#include "matching/test/fixture.h"
#include "wire/message.h"

#define SHORT (100 * NS_PER_MS)
#define ON    "system.enableTasklistIsolation: [{value: true}]\n"
#define THREE                                                                                      \
    "matching.numTasklistReadPartitions: [{value: 3}]\n"                                           \
    "matching.numTasklistWritePartitions: [{value: 3}]\n"

static void
poll_as(struct matching_fixture *matching_fixture, const char *group, struct test_poll *test_poll)
{
    matching_fixture->group = group;
    matching_fixture->identity = group;
    test_poll_start(matching_fixture, DECISIONS, test_poll, 10 * NS_PER_S);
}

/* Pollers of both groups wait: ten of ten tasks go to their own. */
static void
own_group(struct matching_fixture *matching_fixture)
{
    fixture_take(matching_fixture, DECISIONS, SHORT); /* a divided list is known from then on */
    for (uint64_t row = 1; row <= 10; row++) {
        struct test_poll other, own;
        poll_as(matching_fixture, "b", &other); /* who came first */
        poll_as(matching_fixture, "a", &own);
        fixture_sleep(matching_fixture, SHORT);
        fixture_add(matching_fixture, DECISIONS, row, row); /* of group a */
        EXPECT_EQ(test_poll_wait(&own), POLL_MATCHED);
        EXPECT_EQ(own.poll.task->schedule_id, (int64_t)row);
        EXPECT_TEXT(own.poll.task->isolation_group, "a");
        EXPECT(!other.is_back);
        test_poll_finish(matching_fixture, &own);
        matching_withdraw(matching_fixture->matching, &other.poll);
        EXPECT_EQ(test_poll_wait(&other), POLL_WITHDRAWN);
    }
}

TEST(isolation_group, a_task_goes_to_a_poller_of_its_group, "C-027")
{
    fixture_run(own_group, ON, 1);
    fixture_run(own_group, ON, 2);
    fixture_run(own_group, ON THREE, 2);
}

MATCHING_TEST(isolation_group, groups_do_not_count_where_isolation_is_off,
              fixture_run(body, NULL, 2), "C-027")
{
    struct test_poll other, own;
    poll_as(matching_fixture, "b", &other);
    fixture_sleep(matching_fixture, SHORT);
    poll_as(matching_fixture, "a", &own);
    fixture_sleep(matching_fixture, SHORT);
    fixture_add(matching_fixture, DECISIONS, 1, 1);
    EXPECT_EQ(test_poll_wait(&other), POLL_MATCHED);
    test_poll_finish(matching_fixture, &other);
    matching_withdraw(matching_fixture->matching, &own.poll);
    test_poll_wait(&own);
}

/* Its own poller was there a moment ago, but is busy: the task waits for it 200 ms. */
static void
leak_in_time(struct matching_fixture *matching_fixture)
{
    matching_fixture->group = matching_fixture->identity = "a";
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 0);
    struct test_poll other;
    poll_as(matching_fixture, "b", &other);
    fixture_sleep(matching_fixture, SHORT);
    matching_fixture->group = "a";
    int64_t began = clock_monotonic();
    fixture_add(matching_fixture, DECISIONS, 1, 1);
    EXPECT_EQ(test_poll_wait(&other), POLL_MATCHED);
    int64_t waited = (clock_monotonic() - began) / NS_PER_MS;
    EXPECT(waited >= 195 && waited < 230);
    test_poll_finish(matching_fixture, &other);
    /* Nobody of its group polled for two seconds: it does not wait. */
    fixture_sleep(matching_fixture, 2 * NS_PER_S);
    poll_as(matching_fixture, "b", &other);
    fixture_sleep(matching_fixture, SHORT);
    matching_fixture->group = "a";
    began = clock_monotonic();
    fixture_add(matching_fixture, DECISIONS, 2, 2);
    EXPECT_EQ(test_poll_wait(&other), POLL_MATCHED);
    EXPECT(clock_monotonic() - began < 20 * NS_PER_MS);
    test_poll_finish(matching_fixture, &other);
}

TEST(isolation_group, without_a_poller_of_its_group_a_task_goes_to_any, "C-028")
{
    fixture_run(leak_in_time, ON, 1);
    fixture_run(leak_in_time, ON, 3);
}

/* A task that waits for its group keeps none of another group waiting. */
MATCHING_TEST(isolation_group, a_task_that_waits_for_its_group_holds_up_nobody,
              fixture_run(body, ON, 2), "C-028")
{
    matching_fixture->group = matching_fixture->identity = "a";
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 0);
    fixture_add(matching_fixture, DECISIONS, 1, 1);
    struct test_poll other;
    poll_as(matching_fixture, "b", &other);
    fixture_sleep(matching_fixture, 10 * NS_PER_MS);
    int64_t began = clock_monotonic();
    fixture_add(matching_fixture, DECISIONS, 2, 2);
    EXPECT_EQ(test_poll_wait(&other), POLL_MATCHED);
    EXPECT_EQ(other.poll.task->schedule_id, 2);
    EXPECT(clock_monotonic() - began < 20 * NS_PER_MS);
    test_poll_finish(matching_fixture, &other);
    matching_fixture->group = "b";
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, NS_PER_S), 1);
}

MATCHING_TEST(isolation_group, a_poller_of_a_drained_group_gets_nothing, fixture_run(body, ON, 2),
              "C-029")
{
    matching_fixture->drained = "a";
    struct test_poll drained;
    poll_as(matching_fixture, "a", &drained);
    fixture_sleep(matching_fixture, SHORT);
    fixture_add(matching_fixture, DECISIONS, 1, 3);
    fixture_sleep(matching_fixture, SHORT);
    EXPECT(!drained.is_back);
    matching_fixture->group = "b"; /* its tasks go to another group at once */
    EXPECT(fixture_take(matching_fixture, DECISIONS, SHORT) > 0);
    matching_fixture->drained = NULL;
    fixture_add(matching_fixture, DECISIONS, 4, 4); /* looks again */
    fixture_sleep(matching_fixture, SHORT);
    matching_fixture->group = "a";
    fixture_add(matching_fixture, DECISIONS, 5, 5);
    EXPECT_EQ(test_poll_wait(&drained), POLL_MATCHED);
    test_poll_finish(matching_fixture, &drained);
}

/* What is told of groups: who polled in the last two seconds, how many tasks came. */
MATCHING_TEST(isolation_group, the_tasks_and_pollers_of_each_group_are_shown,
              fixture_run(body, ON "system.allIsolationGroups: [{value: [a, b]}]", 2))
{
    struct list_spot spot = {TASK_DECISION, "domain", {"orders", 0}};
    API(DescribeTaskListResponse) *response =
        API_NEW(matching_fixture->arena, describe_task_list_response);
    matching_fixture->group = matching_fixture->identity = "a";
    for (uint64_t i = 1; i <= 60; i++) {
        fixture_add(matching_fixture, DECISIONS, i, i);
        fixture_sleep(matching_fixture, 200 * NS_PER_MS);
    }
    EXPECT(fixture_take(matching_fixture, DECISIONS, SHORT) > 0);
    EXPECT_OK(matching_describe(matching_fixture->matching, &spot, true, matching_fixture->arena,
                                response));
    const API(TaskListStatus) *status = response->task_list_status;
    EXPECT_EQ(status->n_isolation_group_metrics, 2);
    EXPECT_TEXT(status->isolation_group_metrics[0]->key, "a");
    EXPECT_EQ(status->isolation_group_metrics[0]->value->poller_count, 1);
    EXPECT_EQ(status->isolation_group_metrics[1]->value->poller_count, 0);
    double rate = status->isolation_group_metrics[0]->value->new_tasks_per_second;
    EXPECT(rate > 4.5 && rate < 5.5);
    EXPECT(status->new_tasks_per_second > 4.5 && status->new_tasks_per_second < 5.5);
    EXPECT(status->isolation_group_metrics[1]->value->new_tasks_per_second == 0);
}
