/* throttle_sim_test.c - the limits of workflow ids in a shard, by the virtual clock. */
#include "engine/shard/inside.h"
#include "engine/test/shard_cases.h"
#include "engine/test/shard_fixture.h"
#include "fiber/sim/world.h"

#define ACTIVITIES 12

static void
set(struct shard_fixture *fixture, const char *yaml)
{
    EXPECT_OK(dynamic_load(fixture->dynamic, slice_text(yaml), "dynamic.yaml", fixture->arena));
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
begin_run(struct shard_fixture *fixture, const char *workflow_id)
{
    size_t before = fixture->tasks.count;
    EXPECT_OK(shard_fixture_start(fixture, workflow_id, workflow_id, 100, fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count > before);
    const struct task *task = fixture->tasks.items[before];
    EXPECT_OK(shard_fixture_start_decision(fixture, task, "poll", fixture->arena));
    return task;
}

/* Activities of one run are offered at its rate, in their order, and those of a neighbour at once.
 */
static void
slow_tasks(void *base)
{
    struct shard_fixture fixture;
    shard_fixture_open(&fixture, base);
    set(&fixture, "history.workflowIDInternalRPS: [{value: 4}]\n");
    shard_fixture_take(&fixture);
    const struct task *busy = begin_run(&fixture, "busy"), *calm = begin_run(&fixture, "calm");
    int64_t began = clock_monotonic();
    EXPECT_OK(shard_fixture_schedule(&fixture, busy, ACTIVITIES, fixture.arena));
    EXPECT_OK(shard_fixture_schedule(&fixture, calm, 2, fixture.arena));
    shard_fixture_sleep(NS_PER_MS);
    EXPECT_EQ(fixture.tasks.count, 2 + 3 + 2); /* a decision was the first of the four */
    EXPECT_TEXT(fixture.tasks.items[6]->workflow_id, "calm");
    EXPECT_EQ(shard_fixture_rows(&fixture, ROW_TRANSFER),
              ACTIVITIES + 2); /* none is lost, none was started */
    shard_fixture_wait(fixture.tasks.count == 2 + ACTIVITIES + 2);
    int64_t took = clock_monotonic() - began;
    EXPECT(took > (ACTIVITIES - 4) * NS_PER_S / 4 && took < (ACTIVITIES - 2) * NS_PER_S / 4);
    int64_t schedule_id = 0;
    for (size_t i = 2; i < fixture.tasks.count; i++) {
        if (strcmp(fixture.tasks.items[i]->workflow_id, "busy") != 0)
            continue;
        EXPECT(fixture.tasks.items[i]->schedule_id > schedule_id);
        schedule_id = fixture.tasks.items[i]->schedule_id;
    }
    shard_fixture_close(&fixture);
}

TEST(shard_throttle, tasks_of_a_busy_id_wait_in_their_order_and_no_other_id_does, "H-010", "H-011")
{
    run_alone(slow_tasks);
}

/* What waits is not forgotten when the setting goes, when the run ends, or with the shard. */
static void
released_tasks(void *base)
{
    struct shard_fixture fixture;
    shard_fixture_open(&fixture, base);
    fixture.options.is_alone = true;
    set(&fixture, "history.workflowIDInternalRPS: [{value: 1}]\n");
    shard_fixture_take(&fixture);
    const struct task *busy = begin_run(&fixture, "busy");
    EXPECT_OK(shard_fixture_schedule(&fixture, busy, ACTIVITIES, fixture.arena));
    const struct task *ended = begin_run(&fixture, "ended");
    EXPECT_OK(shard_fixture_schedule(&fixture, ended, ACTIVITIES, fixture.arena));
    EXPECT_OK(shard_fixture_terminate(&fixture, "ended", fixture.arena));
    EXPECT_EQ(shard_fixture_rows(&fixture, ROW_TRANSFER), ACTIVITIES);
    size_t before = fixture.tasks.count;
    set(&fixture, "history.workflowIDInternalRPS: [{value: 1}]\n"
                  "history.workflowIDInternalRateLimitEnabled: [{value: false}]\n");
    shard_fixture_wait(fixture.tasks.count == before + ACTIVITIES);
    shard_fixture_wait(map_count(fixture.shard->tenure->outbox.throttle.queues) == 0);
    shard_fixture_close(&fixture);
}

TEST(shard_throttle, a_limit_that_is_lifted_lets_go_of_what_waits, "H-002", "H-004")
{
    run_alone(released_tasks);
}

/* More tasks of one run than memory has room for. */
static void
flood(void *base)
{
    enum { FLOOD = 60 };
    struct shard_fixture fixture;
    shard_fixture_open(&fixture, base);
    fixture.options.transfers_max = 16;
    set(&fixture, "history.workflowIDInternalRPS: [{value: 4}]\n");
    shard_fixture_take(&fixture);
    const struct task *busy = begin_run(&fixture, "busy");
    EXPECT_OK(shard_fixture_schedule(&fixture, busy, FLOOD, fixture.arena));
    int64_t began = clock_monotonic();
    for (int i = 0; i < 4; i++) { /* nobody else waits */
        const char *calm = arena_format(fixture.arena, "calm-%d", i);
        begin_run(&fixture, calm);
        EXPECT_OK(shard_fixture_terminate(&fixture, calm, fixture.arena));
    }
    EXPECT(clock_monotonic() - began < NS_PER_S);
    shard_fixture_wait(fixture.tasks.count == 1 + FLOOD + 4);
    int64_t schedule_id = 0;
    for (size_t i = 1; i < fixture.tasks.count; i++) {
        const struct task *task = fixture.tasks.items[i];
        if (strcmp(task->workflow_id, "busy") != 0)
            continue;
        EXPECT(task->schedule_id > schedule_id);
        schedule_id = task->schedule_id;
        shard_task_done(fixture.shard, task->range_id, task->row);
    }
    shard_fixture_wait(shard_fixture_rows(&fixture, ROW_TRANSFER) == 0);
    EXPECT_EQ(fixture.shard->tenure->outbox.deferred_rows.waiting_long, 0);
    EXPECT_EQ(fixture.shard->tenure->outbox.deferred_rows.low, 0);
    /* And one that ends while its tasks wait. */
    const struct task *ended = begin_run(&fixture, "ended");
    EXPECT_OK(shard_fixture_schedule(&fixture, ended, FLOOD, fixture.arena));
    shard_fixture_sleep(NS_PER_MS);
    EXPECT_OK(shard_fixture_terminate(&fixture, "ended", fixture.arena));
    shard_fixture_wait(shard_fixture_rows(&fixture, ROW_TRANSFER) == 0);
    shard_fixture_wait(map_count(fixture.shard->tenure->outbox.throttle.queues) == 0);
    /* The shard goes while tasks wait. */
    const struct task *last = begin_run(&fixture, "last");
    EXPECT_OK(shard_fixture_schedule(&fixture, last, FLOOD, fixture.arena));
    shard_fixture_sleep(NS_PER_S);
    shard_fixture_close(&fixture);
}

TEST(shard_throttle, a_queue_that_memory_has_no_room_for_keeps_nobody_else_waiting, "H-010",
     "H-011")
{
    run_alone(flood);
}

static void
count_line(void *context, const char *line, size_t length)
{
    if (memmem(line, length, "Rate limiting workflowID", 24) == NULL)
        return;
    EXPECT(memmem(line, length, "\"request-type\":\"internal\"", 25) != NULL);
    EXPECT(memmem(line, length, "\"wf-id\":\"busy\"", 14) != NULL);
    ++*(int *)context;
}

static int64_t
wall_clock(void *context)
{
    (void)context;
    return clock_wall();
}

/* A queue of tasks lasts for more than a minute, and none comes meanwhile. */
static void
named_in_the_log(void *base)
{
    enum { FLOOD = 100 };
    int lines = 0;
    struct log log = {.level = LOG_INFO, .now = wall_clock, .sink = count_line, .context = &lines};
    struct shard_fixture fixture;
    shard_fixture_open(&fixture, base);
    fixture.options.log = &log;
    fixture.options.transfers_max = 16;
    set(&fixture, "history.workflowIDInternalRPS: [{value: 1}]\n");
    shard_fixture_take(&fixture);
    const struct task *busy = begin_run(&fixture, "busy");
    EXPECT_OK(shard_fixture_schedule(&fixture, busy, FLOOD, fixture.arena));
    shard_fixture_sleep(NS_PER_S);
    EXPECT_EQ(lines, 1);
    shard_fixture_sleep(58 * NS_PER_S);
    EXPECT_EQ(lines, 2);
    shard_fixture_sleep(20 * NS_PER_S); /* and not with every task */
    EXPECT_EQ(lines, 2);
    EXPECT(fixture.tasks.count < FLOOD);
    shard_fixture_close(&fixture);
}

TEST(shard_throttle, the_log_names_an_id_each_minute_while_its_tasks_wait)
{
    run_alone(named_in_the_log);
}

/* --- rates ---- */

#define RATE      3
#define OFFER_IDS 3

/* Notes when tasks of each id were offered. */
struct offers {
    struct task_port port; /* of the fixture */
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

/* Tasks of several ids, most of them deferred, come at their rate also when the shard is lost and
 * its rows are offered once more. */
static void
keep_rates(void *base)
{
    enum { FLOOD = 40 };
    struct shard_fixture fixture;
    struct offers offers = {0};
    shard_fixture_open(&fixture, base);
    offers.port = fixture.options.tasks;
    fixture.options.tasks = (struct task_port){.offer = note_offer, .context = &offers};
    fixture.options.transfers_max = 16;
    fixture.options.is_alone = true;
    set(&fixture,
        arena_format(fixture.arena, "history.workflowIDInternalRPS: [{value: %d}]\n", RATE));
    shard_fixture_take(&fixture);
    const struct task *begun[OFFER_IDS];
    for (int i = 0; i < OFFER_IDS; i++)
        begun[i] = begin_run(&fixture, arena_format(fixture.arena, "%c", 'a' + i));
    for (int i = 0; i < OFFER_IDS; i++) {
        EXPECT_OK(shard_fixture_schedule(&fixture, begun[i], FLOOD, fixture.arena));
        shard_fixture_sleep((int64_t)entropy_below(2 * NS_PER_S));
    }
    for (int i = 0; i < 3; i++) {
        shard_fixture_sleep((int64_t)entropy_below(4 * NS_PER_S));
        case_overtake(&fixture);
        struct error *err =
            shard_fixture_signal(&fixture, "a", fixture.arena); /* it may find out */
        EXPECT(err == NULL || err->kind == ERR_SHARD_OWNERSHIP_LOST);
    }
    size_t before = fixture.tasks.count;
    shard_fixture_wait(fixture.tasks.count >= before + OFFER_IDS * FLOOD / 2);
    for (int i = 0; i < OFFER_IDS; i++) {
        expect_rate(&offers, i);
        vector_free(&offers.times[i]);
    }
    shard_fixture_close(&fixture);
}

TEST(shard_throttle, no_id_gets_more_tasks_in_a_second_than_its_limit_whatever_is_lost, "H-010")
{
    run_alone(keep_rates);
}

/* The shard is taken again and has one task, whose id had its share: its fiber finds that out while
 * it works, and nothing happens afterwards that would wake it. */
static void
wait_alone(void *base)
{
    struct shard_fixture fixture;
    shard_fixture_open(&fixture, base);
    fixture.options.is_alone = true;
    set(&fixture, "history.workflowIDInternalRPS: [{value: 1}]\n");
    shard_fixture_take(&fixture);
    EXPECT_OK(shard_fixture_start(&fixture, "busy", "busy", 100, fixture.arena, NULL));
    shard_fixture_wait(fixture.tasks.count == 1);
    case_overtake(&fixture);
    struct error *err = shard_fixture_signal(&fixture, "busy", fixture.arena); /* it finds out */
    EXPECT(err == NULL || err->kind == ERR_SHARD_OWNERSHIP_LOST);
    shard_fixture_sleep(100 * NS_PER_MS);
    EXPECT_EQ(map_count(fixture.shard->tenure->outbox.throttle.queues), 1);
    shard_fixture_sleep(NS_PER_S);
    EXPECT_EQ(fixture.tasks.count, 2);
    shard_fixture_close(&fixture);
}

TEST(shard_throttle, a_task_that_waits_in_an_idle_shard_goes_when_its_turn_comes)
{
    run_alone(wait_alone);
}

static void
refused_calls(void *base)
{
    struct shard_fixture fixture;
    shard_fixture_open(&fixture, base);
    set(&fixture, "history.workflowIDExternalRPS: [{value: 5}]\n");
    shard_fixture_take(&fixture);
    struct run_key key = {.domain_id = fixture.domain_id, .workflow_id = "busy", .run_id = ""};
    struct run_key calm = {.domain_id = fixture.domain_id, .workflow_id = "calm", .run_id = ""};
    struct run_key gone = {.domain_id = "no domain", .workflow_id = "busy", .run_id = ""};
    for (int i = 0; i < 5; i++)
        EXPECT_OK(shard_admit(fixture.shard, &key, fixture.arena));
    struct error *err = shard_admit(fixture.shard, &key, fixture.arena);
    EXPECT_KIND(err, ERR_SERVICE_BUSY);
    EXPECT_TEXT(err->message, "Too many requests for the workflow ID");
    EXPECT_OK(shard_admit(fixture.shard, &calm, fixture.arena));
    for (int i = 0; i < 100; i++)
        EXPECT_OK(shard_admit(fixture.shard, &gone, fixture.arena)); /* nobody knows its limit */
    struct limits_rate *rates;
    EXPECT_EQ(shard_hottest(fixture.shard, NULL, 10, fixture.arena, &rates), 2);
    EXPECT_TEXT(rates[0].workflow_id, "busy");
    EXPECT_EQ(rates[0].rate[LIMITS_EXTERNAL], 6);
    shard_fixture_sleep(NS_PER_S);
    EXPECT_OK(shard_admit(fixture.shard, &key, fixture.arena));
    shard_fixture_sleep(60 * NS_PER_S); /* and then nothing ticks any more */
    EXPECT_EQ(fixture.shard->tenure->outbox.throttle.tick_time, NEVER);
    shard_fixture_close(&fixture);
}

TEST(shard_throttle, calls_above_the_limit_are_refused_and_the_next_second_brings_more, "H-006",
     "H-012")
{
    run_alone(refused_calls);
}
