/* skip_sim_test.c - a server that skips time, on the simulated platform: workflows sleep for weeks,
 * a worker thinks about some decisions for a while, and the world's own clock shows what was waited
 * for.
 *
 * Checked of every history: no timer fired before its time, none later than a worker's thinking
 * explains, and all of it took moments of the world's time; time stood still while a worker had a
 * decision. */
#include "base/random.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "sim/world/calls.h"
#include "uber/cadence/api/v1/service_worker.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define DOMAIN       "sleepers"
#define LIST         "list"
#define WORKFLOWS    6
#define NAPS         4
#define DAY          (86400 * NS_PER_S)
#define THINKING_MAX (2 * NS_PER_S)
#define CALL_TIMEOUT (30 * NS_PER_S)

struct skip_fixture {
    struct sim *sim;
    struct random random;
    int64_t naps[WORKFLOWS][NAPS]; /* seconds */
    unsigned closed;
    bool is_over;
    int64_t begun, ended; /* the world's time */
    int64_t late_max;     /* ns: how late a timer fired at most */
    unsigned early;       /* timers that fired before their time */
};

static API(TaskList) *
make_list(struct arena *arena)
{
    return API_NEW(arena, task_list, .name = LIST);
}

/* One call to the host, tried until it is answered. */
static ProtobufCMessage *
send(struct load_call *call, const ProtobufCMessage *request)
{
    ProtobufCMessage *response = NULL;
    struct error *err;
    do {
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        err = load_send_at(call, request, &response);
        fiber_set_deadline(NEVER);
    } while (err != NULL && fiber_sleep(10 * NS_PER_MS, call->arena) == NULL);
    return response;
}

static void
start(struct load_call *call, const char *workflow_id)
{
    API(StartWorkflowExecutionRequest) *request =
        API_NEW(call->arena, start_workflow_execution_request, .domain = DOMAIN,
                .workflow_id = (char *)workflow_id,
                .request_id = arena_format(call->arena, "00000000-0000-4000-8000-00000000000%c",
                                           workflow_id[0]),
                .workflow_type = API_NEW(call->arena, workflow_type, .name = "nap"),
                .task_list = make_list(call->arena),
                .execution_start_to_close_timeout =
                    presence_make_duration(call->arena, 100LL * DAY / NS_PER_S),
                .task_start_to_close_timeout = presence_make_duration(call->arena, 10));
    send(call, &request->base);
}

/* The decision of a run that has slept `slept` times. */
static API(Decision) *
decide(struct skip_fixture *skip_fixture, unsigned workflow, unsigned slept, struct arena *arena)
{
    API(Decision) *decision = API_NEW(arena, decision);
    if (slept == NAPS) {
        decision->attributes_case =
            API_VALUE(DECISION__ATTRIBUTES_COMPLETE_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES);
        decision->complete_workflow_execution_decision_attributes =
            API_NEW(arena, complete_workflow_execution_decision_attributes);
        return decision;
    }
    decision->attributes_case = API_VALUE(DECISION__ATTRIBUTES_START_TIMER_DECISION_ATTRIBUTES);
    decision->start_timer_decision_attributes = API_NEW(
        arena, start_timer_decision_attributes, .timer_id = arena_format(arena, "%u", slept),
        .start_to_fire_timeout =
            presence_make_duration(arena, skip_fixture->naps[workflow][slept]));
    return decision;
}

#define FIRED  API_VALUE(HISTORY_EVENT__ATTRIBUTES_TIMER_FIRED_EVENT_ATTRIBUTES)
#define NAPPED API_VALUE(HISTORY_EVENT__ATTRIBUTES_TIMER_STARTED_EVENT_ATTRIBUTES)

static unsigned
count_fired(const API(History) *history)
{
    unsigned count = 0;
    for (size_t i = 0; i < history->n_events; i++)
        count += history->events[i]->attributes_case == FIRED;
    return count;
}

static int64_t
time_of(const API(HistoryEvent) *event)
{
    return event->event_time->seconds * NS_PER_S + event->event_time->nanos;
}

/* Every timer of the history that a run's last decision sees, from its start to its end; the run
 * itself may be gone by its retention before anybody asks. */
static void
check_history(struct skip_fixture *skip_fixture, const API(History) *history)
{
    const API(HistoryEvent) *started = NULL;
    for (size_t i = 0; i < history->n_events; i++) {
        const API(HistoryEvent) *event = history->events[i];
        if (event->attributes_case == NAPPED)
            started = event;
        if (event->attributes_case != FIRED)
            continue;
        int64_t wanted =
            started->timer_started_event_attributes->start_to_fire_timeout->seconds * NS_PER_S;
        int64_t late = time_of(event) - time_of(started) - wanted;
        skip_fixture->early += late < 0;
        skip_fixture->late_max = late > skip_fixture->late_max ? late : skip_fixture->late_max;
    }
}

