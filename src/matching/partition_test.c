/* partition_test.c - lists of several partitions: a lone poller gets all, wherever tasks are and
 * however the list is divided. In simulation, with partitions on the same and on different loops.
 */
#include "base/memory.h"
#include "base/test.h"
#include "fiber/sim/world.h"
#include "matching/test/fixture.h"

#define SHORT (100 * NS_PER_MS)
#define THREE                                                                                      \
    "matching.numTasklistReadPartitions: [{value: 3}]\n"                                           \
    "matching.numTasklistWritePartitions: [{value: 3}]\n"
#define SMALL "matching.maxTasksInMemory: [{value: 10}]\nmatching.getTasksBatchSize: [{value: 7}]\n"

static void
run_on_loops(void (*body)(struct matching_fixture *matching_fixture), const char *yaml)
{
    for (unsigned loops = 1; loops <= 4; loops++)
        fixture_run(body, yaml, loops);
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
take_all(struct matching_fixture *matching_fixture, struct spot spot, int64_t count)
{
    bool *is_seen = memory_zalloc((size_t)count + 1, sizeof *is_seen);
    for (int64_t i = 0; i < count; i++) {
        int64_t id = fixture_take(matching_fixture, spot, 30 * NS_PER_S);
        EXPECT(id >= 1 && id <= count && !is_seen[id]);
        if (id >= 1 && id <= count)
            is_seen[id] = true;
    }
    EXPECT_EQ(fixture_take(matching_fixture, spot, SHORT), 0);
    memory_free(is_seen);
}

/* The first poll tells everybody how the list is divided. */
static void
divide(struct matching_fixture *matching_fixture)
{
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 0);
    EXPECT_EQ(fixture_take(matching_fixture, ACTIVITIES, SHORT), 0);
}

MATCHING_TEST(partition, a_lone_poller_gets_the_tasks_of_all_partitions, run_on_loops(body, THREE),
              "C-016", "C-015")
{
    divide(matching_fixture);
    fixture_add(matching_fixture, DECISIONS, 1, 30);
    take_all(matching_fixture, DECISIONS, 30);
    EXPECT(matching_fixture->partitions_seen >= 3); /* they did come from different ones */
}

MATCHING_TEST(partition, a_task_finds_the_only_poll_at_once, run_on_loops(body, THREE), "C-016")
{
    divide(matching_fixture);
    for (uint64_t row = 1; row <= 12; row++) {
        struct test_poll test_poll;
        test_poll_start(matching_fixture, DECISIONS, &test_poll, 10 * NS_PER_S);
        fixture_sleep(matching_fixture, SHORT);
        int64_t began = clock_monotonic();
        fixture_add(matching_fixture, DECISIONS, row, row);
        EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
        EXPECT(clock_monotonic() - began < 20 * NS_PER_MS);
        EXPECT_EQ(test_poll.poll.task->schedule_id, (int64_t)row);
        test_poll_finish(matching_fixture, &test_poll);
    }
    EXPECT_EQ(matching_fixture->done, 0); /* none was stored */
}

static void
stored(struct matching_fixture *matching_fixture)
{
    divide(matching_fixture);
    fixture_add(matching_fixture, DECISIONS, 1, 200);
    fixture_sleep(matching_fixture, NS_PER_S);
    EXPECT(matching_fixture->done > 100);
    take_all(matching_fixture, DECISIONS, 200);
}

TEST(partition, what_partitions_have_stored_reaches_a_lone_poller, "C-016")
{
    run_on_loops(stored, THREE SMALL);
}

/* Everything is stored first: a poll that waits already gets it as soon as it is. */
MATCHING_TEST(partition, a_task_that_is_stored_first_finds_the_only_poll_soon,
              run_on_loops(body, THREE "matching.enableSyncMatch: [{value: false}]\n"), "C-016")
{
    divide(matching_fixture);
    for (uint64_t row = 1; row <= 6; row++) {
        struct test_poll test_poll;
        test_poll_start(matching_fixture, DECISIONS, &test_poll, 20 * NS_PER_S);
        fixture_sleep(matching_fixture, SHORT);
        int64_t began = clock_monotonic();
        fixture_add(matching_fixture, DECISIONS, row, row);
        EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
        EXPECT(clock_monotonic() - began < NS_PER_S);
        test_poll_finish(matching_fixture, &test_poll);
    }
}

/* --- fewer partitions ---------------------------------------------------------------------------
 */

static void
leave_tasks(struct matching_fixture *matching_fixture)
{
    divide(matching_fixture);
    fixture_add(matching_fixture, DECISIONS, 1, 300);
    fixture_sleep(matching_fixture, NS_PER_S);
}

