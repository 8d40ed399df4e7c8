/* failover_state.c - how far a managed failover is, and what steers it. See failover.h.
 *
 * The workflow itself reports what it has done. That it was terminated, or failed, is in the
 * description of the run and its last event. */
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "cli/base/commands.h"
#include "cli/failover/failover.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "cli/workflow/run_list.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

#define TIMEOUT        (10 * NS_PER_S)
#define WATCH_INTERVAL (500 * NS_PER_MS)
#define FAILURES_MAX   60 /* failed queries in a row; a restart of the server takes less */
#define WIPE           "\r\033[K"

const char *
failover_workflow_id(const struct cli_call *call)
{
    if (cli_is_on(call, "v2"))
        return "cadence-failover-v2";
    return cli_is_on(call, "failover_drill") ? FAILOVER_ID "-drill" : FAILOVER_ID;
}

static API(WorkflowExecution) *
make_execution(const char *workflow_id, const char *run_id, struct arena *arena)
{
    API(WorkflowExecution) *execution = message_new(arena, API_TYPE(workflow_execution));
    execution->workflow_id = (char *)workflow_id;
    execution->run_id = presence_make_text(run_id);
    return execution;
}

/* ---- asking ---- */

static struct error *
ask_workflow(struct cli_call *call, API(WorkflowExecution) *execution, json_t **answer_json)
{
    API(QueryWorkflowRequest) request = API_VALUE(QUERY_WORKFLOW_REQUEST__INIT);
    ProtobufCMessage *answer = NULL;
    request.domain = FAILOVER_DOMAIN;
    request.workflow_execution = execution;
    request.query = message_new(call->arena, API_TYPE(workflow_query));
    request.query->query_type = MANAGED_QUERY;
    struct error *err = cli_ask(call, WORKFLOW_API("QueryWorkflow"), &request.base, TIMEOUT,
                                API_TYPE(query_workflow_response), &answer);
    if (err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS)
        return error_new(call->arena, err->kind,
                         "%s (cadenza admin cluster failover start begins one)", err->message);
    if (err != NULL)
        return err;
    struct slice text =
        presence_read_payload(((const API(QueryWorkflowResponse) *)answer)->query_result).bytes;
    *answer_json = json_loadb((const char *)text.data, text.length, 0, NULL);
    if (json_is_object(*answer_json))
        return NULL;
    json_decref(*answer_json);
    return error_new(call->arena, ERR_CORRUPT, "the workflow's answer is not what was expected");
}

/* "" while it is open. */
static struct error *
ask_status(struct cli_call *call, API(WorkflowExecution) *execution, const char **status)
{
    API(DescribeWorkflowExecutionRequest)
    request = API_VALUE(DESCRIBE_WORKFLOW_EXECUTION_REQUEST__INIT);
    ProtobufCMessage *answer = NULL;
    request.domain = FAILOVER_DOMAIN;
    request.workflow_execution = execution;
    struct error *err = cli_ask(call, WORKFLOW_API("DescribeWorkflowExecution"), &request.base,
                                TIMEOUT, API_TYPE(describe_workflow_execution_response), &answer);
    if (err != NULL)
        return err;
    const API(WorkflowExecutionInfo) *info =
        ((const API(DescribeWorkflowExecutionResponse) *)answer)->workflow_execution_info;
    *status = run_list_status(info, call->arena);
    if (strcmp(*status, "OPEN") == 0)
        *status = "";
    return NULL;
}

/* What a run that failed says of it. */
static const char *
ask_failure(struct cli_call *call, API(WorkflowExecution) *execution)
{
    API(GetWorkflowExecutionHistoryRequest)
    request = API_VALUE(GET_WORKFLOW_EXECUTION_HISTORY_REQUEST__INIT);
    ProtobufCMessage *answer = NULL;
    request.domain = FAILOVER_DOMAIN;
    request.workflow_execution = execution;
    request.history_event_filter_type = API_VALUE(EVENT_FILTER_TYPE__EVENT_FILTER_TYPE_CLOSE_EVENT);
    struct error *err =
        cli_ask(call, WORKFLOW_API("GetWorkflowExecutionHistory"), &request.base, TIMEOUT,
                API_TYPE(get_workflow_execution_history_response), &answer);
    const API(History) *history =
        err != NULL ? NULL : ((const API(GetWorkflowExecutionHistoryResponse) *)answer)->history;
    if (history == NULL || history->n_events == 0)
        return "it failed";
    const API(HistoryEvent) *last = history->events[history->n_events - 1];
    if (last->attributes_case !=
        API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES))
        return "it failed";
    const API(Failure) *failure = last->workflow_execution_failed_event_attributes->failure;
    return failure == NULL ? "it failed"
                           : arena_text_of(call->arena, presence_read_bytes(failure->details));
}

/* Cadence's tools say aborted of what was terminated. */
static void
note_end(struct cli_call *call, API(WorkflowExecution) *execution, const char *status,
         struct failover_state *state)
{
    struct arena *arena = call->arena;
    if (strcmp(status, "COMPLETED") == 0 || strcmp(status, "CONTINUED_AS_NEW") == 0)
        return;
    bool has_failed = strcmp(status, "FAILED") == 0, is_ended = strcmp(status, "TERMINATED") == 0;
    state->error = has_failed ? ask_failure(call, execution)
                   : is_ended ? "it was aborted"
                              : arena_format(arena, "it ended: %s", status);
    json_object_set_new(state->json, "State", json_string(is_ended ? "aborted" : "failed"));
    if (!is_ended)
        json_object_set_new(state->json, "Error", json_string(state->error));
}

