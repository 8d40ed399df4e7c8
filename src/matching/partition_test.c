/* partition_test.c - lists of several partitions: a lone poller gets all, wherever tasks are and
 * however the list is divided. In simulation, with partitions on the same and on different loops.
 */
#include "base/memory.h"
#include "base/test.h"
#include "fiber/sim/world.h"
#include "matching/fixture.h"

#define SHORT (100 * NS_PER_MS)
#define THREE                                                                                      \
    "matching.numTasklistReadPartitions: [{value: 3}]\n"                                           \
    "matching.numTasklistWritePartitions: [{value: 3}]\n"
#define SMALL "matching.maxTasksInMemory: [{value: 10}]\nmatching.getTasksBatchSize: [{value: 7}]\n"

static void
run_on_loops(void (*body)(struct bench *bench), const char *yaml)
{
    for (unsigned loops = 1; loops <= 4; loops++)
        bench_run(body, yaml, loops);
}

TEST(partition, a_partition_is_named_after_its_list_and_its_number, "C-014")
{
    struct arena *arena = arena_new(0);
    struct list_name name;
    EXPECT(list_name_parse("orders", arena, &name));
    EXPECT_TEXT(name.list, "orders");
    EXPECT_EQ(name.partition, 0);
    EXPECT_TEXT(list_name_format(&name, arena), "orders");
    EXPECT(list_name_parse("/__cadence_sys/orders/of/12", arena, &name));
    EXPECT_TEXT(name.list, "orders/of");
    EXPECT_EQ(name.partition, 12);
    EXPECT_TEXT(list_name_format(&name, arena), "/__cadence_sys/orders/of/12");
    EXPECT(!list_name_parse("/__cadence_sys/orders", arena, &name));
    EXPECT(!list_name_parse("/__cadence_sys/orders/x", arena, &name));
    EXPECT(!list_name_parse("/__cadence_sys/orders/0", arena, &name));
    EXPECT(!list_name_parse("/__cadence_sys//1", arena, &name));
    EXPECT(!list_name_parse("/__cadence_sys/orders/2000000000", arena, &name));
    arena_free(arena);
}

/* Takes `count` tasks in any order; each of 1 .. count once. */
static void
take_all(struct bench *bench, struct spot spot, int64_t count)
{
    bool *is_seen = memory_zalloc((size_t)count + 1, sizeof *is_seen);
    for (int64_t i = 0; i < count; i++) {
        int64_t id = bench_take(bench, spot, 30 * NS_PER_S);
        EXPECT(id >= 1 && id <= count && !is_seen[id]);
        if (id >= 1 && id <= count)
            is_seen[id] = true;
    }
    EXPECT_EQ(bench_take(bench, spot, SHORT), 0);
    memory_free(is_seen);
}

/* The first poll tells everybody how the list is divided. */
static void
divide(struct bench *bench)
{
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 0);
    EXPECT_EQ(bench_take(bench, ACTIVITIES, SHORT), 0);
}

static void
lone_poller(struct bench *bench)
{
    divide(bench);
    bench_add(bench, DECISIONS, 1, 30);
    take_all(bench, DECISIONS, 30);
    EXPECT(bench->partitions_seen >= 3); /* they did come from different ones */
}

TEST(partition, a_lone_poller_gets_the_tasks_of_all_partitions, "C-016", "C-015")
{
    run_on_loops(lone_poller, THREE);
}

static void
poller_first(struct bench *bench)
{
    divide(bench);
    for (uint64_t row = 1; row <= 12; row++) {
        struct probe probe;
        probe_start(bench, DECISIONS, &probe, 10 * NS_PER_S);
        bench_sleep(bench, SHORT);
        int64_t began = clock_monotonic();
        bench_add(bench, DECISIONS, row, row);
        EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
        EXPECT(clock_monotonic() - began < 20 * NS_PER_MS);
        EXPECT_EQ(probe.poll.task->schedule_id, (int64_t)row);
        probe_finish(bench, &probe);
    }
    EXPECT_EQ(bench->done, 0); /* none was stored */
}

TEST(partition, a_task_finds_the_only_poll_at_once, "C-016")
{
    run_on_loops(poller_first, THREE);
}

static void
stored(struct bench *bench)
{
    divide(bench);
    bench_add(bench, DECISIONS, 1, 200);
    bench_sleep(bench, NS_PER_S);
    EXPECT(bench->done > 100);
    take_all(bench, DECISIONS, 200);
}

TEST(partition, what_partitions_have_stored_reaches_a_lone_poller, "C-016")
{
    run_on_loops(stored, THREE SMALL);
}

