/* divide_test.c - how lists are divided by operators and by their load. In simulation. */
#include "base/memory.h"
#include "base/test.h"
#include "fiber/sim/world.h"
#include "matching/test/fixture.h"
#include "wire/message.h"

#define SHORT (100 * NS_PER_MS)

static API(TaskListPartitionConfig) *
config_of(struct matching_fixture *matching_fixture, int32_t reads, int32_t writes)
{
    struct arena *arena = matching_fixture->arena;
    API(TaskListPartitionConfig) *config =
        API_NEW(arena, task_list_partition_config,
                .read_partitions = arena_zalloc(arena, (size_t)reads + 1, sizeof(void *)),
                .write_partitions = arena_zalloc(arena, (size_t)writes + 1, sizeof(void *)));
    for (int32_t i = 0; i < reads; i++) {
        API(TaskListPartitionConfig__ReadPartitionsEntry) *entry =
            message_new(arena, API_TYPE(task_list_partition_config__read_partitions_entry));
        entry->key = i;
        entry->value = API_NEW(arena, task_list_partition);
        config->read_partitions[config->n_read_partitions++] = entry;
    }
    for (int32_t i = 0; i < writes; i++) {
        API(TaskListPartitionConfig__WritePartitionsEntry) *entry =
            message_new(arena, API_TYPE(task_list_partition_config__write_partitions_entry));
        entry->key = i;
        entry->value = API_NEW(arena, task_list_partition);
        config->write_partitions[config->n_write_partitions++] = entry;
    }
    return config;
}

static const struct list_spot orders = {TASK_DECISION, "domain", {"orders", 0}};

static struct error *
divide(struct matching_fixture *matching_fixture, int32_t reads, int32_t writes)
{
    return matching_divide(matching_fixture->matching, &orders,
                           config_of(matching_fixture, reads, writes), matching_fixture->arena);
}

static size_t
count_partitions(struct matching_fixture *matching_fixture)
{
    API(TaskListPartitionMetadata) **partitions;
    size_t count;
    EXPECT_OK(matching_list_partitions(matching_fixture->matching, &orders, matching_fixture->arena,
                                       &partitions, &count));
    return count;
}

static const API(TaskListPartitionConfig) *
shown(struct matching_fixture *matching_fixture)
{
    API(DescribeTaskListResponse) *response =
        API_NEW(matching_fixture->arena, describe_task_list_response);
    EXPECT_OK(matching_describe(matching_fixture->matching, &orders, false, matching_fixture->arena,
                                response));
    return response->partition_config;
}

static void
by_hand(struct matching_fixture *matching_fixture)
{
    EXPECT_EQ(count_partitions(matching_fixture), 1);
    EXPECT_OK(divide(matching_fixture, 4, 3));
    EXPECT_EQ(count_partitions(matching_fixture), 4);
    EXPECT_EQ(shown(matching_fixture)->version, 1);
    EXPECT_EQ(shown(matching_fixture)->n_write_partitions, 3);
    EXPECT_OK(divide(matching_fixture, 4, 3)); /* nothing changes */
    EXPECT_EQ(shown(matching_fixture)->version, 1);
    fixture_sleep(matching_fixture, SHORT);
    fixture_add(matching_fixture, DECISIONS, 1, 30);
    for (int i = 0; i < 30; i++)
        EXPECT(fixture_take(matching_fixture, DECISIONS, NS_PER_S) > 0);
    EXPECT_EQ(matching_fixture->partitions_seen,
              3); /* none was put into the one that is only read */
    EXPECT_OK(divide(matching_fixture, 4, 1));
    EXPECT_EQ(shown(matching_fixture)->version, 2);
}

static void
still_known(struct matching_fixture *matching_fixture)
{
    EXPECT_EQ(count_partitions(matching_fixture), 4);
    EXPECT_EQ(shown(matching_fixture)->version, 2);
    EXPECT_OK(divide(matching_fixture, 1, 1));
    EXPECT_EQ(count_partitions(matching_fixture), 1);
}

TEST(divide, an_operator_divides_a_list_and_it_stays_so_over_a_restart, "C-015", "C-019")
{
    for (unsigned loops = 1; loops <= 3; loops++) {
        struct matching_fixture *matching_fixture = memory_zalloc(1, sizeof *matching_fixture);
        matching_fixture->base = memory_base_new(1);
        matching_fixture->body = by_hand;
        fixture_run_on(matching_fixture, loops);
        matching_fixture->body = still_known;
        fixture_run_on(matching_fixture, loops);
        memory_base_free(matching_fixture->base);
        memory_free(matching_fixture);
    }
}