/* As a shard does: what was not stored is offered again. */
static void
find_tasks(struct matching_fixture *matching_fixture)
{
    for (uint64_t row = 1; row <= 300; row++) {
        if (!matching_fixture->is_row_done[row])
            fixture_add(matching_fixture, DECISIONS, row, row);
    }
    take_all(matching_fixture, DECISIONS, 300);
}

TEST(partition, after_a_restart_with_fewer_partitions_the_tasks_of_all_are_found, "C-019")
{
    for (unsigned loops = 1; loops <= 3; loops++) {
        struct matching_fixture *matching_fixture = memory_zalloc(1, sizeof *matching_fixture);
        matching_fixture->base = memory_base_new(1);
        matching_fixture->yaml = THREE SMALL;
        matching_fixture->body = leave_tasks;
        fixture_run_on(matching_fixture, loops);
        matching_fixture->yaml = SMALL;
        matching_fixture->body = find_tasks;
        fixture_run_on(matching_fixture, loops);
        memory_base_free(matching_fixture->base);
        memory_free(matching_fixture);
    }
}

MATCHING_TEST(partition, a_partition_that_is_one_no_more_is_emptied,
              run_on_loops(body, THREE SMALL), "C-019")
{
    divide(matching_fixture);
    fixture_add(matching_fixture, DECISIONS, 1, 100);
    fixture_sleep(matching_fixture, NS_PER_S);
    EXPECT_OK(dynamic_load(matching_fixture->dynamic, slice_text(SMALL), "test",
                           matching_fixture->arena));
    fixture_add(matching_fixture, DECISIONS, 101, 200); /* some loops do not know it yet */
    fixture_sleep(matching_fixture, 2 * NS_PER_S);
    fixture_add(matching_fixture, DECISIONS, 201, 300);
    take_all(matching_fixture, DECISIONS, 300);
}

/* --- rates ---------------------------------------------------------------------------------------
 */

MATCHING_TEST(partition, the_rate_of_a_list_is_shared_by_its_partitions, run_on_loops(body, THREE),
              "C-009")
{
    matching_fixture->rate = 30;
    divide(matching_fixture);
    fixture_sleep(matching_fixture, NS_PER_S);
    fixture_add(matching_fixture, ACTIVITIES, 1, 200);
    int64_t began = clock_monotonic();
    for (int i = 0; i < 150; i++)
        EXPECT(fixture_take(matching_fixture, ACTIVITIES, 10 * NS_PER_S) > 0);
    int64_t seconds = (clock_monotonic() - began) / NS_PER_S;
    EXPECT(seconds >= 3 && seconds <= 6); /* 30 at once, 30 in each second */
}

/* --- names that clients make up ------------------------------------------------------------------
 */

static int64_t
take_from(struct matching_fixture *matching_fixture, const char *name)
{
    struct list_name found;
    struct spot spot = DECISIONS;
    spot.list = name;
    struct test_poll test_poll;
    if (!list_name_parse(name, matching_fixture->arena, &found))
        found = (struct list_name){name, 0};
    spot.list = found.list;
    matching_fixture->partition = found.partition;
    test_poll_start(matching_fixture, spot, &test_poll, SHORT);
    matching_fixture->partition = 0;
    if (test_poll_wait(&test_poll) != POLL_MATCHED)
        return 0;
    int64_t id = test_poll.poll.task->schedule_id;
    test_poll_finish(matching_fixture, &test_poll);
    return id;
}

static void
made_up_names(struct matching_fixture *matching_fixture)
{
    static const char *const names[] = {"/__cadence_sys/orders/1", "/__cadence_sys/orders/9999999",
                                        "/__cadence_sys/", "/__cadence_sys/x", "/"};
    for (uint64_t i = 0; i < array_length(names); i++) {
        struct spot spot = DECISIONS;
        spot.list = names[i];
        fixture_add(matching_fixture, spot, i + 1, i + 1);
        EXPECT_EQ(take_from(matching_fixture, names[i]), (int64_t)i + 1);
    }
    struct spot sticky = STICKY;
    sticky.list = names[0];
    EXPECT_EQ(take_from(matching_fixture, names[0]), 0);
    EXPECT_EQ(fixture_take(matching_fixture, sticky, SHORT), 0);
}

TEST(partition, a_list_may_have_the_name_of_a_partition)
{
    run_on_loops(made_up_names, THREE);
    run_on_loops(made_up_names, NULL);
}
