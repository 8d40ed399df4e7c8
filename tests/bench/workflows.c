/* workflows.c - see workflows.h.
 *
 * Starters are fibers that start a workflow, wait for its end, and start the next. A workflow's end
 * is known when the answer to its last decision arrives: the worker wakes the starter, whose number
 * is the workflow's. Pollers are fibers that poll, work and answer. */
#include "workflows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/sync.h"
#include "net/load.h"
#include "rpc/client.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "uber/cadence/api/v1/service_worker.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"
#include "wire/presence.h"

#define SERVICE(name)  "/uber.cadence.api.v1." name
#define DOMAIN_NAME    "bench-workflows"
#define CALL_TIMEOUT   (20 * NS_PER_S)
#define POLL_TIMEOUT   (70 * NS_PER_S)
#define FINISH_TIMEOUT (120 * NS_PER_S)

struct loop_of_workflows {
    const struct workflows_options *options;
    struct workflows_result *result;
    struct grpc_client **clients;
    unsigned client_next;
    char *list;              /* name of the task list, new each time */
    uint8_t *payload;        /* zeros */
    unsigned number_next;    /* of the next workflow */
    struct fiber **starters; /* by workflow; who waits for its end */
    bool *is_finished;
    struct load_histogram starts, ends;
    struct latch working, polling;
    struct fiber **pollers;
    unsigned poller_count;
    bool is_over;
};

static void
note(struct loop_of_workflows *loop, const struct error *err)
{
    if (err == NULL || loop->is_over)
        return;
    loop->result->failures++;
    if (loop->result->first_error[0] == '\0')
        snprintf(loop->result->first_error, sizeof loop->result->first_error, "%s", err->message);
}

#define call(loop, path, timeout, request, arena, type, response)                                  \
    call_at((loop), SERVICE(path), (timeout), &(request)->base, (arena), API_TYPE(type),           \
            (ProtobufCMessage **)(response))

static struct error *
call_at(struct loop_of_workflows *loop, const char *path, int64_t timeout,
        const ProtobufCMessage *request, struct arena *arena,
        const ProtobufCMessageDescriptor *type, ProtobufCMessage **response)
{
    struct grpc_client *client = loop->clients[loop->client_next++ % loop->options->connections];
    fiber_set_deadline(clock_monotonic() + timeout);
    struct error *err = rpc_client_call_at(client, path, request, arena, type, response);
    fiber_set_deadline(NEVER);
    return err;
}

static API(TaskList) *
task_list(struct loop_of_workflows *loop, struct arena *arena)
{
    API(TaskList) *list = message_new(arena, API_TYPE(task_list));
    list->name = loop->list;
    return list;
}

static API(Payload) *
payload(struct loop_of_workflows *loop, struct arena *arena)
{
    struct slice bytes = slice_of(loop->payload, loop->options->payload);
    return presence_make_payload(arena, (struct maybe_bytes){.is_set = true, .bytes = bytes});
}

/* --- workers ------------------------------------------------------------------------------------
 */

static API(Decision) *
decide_activity(struct loop_of_workflows *loop, struct arena *arena)
{
    API(ScheduleActivityTaskDecisionAttributes) *activity =
        message_new(arena, API_TYPE(schedule_activity_task_decision_attributes));
    activity->activity_id = "0";
    activity->activity_type = message_new(arena, API_TYPE(activity_type));
    activity->activity_type->name = "act";
    activity->domain = DOMAIN_NAME;
    activity->task_list = task_list(loop, arena);
    activity->input = payload(loop, arena);
    activity->schedule_to_close_timeout = presence_make_duration(arena, 300);
    activity->schedule_to_start_timeout = presence_make_duration(arena, 300);
    activity->start_to_close_timeout = presence_make_duration(arena, 300);
    API(Decision) *decision = message_new(arena, API_TYPE(decision));
    decision->attributes_case =
        API_VALUE(DECISION__ATTRIBUTES_SCHEDULE_ACTIVITY_TASK_DECISION_ATTRIBUTES);
    decision->schedule_activity_task_decision_attributes = activity;
    return decision;
}

static API(Decision) *
decide_end(struct loop_of_workflows *loop, struct arena *arena)
{
    API(CompleteWorkflowExecutionDecisionAttributes) *end =
        message_new(arena, API_TYPE(complete_workflow_execution_decision_attributes));
    end->result = payload(loop, arena);
    API(Decision) *decision = message_new(arena, API_TYPE(decision));
    decision->attributes_case =
        API_VALUE(DECISION__ATTRIBUTES_COMPLETE_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES);
    decision->complete_workflow_execution_decision_attributes = end;
    return decision;
}

