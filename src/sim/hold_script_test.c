/* hold_script_test.c - calls that come while a domain drains from one cluster to the other.
 *
 * The clusters write no markers, so a graceful failover takes as long as it may; meanwhile calls
 * come to both of them, each in a fiber of its own. What they did is read from the histories. */
#include <stdio.h>

#include "fiber/fiber.h"
#include "fiber/sync.h"
#include "sim/script.h"
#include "wire/errors.h"

#define DRAIN      (5 * NS_PER_S)
#define LONG       (20 * NS_PER_S)
#define CALLS_MAX  64
#define NO_MARKERS "system.enableGracefulFailover: [{value: false}]\n"

/* A call in a fiber of its own. */
struct caller {
    struct script *script;
    unsigned cluster;
    const char *path;
    ProtobufCMessage *request;
    const ProtobufCMessageDescriptor *type;
    int64_t timeout;
    ProtobufCMessage *response;
    struct error *err;
    int64_t answered; /* monotonic; 0: not yet */
    struct latch *latch;
};

struct callers {
    struct caller items[CALLS_MAX];
    size_t count;
    struct latch latch;
};

static void
callers_init(struct callers *callers)
{
    callers->count = 0;
    latch_init(&callers->latch, 0);
}

static void
call_in_fiber(void *argument)
{
    struct caller *caller = argument;
    struct load_call call = {.clients = caller->script->clients,
                             .host = caller->cluster,
                             .arena = caller->script->arena,
                             .is_worker = true};
    fiber_set_deadline(clock_monotonic() + caller->timeout);
    caller->err = load_send(&call, caller->path, caller->request, caller->type, &caller->response);
    fiber_set_deadline(NEVER);
    caller->answered = clock_monotonic();
    latch_done(caller->latch);
}

/* Calls, and goes on a moment later: whoever is called next comes next. */
#define call_later(callers, script, cluster, path, request, type)                                  \
    call_later_at((callers), (script), (cluster), "/uber.cadence.api.v1." path,                    \
                  (ProtobufCMessage *)&(request)->base, API_TYPE(type))
static struct caller *
call_later_at(struct callers *callers, struct script *script, unsigned cluster, const char *path,
              ProtobufCMessage *request, const ProtobufCMessageDescriptor *type)
{
    EXPECT(callers->count < CALLS_MAX);
    struct caller *caller = &callers->items[callers->count++];
    *caller = (struct caller){.script = script,
                              .cluster = cluster,
                              .path = path,
                              .request = request,
                              .type = type,
                              .timeout = LONG,
                              .latch = &callers->latch};
    latch_add(&callers->latch, 1);
    fiber_start("caller", call_in_fiber, caller);
    script_sleep(script, 50 * NS_PER_MS);
    return caller;
}

static void
expect_all_ok(struct callers *callers, int64_t not_before)
{
    latch_wait(&callers->latch);
    for (size_t i = 0; i < callers->count; i++) {
        struct caller *caller = &callers->items[i];
        if (caller->err != NULL)
            TEST_FAIL("call %zu, %s at cluster%u: %s", i, caller->path, caller->cluster,
                      caller->err->message);
        EXPECT(caller->answered >= not_before);
    }
}

/* --- requests ---- */

static API(WorkflowExecution) *
execution(struct script *script, const char *id)
{
    API(WorkflowExecution) *execution = message_new(script->arena, API_TYPE(workflow_execution));
    execution->workflow_id = arena_text(script->arena, id);
    return execution;
}

static void
signal_later(struct callers *callers, struct script *script, unsigned cluster, const char *id,
             const char *name)
{
    API(SignalWorkflowExecutionRequest) *request =
        message_new(script->arena, API_TYPE(signal_workflow_execution_request));
    request->domain = SCRIPT_DOMAIN;
    request->workflow_execution = execution(script, id);
    request->signal_name = arena_text(script->arena, name);
    call_later(callers, script, cluster, "WorkflowAPI/SignalWorkflowExecution", request,
               signal_workflow_execution_response);
}

static void
start_later(struct callers *callers, struct script *script, unsigned cluster, const char *id)
{
    call_later(callers, script, cluster, "WorkflowAPI/StartWorkflowExecution",
               script_start_request(script, id), start_workflow_execution_response);
}

