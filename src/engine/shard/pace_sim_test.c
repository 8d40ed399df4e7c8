/* pace_sim_test.c - the limits of workflow ids in a shard, by the virtual clock. */
#include "engine/shard/cases.h"
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

/* More tasks of one run than memory has room for. */
static void
flood(void *base)
{
    enum { FLOOD = 60 };
    struct rig rig;
    rig_open(&rig, base);
    rig.options.transfers_max = 16;
    set(&rig, "history.workflowIDInternalRPS: [{value: 4}]\n");
    rig_take(&rig);
    const struct task *busy = begin_run(&rig, "busy");
    EXPECT_OK(rig_schedule(&rig, busy, FLOOD, rig.arena));
    int64_t began = clock_monotonic();
    for (int i = 0; i < 4; i++) { /* nobody else waits */
        const char *calm = arena_format(rig.arena, "calm-%d", i);
        begin_run(&rig, calm);
        EXPECT_OK(rig_terminate(&rig, calm, rig.arena));
    }
    EXPECT(clock_monotonic() - began < NS_PER_S);
    rig_wait(rig.tasks.count == 1 + FLOOD + 4);
    int64_t schedule_id = 0;
    for (size_t i = 1; i < rig.tasks.count; i++) {
        const struct task *task = rig.tasks.items[i];
        if (strcmp(task->workflow_id, "busy") != 0)
            continue;
        EXPECT(task->schedule_id > schedule_id);
        schedule_id = task->schedule_id;
        shard_task_done(rig.shard, task->range_id, task->row);
    }
    rig_wait(rig_rows(&rig, ROW_TRANSFER) == 0);
    EXPECT_EQ(rig.shard->tenure->outbox.parking.resting, 0);
    EXPECT_EQ(rig.shard->tenure->outbox.parking.low, 0);
    /* And one that ends while its tasks wait. */
    const struct task *ended = begin_run(&rig, "ended");
    EXPECT_OK(rig_schedule(&rig, ended, FLOOD, rig.arena));
    rig_sleep(NS_PER_MS);
    EXPECT_OK(rig_terminate(&rig, "ended", rig.arena));
    rig_wait(rig_rows(&rig, ROW_TRANSFER) == 0);
    rig_wait(map_count(rig.shard->tenure->outbox.pace.queues) == 0);
    /* The shard goes while tasks wait. */
    const struct task *last = begin_run(&rig, "last");
    EXPECT_OK(rig_schedule(&rig, last, FLOOD, rig.arena));
    rig_sleep(NS_PER_S);
    rig_close(&rig);
}

TEST(shard_pace, a_queue_that_memory_has_no_room_for_keeps_nobody_else_waiting, "H-010", "H-011")
{
    run_alone(flood);
}

/* --- rates ---- */

#define RATE      3
#define OFFER_IDS 3

/* Notes when tasks of each id were offered. */
struct offers {
    struct task_port port; /* of the rig */
    vector_of(int64_t) times[OFFER_IDS];
};

static bool
note_offer(void *context, const struct task *task)
{
    struct offers *offers = context;
    vector_push(&offers->times[task->workflow_id[0] - 'a'], clock_monotonic());
    return offers->port.offer(offers->port.context, task);
}

/* In no second more than a full bucket and what the second brings. */
static void
expect_rate(const struct offers *offers, int id)
{
    size_t first = 0;
    for (size_t i = 0; i < offers->times[id].count; i++) {
        while (offers->times[id].items[i] - offers->times[id].items[first] >= NS_PER_S)
            first++;
        EXPECT(i - first + 1 <= 2 * RATE);
    }
}

/* Tasks of several ids, most of them parked, come at their pace also when the shard is lost and
 * its rows are offered once more. */
static void
keep_rates(void *base)
{
    enum { FLOOD = 40 };
    struct rig rig;
    struct offers offers = {0};
    rig_open(&rig, base);
    offers.port = rig.options.tasks;
    rig.options.tasks = (struct task_port){.offer = note_offer, .context = &offers};
    rig.options.transfers_max = 16;
    rig.options.is_alone = true;
    set(&rig, arena_format(rig.arena, "history.workflowIDInternalRPS: [{value: %d}]\n", RATE));
    rig_take(&rig);
    const struct task *begun[OFFER_IDS];
    for (int i = 0; i < OFFER_IDS; i++)
        begun[i] = begin_run(&rig, arena_format(rig.arena, "%c", 'a' + i));
    for (int i = 0; i < OFFER_IDS; i++) {
        EXPECT_OK(rig_schedule(&rig, begun[i], FLOOD, rig.arena));
        rig_sleep((int64_t)entropy_below(2 * NS_PER_S));
    }
    for (int i = 0; i < 3; i++) {
        rig_sleep((int64_t)entropy_below(4 * NS_PER_S));
        case_overtake(&rig);
        struct error *err = rig_signal(&rig, "a", rig.arena); /* it may find out */
        EXPECT(err == NULL || err->kind == ERR_SHARD_OWNERSHIP_LOST);
    }
    size_t before = rig.tasks.count;
    rig_wait(rig.tasks.count >= before + OFFER_IDS * FLOOD / 2);
    for (int i = 0; i < OFFER_IDS; i++) {
        expect_rate(&offers, i);
        vector_free(&offers.times[i]);
    }
    rig_close(&rig);
}

TEST(shard_pace, no_id_gets_more_tasks_in_a_second_than_its_limit_whatever_is_lost, "H-010")
{
    run_alone(keep_rates);
}

/* The shard is taken again and has one task, whose id had its share: its fiber finds that out while
 * it works, and nothing happens afterwards that would wake it. */
static void
wait_alone(void *base)
{
    struct rig rig;
    rig_open(&rig, base);
    rig.options.is_alone = true;
    set(&rig, "history.workflowIDInternalRPS: [{value: 1}]\n");
    rig_take(&rig);
    EXPECT_OK(rig_start(&rig, "busy", "busy", 100, rig.arena, NULL));
    rig_wait(rig.tasks.count == 1);
    case_overtake(&rig);
    struct error *err = rig_signal(&rig, "busy", rig.arena); /* it finds out */
    EXPECT(err == NULL || err->kind == ERR_SHARD_OWNERSHIP_LOST);
    rig_sleep(100 * NS_PER_MS);
    EXPECT_EQ(map_count(rig.shard->tenure->outbox.pace.queues), 1);
    rig_sleep(NS_PER_S);
    EXPECT_EQ(rig.tasks.count, 2);
    rig_close(&rig);
}

TEST(shard_pace, a_task_that_waits_in_an_idle_shard_goes_when_its_turn_comes)
{
    run_alone(wait_alone);
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
