/* diagnose.c - DiagnoseWorkflowExecution: starts a diagnosis, or finds the one that runs. See
 * diagnose.h. */
#include "api/workflow/diagnose.h"

#include "api/call/validate.h"
#include "api/inside.h"
#include "base/json.h"
#include "engine/engine.h"
#include "fiber/clock.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

#define EXECUTION_SECONDS 86400
#define DECISION_SECONDS  300

static struct slice
diagnose_input(const struct diagnosis_spec *spec, struct arena *arena)
{
    size_t payload = strlen(spec->domain) + strlen(spec->identity) + strlen(spec->workflow_id) +
                     strlen(spec->run_id);
    struct json_writer writer = object_write_begin(arena, 4, payload);
    object_write_text(&writer, "Domain", spec->domain);
    object_write_text(&writer, "Identity", spec->identity);
    object_write_text(&writer, "WorkflowID", spec->workflow_id);
    object_write_text(&writer, "RunID", spec->run_id);
    return object_write_end(&writer);
}

static struct error *
find_system_domain(struct rpc_call *call, const char **id)
{
    const struct domain *domain = domains_find_name(api_of(call)->options.domains, SYSTEM_DOMAIN);
    if (domain == NULL)
        return error_new(call->arena, ERR_UNAVAILABLE, "domain %s is not known yet", SYSTEM_DOMAIN);
    *id = arena_text(call->arena, domain->id);
    return NULL;
}

static API(StartWorkflowExecutionRequest) *
make_start(const struct diagnosis_spec *spec, struct arena *arena)
{
    API(StartWorkflowExecutionRequest) *start =
        message_new(arena, API_TYPE(start_workflow_execution_request));
    start->domain = SYSTEM_DOMAIN;
    start->workflow_id = arena_format(arena, "%s-%s", spec->domain, spec->run_id);
    start->workflow_type = message_new(arena, API_TYPE(workflow_type));
    start->workflow_type->name = DIAGNOSTICS_TYPE;
    start->task_list = message_new(arena, API_TYPE(task_list));
    start->task_list->name = DIAGNOSTICS_LIST;
    start->input = presence_make_payload(
        arena, (struct maybe_bytes){.is_set = true, .bytes = diagnose_input(spec, arena)});
    start->execution_start_to_close_timeout = presence_make_duration(arena, EXECUTION_SECONDS);
    start->task_start_to_close_timeout = presence_make_duration(arena, DECISION_SECONDS);
    start->identity = (char *)spec->identity;
    start->request_id = uuid_new_text(arena);
    start->workflow_id_reuse_policy =
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE);
    return start;
}

/* *run_id is of the run that was started, or of the one that is already working on it. */
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
    struct diagnosis_spec spec = {.domain = request->domain,
                                  .workflow_id = execution->workflow_id,
                                  .run_id = execution->run_id,
                                  .identity = request->identity};
    const char *domain_id = "", *run_id = "";
    API(StartWorkflowExecutionRequest) *start = make_start(&spec, call->arena);
    struct error *err = find_system_domain(call, &domain_id);
    if (err == NULL)
        err = start_diagnosis(call, domain_id, start, &run_id);
    if (err != NULL)
        return err;
    response->domain = SYSTEM_DOMAIN;
    response->diagnostic_workflow_execution =
        message_new(call->arena, API_TYPE(workflow_execution));
    response->diagnostic_workflow_execution->workflow_id = start->workflow_id;
    response->diagnostic_workflow_execution->run_id = (char *)run_id;
    return NULL;
}