static void
signal_with_start_later(struct callers *callers, struct script *script, unsigned cluster,
                        const char *id)
{
    API(SignalWithStartWorkflowExecutionRequest) *request =
        message_new(script->arena, API_TYPE(signal_with_start_workflow_execution_request));
    request->start_request = script_start_request(script, id);
    request->signal_name = "with start";
    call_later(callers, script, cluster, "WorkflowAPI/SignalWithStartWorkflowExecution", request,
               signal_with_start_workflow_execution_response);
}

static void
cancel_later(struct callers *callers, struct script *script, unsigned cluster, const char *id)
{
    API(RequestCancelWorkflowExecutionRequest) *request =
        message_new(script->arena, API_TYPE(request_cancel_workflow_execution_request));
    request->domain = SCRIPT_DOMAIN;
    request->workflow_execution = execution(script, id);
    request->request_id = script_start_request(script, id)->request_id;
    call_later(callers, script, cluster, "WorkflowAPI/RequestCancelWorkflowExecution", request,
               request_cancel_workflow_execution_response);
}

static void
terminate_later(struct callers *callers, struct script *script, unsigned cluster, const char *id)
{
    API(TerminateWorkflowExecutionRequest) *request =
        message_new(script->arena, API_TYPE(terminate_workflow_execution_request));
    request->domain = SCRIPT_DOMAIN;
    request->workflow_execution = execution(script, id);
    call_later(callers, script, cluster, "WorkflowAPI/TerminateWorkflowExecution", request,
               terminate_workflow_execution_response);
}

static void
ask_for_drain(struct script *script, unsigned to, int64_t seconds)
{
    API(FailoverDomainRequest) *request =
        message_new(script->arena, API_TYPE(failover_domain_request));
    API(FailoverDomainResponse) *response = NULL;
    request->domain_name = SCRIPT_DOMAIN;
    request->domain_active_cluster_name = arena_format(script->arena, "cluster%u", to);
    request->failover_timeout = presence_make_duration(script->arena, seconds);
    EXPECT_OK(script_call(script, to, "DomainAPI/FailoverDomain", request, failover_domain_response,
                          &response));
}

/* The domain begins to move to cluster 1, which takes DRAIN. The monotonic end. */
static int64_t
begin_drain(struct script *script)
{
    int64_t end = clock_monotonic() + DRAIN;
    ask_for_drain(script, 1, DRAIN / NS_PER_S);
    script_sleep(script, NS_PER_S); /* cluster 0 has heard of it */
    return end;
}

/* The names of the signals of a run, in order, with blanks between. */
static const char *
signals_of(struct script *script, unsigned cluster, const char *id)
{
    API(History) *history = script_history(script, cluster, id, "");
    const char *names = "";
    EXPECT(history != NULL);
    for (size_t i = 0; i < history->n_events; i++) {
        const API(WorkflowExecutionSignaledEventAttributes) *signal =
            history->events[i]->workflow_execution_signaled_event_attributes;
        if (signal != NULL &&
            history->events[i]->attributes_case ==
                API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES))
            names = arena_format(script->arena, "%s%s%s", names, names[0] == '\0' ? "" : " ",
                                 signal->signal_name);
    }
    return names;
}

static int
last_event(struct script *script, unsigned cluster, const char *id)
{
    API(History) *history = script_history(script, cluster, id, "");
    EXPECT(history != NULL && history->n_events > 0);
    return (int)history->events[history->n_events - 1]->attributes_case;
}

/* --- clients ---- */