static void
finish(struct loop_of_workflows *loop, const char *workflow_id)
{
    const char *number = strrchr(workflow_id, '-');
    check(number != NULL);
    unsigned long index = strtoul(number + 1, NULL, 10);
    check(index < loop->options->count);
    loop->is_finished[index] = true;
    if (loop->starters[index] != NULL)
        fiber_wake(loop->starters[index]);
}

static void
answer_decision(struct loop_of_workflows *loop, const API(PollForDecisionTaskResponse) *task,
                struct arena *arena)
{
    bool is_first = task->previous_started_event_id == NULL;
    API(Decision) *decision = is_first ? decide_activity(loop, arena) : decide_end(loop, arena);
    API(RespondDecisionTaskCompletedRequest) *request =
        message_new(arena, API_TYPE(respond_decision_task_completed_request));
    request->task_token = task->task_token;
    request->decisions = &decision;
    request->n_decisions = 1;
    request->identity = "bench";
    API(RespondDecisionTaskCompletedResponse) *response;
    struct error *err = call(loop, "WorkerAPI/RespondDecisionTaskCompleted", CALL_TIMEOUT, request,
                             arena, respond_decision_task_completed_response, &response);
    note(loop, err);
    if (err == NULL && !is_first)
        finish(loop, task->workflow_execution->workflow_id);
}

static void
poll_decisions(void *argument)
{
    struct loop_of_workflows *loop = argument;
    while (!loop->is_over) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        API(PollForDecisionTaskRequest) *request =
            message_new(arena, API_TYPE(poll_for_decision_task_request));
        request->domain = DOMAIN_NAME;
        request->task_list = task_list(loop, arena);
        request->identity = "bench";
        API(PollForDecisionTaskResponse) *task;
        struct error *err = call(loop, "WorkerAPI/PollForDecisionTask", POLL_TIMEOUT, request,
                                 arena, poll_for_decision_task_response, &task);
        note(loop, err);
        if (err == NULL && task->task_token.len > 0)
            answer_decision(loop, task, arena);
    }
    latch_done(&loop->polling);
}

static void
answer_activity(struct loop_of_workflows *loop, const API(PollForActivityTaskResponse) *task,
                struct arena *arena)
{
    API(RespondActivityTaskCompletedRequest) *request =
        message_new(arena, API_TYPE(respond_activity_task_completed_request));
    request->task_token = task->task_token;
    request->result = payload(loop, arena);
    request->identity = "bench";
    API(RespondActivityTaskCompletedResponse) *response;
    note(loop, call(loop, "WorkerAPI/RespondActivityTaskCompleted", CALL_TIMEOUT, request, arena,
                    respond_activity_task_completed_response, &response));
}

static void
poll_activities(void *argument)
{
    struct loop_of_workflows *loop = argument;
    while (!loop->is_over) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        API(PollForActivityTaskRequest) *request =
            message_new(arena, API_TYPE(poll_for_activity_task_request));
        request->domain = DOMAIN_NAME;
        request->task_list = task_list(loop, arena);
        request->identity = "bench";
        API(PollForActivityTaskResponse) *task;
        struct error *err = call(loop, "WorkerAPI/PollForActivityTask", POLL_TIMEOUT, request,
                                 arena, poll_for_activity_task_response, &task);
        note(loop, err);
        if (err == NULL && task->task_token.len > 0)
            answer_activity(loop, task, arena);
    }
    latch_done(&loop->polling);
}

/* --- starters -----------------------------------------------------------------------------------
 */

static struct error *
start_one(struct loop_of_workflows *loop, unsigned number, struct arena *arena)
{
    char request_id[UUID_TEXT_LENGTH + 1];
    struct uuid fresh = uuid_new_v4();
    API(StartWorkflowExecutionRequest) *request =
        message_new(arena, API_TYPE(start_workflow_execution_request));
    request->domain = DOMAIN_NAME;
    request->workflow_id = arena_format(arena, "%s-%u", loop->list, number);
    request->workflow_type = message_new(arena, API_TYPE(workflow_type));
    request->workflow_type->name = "wf";
    request->task_list = task_list(loop, arena);
    request->input = payload(loop, arena);
    request->execution_start_to_close_timeout = presence_make_duration(arena, 600);
    request->task_start_to_close_timeout = presence_make_duration(arena, 10);
    request->identity = "bench";
    uuid_format(&fresh, request_id);
    request->request_id = request_id;
    API(StartWorkflowExecutionResponse) *response;
    return call(loop, "WorkflowAPI/StartWorkflowExecution", CALL_TIMEOUT, request, arena,
                start_workflow_execution_response, &response);
}

