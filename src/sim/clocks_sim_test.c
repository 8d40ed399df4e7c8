/* clocks_sim_test.c - the wall clocks of three hosts of one cluster are set ahead and back by up to
 * hours while hosts crash and take shards from each other.
 *
 * What is at stake: a shard remembers before which time it has no timers, and that time may lie
 * ahead of a clock that was set back. Method: runs without a worker end by their timeout, which is
 * an alarm like any other. After each storm the clocks stay as they are: a run that is begun then
 * ends as long after its start as its timeout says, and a bound. Then the clocks are set ahead of
 * all that they ever showed, and every run that is still open has to end. No time is measured by a
 * clock that was set, but by the world's own. */
#include "base/check.h"
#include "base/memory.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "sim/calls.h"
#include "sim/marks.h"
#include "sim/nemesis.h"
#include "sim/verdict.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

#define WORKFLOW_API "/uber.cadence.api.v1.WorkflowAPI/"
#define DOMAIN       "clocks"
#define HOUR         (3600 * NS_PER_S)
#define STEP_MAX     (2 * HOUR)
#define CALL_TIMEOUT (5 * NS_PER_S)
#define STORM        (60 * NS_PER_S)
#define ROUNDS       4
#define FRESH_PROBES 8
#define PROBES_MAX   512
#define LATE_MAX     40 /* seconds after its time, once all hosts serve */

enum phase {
    PHASE_STORM, /* hosts are harmed and clocks are set; runs begin */
    PHASE_FRESH, /* all is calm: the runs that begin now end in time */
    PHASE_OLD,   /* the clocks are ahead: all runs end */
    PHASE_DONE
};

struct probe {
    int64_t seconds; /* of its timeout */
    bool is_over;
};

struct story {
    struct sim sim;
    struct nemesis nemesis;
    struct verdict verdict;
    enum phase phase;
    struct probe probes[PROBES_MAX];
    unsigned count;
    struct load_call call; /* of the client's fiber */
};

/* --- calls ---- */

static struct error *
ask(struct story *story, const char *path, const ProtobufCMessage *request,
    const ProtobufCMessageDescriptor *type, ProtobufCMessage **response)
{
    story->call.host = (unsigned)entropy_below(story->sim.count);
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    struct error *err = load_send(&story->call, path, request, type, response);
    fiber_set_deadline(NEVER);
    return err;
}

static const char *
probe_id(const struct story *story, const struct probe *probe)
{
    return arena_format(story->call.arena, "probe-%zu", (size_t)(probe - story->probes));
}

static bool
start_once(struct story *story, struct probe *probe)
{
    struct arena *arena = story->call.arena;
    API(StartWorkflowExecutionRequest) *request =
        message_new(arena, API_TYPE(start_workflow_execution_request));
    request->domain = DOMAIN;
    request->workflow_id = (char *)probe_id(story, probe);
    request->request_id =
        arena_format(arena, "00000000-0000-4000-8000-%012zu", (size_t)(probe - story->probes));
    request->workflow_type = message_new(arena, API_TYPE(workflow_type));
    request->workflow_type->name = "probe";
    request->task_list = message_new(arena, API_TYPE(task_list));
    request->task_list->name = "nobody polls";
    request->execution_start_to_close_timeout = presence_make_duration(arena, probe->seconds);
    request->task_start_to_close_timeout = presence_make_duration(arena, probe->seconds);
    ProtobufCMessage *response = NULL;
    return ask(story, WORKFLOW_API "StartWorkflowExecution", &request->base,
               API_TYPE(start_workflow_execution_response), &response) == NULL;
}

/* Did it end? False also if nobody says so. */
static bool
look_closed(struct story *story, const struct probe *probe)
{
    struct arena *arena = story->call.arena;
    API(DescribeWorkflowExecutionRequest) *request =
        message_new(arena, API_TYPE(describe_workflow_execution_request));
    request->domain = DOMAIN;
    request->workflow_execution = message_new(arena, API_TYPE(workflow_execution));
    request->workflow_execution->workflow_id = (char *)probe_id(story, probe);
    ProtobufCMessage *response = NULL;
    if (ask(story, WORKFLOW_API "DescribeWorkflowExecution", &request->base,
            API_TYPE(describe_workflow_execution_response), &response) != NULL)
        return false;
    return ((API(DescribeWorkflowExecutionResponse) *)response)
               ->workflow_execution_info->close_status !=
           API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_INVALID);
}

/* --- probes ---- */

static void
rest(struct story *story, int64_t nanoseconds)
{
    (void)!fiber_sleep(nanoseconds, story->call.arena);
    arena_reset(story->call.arena);
}

