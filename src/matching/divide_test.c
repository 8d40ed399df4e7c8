/* divide_test.c - how lists are divided by operators and by their load. In simulation. */
#include "base/memory.h"
#include "base/test.h"
#include "fiber/sim/world.h"
#include "matching/fixture.h"
#include "wire/message.h"

#define SHORT (100 * NS_PER_MS)

static API(TaskListPartitionConfig) *
config_of(struct bench *bench, int32_t reads, int32_t writes)
{
    struct arena *arena = bench->arena;
    API(TaskListPartitionConfig) *config = message_new(arena, API_TYPE(task_list_partition_config));
    config->read_partitions = arena_zalloc(arena, (size_t)reads + 1, sizeof(void *));
    config->write_partitions = arena_zalloc(arena, (size_t)writes + 1, sizeof(void *));
    for (int32_t i = 0; i < reads; i++) {
        API(TaskListPartitionConfig__ReadPartitionsEntry) *entry =
            message_new(arena, API_TYPE(task_list_partition_config__read_partitions_entry));
        entry->key = i;
        entry->value = message_new(arena, API_TYPE(task_list_partition));
        config->read_partitions[config->n_read_partitions++] = entry;
    }
    for (int32_t i = 0; i < writes; i++) {
        API(TaskListPartitionConfig__WritePartitionsEntry) *entry =
            message_new(arena, API_TYPE(task_list_partition_config__write_partitions_entry));
        entry->key = i;
        entry->value = message_new(arena, API_TYPE(task_list_partition));
        config->write_partitions[config->n_write_partitions++] = entry;
    }
    return config;
}

static const struct list_spot orders = {TASK_DECISION, "domain", {"orders", 0}};

static struct error *
divide(struct bench *bench, int32_t reads, int32_t writes)
{
    return matching_divide(bench->matching, &orders, config_of(bench, reads, writes), bench->arena);
}

static size_t
count_partitions(struct bench *bench)
{
    API(TaskListPartitionMetadata) **partitions;
    size_t count;
    EXPECT_OK(
        matching_list_partitions(bench->matching, &orders, bench->arena, &partitions, &count));
    return count;
}

static const API(TaskListPartitionConfig) *
shown(struct bench *bench)
{
    API(DescribeTaskListResponse) *told =
        message_new(bench->arena, API_TYPE(describe_task_list_response));
    EXPECT_OK(matching_describe(bench->matching, &orders, false, bench->arena, told));
    return told->partition_config;
}

static void
by_hand(struct bench *bench)
{
    EXPECT_EQ(count_partitions(bench), 1);
    EXPECT_OK(divide(bench, 4, 3));
    EXPECT_EQ(count_partitions(bench), 4);
    EXPECT_EQ(shown(bench)->version, 1);
    EXPECT_EQ(shown(bench)->n_write_partitions, 3);
    EXPECT_OK(divide(bench, 4, 3)); /* nothing changes */
    EXPECT_EQ(shown(bench)->version, 1);
    bench_sleep(bench, SHORT);
    bench_add(bench, DECISIONS, 1, 30);
    for (int i = 0; i < 30; i++)
        EXPECT(bench_take(bench, DECISIONS, NS_PER_S) > 0);
    EXPECT_EQ(bench->partitions_seen, 3); /* none was put into the one that is only read */
    EXPECT_OK(divide(bench, 4, 1));
    EXPECT_EQ(shown(bench)->version, 2);
}

static void
still_known(struct bench *bench)
{
    EXPECT_EQ(count_partitions(bench), 4);
    EXPECT_EQ(shown(bench)->version, 2);
    EXPECT_OK(divide(bench, 1, 1));
    EXPECT_EQ(count_partitions(bench), 1);
}

TEST(divide, an_operator_divides_a_list_and_it_stays_so_over_a_restart, "C-015", "C-019")
{
    for (unsigned loops = 1; loops <= 3; loops++) {
        struct bench *bench = memory_zalloc(1, sizeof *bench);
        bench->base = memory_base_new(1);
        bench->body = by_hand;
        bench_run_on(bench, loops);
        bench->body = still_known;
        bench_run_on(bench, loops);
        memory_base_free(bench->base);
        memory_free(bench);
    }
}

