/* workflow.c - WorkflowAPI: what clients ask of runs and task lists. Deciding is engine/'s; here is
 * what is refused at the door, and how answers look. Starts are start.c, history is history.c. */
#include "api/inside.h"
#include "api/validate.h"
#include "engine/engine.h"
#include "matching/matching.h"
#include "wire/message.h"

static struct limits
limits_of(struct rpc_call *call, const char *domain)
{
    return (struct limits){.dynamic = api_of(call)->options.dynamic,
                           .domain = domain,
                           .arena = call->arena,
                           .log = api_of(call)->options.log};
}

/* --- runs that are there -------------------------------------------------------------------------
 */

/* What every call about a run is checked for. */
static struct error *
admit_execution(struct rpc_call *call, const char *name, const API(WorkflowExecution) *execution,
                struct call_domain *domain)
{
    struct limits limits = limits_of(call, name);
    struct error *err = validate_domain_name(&limits);
    if (err == NULL)
        err = validate_execution(execution, call->arena);
    if (err == NULL)
        err = validate_domain(call, name, domain);
    return err;
}

struct error *
api_signal_workflow(struct rpc_call *call)
{
    const API(SignalWorkflowExecutionRequest) *request =
        (const API(SignalWorkflowExecutionRequest) *)call->request;
    struct limits limits = limits_of(call, request->domain);
    struct call_domain domain;
    struct error *err = validate_domain_name(&limits);
    if (err == NULL)
        err = validate_execution(request->workflow_execution, call->arena);
    if (err == NULL)
        err = validate_signal_name(&limits, request->signal_name);
    if (err == NULL)
        err = validate_length(&limits, DYNAMIC_REQUEST_ID_LENGTH, request->request_id, "RequestID");
    if (err == NULL)
        err = validate_domain(call, request->domain, &domain);
    if (err == NULL)
        limits.workflow_id = request->workflow_execution->workflow_id;
    if (err == NULL)
        err = validate_blob(&limits, validate_payload_size(request->signal_input));
    if (err == NULL)
        err = validate_isolation(call, &domain);
    if (err == NULL)
        err = validate_not_deprecated(&domain, call->arena);
    if (err == NULL)
        err = engine_signal(api_of(call)->options.engine, domain.id, request, call->arena);
    return err;
}

struct error *
api_request_cancel_workflow(struct rpc_call *call)
{
    const API(RequestCancelWorkflowExecutionRequest) *request =
        (const API(RequestCancelWorkflowExecutionRequest) *)call->request;
    struct call_domain domain;
    struct error *err =
        admit_execution(call, request->domain, request->workflow_execution, &domain);
    if (err == NULL)
        err = engine_request_cancel(api_of(call)->options.engine, domain.id, request, call->arena);
    return err;
}

struct error *
api_terminate_workflow(struct rpc_call *call)
{
    const API(TerminateWorkflowExecutionRequest) *request =
        (const API(TerminateWorkflowExecutionRequest) *)call->request;
    struct call_domain domain;
    struct error *err =
        admit_execution(call, request->domain, request->workflow_execution, &domain);
    if (err == NULL)
        err = engine_terminate(api_of(call)->options.engine, domain.id, request, call->arena);
    return err;
}

struct error *
api_describe_workflow(struct rpc_call *call)
{
    const API(DescribeWorkflowExecutionRequest) *request =
        (const API(DescribeWorkflowExecutionRequest) *)call->request;
    API(DescribeWorkflowExecutionResponse) *response =
        (API(DescribeWorkflowExecutionResponse) *)call->response;
    struct call_domain domain;
    struct error *err =
        admit_execution(call, request->domain, request->workflow_execution, &domain);
    if (err != NULL)
        return err;
    struct run_key key = {.domain_id = domain.id,
                          .workflow_id = request->workflow_execution->workflow_id,
                          .run_id = request->workflow_execution->run_id};
    return engine_describe(api_of(call)->options.engine, &key, call->arena, response);
}

/* --- task lists ----------------------------------------------------------------------------------
 */

struct error *
api_describe_task_list(struct rpc_call *call)
{
    const API(DescribeTaskListRequest) *request =
        (const API(DescribeTaskListRequest) *)call->request;
    API(DescribeTaskListResponse) *response = (API(DescribeTaskListResponse) *)call->response;
    struct limits limits = limits_of(call, request->domain);
    bool is_decision =
        request->task_list_type == API_VALUE(TASK_LIST_TYPE__TASK_LIST_TYPE_DECISION);
    bool is_activity =
        request->task_list_type == API_VALUE(TASK_LIST_TYPE__TASK_LIST_TYPE_ACTIVITY);
    struct call_domain domain;
    struct error *err = validate_domain_name(&limits);
    if (err == NULL && !is_decision && !is_activity)
        err = error_new(call->arena, ERR_BAD_REQUEST, "TaskListType is not set on request.");
    if (err == NULL)
        err = validate_task_list(&limits, request->task_list);
    if (err == NULL)
        err = validate_domain(call, request->domain, &domain);
    if (err != NULL)
        return err;
    response->task_list = request->task_list;
    return matching_describe(
        api_of(call)->options.matching, is_decision ? TASK_DECISION : TASK_ACTIVITY, domain.id,
        request->task_list->name, request->include_task_list_status, call->arena,
        &response->pollers, &response->n_pollers, &response->task_list_status);
}
