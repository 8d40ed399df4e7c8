/* hot_workflows.c - HotWorkflows: which workflow ids are called most just now, so that operators
 * need not search logs. */
#include "api/call/validate.h"
#include "api/inside.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "engine/engine.h"
#include "wire/message.h"

#define COUNT_DEFAULT 20
#define COUNT_MAX     1000

static STORE_API(HotWorkflow) *
show(const struct limits_rate *rate, struct arena *arena)
{
    STORE_API(HotWorkflow) *shown =
        message_new(arena, &cadenza__admin__v1__hot_workflow__descriptor);
    shown->domain = (char *)rate->domain_name;
    shown->workflow_id = (char *)rate->workflow_id;
    shown->external_rate = rate->rate[LIMITS_EXTERNAL];
    shown->internal_rate = rate->rate[LIMITS_INTERNAL];
    shown->is_external_limited = rate->is_limited[LIMITS_EXTERNAL];
    shown->is_internal_limited = rate->is_limited[LIMITS_INTERNAL];
    return shown;
}

struct error *
api_hot_workflows(struct rpc_call *call)
{
    const STORE_API(HotWorkflowsRequest) *request =
        (const STORE_API(HotWorkflowsRequest) *)call->request;
    STORE_API(HotWorkflowsResponse) *response = (STORE_API(HotWorkflowsResponse) *)call->response;
    struct call_domain domain = {0};
    if (request->count < 0 || request->count > COUNT_MAX)
        return error_new(call->arena, ERR_BAD_REQUEST, "count: %d is not from 0 to %d.",
                         request->count, COUNT_MAX);
    struct error *err = NULL;
    if (request->domain[0] != '\0')
        err = validate_domain(call, request->domain, &domain);
    struct limits_rate *rates = NULL;
    size_t count = 0;
    if (err == NULL)
        err = engine_hottest(api_of(call)->options.engine, domain.id,
                             request->count == 0 ? COUNT_DEFAULT : (size_t)request->count,
                             call->arena, &rates, &count);
    if (err != NULL)
        return err;
    response->n_workflows = count;
    response->workflows = arena_zalloc(call->arena, count + 1, sizeof *response->workflows);
    for (size_t i = 0; i < count; i++)
        response->workflows[i] = show(&rates[i], call->arena);
    return NULL;
}