static void
start_probe(struct story *story)
{
    check(story->count < PROBES_MAX);
    struct probe *probe = &story->probes[story->count++];
    probe->seconds = 1 + (int64_t)entropy_below(30);
    while (!start_once(story, probe))
        rest(story, 100 * NS_PER_MS);
}

/* It has to be over when `limit` seconds have passed. */
static void
await_probe(struct story *story, struct probe *probe, int64_t limit)
{
    int64_t begun = clock_monotonic();
    while (!probe->is_over && story->verdict.violation == NULL) {
        int64_t waited = (clock_monotonic() - begun) / NS_PER_S;
        probe->is_over = look_closed(story, probe);
        if (!probe->is_over && waited > limit)
            verdict_violate(
                &story->verdict, "probe %zu with a timeout of %lld s is open after %lld s%s",
                (size_t)(probe - story->probes), (long long)probe->seconds, (long long)waited,
                story->phase == PHASE_OLD ? " with the clock ahead" : "");
        if (!probe->is_over)
            rest(story, NS_PER_S);
    }
}

static void
register_domain(struct story *story)
{
    struct load_registration registration = {.name = DOMAIN};
    struct error *err;
    while ((err = load_register(&story->call, &registration)) != NULL &&
           err->kind != ERR_DOMAIN_ALREADY_EXISTS)
        rest(story, 100 * NS_PER_MS);
}

static void
run_client_round(struct story *story)
{
    while (story->phase == PHASE_STORM) {
        start_probe(story);
        rest(story, (int64_t)entropy_below(2 * NS_PER_S));
    }
    unsigned first = story->count;
    for (unsigned i = 0; i < FRESH_PROBES; i++)
        start_probe(story);
    for (unsigned i = first; i < story->count; i++)
        await_probe(story, &story->probes[i], story->probes[i].seconds + LATE_MAX);
    story->phase = PHASE_OLD;
    rest(story, NS_PER_S); /* the clocks are set ahead */
    for (unsigned i = 0; i < story->count; i++)
        await_probe(story, &story->probes[i], LATE_MAX);
    story->phase = PHASE_DONE;
}

static void
client_main(void *argument)
{
    struct story *story = argument;
    struct arena *arena = arena_new(0);
    story->call = (struct load_call){.clients = load_clients_new(&story->sim), .arena = arena};
    register_domain(story);
    for (int round = 0; round < ROUNDS; round++) {
        run_client_round(story);
        while (story->phase == PHASE_DONE && round + 1 < ROUNDS)
            rest(story, NS_PER_S);
    }
    load_clients_free(story->call.clients);
    arena_free(arena);
}

/* --- storms ---- */

static bool
is_fresh_over(void *context)
{
    return ((struct story *)context)->phase > PHASE_FRESH;
}

static bool
is_done(void *context)
{
    return ((struct story *)context)->phase == PHASE_DONE;
}

static void
run_round(struct story *story)
{
    story->phase = PHASE_STORM;
    if (!host_is_running(story->sim.client))
        host_start(story->sim.client, client_main, story);
    nemesis_run(&story->nemesis, STORM);
    EXPECT(nemesis_relent(&story->nemesis));
    story->phase = PHASE_FRESH;
    EXPECT(world_run_until(story->sim.world, is_fresh_over, story, HOUR));
    nemesis_set_clocks(&story->nemesis, story->nemesis.clock_ahead_max);
    EXPECT(world_run_until(story->sim.world, is_done, story, HOUR));
}

static void
run_storm(uint64_t seed, struct marks *marks)
{
    struct story *story = memory_zalloc(1, sizeof *story);
    sim_open_cluster(&story->sim, &(struct world_options){.seed = seed}, 3, 2);
    story->nemesis = (struct nemesis){.sim = &story->sim,
                                      .pause_max = 3 * NS_PER_S,
                                      .is_at_commits = seed % 2 == 0,
                                      .clock_step_max = STEP_MAX};
    for (unsigned i = 0; i < story->sim.count; i++)
        sim_host_start(&story->sim.hosts[i]);
    for (int round = 0; round < ROUNDS && story->verdict.violation == NULL; round++)
        run_round(story);
    if (story->verdict.violation != NULL)
        TEST_FAIL("seed %llu: %s", (unsigned long long)seed, story->verdict.violation);
    marks_add(marks, story->sim.world);
    sim_close(&story->sim);
    memory_free(story);
}

TEST(clocks_sim, a_timer_rings_in_time_whatever_the_wall_clocks_were_set_to)
{
    struct marks marks = {.usual = {"clock_set_back", "clock_set_ahead", "alarm_level_lowered",
                                    "shard_lost", "crash_while_serving"}};
    for (int i = 0; i < test_seed_count(); i++)
        run_storm(test_seed(i), &marks);
    marks_expect(&marks, 3);
}