static void
calls_of_clients(struct script *script)
{
    struct callers callers;
    callers_init(&callers);
    script_start(script, 0, "w");
    script_start(script, 0, "cancelled");
    script_start(script, 0, "terminated");
    int64_t end = begin_drain(script);
    for (unsigned i = 0; i < 10; i++)
        signal_later(&callers, script, i % 2, "w", arena_format(script->arena, "s%u", i));
    for (unsigned i = 0; i < 2; i++) {
        start_later(&callers, script, i, arena_format(script->arena, "new%u", i));
        signal_with_start_later(&callers, script, i, arena_format(script->arena, "both%u", i));
    }
    signal_later(&callers, script, 0, "new1", "behind its start");
    cancel_later(&callers, script, 0, "cancelled");
    terminate_later(&callers, script, 1, "terminated");
    EXPECT(clock_monotonic() < end - NS_PER_S);
    expect_all_ok(&callers, end - 100 * NS_PER_MS);
    EXPECT(world_mark_count(script->sim->world, "call_held") == callers.count);
    EXPECT(world_mark_count(script->sim->world, "call_held_behind") == 10);

    EXPECT_TEXT(signals_of(script, 1, "w"), "s0 s1 s2 s3 s4 s5 s6 s7 s8 s9");
    EXPECT_TEXT(signals_of(script, 1, "new1"), "behind its start");
    EXPECT_TEXT(signals_of(script, 1, "both0"), "with start");
    EXPECT_EQ(
        last_event(script, 1, "cancelled"),
        API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_CANCEL_REQUESTED_EVENT_ATTRIBUTES));
    EXPECT_EQ(last_event(script, 1, "terminated"),
              API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_TERMINATED_EVENT_ATTRIBUTES));
    static const char *const all[] = {"w",    "cancelled", "terminated", "new0",
                                      "new1", "both0",     "both1"};
    for (size_t i = 0; i < array_length(all); i++)
        script_expect_same(script, all[i]);
}

TEST(hold, calls_to_either_cluster_are_carried_out_in_order_when_the_target_is_active, "F-042")
{
    script_play_set(NO_MARKERS, true, calls_of_clients);
}

/* The clusters pass nothing on: before, and when it is over, each answers for itself. */
static void
calls_without_forwarding(struct script *script)
{
    struct callers callers;
    callers_init(&callers);
    script_start(script, 0, "w");
    script_await(script, 1, "w", 2);
    EXPECT_KIND(script_signal(script, 1, "w", "early"), ERR_DOMAIN_NOT_ACTIVE);
    int64_t end = begin_drain(script);
    for (unsigned i = 0; i < 4; i++)
        signal_later(&callers, script, i % 2, "w", arena_format(script->arena, "s%u", i));
    expect_all_ok(&callers, end - 100 * NS_PER_MS);
    script_sleep(script, NS_PER_S);
    EXPECT_KIND(script_signal(script, 0, "w", "late"), ERR_DOMAIN_NOT_ACTIVE);
    EXPECT_OK(script_signal(script, 1, "w", "here"));
    EXPECT_TEXT(signals_of(script, 1, "w"), "s0 s1 s2 s3 here");
}

TEST(hold, the_cluster_that_was_active_sends_calls_to_where_they_wait_whatever_its_policy)
{
    script_play_set(NO_MARKERS, false, calls_without_forwarding);
}

/* --- workers ---- */

static API(PollForActivityTaskResponse) *
activity_of(struct script *script, const char *id)
{
    API(Decision) *decisions[] = {script_schedule_activity(script, false)};
    script_start(script, 0, id);
    script_decide(script, 0, decisions, 1);
    API(PollForActivityTaskResponse) *task = script_poll_activity(script, 0, WITHIN);
    EXPECT(task != NULL);
    return task;
}

static void
beat_later(struct callers *callers, struct script *script, unsigned cluster,
           const API(PollForActivityTaskResponse) *task)
{
    API(RecordActivityTaskHeartbeatRequest) *request =
        message_new(script->arena, API_TYPE(record_activity_task_heartbeat_request));
    request->task_token = task->task_token;
    call_later(callers, script, cluster, "WorkerAPI/RecordActivityTaskHeartbeat", request,
               record_activity_task_heartbeat_response);
}

static void
complete_later(struct callers *callers, struct script *script, unsigned cluster,
               const API(PollForActivityTaskResponse) *task)
{
    API(RespondActivityTaskCompletedRequest) *request =
        message_new(script->arena, API_TYPE(respond_activity_task_completed_request));
    request->task_token = task->task_token;
    call_later(callers, script, cluster, "WorkerAPI/RespondActivityTaskCompleted", request,
               respond_activity_task_completed_response);
}

