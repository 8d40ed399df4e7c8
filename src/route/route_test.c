/* route_test.c - which shard a workflow id belongs to, and that work runs where its owner lives. */
#include "route/life.h"

#include <stdio.h>

#include "base/test.h"
#include "fiber/linux/test_loops.h"
#include "fiber/loop.h"
#include "route/task.h"
#include "wire/message.h"

/* Values of the same fingerprint in other clusters of a group: they must agree, or replication
 * cannot find a run. */
TEST(route, a_workflow_id_has_the_shard_that_other_clusters_give_it)
{
    EXPECT_EQ(route_shard_of(slice_text(""), 16384), 0xdc56d17au % 16384);
    uint32_t seen = 0;
    for (int i = 0; i < 1000; i++) {
        char id[16];
        int length = snprintf(id, sizeof id, "workflow-%d", i);
        uint32_t shard = route_shard_of(slice_of(id, (size_t)length), 16);
        EXPECT(shard < 16);
        seen |= 1u << shard;
    }
    EXPECT_EQ(seen, 0xffff);
}

struct shard_call {
    unsigned loop;
};

static void
note_loop(void *argument)
{
    ((struct shard_call *)argument)->loop = loop_index(loop_self());
}

LOOP_TEST(route, work_for_a_shard_runs_on_the_loop_of_the_shard, 2)
{
    for (uint32_t shard = 0; shard < 8; shard++) {
        struct shard_call shard_call = {.loop = 99};
        route_within_process(owner_of_shard(shard), note_loop, &shard_call);
        EXPECT_EQ(shard_call.loop, shard % 2);
    }
}

static struct task
send_task(const struct task *task, struct arena *arena)
{
    INTERNAL(Task) sent = task_to_message(task), *received = NULL;
    struct slice bytes = message_encode(arena, &sent.base);
    EXPECT_OK(message_decode(arena, INTERNAL_TYPE(task), bytes, &received));
    return task_from_message(received);
}

ARENA_TEST(route, a_task_survives_the_way)
{
    struct task task = {.type = TASK_ACTIVITY,
                        .kind = LIST_STICKY,
                        .domain_id = "domain",
                        .list = "list",
                        .normal_list = "normal",
                        .run_domain_id = "of the run",
                        .workflow_id = "workflow",
                        .run_id = "run",
                        .schedule_id = -5,
                        .attempt = 6,
                        .created_time = 7,
                        .expiry_time = 8,
                        .shard = 9,
                        .range_id = 10,
                        .row = UINT64_MAX,
                        .isolation_group = "group",
                        .number = -12,
                        .partition = 13};
    struct task read = send_task(&task, arena);
    EXPECT(read.type == task.type && read.kind == task.kind && !task_is_query(&read));
    EXPECT_TEXT(read.domain_id, task.domain_id);
    EXPECT_TEXT(read.list, task.list);
    EXPECT_TEXT(read.normal_list, task.normal_list);
    EXPECT_TEXT(read.run_domain_id, task.run_domain_id);
    EXPECT_TEXT(read.workflow_id, task.workflow_id);
    EXPECT_TEXT(read.run_id, task.run_id);
    EXPECT_TEXT(read.isolation_group, task.isolation_group);
    EXPECT(read.schedule_id == -5 && read.attempt == 6);
    EXPECT(read.created_time == 7 && read.expiry_time == 8);
    EXPECT(read.shard == 9 && read.range_id == 10 && read.row == UINT64_MAX);
    EXPECT(read.number == -12 && read.partition == 13);
    task.query_id = "";
    task.query = slice_text("\xff what");
    read = send_task(&task, arena);
    EXPECT(task_is_query(&read) && slice_equal(read.query, task.query));
}
