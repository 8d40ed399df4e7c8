/* bulk_sim_test.c - batch jobs over hundreds of runs while hosts crash and lines are cut.
 *
 * What is at stake: a batch is done exactly once to each run that its query found, however often
 * its activity begins again; what it shows never goes back; once it is stopped it stops. Method:
 * one fiber plays an operator. A batch signals all runs, a second one terminates them and is
 * stopped on the way, a third one terminates the rest; the nemesis works beside them. Then the
 * histories of all runs are read, and every third run is deleted. */
#include <stdio.h>

#include "base/test.h"
#include "base/vector.h"
#include "engine/run/mutation.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "sim/world/calls.h"
#include "sim/world/nemesis.h"
#include "sim/world/probes.h"
#include "sim/world/verdict.h"
#include "system/bulk.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define DOMAIN       "crowd"
#define CALL_TIMEOUT (5 * NS_PER_S)
#define STOP_GRACE   (20 * NS_PER_S) /* until the last one notices that the batch was stopped */
#define LIMIT        (3600 * NS_PER_S)

struct bulk_fixture {
    struct sim *sim;
    struct load_clients *clients;
    struct arena *arena;
    unsigned count; /* of runs */
    struct verdict verdict;
    bool is_over;
    int64_t stopped; /* wall clock: when the stop of the second batch was acknowledged */
    int64_t stopped_after;
};

/* --- calls, until they are answered ---- */

static void
doze(int64_t time, struct arena *arena)
{
    EXPECT_OK(fiber_sleep(time, arena));
}

#define ask(bulk_fixture, host, request, response)                                                 \
    ask_at((bulk_fixture), (host), &(request)->base, (ProtobufCMessage **)(response))
#define insist(bulk_fixture, request, response, refusal)                                           \
    insist_at((bulk_fixture), &(request)->base, (ProtobufCMessage **)(response), (refusal))

static struct error *
ask_at(struct bulk_fixture *bulk_fixture, unsigned host, const ProtobufCMessage *request,
       ProtobufCMessage **response)
{
    struct load_call call = {
        .clients = bulk_fixture->clients, .host = host, .arena = bulk_fixture->arena};
    fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
    struct error *err = load_send_at(&call, request, response);
    fiber_set_deadline(NEVER);
    EXPECT(err == NULL || err->kind != ERR_BAD_REQUEST);
    return err;
}

static unsigned
any_host(const struct bulk_fixture *bulk_fixture)
{
    return (unsigned)entropy_below(bulk_fixture->sim->count);
}

/* False: a refusal that is an answer of its own (`refusal`). */
static bool
insist_at(struct bulk_fixture *bulk_fixture, const ProtobufCMessage *request,
          ProtobufCMessage **response, enum error_kind refusal)
{
    for (;;) {
        struct error *err = ask_at(bulk_fixture, any_host(bulk_fixture), request, response);
        if (err == NULL || err->kind == refusal)
            return err == NULL;
        doze(100 * NS_PER_MS, bulk_fixture->arena);
    }
}

static API(WorkflowExecution) *
execution(struct bulk_fixture *bulk_fixture, const char *workflow_id)
{
    return API_NEW(bulk_fixture->arena, workflow_execution, .workflow_id = (char *)workflow_id);
}

static char *
new_request_id(struct bulk_fixture *bulk_fixture)
{
    struct uuid uuid = uuid_new_v4();
    char *text = arena_alloc(bulk_fixture->arena, UUID_TEXT_LENGTH + 1);
    uuid_format(&uuid, text);
    return text;
}

static void
start_run(struct bulk_fixture *bulk_fixture, const char *domain, const char *workflow_id,
          const char *type, const char *list, const char *input)
{
    API(StartWorkflowExecutionRequest) *start = API_NEW(
        bulk_fixture->arena, start_workflow_execution_request, .domain = (char *)domain,
        .workflow_id = (char *)workflow_id,
        .workflow_type = API_NEW(bulk_fixture->arena, workflow_type, .name = (char *)type),
        .task_list = API_NEW(bulk_fixture->arena, task_list, .name = (char *)list),
        .execution_start_to_close_timeout = presence_make_duration(bulk_fixture->arena, 7 * 86400),
        .task_start_to_close_timeout = presence_make_duration(bulk_fixture->arena, 10),
        .request_id = new_request_id(bulk_fixture),
        .input = presence_make_payload(
            bulk_fixture->arena, (struct maybe_bytes){.is_set = true, .bytes = slice_text(input)}));
    insist(bulk_fixture, start, NULL, ERR_ALREADY_STARTED);
}

/* A host that was overtaken and has not noticed would answer with old state. One that has just
 * written for the run knows at least what was true then. */
