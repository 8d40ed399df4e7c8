/* sticky_test.c - lists that belong to one worker: their tasks go to the normal list when it is
 * gone. In simulation. */
#include "base/test.h"
#include "matching/fixture.h"

#define SHORT (100 * NS_PER_MS)

static void
sticky(struct bench *bench)
{
    bench_add(bench, STICKY, 1, 1); /* nobody ever polled it */
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 1);

    EXPECT_EQ(bench_take(bench, STICKY, SHORT), 0);
    bench_sleep(bench, 9 * NS_PER_S);
    bench_add(bench, STICKY, 2, 2); /* polled lately: it waits for its worker */
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 0);
    EXPECT_EQ(bench_take(bench, STICKY, SHORT), 2);

    bench_sleep(bench, 11 * NS_PER_S);
    int64_t began = clock_monotonic();
    bench_add(bench, STICKY, 3, 3);
    EXPECT_EQ(bench_take(bench, DECISIONS, NS_PER_S), 3);
    EXPECT(clock_monotonic() - began < SHORT); /* at once */
}

TEST(sticky, a_sticky_list_without_a_poll_in_ten_seconds_passes_tasks_on_at_once, "A-090")
{
    bench_run(sticky, NULL, 1);
    bench_run(sticky, NULL, 3);
}

static void
sticky_worker_dies(struct bench *bench)
{
    struct probe one, two;
    probe_start(bench, STICKY, &one, NS_PER_S);
    probe_start(bench, STICKY, &two, NS_PER_S);
    bench_sleep(bench, SHORT);
    bench_add(bench, STICKY, 1, 1);
    EXPECT_EQ(probe_wait(&one), POLL_MATCHED);
    matching_withdraw(bench->matching, &two.poll);
    EXPECT_EQ(probe_wait(&two), POLL_WITHDRAWN);
    matching_return(bench->matching, one.poll.task); /* the connection broke under the answer */
    arena_free(one.poll.task_arena);
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 1);
    bench_add(bench, STICKY, 2, 2);
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 2);
}

TEST(sticky, when_the_last_poll_of_a_sticky_list_is_withdrawn_its_tasks_go_to_the_normal_list,
     "A-090")
{
    bench_run(sticky_worker_dies, NULL, 1);
    bench_run(sticky_worker_dies, NULL, 3);
}

static void
sticky_overflows(struct bench *bench)
{
    EXPECT_EQ(bench_take(bench, STICKY, SHORT), 0);
    bench_add(bench, STICKY, 1, 5);
    bench_sleep(bench, SHORT);
    bench_expect(bench, STICKY, 1, 3);
    bench_expect(bench, DECISIONS, 4, 5);
    EXPECT_EQ(memory_base_rows(bench->base), 0);
}

TEST(sticky, what_a_sticky_list_cannot_hold_goes_to_the_normal_list_and_is_not_stored)
{
    bench_run(sticky_overflows,
              "matching.maxTasksInMemory: [{value: 3, constraints: {taskListName: 'host:1'}}]", 2);
}

/* Somebody polls a list as sticky that workflows were started on. */
static void
sticky_in_name_only(struct bench *bench)
{
    struct spot spot = {TASK_DECISION, LIST_NORMAL, "host:1", ""};
    EXPECT_EQ(bench_take(bench, STICKY, SHORT), 0);
    bench_add(bench, STICKY, 1, 2); /* they wait: the list is a sticky one */
    bench_add(bench, spot, 3, 8);
    bench_sleep(bench, SHORT);
    EXPECT(memory_base_rows(bench->base) > 0);
    bench_expect(bench, STICKY, 1, 4);
    bench_expect(bench, spot, 5, 8);
}

TEST(sticky, tasks_that_have_no_other_list_are_stored_when_they_are_too_many)
{
    bench_run(sticky_in_name_only,
              "matching.maxTasksInMemory: [{value: 3, constraints: {taskListName: 'host:1'}}]", 2);
}

/* --- divided lists, rates
 * -------------------------------------------------------------------------
 */

#define THREE                                                                                      \
    "matching.numTasklistReadPartitions: [{value: 3}]\n"                                           \
    "matching.numTasklistWritePartitions: [{value: 3}]\n"

static void
undivided(struct bench *bench)
{
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 0); /* the normal list is divided */
    struct probe probe;
    for (uint64_t row = 1; row <= 6; row++) {
        probe_start(bench, STICKY, &probe, NS_PER_S);
        EXPECT_EQ(probe.poll.partition, 0);
        bench_sleep(bench, SHORT);
        bench_add(bench, STICKY, row, row);
        EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
        EXPECT_EQ(probe.poll.task->partition, 0);
        probe_finish(bench, &probe);
    }
    bench_add(bench, STICKY, 7, 7); /* pollers of the normal list get nothing of it */
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 0);
    bench_sleep(bench, 25 * NS_PER_S); /* only when its own worker is gone */
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 7);
    EXPECT_EQ(memory_base_commits(bench->base), 1); /* that the normal list is divided */
}

TEST(sticky, a_sticky_list_has_no_partitions_and_stores_nothing, "C-032")
{
    bench_run(undivided, THREE, 1);
    bench_run(undivided, THREE, 3);
}

static void
base_rate(struct bench *bench)
{
    struct spot spot = {TASK_ACTIVITY, LIST_EPHEMERAL, "host:1", "orders"};
    EXPECT_EQ(bench_take(bench, spot, SHORT), 0);
    bench_add(bench, spot, 1, 40);
    int64_t began = clock_monotonic();
    for (int i = 0; i < 35; i++)
        EXPECT(bench_take(bench, spot, NS_PER_S) > 0);
    int64_t waited = (clock_monotonic() - began) / NS_PER_MS;
    EXPECT(waited >= 2400 && waited <= 2600); /* 10 at once, 10 in each second */
}

TEST(sticky, the_rate_of_the_normal_list_counts_for_those_that_go_with_it, "C-026", "C-010")
{
    bench_run(base_rate,
              "matching.overrideTaskListRps: [{value: 10, constraints: {taskListName: orders}}]",
              2);
}
