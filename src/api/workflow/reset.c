/* reset.c - ResetWorkflowExecution, RefreshWorkflowTasks and DeleteWorkflow: runs are repaired by
 * hand, or deleted. */
#include "api/call/validate.h"
#include "api/inside.h"
#include "engine/engine.h"
#include "uber/cadence/admin/v1/service.pb-c.h"

struct error *
api_reset_workflow(struct rpc_call *call)
{
    const API(ResetWorkflowExecutionRequest) *request =
        (const API(ResetWorkflowExecutionRequest) *)call->request;
    API(ResetWorkflowExecutionResponse) *response =
        (API(ResetWorkflowExecutionResponse) *)call->response;
    const char *run_id = NULL;
    struct run_key key;
    struct error *err =
        validate_run(call, request->domain, request->workflow_execution, &key, NULL);
    if (err == NULL)
        err = engine_reset(api_of(call)->options.engine, key.domain_id, request, call->arena,
                           &run_id);
    if (err == NULL)
        response->run_id = (char *)run_id;
    return err;
}

struct error *
api_refresh_tasks(struct rpc_call *call)
{
    const API(RefreshWorkflowTasksRequest) *request =
        (const API(RefreshWorkflowTasksRequest) *)call->request;
    struct run_key key;
    struct error *err =
        validate_run(call, request->domain, request->workflow_execution, &key, NULL);
    if (err != NULL)
        return err;
    return engine_refresh(api_of(call)->options.engine, &key, call->arena);
}

/* */
struct error *
api_delete_workflow(struct rpc_call *call)
{
    const ADMIN(DeleteWorkflowRequest) *request =
        (const ADMIN(DeleteWorkflowRequest) *)call->request;
    ADMIN(DeleteWorkflowResponse) *response = (ADMIN(DeleteWorkflowResponse) *)call->response;
    struct run_key key;
    struct error *err =
        validate_run(call, request->domain, request->workflow_execution, &key, NULL);
    if (err != NULL)
        return err;
    err = engine_remove(api_of(call)->options.engine, &key, "admin", call->arena);
    response->history_deleted = err == NULL;
    response->executions_deleted = err == NULL;
    response->visibility_deleted = err == NULL;
    return err;
}