/* Everything is stored first: a poll that waits already gets it as soon as it is. */
static void
stored_first(struct bench *bench)
{
    divide(bench);
    for (uint64_t row = 1; row <= 6; row++) {
        struct probe probe;
        probe_start(bench, DECISIONS, &probe, 20 * NS_PER_S);
        bench_sleep(bench, SHORT);
        int64_t began = clock_monotonic();
        bench_add(bench, DECISIONS, row, row);
        EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
        EXPECT(clock_monotonic() - began < NS_PER_S);
        probe_finish(bench, &probe);
    }
}

TEST(partition, a_task_that_is_stored_first_finds_the_only_poll_soon, "C-016")
{
    run_on_loops(stored_first, THREE "matching.enableSyncMatch: [{value: false}]\n");
}

/* --- fewer partitions ---------------------------------------------------------------------------
 */

static void
leave_tasks(struct bench *bench)
{
    divide(bench);
    bench_add(bench, DECISIONS, 1, 300);
    bench_sleep(bench, NS_PER_S);
}

/* As a shard does: what was not stored is offered again. */
static void
find_tasks(struct bench *bench)
{
    for (uint64_t row = 1; row <= 300; row++) {
        if (!bench->is_row_done[row])
            bench_add(bench, DECISIONS, row, row);
    }
    take_all(bench, DECISIONS, 300);
}

TEST(partition, after_a_restart_with_fewer_partitions_the_tasks_of_all_are_found, "C-019")
{
    for (unsigned loops = 1; loops <= 3; loops++) {
        struct bench *bench = memory_zalloc(1, sizeof *bench);
        bench->base = memory_base_new(1);
        bench->yaml = THREE SMALL;
        bench->body = leave_tasks;
        bench_run_on(bench, loops);
        bench->yaml = SMALL;
        bench->body = find_tasks;
        bench_run_on(bench, loops);
        memory_base_free(bench->base);
        memory_free(bench);
    }
}

static void
shrink(struct bench *bench)
{
    divide(bench);
    bench_add(bench, DECISIONS, 1, 100);
    bench_sleep(bench, NS_PER_S);
    EXPECT_OK(dynamic_load(bench->dynamic, slice_text(SMALL), "test", bench->arena));
    bench_add(bench, DECISIONS, 101, 200); /* some loops do not know it yet */
    bench_sleep(bench, 2 * NS_PER_S);
    bench_add(bench, DECISIONS, 201, 300);
    take_all(bench, DECISIONS, 300);
}

TEST(partition, a_partition_that_is_one_no_more_is_emptied, "C-019")
{
    run_on_loops(shrink, THREE SMALL);
}

/* --- rates ---------------------------------------------------------------------------------------
 */

static void
shared_rate(struct bench *bench)
{
    bench->rate = 30;
    divide(bench);
    bench_sleep(bench, NS_PER_S);
    bench_add(bench, ACTIVITIES, 1, 200);
    int64_t began = clock_monotonic();
    for (int i = 0; i < 150; i++)
        EXPECT(bench_take(bench, ACTIVITIES, 10 * NS_PER_S) > 0);
    int64_t seconds = (clock_monotonic() - began) / NS_PER_S;
    EXPECT(seconds >= 3 && seconds <= 6); /* 30 at once, 30 in each second */
}

TEST(partition, the_rate_of_a_list_is_shared_by_its_partitions, "C-009")
{
    run_on_loops(shared_rate, THREE);
}

/* --- names that clients make up ------------------------------------------------------------------
 */

static int64_t
take_from(struct bench *bench, const char *name)
{
    struct list_name found;
    struct spot spot = DECISIONS;
    spot.list = name;
    struct probe probe;
    if (!list_name_parse(name, bench->arena, &found))
        found = (struct list_name){name, 0};
    spot.list = found.list;
    bench->partition = found.partition;
    probe_start(bench, spot, &probe, SHORT);
    bench->partition = 0;
    if (probe_wait(&probe) != POLL_MATCHED)
        return 0;
    int64_t id = probe.poll.task->schedule_id;
    probe_finish(bench, &probe);
    return id;
}

static void
made_up_names(struct bench *bench)
{
    static const char *const names[] = {"/__cadence_sys/orders/1", "/__cadence_sys/orders/9999999",
                                        "/__cadence_sys/", "/__cadence_sys/x", "/"};
    for (uint64_t i = 0; i < array_length(names); i++) {
        struct spot spot = DECISIONS;
        spot.list = names[i];
        bench_add(bench, spot, i + 1, i + 1);
        EXPECT_EQ(take_from(bench, names[i]), (int64_t)i + 1);
    }
    struct spot sticky = STICKY;
    sticky.list = names[0];
    EXPECT_EQ(take_from(bench, names[0]), 0);
    EXPECT_EQ(bench_take(bench, sticky, SHORT), 0);
}

TEST(partition, a_list_may_have_the_name_of_a_partition)
{
    run_on_loops(made_up_names, THREE);
    run_on_loops(made_up_names, NULL);
}