static struct error *
poke(struct bulk_fixture *bulk_fixture, unsigned host, const char *job)
{
    API(SignalWorkflowExecutionRequest) *request =
        API_NEW(bulk_fixture->arena, signal_workflow_execution_request, .domain = BULK_DOMAIN,
                .workflow_execution = execution(bulk_fixture, job), .signal_name = "noise",
                .request_id = new_request_id(bulk_fixture));
    struct error *err = ask(bulk_fixture, host, request, NULL);
    return err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS ? NULL : err;
}

static API(DescribeWorkflowExecutionResponse) *
describe(struct bulk_fixture *bulk_fixture, const char *job)
{
    API(DescribeWorkflowExecutionRequest) *request =
        API_NEW(bulk_fixture->arena, describe_workflow_execution_request, .domain = BULK_DOMAIN,
                .workflow_execution = execution(bulk_fixture, job));
    API(DescribeWorkflowExecutionResponse) *response;
    for (;;) {
        unsigned host = any_host(bulk_fixture);
        struct error *err = poke(bulk_fixture, host, job);
        if (err == NULL)
            err = ask(bulk_fixture, host, request, &response);
        if (err == NULL)
            return response;
        doze(100 * NS_PER_MS, bulk_fixture->arena);
    }
}

static bool
is_end(const API(HistoryEvent) *event)
{
    return event->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED) ||
           event->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_FAILED) ||
           event->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED);
}

/* Of a run that is closed, whether or not the host that is asked knows it already. */
static API(History) *
read_closed(struct bulk_fixture *bulk_fixture, const char *domain, const char *workflow_id,
            bool is_end_only)
{
    API(GetWorkflowExecutionHistoryRequest) *request = API_NEW(
        bulk_fixture->arena, get_workflow_execution_history_request, .domain = (char *)domain,
        .workflow_execution = execution(bulk_fixture, workflow_id));
    API(GetWorkflowExecutionHistoryResponse) *response;
    if (is_end_only)
        request->history_event_filter_type =
            API_VALUE(EVENT_FILTER_TYPE__EVENT_FILTER_TYPE_CLOSE_EVENT);
    for (int i = 0; i < 300; i++) {
        insist(bulk_fixture, request, &response, ERR_QUERY_FAILED);
        API(History) *history = response->history;
        if (history->n_events > 0 && is_end(history->events[history->n_events - 1]))
            return history;
        doze(100 * NS_PER_MS, bulk_fixture->arena);
    }
    verdict_violate(&bulk_fixture->verdict, "%s is not closed", workflow_id);
    return response->history;
}

/* --- batches ---- */

static void
start_batch(struct bulk_fixture *bulk_fixture, const char *job, const char *verb, int rate)
{
    const char *input = arena_format(
        bulk_fixture->arena,
        "{\"DomainName\":\"" DOMAIN "\",\"Query\":\"WorkflowType = 'target' and CloseTime = "
        "missing\",\"Reason\":\"r\",\"BatchType\":\"%s\",\"SignalParams\":{\"SignalName\":\"go\","
        "\"Input\":\"1\"},\"RPS\":%d,\"Concurrency\":7,\"PageSize\":40,"
        "\"ActivityHeartBeatTimeout\":3000000000,\"MaxActivityRetries\":0}",
        verb, rate);
    start_run(bulk_fixture, BULK_DOMAIN, job, BULK_TYPE_V2, BULK_LIST, input);
}

/* What it shows now; false: it has ended. */
static bool
watch(struct bulk_fixture *bulk_fixture, const char *job, struct bulk_progress *progress)
{
    const API(DescribeWorkflowExecutionResponse) *described = describe(bulk_fixture, job);
    if (described->workflow_execution_info->close_status != 0)
        return false;
    struct slice details = {0};
    if (described->n_pending_activities > 0)
        details = presence_read_payload(described->pending_activities[0]->heartbeat_details).bytes;
    struct bulk_progress seen;
    if (details.length == 0 || !bulk_read_progress(details, bulk_fixture->arena, &seen))
        return true;
    if (seen.success < progress->success || seen.error < progress->error)
        verdict_violate(&bulk_fixture->verdict, "batch %s went back from %lld to %lld", job,
                        (long long)progress->success, (long long)seen.success);
    *progress = seen;
    return true;
}

/* The result of a batch that has ended. */
static struct bulk_progress
result_of(struct bulk_fixture *bulk_fixture, const char *job)
{
    const API(History) *history = read_closed(bulk_fixture, BULK_DOMAIN, job, true);
    const API(HistoryEvent) *last = history->events[history->n_events - 1];
    struct bulk_progress result = {0};
    if (last->attributes_case != EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED) ||
        !bulk_read_progress(
            presence_read_payload(last->workflow_execution_completed_event_attributes->result)
                .bytes,
            bulk_fixture->arena, &result))
        verdict_violate(&bulk_fixture->verdict, "batch %s ended by event kind %d", job,
                        (int)last->attributes_case);
    return result;
}

