/* sticky.c - ResetStickyTaskList: a worker has dropped a run from its memory. */
#include "api/call/validate.h"
#include "api/inside.h"
#include "engine/engine.h"

struct error *
api_reset_sticky(struct rpc_call *call)
{
    const API(ResetStickyTaskListRequest) *request =
        (const API(ResetStickyTaskListRequest) *)call->request;
    struct run_key key;
    struct error *err =
        validate_run(call, request->domain, request->workflow_execution, &key, NULL);
    if (err != NULL)
        return err;
    return engine_reset_sticky(api_of(call)->options.engine, &key, call->arena);
}
