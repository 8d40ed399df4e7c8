/* query_admit.c - QueryWorkflow: what is refused at the door, and the record of the query. */
#include "api/call/validate.h"
#include "api/query/query.h"
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
static struct querier *
new_querier(const struct call_domain *domain, const API(QueryWorkflowRequest) *request)
{
    struct arena *arena = arena_new(4096);
    struct querier *querier = arena_make(arena, struct querier);
    const API(WorkflowExecution) *execution = request->workflow_execution;
    querier->parked.arena = arena;
    querier->domain_name = arena_text(arena, domain->name);
    querier->key = (struct run_key){.domain_id = arena_text(arena, domain->id),
                                    .workflow_id = arena_text(arena, execution->workflow_id),
                                    .run_id = arena_text(arena, execution->run_id)};
    querier->question = message_encode(arena, &request->query->base);
    querier->is_strong = request->query_consistency_level ==
                         API_VALUE(QUERY_CONSISTENCY_LEVEL__QUERY_CONSISTENCY_LEVEL_STRONG);
    querier->reject_condition = request->query_reject_condition;
    return querier;
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
    bool is_forwarded = false;
    err = poller_query_remote(call, &domain, request, &is_forwarded);
    if (err != NULL || is_forwarded)
        return err;
    if (fiber_is_cancelled())
        return error_new(call->arena, ERR_CANCELLED, "the caller has gone");
    struct querier *querier = new_querier(&domain, request);
    err = querier_begin(querier, call);
    if (err != NULL)
        arena_free(querier->parked.arena);
    return err;
}