static void
refusals(struct bench *bench)
{
    struct error *err = divide(bench, 2, 3);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "read partitions (2) < write partitions (3)");
    EXPECT_TEXT(divide(bench, 2, 0)->message, "write partitions < 1");
    EXPECT_TEXT(divide(bench, 0, 0)->message, "read partitions < 1");
    API(TaskListPartitionConfig) *config = config_of(bench, 2, 1);
    config->read_partitions[0]->key = 1;
    config->read_partitions[1]->key = 2;
    EXPECT_TEXT(matching_divide(bench->matching, &orders, config, bench->arena)->message,
                "the root partition must always be in read partitions");
    config = config_of(bench, 2, 2);
    config->write_partitions[1]->key = 5;
    EXPECT_TEXT(matching_divide(bench->matching, &orders, config, bench->arena)->message,
                "partition 5 included in write but not read");
}

TEST(divide, what_is_no_division_is_refused, "C-018")
{
    bench_run(refusals, NULL, 2);
}

/* Partitions 0 and 1 are for one group, 2 for another. */
static API(TaskListPartitionConfig) *
config_with_groups(struct bench *bench, char **one, char **other)
{
    API(TaskListPartitionConfig) *config = config_of(bench, 3, 3);
    for (int i = 0; i < 3; i++) {
        API(TaskListPartition) *seats[] = {config->read_partitions[i]->value,
                                           config->write_partitions[i]->value};
        for (int k = 0; k < 2; k++) {
            seats[k]->isolation_groups = i == 2 ? other : one;
            seats[k]->n_isolation_groups = 1;
        }
    }
    return config;
}

/* The partition that a task of the group, and a poll, meet in. */
static int32_t
meet_as(struct bench *bench, const char *group, uint64_t row)
{
    struct probe probe;
    bench->group = bench->identity = group;
    bench_add(bench, DECISIONS, row, row);
    bench_sleep(bench, SHORT);
    probe_start(bench, DECISIONS, &probe, NS_PER_S);
    EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
    int32_t partition = probe.poll.task->partition;
    EXPECT_EQ(probe.poll.partition, partition);
    probe_finish(bench, &probe);
    return partition;
}

static void
groups_of_partitions(struct bench *bench)
{
    char *one = "north", *other = "south";
    EXPECT_OK(matching_divide(bench->matching, &orders, config_with_groups(bench, &one, &other),
                              bench->arena));
    bench_sleep(bench, SHORT);
    for (uint64_t row = 1; row <= 4; row++) {
        EXPECT_EQ(meet_as(bench, "south", 10 + row), 2);
        EXPECT(meet_as(bench, "north", 20 + row) < 2);
        EXPECT(meet_as(bench, "nobody's", 30 + row) < 3); /* for all, where none is for it */
    }
    EXPECT_OK(matching_divide(bench->matching, &orders, config_with_groups(bench, &other, &one),
                              bench->arena));
    bench_sleep(bench, SHORT);
    EXPECT_EQ(meet_as(bench, "north", 41), 2);
    EXPECT(meet_as(bench, "south", 42) < 2);
}

TEST(divide, a_group_meets_in_the_partitions_that_are_for_it, "C-027")
{
    bench_run(groups_of_partitions, "system.enableTasklistIsolation: [{value: true}]\n", 2);
}

static void
too_many_groups(struct bench *bench)
{
    char *names[257];
    for (size_t i = 0; i < array_length(names); i++)
        names[i] = "north";
    API(TaskListPartitionConfig) *config = config_of(bench, 2, 1);
    config->read_partitions[1]->value->isolation_groups = names;
    config->read_partitions[1]->value->n_isolation_groups = array_length(names);
    EXPECT_TEXT(matching_divide(bench->matching, &orders, config, bench->arena)->message,
                "more than 256 isolation groups");
    config->read_partitions[1]->value->n_isolation_groups--;
    EXPECT_OK(matching_divide(bench->matching, &orders, config, bench->arena));
}

TEST(divide, more_groups_than_there_is_room_for_are_refused, "C-018")
{
    bench_run(too_many_groups, NULL, 1);
}

/* A partition that nobody reads any more is put away; the root stays. Who polls later gets its
 * tasks all the same. */