static struct bulk_progress
await_end(struct bulk_fixture *bulk_fixture, const char *job)
{
    struct bulk_progress progress = {0};
    while (watch(bulk_fixture, job, &progress))
        doze(300 * NS_PER_MS, bulk_fixture->arena);
    struct bulk_progress result = result_of(bulk_fixture, job);
    if (result.success < progress.success)
        verdict_violate(&bulk_fixture->verdict, "batch %s showed more than its result", job);
    return result;
}

static void
stop_batch(struct bulk_fixture *bulk_fixture, const char *job)
{
    struct bulk_progress progress = {0};
    while (watch(bulk_fixture, job, &progress) && progress.success < bulk_fixture->count / 4)
        doze(200 * NS_PER_MS, bulk_fixture->arena);
    insist(bulk_fixture,
           API_NEW(bulk_fixture->arena, terminate_workflow_execution_request, .domain = BULK_DOMAIN,
                   .workflow_execution = execution(bulk_fixture, job)),
           NULL, ERR_ENTITY_NOT_EXISTS);
    bulk_fixture->stopped = clock_wall();
    doze(STOP_GRACE + 10 * NS_PER_S, bulk_fixture->arena);
}

/* --- the story ---- */

static const char *
target_name(struct bulk_fixture *bulk_fixture, unsigned number)
{
    return arena_format(bulk_fixture->arena, "target-%04u", number);
}

static void
operate(struct bulk_fixture *bulk_fixture)
{
    API(RegisterDomainRequest) *request =
        API_NEW(bulk_fixture->arena, register_domain_request, .name = DOMAIN,
                .workflow_execution_retention_period =
                    presence_make_duration(bulk_fixture->arena, 30 * 86400));
    insist(bulk_fixture, request, NULL, ERR_DOMAIN_ALREADY_EXISTS);
    for (unsigned i = 0; i < bulk_fixture->count; i++)
        start_run(bulk_fixture, DOMAIN, target_name(bulk_fixture, i), "target", "nobody", "{}");
    start_batch(bulk_fixture, "signals", "signal", 15);
    struct bulk_progress signalled = await_end(bulk_fixture, "signals");
    start_batch(bulk_fixture, "stopped", "terminate", 10);
    stop_batch(bulk_fixture, "stopped");
    start_batch(bulk_fixture, "rest", "terminate", 50);
    struct bulk_progress rest = await_end(bulk_fixture, "rest");
    if (signalled.success != bulk_fixture->count || signalled.total != bulk_fixture->count)
        verdict_violate(&bulk_fixture->verdict, "%lld of %lld of %u runs were signalled",
                        (long long)signalled.success, (long long)signalled.total,
                        bulk_fixture->count);
    if (rest.success != rest.total || rest.error != 0)
        verdict_violate(&bulk_fixture->verdict, "%lld of %lld were terminated, %lld not",
                        (long long)rest.success, (long long)rest.total, (long long)rest.error);
    bulk_fixture->stopped_after = bulk_fixture->count - rest.total;
}

/* Exactly one signal and one end; those of the stopped batch came before it was stopped. */
static void
verify_target(struct bulk_fixture *bulk_fixture, unsigned number, unsigned *by_rest)
{
    const API(History) *history =
        read_closed(bulk_fixture, DOMAIN, target_name(bulk_fixture, number), false);
    unsigned signals = 0, ends = 0;
    for (size_t i = 0; i < history->n_events; i++) {
        const API(HistoryEvent) *event = history->events[i];
        signals += event->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED);
        if (event->attributes_case != EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED))
            continue;
        struct maybe_int64 time;
        EXPECT_OK(presence_read_timestamp(bulk_fixture->arena, "time", event->event_time, &time));
        ends++;
        *by_rest += time.value > bulk_fixture->stopped + STOP_GRACE;
    }
    if (signals != 1 || ends != 1)
        verdict_violate(&bulk_fixture->verdict, "run %u has %u signals and %u ends", number,
                        signals, ends);
}

static void
verify(struct bulk_fixture *bulk_fixture)
{
    unsigned by_rest = 0;
    for (unsigned i = 0; i < bulk_fixture->count; i++)
        verify_target(bulk_fixture, i, &by_rest);
    if (by_rest != bulk_fixture->count - (unsigned)bulk_fixture->stopped_after)
        verdict_violate(&bulk_fixture->verdict,
                        "%u runs ended after the stop, the last batch found %lld", by_rest,
                        (long long)(bulk_fixture->count - bulk_fixture->stopped_after));
}

/* --- runs that are deleted ---- */