static void
fail_by_id_later(struct callers *callers, struct script *script, unsigned cluster, const char *id)
{
    API(RespondActivityTaskFailedByIDRequest) *request =
        message_new(script->arena, API_TYPE(respond_activity_task_failed_by_idrequest));
    request->domain = SCRIPT_DOMAIN;
    request->workflow_execution = execution(script, id);
    request->activity_id = "a";
    request->failure = message_new(script->arena, API_TYPE(failure));
    request->failure->reason = "why not";
    call_later(callers, script, cluster, "WorkerAPI/RespondActivityTaskFailedByID", request,
               respond_activity_task_failed_by_idresponse);
}

static void
calls_of_workers(struct script *script)
{
    struct callers callers;
    callers_init(&callers);
    API(PollForActivityTaskResponse) *one = activity_of(script, "one");
    API(PollForActivityTaskResponse) *two = activity_of(script, "two");
    activity_of(script, "three");
    script_start(script, 0, "decided");
    API(PollForDecisionTaskResponse) *decision = script_poll(script, 0, WITHIN);
    EXPECT(decision != NULL);
    int64_t end = begin_drain(script);
    beat_later(&callers, script, 0, one);
    complete_later(&callers, script, 0, one); /* behind its heartbeat */
    beat_later(&callers, script, 1, two);
    complete_later(&callers, script, 1, two);
    fail_by_id_later(&callers, script, 0, "three");
    for (unsigned i = 0; i < 2; i++) {
        int64_t began = clock_monotonic();
        EXPECT_KIND(script_complete(script, i, decision, NULL, 0), ERR_DOMAIN_NOT_ACTIVE);
        EXPECT(clock_monotonic() - began < NS_PER_S);
    }
    EXPECT(clock_monotonic() < end - NS_PER_S);
    expect_all_ok(&callers, end - 100 * NS_PER_MS);
    for (unsigned i = 0; i < 2; i++)
        EXPECT(script_poll(script, 1, WITHIN) != NULL); /* what the answers entail */
}

TEST(hold, answers_of_activities_wait_and_an_answer_of_a_decision_is_refused)
{
    script_play_set(NO_MARKERS, true, calls_of_workers);
}

/* --- bounds ---- */

static void
calls_off(struct script *script)
{
    script_start(script, 0, "w");
    int64_t end = begin_drain(script);
    for (unsigned i = 0; i < 2; i++) {
        API(DomainNotActiveError) *detail;
        struct error *err = script_signal(script, i, "w", "s");
        EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE);
        EXPECT_OK(errors_read(script->arena, err, &detail));
        EXPECT_TEXT(detail->active_cluster, "cluster1");
    }
    EXPECT(script_describe(script, 1, "w") != NULL); /* reads work */
    EXPECT(clock_monotonic() < end - NS_PER_S);
    script_sleep(script, DRAIN);
    EXPECT_OK(script_signal(script, 0, "w", "s"));
}

TEST(hold, where_it_is_off_calls_are_refused_while_the_domain_drains, "F-014", "F-042")
{
    script_play_set(NO_MARKERS "frontend.holdCallsDuringDrain:\n"
                               "- value: false\n"
                               "  constraints: {domainName: " SCRIPT_DOMAIN "}\n",
                    true, calls_off);
}

static void
too_many_calls(struct script *script)
{
    struct callers callers;
    callers_init(&callers);
    script_start(script, 0, "w");
    int64_t end = begin_drain(script);
    signal_later(&callers, script, 0, "w", "s0");
    signal_later(&callers, script, 1, "w", "s1");
    for (unsigned i = 0; i < 2; i++)
        EXPECT_KIND(script_signal(script, i, "w", "too many"), ERR_SERVICE_BUSY);
    EXPECT(clock_monotonic() < end - NS_PER_S);
    expect_all_ok(&callers, end - 100 * NS_PER_MS);
    EXPECT_TEXT(signals_of(script, 1, "w"), "s0 s1");
}

TEST(hold, more_calls_than_may_wait_are_refused_at_once_and_may_be_tried_again)
{
    script_play_set(NO_MARKERS "frontend.holdCallsDuringDrainMax: [{value: 2}]\n", true,
                    too_many_calls);
}