/* Thinks for a while about every third decision. */
static void
work(struct skip_fixture *skip_fixture, struct load_call *call,
     const API(PollForDecisionTaskResponse) *task)
{
    unsigned workflow = (unsigned)(task->workflow_execution->workflow_id[0] - 'a');
    unsigned slept = count_fired(task->history);
    API(RespondDecisionTaskCompletedRequest) *request =
        API_NEW(call->arena, respond_decision_task_completed_request);
    API(Decision) *decision = decide(skip_fixture, workflow, slept, call->arena);
    request->task_token = task->task_token;
    request->decisions = &decision;
    request->n_decisions = 1;
    if (random_below(&skip_fixture->random, 3) == 0 &&
        fiber_sleep((int64_t)random_below(&skip_fixture->random, THINKING_MAX), call->arena) !=
            NULL)
        return;
    send(call, &request->base);
    if (slept < NAPS)
        return;
    check_history(skip_fixture, task->history);
    skip_fixture->closed++;
}

static void
worker_main(void *argument)
{
    struct skip_fixture *skip_fixture = argument;
    struct arena *arena = arena_new(0);
    struct load_call call = {
        .clients = load_clients_new(skip_fixture->sim), .arena = arena, .is_worker = true};
    while (skip_fixture->closed < WORKFLOWS && !fiber_is_cancelled()) {
        API(PollForDecisionTaskRequest) *request =
            API_NEW(arena, poll_for_decision_task_request, .domain = DOMAIN,
                    .task_list = make_list(arena), .identity = "worker");
        const API(PollForDecisionTaskResponse) *task =
            (const API(PollForDecisionTaskResponse) *)send(&call, &request->base);
        if (task != NULL && task->task_token.len > 0)
            work(skip_fixture, &call, task);
        arena_reset(arena);
    }
    load_clients_free(call.clients);
    arena_free(arena);
}

static void
client_main(void *argument)
{
    struct skip_fixture *skip_fixture = argument;
    struct arena *arena = arena_new(0);
    struct load_call call = {
        .clients = load_clients_new(skip_fixture->sim), .arena = arena, .is_worker = true};
    struct error *err;
    do {
        fiber_set_deadline(clock_monotonic() + NS_PER_S);
        err = load_register(&call, &(struct load_registration){.name = DOMAIN});
        fiber_set_deadline(NEVER);
    } while (err != NULL && err->kind != ERR_DOMAIN_ALREADY_EXISTS &&
             fiber_sleep(10 * NS_PER_MS, arena) == NULL);
    skip_fixture->begun = clock_monotonic();
    for (unsigned i = 0; i < WORKFLOWS; i++)
        start(&call, arena_format(arena, "%c", 'a' + (int)i));
    fiber_start("worker", worker_main, skip_fixture);
    fiber_start("worker", worker_main, skip_fixture);
    while (skip_fixture->closed < WORKFLOWS && fiber_sleep(10 * NS_PER_MS, arena) == NULL)
        ;
    skip_fixture->ended = clock_monotonic();
    load_clients_free(call.clients);
    arena_free(arena);
    skip_fixture->is_over = true;
}

static bool
is_over(void *context)
{
    return ((struct skip_fixture *)context)->is_over;
}

/* Weeks of sleep pass in little more than the time that the workers think. */
static void
run_workflows(uint64_t seed)
{
    struct sim sim = {0};
    struct skip_fixture skip_fixture = {.sim = &sim};
    random_seed(&skip_fixture.random, seed);
    int64_t asked = 0;
    for (unsigned i = 0; i < WORKFLOWS * NAPS; i++) {
        skip_fixture.naps[i / NAPS][i % NAPS] =
            1 + (int64_t)random_below(&skip_fixture.random, 10 * DAY / NS_PER_S);
        asked += skip_fixture.naps[i / NAPS][i % NAPS];
    }
    sim_open_cluster(&sim, &(struct world_options){.seed = seed}, 1, 1);
    world_relent(sim.world); /* a process that skips time has one loop: nothing is lost in it */
    sim.skips_time = true;
    sim_host_start(&sim.hosts[0]);
    host_start(sim.client, client_main, &skip_fixture);
    if (!world_run_until(sim.world, is_over, &skip_fixture, 100 * NS_PER_S)) {
        world_print_probes(sim.world);
        TEST_FAIL("only %u of %u workflows ended", skip_fixture.closed, WORKFLOWS);
    }
    EXPECT(skip_fixture.is_over && skip_fixture.early == 0);
    EXPECT(asked > 10);
    EXPECT(skip_fixture.late_max < 2 * NS_PER_S + 2 * THINKING_MAX);
    EXPECT(skip_fixture.ended - skip_fixture.begun <
           WORKFLOWS * (NAPS + 1) * (THINKING_MAX + NS_PER_S));
    EXPECT(world_probe_count(sim.world, "time_skipped") > 0);
    sim_close(&sim);
}

TEST(skip_sim, weeks_of_timers_pass_in_moments_and_none_fires_early)
{
    for (int i = 0; i < test_seed_count(); i++)
        run_workflows(test_seed(i));
}
