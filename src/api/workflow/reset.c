/* reset.c - ResetWorkflowExecution, RefreshWorkflowTasks and DeleteWorkflow: runs are repaired by
 * hand, or deleted. */
#include "api/call/validate.h"
#include "api/inside.h"
#include "engine/engine.h"
#include "uber/cadence/admin/v1/service.pb-c.h"

static struct error *
admit(struct rpc_call *call, const char *name, const API(WorkflowExecution) *execution,
      struct call_domain *domain)
{
    struct limits limits = {api_of(call)->options.dynamic, name, call->arena};
    struct error *err = validate_domain_name(&limits);
    if (err == NULL)
        err = validate_execution(execution, call->arena);
    return err != NULL ? err : validate_domain(call, name, domain);
}

struct error *
api_reset_workflow(struct rpc_call *call)
{
    const API(ResetWorkflowExecutionRequest) *request =
        (const API(ResetWorkflowExecutionRequest) *)call->request;
    API(ResetWorkflowExecutionResponse) *response =
        (API(ResetWorkflowExecutionResponse) *)call->response;
    struct call_domain domain;
    const char *run_id = NULL;
    struct error *err = admit(call, request->domain, request->workflow_execution, &domain);
    if (err == NULL)
        err = engine_reset(api_of(call)->options.engine, domain.id, request, call->arena, &run_id);
    if (err == NULL)
        response->run_id = (char *)run_id;
    return err;
}

struct error *
api_refresh_tasks(struct rpc_call *call)
{
    const API(RefreshWorkflowTasksRequest) *request =
        (const API(RefreshWorkflowTasksRequest) *)call->request;
    struct call_domain domain;
    struct error *err = admit(call, request->domain, request->workflow_execution, &domain);
    if (err != NULL)
        return err;
    struct run_key key = {.domain_id = domain.id,
                          .workflow_id = request->workflow_execution->workflow_id,
                          .run_id = request->workflow_execution->run_id};
    return engine_refresh(api_of(call)->options.engine, &key, call->arena);
}

/* */
struct error *
api_delete_workflow(struct rpc_call *call)
{
    const ADMIN(DeleteWorkflowRequest) *request =
        (const ADMIN(DeleteWorkflowRequest) *)call->request;
    ADMIN(DeleteWorkflowResponse) *response = (ADMIN(DeleteWorkflowResponse) *)call->response;
    struct call_domain domain;
    struct error *err = admit(call, request->domain, request->workflow_execution, &domain);
    if (err != NULL)
        return err;
    struct run_key key = {.domain_id = domain.id,
                          .workflow_id = request->workflow_execution->workflow_id,
                          .run_id = request->workflow_execution->run_id};
    err = engine_remove(api_of(call)->options.engine, &key, "admin", call->arena);
    response->history_deleted = err == NULL;
    response->executions_deleted = err == NULL;
    response->visibility_deleted = err == NULL;
    return err;
}