static API(SignalWorkflowExecutionRequest) *
make_signal(struct bulk_fixture *bulk_fixture, const char *workflow_id)
{
    return API_NEW(bulk_fixture->arena, signal_workflow_execution_request, .domain = DOMAIN,
                   .workflow_execution = execution(bulk_fixture, workflow_id),
                   .signal_name = "late", .request_id = new_request_id(bulk_fixture));
}

/* A host that has just tried to write for the run knows whether it is there. */
static bool
is_gone(struct bulk_fixture *bulk_fixture, const char *workflow_id)
{
    API(DescribeWorkflowExecutionRequest) *request =
        API_NEW(bulk_fixture->arena, describe_workflow_execution_request, .domain = DOMAIN,
                .workflow_execution = execution(bulk_fixture, workflow_id));
    for (;;) {
        unsigned host = any_host(bulk_fixture);
        struct error *err = ask(bulk_fixture, host, make_signal(bulk_fixture, workflow_id), NULL);
        if (err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS)
            err = ask(bulk_fixture, host, request, NULL);
        if (err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS)
            return err != NULL;
        doze(100 * NS_PER_MS, bulk_fixture->arena);
    }
}

/* Every third run is deleted: when that is answered nobody finds it, the others stay. */
static void
remove_some(struct bulk_fixture *bulk_fixture)
{
    for (unsigned i = 0; i < bulk_fixture->count; i += 3) {
        insist(
            bulk_fixture,
            ADMIN_NEW(bulk_fixture->arena, delete_workflow_request, .domain = DOMAIN,
                      .workflow_execution = execution(bulk_fixture, target_name(bulk_fixture, i))),
            NULL, ERR_ENTITY_NOT_EXISTS);
        if (!is_gone(bulk_fixture, target_name(bulk_fixture, i)))
            verdict_violate(&bulk_fixture->verdict, "run %u was deleted and is there", i);
    }
    for (unsigned i = 0; i < bulk_fixture->count; i++) {
        if (is_gone(bulk_fixture, target_name(bulk_fixture, i)) != (i % 3 == 0))
            verdict_violate(&bulk_fixture->verdict, "run %u is %s", i,
                            i % 3 == 0 ? "there" : "gone");
    }
}

static void
client_main(void *argument)
{
    struct bulk_fixture *bulk_fixture = argument;
    bulk_fixture->arena = arena_new(0);
    bulk_fixture->clients = load_clients_new(bulk_fixture->sim);
    operate(bulk_fixture);
    verify(bulk_fixture);
    remove_some(bulk_fixture);
    load_clients_free(bulk_fixture->clients);
    arena_free(bulk_fixture->arena);
    bulk_fixture->is_over = true;
}

static bool
is_over(void *context)
{
    return ((const struct bulk_fixture *)context)->is_over;
}

static const struct probes wanted = {
    .usual = {"system_decision_made", "bulk_resumed", "bulk_chunk_done", "bulk_target_was_closed",
              "system_activity_left", "crash_while_serving", "crash_at_commit", "shard_lost",
              "run_deleted"},
};

static void
run_bulk_jobs(uint64_t seed, unsigned hosts, struct probes *probes)
{
    struct sim sim;
    sim_open_cluster(&sim, &(struct world_options){.seed = seed}, hosts, 2);
    sim.has_system_domains = true;
    struct bulk_fixture bulk_fixture = {.sim = &sim, .count = 150 + (unsigned)(seed % 150)};
    for (unsigned i = 0; i < sim.count; i++)
        sim_host_start(&sim.hosts[i]);
    host_start(sim.client, client_main, &bulk_fixture);
    struct nemesis nemesis = {.sim = &sim, .pause_max = 3 * NS_PER_S, .is_at_commits = true};
    for (int i = 0; i < 30 && !bulk_fixture.is_over; i++) {
        nemesis_run(&nemesis, 6 * NS_PER_S);
        EXPECT(nemesis_relent(&nemesis));
        world_run_for(sim.world, 3 * NS_PER_S); /* or nothing is ever done */
    }
    if (!world_run_until(sim.world, is_over, &bulk_fixture, LIMIT))
        TEST_FAIL("seed %llu: it does not end", (unsigned long long)seed);
    if (bulk_fixture.verdict.violation != NULL)
        TEST_FAIL("seed %llu: %s", (unsigned long long)seed, bulk_fixture.verdict.violation);
    probes_add(probes, sim.world);
    sim_close(&sim);
}

TEST(bulk_sim, a_batch_is_done_once_to_each_run_never_goes_back_and_stops_when_it_is_stopped,
     "A-263")
{
    struct probes probes = wanted;
    for (int i = 0; i < test_seed_count(); i++)
        run_bulk_jobs(test_seed(i), test_seed(i) % 3 == 0 ? 1 : 3, &probes);
    probes_expect(&probes, 5);
}
