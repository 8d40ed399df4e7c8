/* diagnose.c - DiagnoseWorkflowExecution: starts a diagnosis, or finds the one that runs. See
 * diagnose.h. */
#include "api/diagnose.h"

#include "api/pages.h"
#include "api/validate.h"
#include "base/json.h"
#include "fiber/clock.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

#define RETENTION_DAYS    7
#define EXECUTION_SECONDS 86400
#define DECISION_SECONDS  300

struct slice
diagnose_input(const struct diagnose_wish *wish, struct arena *arena)
{
    size_t payload = strlen(wish->domain) + strlen(wish->identity) + strlen(wish->workflow_id) +
                     strlen(wish->run_id);
    struct json_writer writer = object_write_begin(arena, 4, payload);
    object_write_text(&writer, "Domain", wish->domain);
    object_write_text(&writer, "Identity", wish->identity);
    object_write_text(&writer, "WorkflowID", wish->workflow_id);
    object_write_text(&writer, "RunID", wish->run_id);
    return object_write_end(&writer);
}

/* The domain of the server's own workflows: there from the first time that one is needed. */
static struct error *
find_system_domain(struct rpc_call *call, const char **id)
{
    struct api *api = api_of(call);
    const struct domain *domain = domains_find_name(api->options.domains, SYSTEM_DOMAIN);
    if (domain == NULL) {
        struct dynamic_filter filter = DYNAMIC_NO_FILTER;
        API(RegisterDomainRequest) *request =
            message_new(call->arena, API_TYPE(register_domain_request));
        request->name = SYSTEM_DOMAIN;
        request->description = "Cadence internal system domain";
        request->workflow_execution_retention_period =
            presence_make_duration(call->arena, (int64_t)RETENTION_DAYS * 24 * 3600);
        request->security_token =
            (char *)dynamic_text(api->options.dynamic, DYNAMIC_ADMIN_TOKEN, &filter);
        struct error *err = domains_register(api->options.domains, request, call->arena, NULL);
        if (err != NULL && err->kind != ERR_DOMAIN_ALREADY_EXISTS)
            return err;
        domain = domains_find_name(api->options.domains, SYSTEM_DOMAIN);
    }
    if (domain == NULL)
        return error_new(call->arena, ERR_UNAVAILABLE, "domain %s is not known yet", SYSTEM_DOMAIN);
    *id = arena_text(call->arena, domain->id);
    return NULL;
}

static API(StartWorkflowExecutionRequest) *
make_start(const struct diagnose_wish *wish, struct arena *arena)
{
    API(StartWorkflowExecutionRequest) *start =
        message_new(arena, API_TYPE(start_workflow_execution_request));
    struct uuid uuid = uuid_new_v4();
    start->domain = SYSTEM_DOMAIN;
    start->workflow_id = arena_format(arena, "%s-%s", wish->domain, wish->run_id);
    start->workflow_type = message_new(arena, API_TYPE(workflow_type));
    start->workflow_type->name = DIAGNOSTICS_TYPE;
    start->task_list = message_new(arena, API_TYPE(task_list));
    start->task_list->name = DIAGNOSTICS_LIST;
    start->input = presence_make_payload(
        arena, (struct maybe_bytes){.is_set = true, .bytes = diagnose_input(wish, arena)});
    start->execution_start_to_close_timeout = presence_make_duration(arena, EXECUTION_SECONDS);
    start->task_start_to_close_timeout = presence_make_duration(arena, DECISION_SECONDS);
    start->identity = (char *)wish->identity;
    start->request_id = arena_zalloc(arena, UUID_TEXT_LENGTH + 1, 1);
    uuid_format(&uuid, start->request_id);
    start->workflow_id_reuse_policy =
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE);
    return start;
}

/* *run_id is of the run that was started, or of the one that is at it already. */
static struct error *
start_diagnosis(struct rpc_call *call, const char *domain_id,
                const API(StartWorkflowExecutionRequest) *start, const char **run_id)
{
    struct start_command command = {.request = start};
    struct start_answer answer = {0};
    API(WorkflowExecutionAlreadyStartedError) *started;
    struct error *err =
        engine_start(api_of(call)->options.engine, domain_id, &command, call->arena, &answer);
    *run_id = answer.run_id;
    if (err == NULL || err->kind != ERR_ALREADY_STARTED)
        return err;
    err = errors_read(call->arena, err, &started);
    if (err == NULL)
        *run_id = started->run_id;
    return err;
}

