/* divergence.c - ListDivergences, DescribeRebuild and RebuildRun: events that lost when clusters
 * disagreed, and whether a run is what its history says. */
#include "api/call/validate.h"
#include "api/inside.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "engine/engine.h"
#include "wire/message.h"

#define COUNT_DEFAULT 100
#define COUNT_MAX     1000

static STORE_API(Divergence) *
show(struct api *api, const struct divergence *divergence, struct arena *arena)
{
    STORE_API(Divergence) *shown = message_new(arena, &cadenza__admin__v1__divergence__descriptor);
    const struct domain *domain = domains_find_id(api->options.domains, divergence->key.domain_id);
    char branch[UUID_TEXT_LENGTH + 1];
    uuid_format(&divergence->branch, branch);
    shown->domain = arena_text(arena, domain == NULL ? divergence->key.domain_id : domain->name);
    shown->workflow_id = (char *)divergence->key.workflow_id;
    shown->run_id = (char *)divergence->key.run_id;
    shown->branch_id = arena_text(arena, branch);
    shown->reason = (char *)(divergence->is_of_run ? "run" : "branch");
    shown->from_event_id = divergence->from_event_id;
    shown->to_event_id = divergence->next_event_id - 1;
    shown->version = divergence->last_version;
    shown->time = divergence->time;
    shown->events = divergence->events;
    shown->n_events = divergence->event_count;
    return shown;
}

struct error *
api_list_divergences(struct rpc_call *call)
{
    const STORE_API(ListDivergencesRequest) *request =
        (const STORE_API(ListDivergencesRequest) *)call->request;
    STORE_API(ListDivergencesResponse) *response =
        (STORE_API(ListDivergencesResponse) *)call->response;
    struct call_domain domain = {0};
    if (request->count < 0 || request->count > COUNT_MAX)
        return error_new(call->arena, ERR_BAD_REQUEST, "count: %d is not from 0 to %d.",
                         request->count, COUNT_MAX);
    if (request->workflow_id[0] != '\0' && request->domain[0] == '\0')
        return error_new(call->arena, ERR_BAD_REQUEST, "Domain not set on request.");
    struct error *err = NULL;
    if (request->domain[0] != '\0')
        err = validate_domain(call, request->domain, &domain);
    struct divergence_query query = {
        .domain_id = domain.id,
        .workflow_id = request->workflow_id[0] == '\0' ? NULL : request->workflow_id,
        .count_max = request->count == 0 ? COUNT_DEFAULT : (size_t)request->count,
        .has_events = request->has_events};
    struct divergence *all = NULL;
    size_t count = 0;
    if (err == NULL)
        err = engine_list_divergences(api_of(call)->options.engine, &query, call->arena, &all,
                                      &count);
    if (err != NULL)
        return err;
    response->n_divergences = count;
    response->divergences = arena_zalloc(call->arena, count + 1, sizeof *response->divergences);
    for (size_t i = 0; i < count; i++)
        response->divergences[i] = show(api_of(call), &all[i], call->arena);
    return NULL;
}

struct error *
api_describe_rebuild(struct rpc_call *call)
{
    const STORE_API(DescribeRebuildRequest) *request =
        (const STORE_API(DescribeRebuildRequest) *)call->request;
    STORE_API(DescribeRebuildResponse) *response =
        (STORE_API(DescribeRebuildResponse) *)call->response;
    struct call_domain domain = {0};
    if (request->workflow_id[0] == '\0')
        return error_new(call->arena, ERR_BAD_REQUEST, "WorkflowId is not set on request.");
    struct error *err = validate_domain(call, request->domain, &domain);
    if (err != NULL)
        return err;
    struct run_key key = {domain.id, request->workflow_id, request->run_id};
    struct run_verification verification;
    err = engine_verify(api_of(call)->options.engine, &key, call->arena, &verification);
    if (err != NULL)
        return err;
    response->run_id = (char *)verification.run_id;
    response->is_comparable = verification.is_comparable;
    response->stored_checksum =
        arena_format(call->arena, "%016llx", (unsigned long long)verification.stored);
    response->rebuilt_checksum =
        arena_format(call->arena, "%016llx", (unsigned long long)verification.rebuilt);
    return NULL;
}

struct error *
api_rebuild_run(struct rpc_call *call)
{
    const STORE_API(RebuildRunRequest) *request =
        (const STORE_API(RebuildRunRequest) *)call->request;
    STORE_API(RebuildRunResponse) *response = (STORE_API(RebuildRunResponse) *)call->response;
    struct call_domain domain = {0};
    struct error *err = validate_execution(request->workflow_execution, call->arena);
    if (err == NULL)
        err = validate_domain(call, request->domain, &domain);
    if (err != NULL)
        return err;
    struct run_key key = {domain.id, request->workflow_execution->workflow_id,
                          request->workflow_execution->run_id};
    struct run_rebuilt outcome = {0};
    err = engine_rebuild(api_of(call)->options.engine, &key, call->arena, &outcome);
    if (err != NULL)
        return err;
    response->run_id = (char *)outcome.run_id;
    response->old_checksum =
        arena_format(call->arena, "%016llx", (unsigned long long)outcome.before);
    response->new_checksum =
        arena_format(call->arena, "%016llx", (unsigned long long)outcome.after);
    return NULL;
}