static void
impatient_calls(struct script *script)
{
    struct callers callers;
    callers_init(&callers);
    script_start(script, 0, "w");
    int64_t end = begin_drain(script);
    int64_t began = clock_monotonic();
    for (unsigned i = 0; i < 2; i++) {
        signal_later(&callers, script, i, "w", "impatient");
        callers.items[i].timeout = LONG;
    }
    struct caller *caller = &callers.items[0];
    latch_wait(&callers.latch);
    for (unsigned i = 0; i < 2; i++, caller++) {
        EXPECT_KIND(caller->err, ERR_SERVICE_BUSY);
        EXPECT(caller->answered - began >= NS_PER_S && caller->answered < end - NS_PER_S);
    }
    script_sleep(script, DRAIN);
    EXPECT_OK(script_signal(script, 0, "w", "patient"));
    EXPECT_TEXT(signals_of(script, 1, "w"), "patient"); /* nothing was written before */
}

TEST(hold, a_call_waits_no_longer_than_it_may_and_leaves_nothing_behind)
{
    script_play_set(NO_MARKERS "frontend.holdCallsDuringDrainTime: [{value: 1s}]\n", true,
                    impatient_calls);
}

static void
near_deadline(struct script *script)
{
    script_start(script, 0, "w");
    begin_drain(script);
    for (unsigned i = 0; i < 2; i++) {
        struct load_call call = {
            .clients = script->clients, .host = i, .arena = script->arena, .is_worker = true};
        API(SignalWorkflowExecutionRequest) *request =
            message_new(script->arena, API_TYPE(signal_workflow_execution_request));
        API(SignalWorkflowExecutionResponse) *response = NULL;
        request->domain = SCRIPT_DOMAIN;
        request->workflow_execution = execution(script, "w");
        request->signal_name = "hasty";
        fiber_set_deadline(clock_monotonic() + NS_PER_S);
        EXPECT_KIND(load_send(&call, "/uber.cadence.api.v1.WorkflowAPI/SignalWorkflowExecution",
                              &request->base, API_TYPE(signal_workflow_execution_response),
                              (ProtobufCMessage **)&response),
                    ERR_SERVICE_BUSY);
        fiber_set_deadline(NEVER);
    }
    script_sleep(script, DRAIN);
    EXPECT_OK(script_signal(script, 0, "w", "patient"));
    EXPECT_TEXT(signals_of(script, 1, "w"), "patient");
}

TEST(hold, a_caller_whose_deadline_comes_first_is_told_before_that_it_may_try_again)
{
    script_play_set(NO_MARKERS, true, near_deadline);
}

/* --- other ends ---- */

static void
drain_is_overtaken(struct script *script)
{
    struct callers callers;
    callers_init(&callers);
    script_start(script, 0, "w");
    int64_t end = begin_drain(script);
    signal_later(&callers, script, 0, "w", "s0");
    signal_later(&callers, script, 1, "w", "s1");
    script_failover(script, 0); /* by force, back to where it was */
    expect_all_ok(&callers, 0);
    EXPECT(clock_monotonic() < end - NS_PER_S);
    script_expect_same(script, "w");
    EXPECT(strcmp(signals_of(script, 0, "w"), "s0 s1") == 0 ||
           strcmp(signals_of(script, 0, "w"), "s1 s0") == 0); /* each took a way of its own */
}

TEST(hold, calls_go_where_the_domain_is_active_if_another_failover_ends_the_drain, "F-037")
{
    script_play_set(NO_MARKERS, true, drain_is_overtaken);
}

static void
drain_is_forced(struct script *script)
{
    struct callers callers;
    callers_init(&callers);
    script_start(script, 0, "w");
    int64_t end = begin_drain(script);
    for (unsigned i = 0; i < 6; i++)
        signal_later(&callers, script, i % 2, "w", arena_format(script->arena, "s%u", i));
    script_failover(script, 1);
    expect_all_ok(&callers, 0);
    EXPECT(clock_monotonic() < end - NS_PER_S);
    EXPECT_TEXT(signals_of(script, 1, "w"), "s0 s1 s2 s3 s4 s5");
}