struct error *
api_diagnose_workflow(struct rpc_call *call)
{
    const API(DiagnoseWorkflowExecutionRequest) *request =
        (const API(DiagnoseWorkflowExecutionRequest) *)call->request;
    API(DiagnoseWorkflowExecutionResponse) *response =
        (API(DiagnoseWorkflowExecutionResponse) *)call->response;
    const API(WorkflowExecution) *execution = request->workflow_execution;
    if (request->domain[0] == '\0')
        return error_new(call->arena, ERR_BAD_REQUEST, "Domain not set on request.");
    if (execution == NULL || execution->workflow_id[0] == '\0' || execution->run_id[0] == '\0')
        return error_new(call->arena, ERR_BAD_REQUEST, "Execution is not set on request.");
    struct diagnose_wish wish = {.domain = request->domain,
                                 .workflow_id = execution->workflow_id,
                                 .run_id = execution->run_id,
                                 .identity = request->identity};
    const char *domain_id = "", *run_id = "";
    API(StartWorkflowExecutionRequest) *start = make_start(&wish, call->arena);
    struct error *err = find_system_domain(call, &domain_id);
    if (err == NULL)
        err = start_diagnosis(call, domain_id, start, &run_id);
    if (err != NULL)
        return err;
    diagnose_work(api_of(call));
    response->domain = SYSTEM_DOMAIN;
    response->diagnostic_workflow_execution =
        message_new(call->arena, API_TYPE(workflow_execution));
    response->diagnostic_workflow_execution->workflow_id = start->workflow_id;
    response->diagnostic_workflow_execution->run_id = (char *)run_id;
    return NULL;
}

/* --- the report, by a query ---- */

/* The result of the run, if it has ended well. */
static struct error *
read_result(struct api *api, const struct run_key *key, const struct history_state *state,
            struct arena *arena, struct slice *result)
{
    struct history_range range = {
        .shard = engine_shard_of(api->options.engine, key->workflow_id),
        .branch = state->branch,
        .from_event_id = state->close_batch_event_id,
        .to_event_id = state->next_event_id,
    };
    struct history_page page = {0};
    struct error *err = engine_read_history(api->options.engine, &range, arena, &page);
    if (err != NULL)
        return err;
    API(History) *history = NULL;
    if (page.count > 0)
        err = message_decode_as(arena, ERR_CORRUPT, API_TYPE(history),
                                page.node[page.count - 1].events, &history);
    if (err != NULL || history == NULL || history->n_events == 0)
        return err;
    const API(HistoryEvent) *last = history->events[history->n_events - 1];
    if (last->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED))
        *result = presence_read_payload(last->workflow_execution_completed_event_attributes->result)
                      .bytes;
    return NULL;
}

static struct error *
answer_query(struct rpc_call *call, const struct run_key *key)
{
    struct api *api = api_of(call);
    API(QueryWorkflowResponse) *response = (API(QueryWorkflowResponse) *)call->response;
    struct history_state state = {0};
    struct slice result = {0};
    struct error *err = engine_history_state(api->options.engine, key, call->arena, &state);
    if (err == NULL && !state.is_open)
        err = read_result(api, key, &state, call->arena, &result);
    if (err != NULL)
        return err;
    if (result.length == 0)
        result = diagnosis_pending(call->arena);
    response->query_result =
        presence_make_payload(call->arena, (struct maybe_bytes){.is_set = true, .bytes = result});
    return NULL;
}

bool
diagnose_answers_query(struct rpc_call *call, struct error **err)
{
    const API(QueryWorkflowRequest) *request = (const API(QueryWorkflowRequest) *)call->request;
    if (strcmp(request->domain, SYSTEM_DOMAIN) != 0 ||
        strcmp(request->query->query_type, DIAGNOSTICS_REPORT) != 0)
        return false;
    const struct domain *domain = domains_find_name(api_of(call)->options.domains, SYSTEM_DOMAIN);
    if (domain == NULL)
        return false;
    struct run_key key = {.domain_id = arena_text(call->arena, domain->id),
                          .workflow_id = request->workflow_execution->workflow_id,
                          .run_id = request->workflow_execution->run_id};
    *err = answer_query(call, &key);
    return true;
}
