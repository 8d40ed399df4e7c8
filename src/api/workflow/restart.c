/* restart.c - RestartWorkflowExecution: once more from the beginning.
 *
 * What the run was started with is in its first event; the new one is started with that, in place
 * of the one that is open. */
#include "api/call/pages.h"
#include "api/call/validate.h"
#include "api/inside.h"
#include "base/uuid.h"
#include "fiber/clock.h"
#include "wire/message.h"
#include "wire/presence.h"

/* The first event of the run; NULL: it is gone. Yields. */
static struct error *
read_first_event(struct rpc_call *call, const struct run_key *key, struct history_state *state,
                 const API(HistoryEvent) **event)
{
    struct engine *engine = api_of(call)->options.engine;
    struct history_page page = {0};
    *event = NULL;
    struct error *err = engine_history_state(engine, key, call->arena, state);
    if (err != NULL)
        return err->kind == ERR_ENTITY_NOT_EXISTS ? NULL : err;
    struct history_range range = {
        .shard = engine_shard_of(engine, key->workflow_id),
        .lineage = state->lineage,
        .from_event_id = 1,
        .to_event_id = state->next_event_id,
        .bytes_max = 1, /* one batch */
        .nodes_max = 1,
    };
    err = engine_read_history(engine, &range, call->arena, &page);
    if (err != NULL && err->kind == ERR_CORRUPT) { /* perhaps it was deleted meanwhile */
        struct error *gone = engine_history_state(engine, key, call->arena, state);
        return gone != NULL && gone->kind == ERR_ENTITY_NOT_EXISTS ? NULL : err;
    }
    if (err != NULL || page.count == 0)
        return err;
    ProtobufCMessage *history = NULL;
    err = message_decode_at(call->arena, ERR_CORRUPT, API_TYPE(history), page.node[0].events,
                            &history);
    if (err == NULL && ((const API(History) *)history)->n_events > 0)
        *event = ((const API(History) *)history)->events[0];
    return err;
}

static API(StartWorkflowExecutionRequest) *
start_request(struct rpc_call *call, const API(HistoryEvent) *event, int64_t jitter_start)
{
    const API(RestartWorkflowExecutionRequest) *request =
        (const API(RestartWorkflowExecutionRequest) *)call->request;
    const API(WorkflowExecutionStartedEventAttributes) *started =
        event->workflow_execution_started_event_attributes;
    API(StartWorkflowExecutionRequest) *start =
        message_new(call->arena, API_TYPE(start_workflow_execution_request));
    start->request_id = uuid_new_text(call->arena);
    start->domain = request->domain;
    start->workflow_id = request->workflow_execution->workflow_id;
    start->identity = request->identity;
    start->workflow_id_reuse_policy =
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING);
    start->workflow_type = started->workflow_type;
    start->task_list = started->task_list;
    start->input = started->input;
    start->execution_start_to_close_timeout = started->execution_start_to_close_timeout;
    start->task_start_to_close_timeout = started->task_start_to_close_timeout;
    start->cron_schedule = started->cron_schedule;
    start->cron_overlap_policy = started->cron_overlap_policy;
    start->retry_policy = started->retry_policy;
    start->header = started->header;
    start->memo = started->memo;
    start->search_attributes = started->search_attributes;
    start->active_cluster_selection_policy = started->active_cluster_selection_policy;
    if (jitter_start > 0)
        start->jitter_start = presence_make_duration(call->arena, jitter_start);
    return start;
}

static struct error *
start_again(struct rpc_call *call, const char *domain_id,
            const API(StartWorkflowExecutionRequest) *request)
{
    API(RestartWorkflowExecutionResponse) *response =
        (API(RestartWorkflowExecutionResponse) *)call->response;
    struct caller_partition partition;
    api_caller_partition(call, &partition);
    struct start_command command = {.request = request,
                                    .partition_keys = partition.keys,
                                    .partition_values = partition.values,
                                    .partition_count = partition.count};
    struct start_answer answer = {0};
    struct error *err =
        engine_start(api_of(call)->options.engine, domain_id, &command, call->arena, &answer);
    if (err == NULL)
        response->run_id = (char *)answer.run_id;
    return err;
}

struct error *
api_restart_workflow(struct rpc_call *call)
{
    const API(RestartWorkflowExecutionRequest) *request =
        (const API(RestartWorkflowExecutionRequest) *)call->request;
    struct call_domain domain;
    struct run_key key;
    struct error *err =
        validate_run(call, request->domain, request->workflow_execution, &key, &domain);
    if (err == NULL)
        err = validate_isolation(call, &domain);
    if (err != NULL)
        return err;
    struct history_state state;
    const API(HistoryEvent) *event;
    err = read_first_event(call, &key, &state, &event);
    if (err == NULL &&
        (event == NULL || event->workflow_execution_started_event_attributes == NULL))
        err = error_new(call->arena, ERR_BAD_REQUEST,
                        "Requested workflow history not found, may have passed retention period.");
    if (err != NULL)
        return err;
    return start_again(call, domain.id, start_request(call, event, state.jitter_start));
}