/* One workflow from its start to its end. */
static void
live_through(struct loop_of_workflows *loop, unsigned number)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    int64_t begin = clock_monotonic(), limit = begin + FINISH_TIMEOUT;
    struct error *err = start_one(loop, number, arena);
    note(loop, err);
    if (err != NULL)
        return;
    load_histogram_add(&loop->starts, clock_monotonic() - begin);
    loop->starters[number] = fiber_self();
    enum wake wake = WAKE_READY;
    while (!loop->is_finished[number] && wake == WAKE_READY)
        wake = fiber_wait(limit);
    loop->starters[number] = NULL;
    if (!loop->is_finished[number]) {
        note(loop, error_new(arena, ERR_DEADLINE, "workflow %u did not end in time", number));
        return;
    }
    loop->result->done++;
    load_histogram_add(&loop->ends, clock_monotonic() - begin);
}

static void
start_workflows(void *argument)
{
    struct loop_of_workflows *loop = argument;
    while (loop->number_next < loop->options->count)
        live_through(loop, loop->number_next++);
    latch_done(&loop->working);
}

/* --- all together -------------------------------------------------------------------------------
 */

static void
register_domain(struct loop_of_workflows *loop)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    API(RegisterDomainRequest) *request = message_new(arena, API_TYPE(register_domain_request));
    request->name = DOMAIN_NAME;
    request->workflow_execution_retention_period = presence_make_duration(arena, 24 * 3600);
    API(RegisterDomainResponse) *response;
    struct error *err = call(loop, "DomainAPI/RegisterDomain", CALL_TIMEOUT, request, arena,
                             register_domain_response, &response);
    check_that(err == NULL || err->kind == ERR_DOMAIN_ALREADY_EXISTS, "%s",
               err == NULL ? "" : err->message);
}

static void
open_clients(struct loop_of_workflows *loop, struct arena *arena)
{
    static const struct rpc_caller caller = {.caller = "bench", .caller_type = "sdk"};
    unsigned count = loop->options->connections;
    loop->clients = arena_zalloc(arena, count, sizeof *loop->clients);
    for (unsigned i = 0; i < count; i++)
        loop->clients[i] = rpc_client_new(loop->options->address, NULL, &caller);
}

static void
run_workflows(struct loop_of_workflows *loop)
{
    unsigned pollers = loop->options->pollers;
    latch_init(&loop->polling, 2 * pollers);
    for (unsigned i = 0; i < pollers; i++) {
        loop->pollers[loop->poller_count++] = fiber_start("decisions", poll_decisions, loop);
        loop->pollers[loop->poller_count++] = fiber_start("activities", poll_activities, loop);
    }
    latch_init(&loop->working, loop->options->in_flight);
    for (unsigned i = 0; i < loop->options->in_flight; i++)
        fiber_start("starter", start_workflows, loop);
    latch_wait(&loop->working);
    loop->is_over = true;
    for (unsigned i = 0; i < loop->poller_count; i++)
        fiber_cancel(loop->pollers[i]);
    latch_wait(&loop->polling);
}

static int64_t
server_cpu(const struct loop_of_workflows *loop, struct arena *arena)
{
    int64_t cpu = 0;
    struct error *err = load_process_cpu(loop->options->server_pid, arena, &cpu);
    check_that(err == NULL, "%s", err->message);
    return cpu;
}

void
workflows_run(const struct workflows_options *options, struct arena *arena,
              struct workflows_result *result)
{
    *result = (struct workflows_result){0};
    struct loop_of_workflows *loop = memory_zalloc(1, sizeof *loop);
    loop->options = options;
    loop->result = result;
    loop->list = arena_format(arena, "bench-%" PRId64, clock_wall());
    loop->payload = arena_zalloc(arena, options->payload, 1);
    loop->starters = arena_zalloc(arena, options->count, sizeof *loop->starters);
    loop->is_finished = arena_zalloc(arena, options->count, sizeof *loop->is_finished);
    loop->pollers = arena_zalloc(arena, 2 * options->pollers, sizeof *loop->pollers);
    open_clients(loop, arena);
    register_domain(loop);
    int64_t cpu = server_cpu(loop, arena), begin = clock_monotonic();
    run_workflows(loop);
    result->elapsed = clock_monotonic() - begin;
    result->server_cpu = server_cpu(loop, arena) - cpu;
    struct error *err = load_process_memory(options->server_pid, arena, &result->server_memory);
    check_that(err == NULL, "%s", err->message);
    result->start_p50 = load_histogram_quantile(&loop->starts, 0.5);
    result->start_p99 = load_histogram_quantile(&loop->starts, 0.99);
    result->end_p50 = load_histogram_quantile(&loop->ends, 0.5);
    result->end_p99 = load_histogram_quantile(&loop->ends, 0.99);
    for (unsigned i = 0; i < options->connections; i++)
        grpc_client_free(loop->clients[i]);
    memory_free(loop);
}