static long long
number_of(const json_t *json, const char *name)
{
    return json_integer_value(json_object_get(json, name));
}

struct error *
failover_ask_state(struct cli_call *call, const char *workflow_id, const char *run_id,
                   struct failover_state *state)
{
    API(WorkflowExecution) *execution = make_execution(workflow_id, run_id, call->arena);
    const char *status = "";
    *state = (struct failover_state){0};
    struct error *err = ask_status(call, execution, &status);
    if (err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS)
        err = ask_workflow(call, execution, &state->json);
    if (err != NULL)
        return err;
    state->is_open = status[0] == '\0';
    if (!state->is_open)
        note_end(call, execution, status, state);
    const char *name = json_string_value(json_object_get(state->json, "State"));
    state->state = arena_text(call->arena, name == NULL ? "unknown" : name);
    state->total = number_of(state->json, "TotalDomains");
    state->success = number_of(state->json, "Success");
    state->failed = number_of(state->json, "Failed");
    return NULL;
}

/* ---- watching ---- */

static const char *
show_state(const struct failover_state *state, struct arena *arena)
{
    return arena_format(arena, "%s: %lld of %lld domains moved, %lld failed",
                        show_text(state->state, arena), state->success, state->total,
                        state->failed);
}

/* One line that is redrawn on a terminal; else a line for each change. */
static void
show_progress(const struct cli_call *call, const char *line, const char *before)
{
    if (call->as_json || (before != NULL && strcmp(line, before) == 0))
        return;
    if (call->is_terminal)
        cli_print(WIPE "%.100s", line);
    else
        cli_print("%s\n", line);
}

static void
show_result(struct cli_call *call, const struct failover_state *state)
{
    size_t i;
    json_t *name;
    call->exit_code = state->failed > 0 || state->error != NULL ? 1 : 0;
    if (call->as_json) {
        cli_print_json(json_incref(state->json));
        return;
    }
    if (call->is_terminal)
        cli_print("\n");
    json_array_foreach(json_object_get(state->json, "FailedDomains"), i, name)
    {
        cli_print("failed: %s\n", show_text(json_string_value(name), call->arena));
    }
    if (state->error != NULL)
        cli_print("%s\n", show_text(state->error, call->arena));
}

struct error *
failover_watch(struct cli_call *call, const char *workflow_id, const char *run_id)
{
    const char *before = NULL;
    unsigned failures = 0;
    for (;;) {
        struct failover_state state;
        struct error *err = failover_ask_state(call, workflow_id, run_id, &state);
        bool may_pass = err != NULL && (err->kind == ERR_UNAVAILABLE || err->kind == ERR_DEADLINE ||
                                        err->kind == ERR_SHARD_OWNERSHIP_LOST);
        if (err != NULL && (!may_pass || ++failures == FAILURES_MAX))
            return err;
        if (err == NULL) {
            const char *line = show_state(&state, call->arena);
            failures = 0;
            show_progress(call, line, before);
            before = line;
            if (!state.is_open)
                show_result(call, &state);
            json_decref(state.json);
            if (!state.is_open)
                return NULL;
        }
        err = fiber_sleep(WATCH_INTERVAL, call->arena);
        if (err != NULL)
            return err;
    }
}

/* ---- commands ---- */

struct error *
cli_failover_query(struct cli_call *call)
{
    const char *id = failover_workflow_id(call), *run_id = cli_text(call, "run_id");
    struct failover_state state;
    if (cli_is_on(call, "managed_watch"))
        return failover_watch(call, id, run_id);
    struct error *err = failover_ask_state(call, id, run_id, &state);
    if (err == NULL)
        cli_print_json(state.json);
    return err;
}

static struct error *
list_runs(struct cli_call *call, const char *workflow_id)
{
    call->domain.name = FAILOVER_DOMAIN;
    cli_give(call, "workflow_id", workflow_id);
    return cli_workflow_list(call);
}

struct error *
cli_failover_list(struct cli_call *call)
{
    return list_runs(call, failover_workflow_id(call));
}

struct error *
cli_rebalance_list(struct cli_call *call)
{
    return list_runs(call,
                     cli_is_on(call, "v2") ? "cadence-rebalance-v2" : "cadence-rebalance-workflow");
}

static struct error *
complete_signal(struct cli_call *call, ProtobufCMessage *message, const char *name)
{
    check(message->descriptor == API_TYPE(signal_workflow_execution_request));
    API(SignalWorkflowExecutionRequest) *request = (API(SignalWorkflowExecutionRequest) *)message;
    const char *run_id = cli_text(call, "run_id");
    request->domain = FAILOVER_DOMAIN;
    request->workflow_execution = make_execution(failover_workflow_id(call), run_id, call->arena);
    request->signal_name = (char *)name;
    return NULL;
}

struct error *
failover_complete_pause(struct cli_call *call, ProtobufCMessage *request)
{
    return complete_signal(call, request, MANAGED_PAUSE);
}

struct error *
failover_complete_resume(struct cli_call *call, ProtobufCMessage *request)
{
    return complete_signal(call, request, MANAGED_RESUME);
}

struct error *
failover_complete_abort(struct cli_call *call, ProtobufCMessage *message)
{
    API(TerminateWorkflowExecutionRequest) *request =
        (API(TerminateWorkflowExecutionRequest) *)message;
    const char *run_id = cli_text(call, "run_id"), *reason = cli_text(call, "why");
    request->domain = FAILOVER_DOMAIN;
    request->workflow_execution = make_execution(failover_workflow_id(call), run_id, call->arena);
    request->reason = reason == NULL ? "Failover aborted through admin CLI" : (char *)reason;
    return NULL;
}
