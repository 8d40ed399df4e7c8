/* query_admit.c - QueryWorkflow: what is refused at the door, and the record of who asks. */
#include "api/query.h"
#include "api/validate.h"
#include "wire/message.h"

static struct error *
check_strong(const struct limits *limits, const API(QueryWorkflowRequest) *request)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    if (request->query_consistency_level !=
        API_VALUE(QUERY_CONSISTENCY_LEVEL__QUERY_CONSISTENCY_LEVEL_STRONG))
        return NULL;
    bool is_enabled = dynamic_flag(limits->dynamic, DYNAMIC_STRONG_QUERY, &filter);
    filter.domain_name = limits->domain;
    if (is_enabled && dynamic_flag(limits->dynamic, DYNAMIC_STRONG_QUERY_DOMAIN, &filter))
        return NULL;
    return error_new(limits->arena, ERR_BAD_REQUEST,
                     "cluster or domain does not enable strongly consistent query but strongly "
                     "consistent query was requested");
}

static struct error *
check_question(const struct limits *limits, const API(WorkflowQuery) *query)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = limits->domain;
    if (dynamic_flag(limits->dynamic, DYNAMIC_DISALLOW_QUERY, &filter))
        return error_new(limits->arena, ERR_BAD_REQUEST,
                         "Domain is not allowed to query, please contact cadence team to "
                         "re-enable queries.");
    if (query == NULL)
        return error_new(limits->arena, ERR_BAD_REQUEST, "WorkflowQuery is not set on request.");
    if (query->query_type[0] == '\0')
        return error_new(limits->arena, ERR_BAD_REQUEST, "QueryType is not set on request.");
    return NULL;
}

/* All that it needs of the request, in an arena of its own. */
static struct asker *
new_asker(const struct call_domain *domain, const API(QueryWorkflowRequest) *request)
{
    struct arena *arena = arena_new(4096);
    struct asker *asker = arena_make(arena, struct asker);
    const API(WorkflowExecution) *execution = request->workflow_execution;
    asker->parked.arena = arena;
    asker->domain_name = arena_text(arena, domain->name);
    asker->key = (struct run_key){.domain_id = arena_text(arena, domain->id),
                                  .workflow_id = arena_text(arena, execution->workflow_id),
                                  .run_id = arena_text(arena, execution->run_id)};
    asker->question = message_encode(arena, &request->query->base);
    asker->is_strong = request->query_consistency_level ==
                       API_VALUE(QUERY_CONSISTENCY_LEVEL__QUERY_CONSISTENCY_LEVEL_STRONG);
    asker->reject_condition = request->query_reject_condition;
    return asker;
}

struct error *
api_query_workflow(struct rpc_call *call)
{
    const API(QueryWorkflowRequest) *request = (const API(QueryWorkflowRequest) *)call->request;
    struct limits limits = {api_of(call)->options.dynamic, request->domain, call->arena};
    struct call_domain domain;
    struct error *err = validate_domain_name(&limits);
    if (err == NULL)
        err = validate_execution(request->workflow_execution, call->arena);
    if (err == NULL)
        err = check_question(&limits, request->query);
    if (err == NULL)
        err = validate_domain(call, request->domain, &domain);
    if (err == NULL)
        err = validate_blob(&limits, validate_payload_size(request->query->query_args));
    if (err == NULL)
        err = check_strong(&limits, request);
    if (err != NULL)
        return err;
    bool is_asked = false;
    err = poller_ask_elsewhere(call, &domain, request, &is_asked);
    if (err != NULL || is_asked)
        return err;
    if (fiber_is_cancelled())
        return error_new(call->arena, ERR_CANCELLED, "the caller has gone");
    struct asker *asker = new_asker(&domain, request);
    err = asker_begin(asker, call);
    if (err != NULL)
        arena_free(asker->parked.arena);
    return err;
}
