/* sticky.c - ResetStickyTaskList: a worker has dropped a run from its memory. */
#include "api/call/validate.h"
#include "api/inside.h"
#include "engine/engine.h"

struct error *
api_reset_sticky(struct rpc_call *call)
{
    const API(ResetStickyTaskListRequest) *request =
        (const API(ResetStickyTaskListRequest) *)call->request;
    struct limits limits = {api_of(call)->options.dynamic, request->domain, call->arena};
    struct call_domain domain;
    struct error *err = validate_domain_name(&limits);
    if (err == NULL)
        err = validate_execution(request->workflow_execution, call->arena);
    if (err == NULL)
        err = validate_domain(call, request->domain, &domain);
    if (err != NULL)
        return err;
    struct run_key key = {.domain_id = domain.id,
                          .workflow_id = request->workflow_execution->workflow_id,
                          .run_id = request->workflow_execution->run_id};
    return engine_reset_sticky(api_of(call)->options.engine, &key, call->arena);
}
