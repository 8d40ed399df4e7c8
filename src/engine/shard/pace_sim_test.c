/* pace_sim_test.c - the limits of workflow ids in a shard, by the virtual clock. */
#include "engine/shard/inside.h"
#include "engine/shard/rig.h"
#include "fiber/sim/world.h"

#define ACTIVITIES 12

static void
set(struct rig *rig, const char *yaml)
{
    EXPECT_OK(dynamic_load(rig->dynamic, slice_text(yaml), "dynamic.yaml", rig->arena));
}

static bool
has_ended(void *context)
{
    return !host_is_running(context);
}

static void
run_alone(void (*function)(void *base))
{
    struct memory_base *base = memory_base_new(1);
    struct world *world = world_new(.seed = 1);
    struct host *host = world_add_host(world, "alone", 1);
    host_start(host, function, base);
    EXPECT(world_run_until(world, has_ended, host, 3600 * NS_PER_S));
    EXPECT_EQ(host_heap_blocks(host), 0);
    world_free(world);
    memory_base_free(base);
}

/* The first task of a run that has nothing but a decision. */
static const struct task *
begin_run(struct rig *rig, const char *workflow_id)
{
    size_t before = rig->tasks.count;
    EXPECT_OK(rig_start(rig, workflow_id, workflow_id, 100, rig->arena, NULL));
    rig_wait(rig->tasks.count > before);
    const struct task *task = rig->tasks.items[before];
    EXPECT_OK(rig_start_decision(rig, task, "poll", rig->arena));
    return task;
}

/* Activities of one run are offered at its pace, in their order, and those of a neighbour at once.
 */
static void
slow_tasks(void *base)
{
    struct rig rig;
    rig_open(&rig, base);
    set(&rig, "history.workflowIDInternalRPS: [{value: 4}]\n");
    rig_take(&rig);
    const struct task *busy = begin_run(&rig, "busy"), *calm = begin_run(&rig, "calm");
    int64_t began = clock_monotonic();
    EXPECT_OK(rig_schedule(&rig, busy, ACTIVITIES, rig.arena));
    EXPECT_OK(rig_schedule(&rig, calm, 2, rig.arena));
    rig_sleep(NS_PER_MS);
    EXPECT_EQ(rig.tasks.count, 2 + 3 + 2); /* a decision was the first of the four */
    EXPECT_TEXT(rig.tasks.items[6]->workflow_id, "calm");
    EXPECT_EQ(rig_rows(&rig, ROW_TRANSFER), ACTIVITIES + 2); /* none is lost, none was started */
    rig_wait(rig.tasks.count == 2 + ACTIVITIES + 2);
    int64_t took = clock_monotonic() - began;
    EXPECT(took > (ACTIVITIES - 4) * NS_PER_S / 4 && took < (ACTIVITIES - 2) * NS_PER_S / 4);
    int64_t schedule_id = 0;
    for (size_t i = 2; i < rig.tasks.count; i++) {
        if (strcmp(rig.tasks.items[i]->workflow_id, "busy") != 0)
            continue;
        EXPECT(rig.tasks.items[i]->schedule_id > schedule_id);
        schedule_id = rig.tasks.items[i]->schedule_id;
    }
    rig_close(&rig);
}

TEST(shard_pace, tasks_of_a_busy_id_wait_in_their_order_and_no_other_id_does, "H-010", "H-011")
{
    run_alone(slow_tasks);
}

/* What waits is not forgotten when the setting goes, when the run ends, or with the shard. */
static void
released_tasks(void *base)
{
    struct rig rig;
    rig_open(&rig, base);
    rig.options.is_alone = true;
    set(&rig, "history.workflowIDInternalRPS: [{value: 1}]\n");
    rig_take(&rig);
    const struct task *busy = begin_run(&rig, "busy");
    EXPECT_OK(rig_schedule(&rig, busy, ACTIVITIES, rig.arena));
    const struct task *ended = begin_run(&rig, "ended");
    EXPECT_OK(rig_schedule(&rig, ended, ACTIVITIES, rig.arena));
    EXPECT_OK(rig_terminate(&rig, "ended", rig.arena));
    EXPECT_EQ(rig_rows(&rig, ROW_TRANSFER), ACTIVITIES);
    size_t before = rig.tasks.count;
    set(&rig, "history.workflowIDInternalRPS: [{value: 1}]\n"
              "history.workflowIDInternalRateLimitEnabled: [{value: false}]\n");
    rig_wait(rig.tasks.count == before + ACTIVITIES);
    rig_wait(map_count(rig.shard->tenure->outbox.pace.queues) == 0);
    rig_close(&rig);
}

TEST(shard_pace, a_limit_that_is_lifted_lets_go_of_what_waits, "H-002", "H-004")
{
    run_alone(released_tasks);
}

static void
refused_calls(void *base)
{
    struct rig rig;
    rig_open(&rig, base);
    set(&rig, "history.workflowIDExternalRPS: [{value: 5}]\n");
    rig_take(&rig);
    struct run_key key = {.domain_id = rig.domain_id, .workflow_id = "busy", .run_id = ""};
    struct run_key calm = {.domain_id = rig.domain_id, .workflow_id = "calm", .run_id = ""};
    struct run_key gone = {.domain_id = "no domain", .workflow_id = "busy", .run_id = ""};
    for (int i = 0; i < 5; i++)
        EXPECT_OK(shard_admit(rig.shard, &key, rig.arena));
    struct error *err = shard_admit(rig.shard, &key, rig.arena);
    EXPECT_KIND(err, ERR_SERVICE_BUSY);
    EXPECT_TEXT(err->message, "Too many requests for the workflow ID");
    EXPECT_OK(shard_admit(rig.shard, &calm, rig.arena));
    for (int i = 0; i < 100; i++)
        EXPECT_OK(shard_admit(rig.shard, &gone, rig.arena)); /* nobody knows its limit */
    struct limits_rate *rates;
    EXPECT_EQ(shard_hottest(rig.shard, NULL, 10, rig.arena, &rates), 2);
    EXPECT_TEXT(rates[0].workflow_id, "busy");
    EXPECT_EQ(rates[0].rate[LIMITS_EXTERNAL], 6);
    rig_sleep(NS_PER_S);
    EXPECT_OK(shard_admit(rig.shard, &key, rig.arena));
    rig_sleep(60 * NS_PER_S); /* and then nothing ticks any more */
    EXPECT_EQ(rig.shard->tenure->outbox.pace.tick_time, NEVER);
    rig_close(&rig);
}

TEST(shard_pace, calls_above_the_limit_are_refused_and_the_next_second_brings_more, "H-006",
     "H-012")
{
    run_alone(refused_calls);
}
