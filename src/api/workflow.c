/* workflow.c - WorkflowAPI: what clients ask of runs and task lists. Deciding is engine/'s; here is
 * what is refused at the door, and how answers look. History is history.c. */
#include "api/inside.h"
#include "api/validate.h"
#include "engine/engine.h"
#include "matching/matching.h"
#include "wire/message.h"

static struct limits
limits_of(struct rpc_call *call, const char *domain)
{
    return (struct limits){api_of(call)->options.dynamic, domain, call->arena};
}

/* --- start ---------------------------------------------------------------------------------------
 */

/* The door's part of a start: *domain is where it goes to. */
static struct error *
admit_start(struct rpc_call *call, const API(StartWorkflowExecutionRequest) *request,
            bool needs_uuid, struct call_domain *domain)
{
    struct limits limits = limits_of(call, request->domain);
    struct error *err = validate_start(&limits, request, needs_uuid);
    if (err == NULL)
        err = validate_domain(call, request->domain, domain);
    if (err == NULL)
        err = validate_not_deprecated(domain, call->arena);
    if (err == NULL)
        err = validate_start_blobs(&limits, request);
    if (err == NULL)
        err = validate_isolation(call, domain);
    return err;
}

struct error *
api_start_workflow(struct rpc_call *call)
{
    const API(StartWorkflowExecutionRequest) *request =
        (const API(StartWorkflowExecutionRequest) *)call->request;
    API(StartWorkflowExecutionResponse) *response =
        (API(StartWorkflowExecutionResponse) *)call->response;
    struct call_domain domain;
    struct error *err = admit_start(call, request, true, &domain);
    if (err != NULL)
        return err;
    struct caller_partition partition;
    api_caller_partition(call, &partition);
    struct start_command command = {.request = request,
                                    .partition_keys = partition.keys,
                                    .partition_values = partition.values,
                                    .partition_count = partition.count};
    struct start_answer answer = {0};
    err = engine_start(api_of(call)->options.engine, domain.id, &command, call->arena, &answer);
    if (err == NULL)
        response->run_id = (char *)answer.run_id;
    return err;
}

struct error *
api_signal_with_start(struct rpc_call *call)
{
    const API(SignalWithStartWorkflowExecutionRequest) *request =
        (const API(SignalWithStartWorkflowExecutionRequest) *)call->request;
    API(SignalWithStartWorkflowExecutionResponse) *response =
        (API(SignalWithStartWorkflowExecutionResponse) *)call->response;
    if (request->start_request == NULL)
        return error_new(call->arena, ERR_BAD_REQUEST, "Request is nil.");
    struct limits limits = limits_of(call, request->start_request->domain);
    struct call_domain domain;
    struct error *err = admit_start(call, request->start_request, false, &domain);
    if (err == NULL)
        err = validate_signal_name(&limits, request->signal_name);
    if (err == NULL)
        err = validate_blob(&limits, validate_payload_size(request->signal_input));
    if (err != NULL)
        return err;
    struct caller_partition partition;
    api_caller_partition(call, &partition);
    struct start_command command = {.request = request->start_request,
                                    .signal = request,
                                    .partition_keys = partition.keys,
                                    .partition_values = partition.values,
                                    .partition_count = partition.count};
    struct start_answer answer = {0};
    err = engine_signal_with_start(api_of(call)->options.engine, domain.id, &command, call->arena,
                                   &answer);
    if (err == NULL)
        response->run_id = (char *)answer.run_id;
    return err;
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
