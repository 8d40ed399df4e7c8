/* failing.c - ListFailingDecisions: workflows that make no progress because their workers fail
 * every decision, with the reason. */
#include "api/inside.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "engine/engine.h"
#include "wire/message.h"

#define COUNT_DEFAULT 20
#define COUNT_MAX     1000

static STORE_API(FailingDecision) *
show(const struct failing_decision *decision, struct arena *arena)
{
    STORE_API(FailingDecision) *shown =
        message_new(arena, &cadenza__admin__v1__failing_decision__descriptor);
    shown->domain = (char *)decision->domain_name;
    shown->workflow_execution = message_new(arena, API_TYPE(workflow_execution));
    shown->workflow_execution->workflow_id = (char *)decision->workflow_id;
    shown->workflow_execution->run_id = (char *)decision->run_id;
    shown->workflow_type = (char *)decision->workflow_type;
    shown->task_list = (char *)decision->task_list;
    shown->attempt = decision->attempt;
    shown->reason = (char *)decision->reason;
    return shown;
}

struct error *
api_list_failing_decisions(struct rpc_call *call)
{
    const STORE_API(ListFailingDecisionsRequest) *request =
        (const STORE_API(ListFailingDecisionsRequest) *)call->request;
    STORE_API(ListFailingDecisionsResponse) *response =
        (STORE_API(ListFailingDecisionsResponse) *)call->response;
    if (request->count < 0 || request->count > COUNT_MAX)
        return error_new(call->arena, ERR_BAD_REQUEST, "count: %d is not from 0 to %d.",
                         request->count, COUNT_MAX);
    struct failing_decision *decisions = NULL;
    size_t count = 0, total = 0;
    struct error *err = engine_list_failing(
        api_of(call)->options.engine, request->count == 0 ? COUNT_DEFAULT : (size_t)request->count,
        call->arena, &decisions, &count, &total);
    if (err != NULL)
        return err;
    response->total = (int64_t)total;
    response->n_decisions = count;
    response->decisions = arena_zalloc(call->arena, count + 1, sizeof *response->decisions);
    for (size_t i = 0; i < count; i++)
        response->decisions[i] = show(&decisions[i], call->arena);
    return NULL;
}