TEST(hold, calls_go_on_at_once_when_somebody_forces_the_failover_to_its_end, "F-038")
{
    script_play_set(NO_MARKERS, true, drain_is_forced);
}

static void
target_crashes(struct script *script)
{
    struct callers callers;
    callers_init(&callers);
    script_start(script, 0, "w");
    begin_drain(script);
    signal_later(&callers, script, 0, "w", "lost");
    signal_later(&callers, script, 1, "w", "lost");
    script_crash(script, 1);
    latch_wait(&callers.latch);
    for (unsigned i = 0; i < 2; i++)
        EXPECT_KIND(callers.items[i].err, ERR_UNAVAILABLE);
    script_restart(script, 1);
    script_sleep(script, 2 * DRAIN);
    EXPECT_OK(script_signal(script, 0, "w", "kept"));
    EXPECT_TEXT(signals_of(script, 1, "w"), "kept");
}

TEST(hold, nothing_of_a_call_that_waited_is_left_when_its_cluster_crashes)
{
    script_play_set(NO_MARKERS, true, target_crashes);
}

/* --- all of it, with markers ---- */

#define WRITERS    4
#define WRITTEN    60
#define DRAINS     6
#define STORM_WORD "%u-%u"

/* Signals one workflow all the time, at each cluster in turn. */
struct writer {
    struct script *script;
    unsigned number;
    const char *id;
    struct latch *latch;
};

static void
write_signals(void *argument)
{
    struct writer *writer = argument;
    struct script *script = writer->script;
    for (unsigned i = 0; i < WRITTEN; i++) {
        const char *name = arena_format(script->arena, STORM_WORD, writer->number, i);
        struct error *err = script_signal(script, (i + writer->number) % 2, writer->id, name);
        if (err != NULL)
            TEST_FAIL("signal %s at cluster%u: %s", name, (i + writer->number) % 2, err->message);
        script_sleep(script, (int64_t)(1 + i % 7) * 10 * NS_PER_MS);
    }
    latch_done(writer->latch);
}

static bool
is_drained_to(struct script *script, unsigned cluster)
{
    struct load_call call = {.clients = script->clients, .host = cluster, .arena = script->arena};
    API(Domain) *domain = NULL;
    fiber_set_deadline(clock_monotonic() + LONG);
    EXPECT_OK(load_describe(&call, SCRIPT_DOMAIN, &domain));
    fiber_set_deadline(NEVER);
    return domain->failover_info == NULL &&
           strcmp(domain->active_cluster_name, cluster == 0 ? "cluster0" : "cluster1") == 0;
}

static void
calls_all_the_time(struct script *script)
{
    struct writer writers[WRITERS];
    struct latch latch;
    latch_init(&latch, WRITERS);
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){
            .script = script,
            .number = i,
            .id = arena_format(script->arena, "storm%u", i),
            .latch = &latch,
        };
        script_start(script, 0, writers[i].id);
        fiber_start("writer", write_signals, &writers[i]);
    }
    for (unsigned i = 0; i < DRAINS; i++) {
        unsigned to = 1 - i % 2;
        script_sleep(script, 300 * NS_PER_MS);
        ask_for_drain(script, to, 60);
        while (!is_drained_to(script, to))
            script_sleep(script, 20 * NS_PER_MS);
    }
    latch_wait(&latch);
    EXPECT(world_mark_count(script->sim->world, "call_held") > 0);
    EXPECT_EQ(world_mark_count(script->sim->world, "history_forked"), 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        const char *expected = "";
        for (unsigned n = 0; n < WRITTEN; n++)
            expected =
                arena_format(script->arena, "%s%s" STORM_WORD, expected, n == 0 ? "" : " ", i, n);
        EXPECT_TEXT(signals_of(script, DRAINS % 2, writers[i].id), expected);
        script_expect_same(script, writers[i].id);
    }
}

TEST(hold, no_call_fails_is_lost_or_done_twice_while_a_domain_goes_there_and_back, "F-040")
{
    script_play(2, 0, calls_all_the_time);
}
