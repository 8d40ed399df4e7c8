/* isolation_test.c - tasks and pollers of isolation groups. In simulation. */
#include "base/test.h"
#include "matching/fixture.h"
#include "wire/message.h"

#define SHORT (100 * NS_PER_MS)
#define ON    "system.enableTasklistIsolation: [{value: true}]\n"
#define THREE                                                                                      \
    "matching.numTasklistReadPartitions: [{value: 3}]\n"                                           \
    "matching.numTasklistWritePartitions: [{value: 3}]\n"

static void
poll_as(struct bench *bench, const char *group, struct probe *probe)
{
    bench->group = group;
    bench->identity = group;
    probe_start(bench, DECISIONS, probe, 10 * NS_PER_S);
}

/* Pollers of both groups wait: ten of ten tasks go to their own. */
static void
own_group(struct bench *bench)
{
    bench_take(bench, DECISIONS, SHORT); /* a divided list is known from then on */
    for (uint64_t row = 1; row <= 10; row++) {
        struct probe other, own;
        poll_as(bench, "b", &other); /* who came first */
        poll_as(bench, "a", &own);
        bench_sleep(bench, SHORT);
        bench_add(bench, DECISIONS, row, row); /* of group a */
        EXPECT_EQ(probe_wait(&own), POLL_MATCHED);
        EXPECT_EQ(own.poll.task->schedule_id, (int64_t)row);
        EXPECT_TEXT(own.poll.task->isolation_group, "a");
        EXPECT(!other.is_back);
        probe_finish(bench, &own);
        matching_withdraw(bench->matching, &other.poll);
        EXPECT_EQ(probe_wait(&other), POLL_WITHDRAWN);
    }
}

TEST(isolation_group, a_task_goes_to_a_poller_of_its_group, "C-027")
{
    bench_run(own_group, ON, 1);
    bench_run(own_group, ON, 2);
    bench_run(own_group, ON THREE, 2);
}

static void
no_isolation(struct bench *bench)
{
    struct probe other, own;
    poll_as(bench, "b", &other);
    bench_sleep(bench, SHORT);
    poll_as(bench, "a", &own);
    bench_sleep(bench, SHORT);
    bench_add(bench, DECISIONS, 1, 1);
    EXPECT_EQ(probe_wait(&other), POLL_MATCHED);
    probe_finish(bench, &other);
    matching_withdraw(bench->matching, &own.poll);
    probe_wait(&own);
}

TEST(isolation_group, groups_do_not_count_where_isolation_is_off, "C-027")
{
    bench_run(no_isolation, NULL, 2);
}

/* Its own poller was there a moment ago, but is busy: the task waits for it 200 ms. */
static void
leak_in_time(struct bench *bench)
{
    bench->group = bench->identity = "a";
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 0);
    struct probe other;
    poll_as(bench, "b", &other);
    bench_sleep(bench, SHORT);
    bench->group = "a";
    int64_t began = clock_monotonic();
    bench_add(bench, DECISIONS, 1, 1);
    EXPECT_EQ(probe_wait(&other), POLL_MATCHED);
    int64_t waited = (clock_monotonic() - began) / NS_PER_MS;
    EXPECT(waited >= 195 && waited < 230);
    probe_finish(bench, &other);
    /* Nobody of its group polled for two seconds: it does not wait. */
    bench_sleep(bench, 2 * NS_PER_S);
    poll_as(bench, "b", &other);
    bench_sleep(bench, SHORT);
    bench->group = "a";
    began = clock_monotonic();
    bench_add(bench, DECISIONS, 2, 2);
    EXPECT_EQ(probe_wait(&other), POLL_MATCHED);
    EXPECT(clock_monotonic() - began < 20 * NS_PER_MS);
    probe_finish(bench, &other);
}

TEST(isolation_group, without_a_poller_of_its_group_a_task_goes_to_any, "C-028")
{
    bench_run(leak_in_time, ON, 1);
    bench_run(leak_in_time, ON, 3);
}

/* A task that waits for its group keeps none of another group waiting. */
static void
overtake(struct bench *bench)
{
    bench->group = bench->identity = "a";
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 0);
    bench_add(bench, DECISIONS, 1, 1);
    struct probe other;
    poll_as(bench, "b", &other);
    bench_sleep(bench, 10 * NS_PER_MS);
    int64_t began = clock_monotonic();
    bench_add(bench, DECISIONS, 2, 2);
    EXPECT_EQ(probe_wait(&other), POLL_MATCHED);
    EXPECT_EQ(other.poll.task->schedule_id, 2);
    EXPECT(clock_monotonic() - began < 20 * NS_PER_MS);
    probe_finish(bench, &other);
    bench->group = "b";
    EXPECT_EQ(bench_take(bench, DECISIONS, NS_PER_S), 1);
}

TEST(isolation_group, a_task_that_waits_for_its_group_holds_up_nobody, "C-028")
{
    bench_run(overtake, ON, 2);
}

static void
drain(struct bench *bench)
{
    bench->drained = "a";
    struct probe drained;
    poll_as(bench, "a", &drained);
    bench_sleep(bench, SHORT);
    bench_add(bench, DECISIONS, 1, 3);
    bench_sleep(bench, SHORT);
    EXPECT(!drained.is_back);
    bench->group = "b"; /* its tasks go to another group at once */
    EXPECT(bench_take(bench, DECISIONS, SHORT) > 0);
    bench->drained = NULL;
    bench_add(bench, DECISIONS, 4, 4); /* looks again */
    bench_sleep(bench, SHORT);
    bench->group = "a";
    bench_add(bench, DECISIONS, 5, 5);
    EXPECT_EQ(probe_wait(&drained), POLL_MATCHED);
    probe_finish(bench, &drained);
}

TEST(isolation_group, a_poller_of_a_drained_group_gets_nothing, "C-029")
{
    bench_run(drain, ON, 2);
}

/* What is told of groups: who polled in the last two seconds, how many tasks came. */
static void
figures(struct bench *bench)
{
    struct list_spot spot = {TASK_DECISION, "domain", {"orders", 0}};
    API(DescribeTaskListResponse) *told =
        message_new(bench->arena, API_TYPE(describe_task_list_response));
    bench->group = bench->identity = "a";
    for (uint64_t i = 1; i <= 60; i++) {
        bench_add(bench, DECISIONS, i, i);
        bench_sleep(bench, 200 * NS_PER_MS);
    }
    EXPECT(bench_take(bench, DECISIONS, SHORT) > 0);
    EXPECT_OK(matching_describe(bench->matching, &spot, true, bench->arena, told));
    const API(TaskListStatus) *status = told->task_list_status;
    EXPECT_EQ(status->n_isolation_group_metrics, 2);
    EXPECT_TEXT(status->isolation_group_metrics[0]->key, "a");
    EXPECT_EQ(status->isolation_group_metrics[0]->value->poller_count, 1);
    EXPECT_EQ(status->isolation_group_metrics[1]->value->poller_count, 0);
    double rate = status->isolation_group_metrics[0]->value->new_tasks_per_second;
    EXPECT(rate > 4.5 && rate < 5.5);
    EXPECT(status->new_tasks_per_second > 4.5 && status->new_tasks_per_second < 5.5);
    EXPECT(status->isolation_group_metrics[1]->value->new_tasks_per_second == 0);
}

TEST(isolation_group, the_figures_of_each_group_are_shown)
{
    bench_run(figures, ON "system.allIsolationGroups: [{value: [a, b]}]", 2);
}