MATCHING_TEST(divide, what_is_no_division_is_refused, fixture_run(body, NULL, 2), "C-018")
{
    struct error *err = divide(matching_fixture, 2, 3);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "read partitions (2) < write partitions (3)");
    EXPECT_TEXT(divide(matching_fixture, 2, 0)->message, "write partitions < 1");
    EXPECT_TEXT(divide(matching_fixture, 0, 0)->message, "read partitions < 1");
    API(TaskListPartitionConfig) *config = config_of(matching_fixture, 2, 1);
    config->read_partitions[0]->key = 1;
    config->read_partitions[1]->key = 2;
    EXPECT_TEXT(
        matching_divide(matching_fixture->matching, &orders, config, matching_fixture->arena)
            ->message,
        "the root partition must always be in read partitions");
    config = config_of(matching_fixture, 2, 2);
    config->write_partitions[1]->key = 5;
    EXPECT_TEXT(
        matching_divide(matching_fixture->matching, &orders, config, matching_fixture->arena)
            ->message,
        "partition 5 included in write but not read");
}

/* Partitions 0 and 1 are for one group, 2 for another. */
static API(TaskListPartitionConfig) *
config_with_groups(struct matching_fixture *matching_fixture, char **one, char **other)
{
    API(TaskListPartitionConfig) *config = config_of(matching_fixture, 3, 3);
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
meet_as(struct matching_fixture *matching_fixture, const char *group, uint64_t row)
{
    struct test_poll test_poll;
    matching_fixture->group = matching_fixture->identity = group;
    fixture_add(matching_fixture, DECISIONS, row, row);
    fixture_sleep(matching_fixture, SHORT);
    test_poll_start(matching_fixture, DECISIONS, &test_poll, NS_PER_S);
    EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
    int32_t partition = test_poll.poll.task->partition;
    EXPECT_EQ(test_poll.poll.partition, partition);
    test_poll_finish(matching_fixture, &test_poll);
    return partition;
}

MATCHING_TEST(divide, a_group_meets_in_the_partitions_that_are_for_it,
              fixture_run(body, "system.enableTasklistIsolation: [{value: true}]\n", 2), "C-027")
{
    char *one = "north", *other = "south";
    EXPECT_OK(matching_divide(matching_fixture->matching, &orders,
                              config_with_groups(matching_fixture, &one, &other),
                              matching_fixture->arena));
    fixture_sleep(matching_fixture, SHORT);
    for (uint64_t row = 1; row <= 4; row++) {
        EXPECT_EQ(meet_as(matching_fixture, "south", 10 + row), 2);
        EXPECT(meet_as(matching_fixture, "north", 20 + row) < 2);
        EXPECT(meet_as(matching_fixture, "nobody's", 30 + row) <
               3); /* for all, where none is for it */
    }
    EXPECT_OK(matching_divide(matching_fixture->matching, &orders,
                              config_with_groups(matching_fixture, &other, &one),
                              matching_fixture->arena));
    fixture_sleep(matching_fixture, SHORT);
    EXPECT_EQ(meet_as(matching_fixture, "north", 41), 2);
    EXPECT(meet_as(matching_fixture, "south", 42) < 2);
}

MATCHING_TEST(divide, more_groups_than_there_is_room_for_are_refused, fixture_run(body, NULL, 1),
              "C-018")
{
    char *names[257];
    for (size_t i = 0; i < array_length(names); i++)
        names[i] = "north";
    API(TaskListPartitionConfig) *config = config_of(matching_fixture, 2, 1);
    config->read_partitions[1]->value->isolation_groups = names;
    config->read_partitions[1]->value->n_isolation_groups = array_length(names);
    EXPECT_TEXT(
        matching_divide(matching_fixture->matching, &orders, config, matching_fixture->arena)
            ->message,
        "more than 256 isolation groups");
    config->read_partitions[1]->value->n_isolation_groups--;
    EXPECT_OK(
        matching_divide(matching_fixture->matching, &orders, config, matching_fixture->arena));
}

/* A partition that nobody reads any more is put away; the root stays. Who polls later gets its
 * tasks all the same. */
static void
put_away(struct matching_fixture *matching_fixture)
{
    EXPECT_OK(divide(matching_fixture, 3, 3));
    fixture_sleep(matching_fixture, SHORT);
    fixture_add(matching_fixture, DECISIONS, 1, 60);
    EXPECT_OK(divide(matching_fixture, 1, 1));
    for (int i = 0; i < 8; i++) { /* the root is used */
        struct task task = fixture_task(DECISIONS, 1000 + (uint64_t)i);
        task.expiry_time = 1;
        EXPECT(matching_add(matching_fixture->matching, &task));
        fixture_sleep(matching_fixture, 100 * NS_PER_S);
    }
    EXPECT(matching_fixture->done >= 40);
    for (int i = 0; i < 60; i++)
        EXPECT(fixture_take(matching_fixture, DECISIONS, 5 * NS_PER_S) > 0);
    EXPECT_EQ(fixture_take(matching_fixture, DECISIONS, SHORT), 0);
}

TEST(divide, a_partition_that_was_put_away_is_found_when_somebody_polls, "C-019")
{
    fixture_run(put_away, NULL, 1);
    fixture_run(put_away, NULL, 3);
}

/* --- weights -------------------------------------------------------------------------------------
 */

/* Tasks wait in one partition only: polls learn it, and go there. */
static void
weights(struct matching_fixture *matching_fixture)
{
    EXPECT_OK(divide(matching_fixture, 3, 3));
    fixture_sleep(matching_fixture, SHORT);
    fixture_add(matching_fixture, DECISIONS, 1, 3000);
    EXPECT_OK(divide(matching_fixture, 3, 1));
    fixture_sleep(matching_fixture, SHORT);
    int polls[3] = {0};
    for (int i = 0; i < 600; i++) {
        struct test_poll test_poll;
        test_poll_start(matching_fixture, DECISIONS, &test_poll, NS_PER_S);
        EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
        polls[test_poll.poll.partition]++;
        test_poll_finish(matching_fixture, &test_poll);
    }
    for (int i = 0; i < 3; i++)
        EXPECT(polls[i] > 100);
    fixture_add(matching_fixture, DECISIONS, 3001, 8000); /* all to the first */
    int first = 0;
    for (int i = 0; i < 600; i++) {
        struct test_poll test_poll;
        test_poll_start(matching_fixture, DECISIONS, &test_poll, NS_PER_S);
        EXPECT_EQ(test_poll_wait(&test_poll), POLL_MATCHED);
        first += test_poll.poll.partition == 0;
        test_poll_finish(matching_fixture, &test_poll);
    }
    EXPECT(first > 350); /* about two thirds of what waits is there */
}

TEST(divide, polls_go_where_much_waits, "C-017")
{
    fixture_run(weights, NULL, 2);
    fixture_run(weights, NULL, 1);
}

static void
in_turn(struct matching_fixture *matching_fixture)
{
    EXPECT_OK(divide(matching_fixture, 3, 3));
    fixture_sleep(matching_fixture, SHORT);
    int polls[3] = {0};
    for (int i = 0; i < 30; i++) {
        struct test_poll test_poll;
        test_poll_start(matching_fixture, DECISIONS, &test_poll, NS_PER_MS);
        EXPECT_EQ(test_poll_wait(&test_poll), POLL_EMPTY);
        polls[test_poll.poll.partition]++;
    }
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(polls[i], 10);
}

TEST(divide, polls_take_turns_where_little_waits, "C-017")
{
    fixture_run(in_turn, NULL, 2);
    fixture_run(in_turn, "system.tasklistLoadBalancerStrategy: [{value: round-robin}]", 1);
}

/* --- the scaler ----------------------------------------------------------------------------------
 */

/* So many tasks in each second, and pollers for them. */
static void
task_load(struct matching_fixture *matching_fixture, int per_second, int seconds)
{
    for (int second = 0; second < seconds; second++) {
        for (int i = 0; i < per_second; i++) {
            fixture_add(matching_fixture, DECISIONS, 1, 1);
            if (fixture_take(matching_fixture, DECISIONS, NS_PER_S) != 1)
                TEST_FAIL("a task got lost");
        }
        fixture_sleep(matching_fixture, NS_PER_S);
    }
}

static void
follow_load(struct matching_fixture *matching_fixture)
{
    task_load(matching_fixture, 15, 50);
    EXPECT_EQ(count_partitions(matching_fixture), 1); /* not for a minute yet */
    task_load(matching_fixture, 15, 60);
    EXPECT_EQ(count_partitions(matching_fixture), 2); /* 15 per second, 10 for each */
    task_load(matching_fixture, 35, 110);
    size_t most = count_partitions(matching_fixture);
    EXPECT(most == 4);
    task_load(matching_fixture, 1, 100);
    EXPECT_EQ(count_partitions(matching_fixture), most); /* not for two minutes yet */
    task_load(matching_fixture, 1, 120);
    EXPECT_EQ(count_partitions(matching_fixture), 1);
    struct error *err = divide(matching_fixture, 2, 2);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, "Manual update is not allowed because adaptive scaler is enabled.");
}

TEST(divide, the_number_of_partitions_follows_the_load, "C-020", "C-018")
{
    const char *yaml = "matching.enableAdaptiveScaler: [{value: true}]\n"
                       "matching.partitionUpscaleRPS: [{value: 10}]\n";
    fixture_run(follow_load, yaml, 2);
    fixture_run(follow_load, yaml, 1);
}