static void
put_away(struct bench *bench)
{
    EXPECT_OK(divide(bench, 3, 3));
    bench_sleep(bench, SHORT);
    bench_add(bench, DECISIONS, 1, 60);
    EXPECT_OK(divide(bench, 1, 1));
    for (int i = 0; i < 8; i++) { /* the root is used */
        struct task task = bench_task(DECISIONS, 1000 + (uint64_t)i);
        task.expiry_time = 1;
        EXPECT(matching_add(bench->matching, &task));
        bench_sleep(bench, 100 * NS_PER_S);
    }
    EXPECT(bench->done >= 40);
    for (int i = 0; i < 60; i++)
        EXPECT(bench_take(bench, DECISIONS, 5 * NS_PER_S) > 0);
    EXPECT_EQ(bench_take(bench, DECISIONS, SHORT), 0);
}

TEST(divide, a_partition_that_was_put_away_is_found_when_somebody_polls, "C-019")
{
    bench_run(put_away, NULL, 1);
    bench_run(put_away, NULL, 3);
}

/* --- weights -------------------------------------------------------------------------------------
 */

/* Tasks wait in one partition only: polls learn it, and go there. */
static void
weights(struct bench *bench)
{
    EXPECT_OK(divide(bench, 3, 3));
    bench_sleep(bench, SHORT);
    bench_add(bench, DECISIONS, 1, 3000);
    EXPECT_OK(divide(bench, 3, 1));
    bench_sleep(bench, SHORT);
    int polls[3] = {0};
    for (int i = 0; i < 600; i++) {
        struct probe probe;
        probe_start(bench, DECISIONS, &probe, NS_PER_S);
        EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
        polls[probe.poll.partition]++;
        probe_finish(bench, &probe);
    }
    for (int i = 0; i < 3; i++)
        EXPECT(polls[i] > 100);
    bench_add(bench, DECISIONS, 3001, 8000); /* all to the first */
    int first = 0;
    for (int i = 0; i < 600; i++) {
        struct probe probe;
        probe_start(bench, DECISIONS, &probe, NS_PER_S);
        EXPECT_EQ(probe_wait(&probe), POLL_MATCHED);
        first += probe.poll.partition == 0;
        probe_finish(bench, &probe);
    }
    EXPECT(first > 350); /* about two thirds of what waits is there */
}

TEST(divide, polls_go_where_much_waits, "C-017")
{
    bench_run(weights, NULL, 2);
    bench_run(weights, NULL, 1);
}

static void
in_turn(struct bench *bench)
{
    EXPECT_OK(divide(bench, 3, 3));
    bench_sleep(bench, SHORT);
    int polls[3] = {0};
    for (int i = 0; i < 30; i++) {
        struct probe probe;
        probe_start(bench, DECISIONS, &probe, NS_PER_MS);
        EXPECT_EQ(probe_wait(&probe), POLL_EMPTY);
        polls[probe.poll.partition]++;
    }
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(polls[i], 10);
}

TEST(divide, polls_take_turns_where_little_waits, "C-017")
{
    bench_run(in_turn, NULL, 2);
    bench_run(in_turn, "system.tasklistLoadBalancerStrategy: [{value: round-robin}]", 1);
}

/* --- the scaler ----------------------------------------------------------------------------------
 */

/* So many tasks in each second, and pollers for them. */
static void
load(struct bench *bench, int per_second, int seconds)
{
    for (int second = 0; second < seconds; second++) {
        for (int i = 0; i < per_second; i++) {
            bench_add(bench, DECISIONS, 1, 1);
            if (bench_take(bench, DECISIONS, NS_PER_S) != 1)
                TEST_FAIL("a task got lost");
        }
        bench_sleep(bench, NS_PER_S);
    }
}

static void
follow_load(struct bench *bench)
{
    load(bench, 15, 50);
    EXPECT_EQ(count_partitions(bench), 1); /* not for a minute yet */
    load(bench, 15, 60);
    EXPECT_EQ(count_partitions(bench), 2); /* 15 per second, 10 for each */
    load(bench, 35, 110);
    size_t most = count_partitions(bench);
    EXPECT(most == 4);
    load(bench, 1, 100);
    EXPECT_EQ(count_partitions(bench), most); /* not for two minutes yet */
    load(bench, 1, 120);
    EXPECT_EQ(count_partitions(bench), 1);
    struct error *err = divide(bench, 2, 2);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Manual update is not allowed because adaptive scaler is enabled.");
}

TEST(divide, the_number_of_partitions_follows_the_load, "C-020", "C-018")
{
    const char *yaml = "matching.enableAdaptiveScaler: [{value: true}]\n"
                       "matching.partitionUpscaleRPS: [{value: 10}]\n";
    bench_run(follow_load, yaml, 2);
    bench_run(follow_load, yaml, 1);
}
