/* workflow.c - WorkflowAPI: what clients do with runs. The engine decides; here is what is refused
 * at the door, and how answers look. Starts are start.c. */
#include "api/call/validate.h"
#include "api/inside.h"
#include "api/visibility/own_writes.h"
#include "domain/active.h"
#include "engine/engine.h"
#include "matching/matching.h"
#include "wire/message.h"

static struct limits
limits_of(struct rpc_call *call, const char *domain)
{
    return (struct limits){.dynamic = api_of(call)->options.dynamic,
                           .domain = domain,
                           .arena = call->arena,
                           .log = api_of(call)->options.log};
}

/* --- runs that are there -------------------------------------------------------------------------
 */

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
        limits.workflow_id = request->workflow_execution->workflow_id;
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
    struct run_key key;
    struct error *err =
        validate_run(call, request->domain, request->workflow_execution, &key, NULL);
    if (err == NULL)
        err = engine_request_cancel(api_of(call)->options.engine, key.domain_id, request,
                                    call->arena);
    return err;
}

struct error *
api_terminate_workflow(struct rpc_call *call)
{
    const API(TerminateWorkflowExecutionRequest) *request =
        (const API(TerminateWorkflowExecutionRequest) *)call->request;
    struct run_key key;
    struct error *err =
        validate_run(call, request->domain, request->workflow_execution, &key, NULL);
    if (err == NULL)
        err = engine_terminate(api_of(call)->options.engine, key.domain_id, request, call->arena);
    if (err == NULL)
        own_writes_note(call, request->workflow_execution->workflow_id);
    return err;
}

/* The version of the run's last event; -1: it is gone. Yields. */
static int64_t
last_version_of(struct rpc_call *call, const struct run_key *key)
{
    struct run_home home = {.last_version = -1};
    struct error *err = engine_home(api_of(call)->options.engine, key, call->arena, &home);
    return err == NULL ? home.last_version : -1;
}

/* Where the run is active now; NULL: its domain is in one cluster only, or it is not known. Yields.
 */
static API(ActiveClusterInfo) *
show_active_cluster(struct rpc_call *call, const struct run_key *key,
                    const API(ActiveClusterSelectionPolicy) *policy)
{
    const struct api_options *options = &api_of(call)->options;
    const struct domain *domain = domains_find_id(options->domains, key->domain_id);
    struct cluster_attribute attribute = {0};
    if (policy != NULL && policy->cluster_attribute != NULL)
        attribute = (struct cluster_attribute){policy->cluster_attribute->scope,
                                               policy->cluster_attribute->name};
    if (domain == NULL || !domain->record->domain->is_global_domain)
        return NULL;
    struct active_cluster active = domains_active_run(options->domains, domain, &attribute, -1);
    if (active.is_unresolved) {
        int64_t version = last_version_of(call, key);
        domain = domains_find_id(options->domains, key->domain_id);
        if (domain == NULL)
            return NULL;
        active = domains_active_run(options->domains, domain, &attribute, version);
    }
    if (active.status == ACTIVE_UNKNOWN_ATTRIBUTE)
        return NULL;
    API(ActiveClusterInfo) *info = message_new(call->arena, API_TYPE(active_cluster_info));
    info->active_cluster_name = arena_text(call->arena, active.cluster_name);
    info->failover_version = active.failover_version;
    return info;
}

struct error *
api_describe_workflow(struct rpc_call *call)
{
    const API(DescribeWorkflowExecutionRequest) *request =
        (const API(DescribeWorkflowExecutionRequest) *)call->request;
    API(DescribeWorkflowExecutionResponse) *response =
        (API(DescribeWorkflowExecutionResponse) *)call->response;
    struct run_key key;
    struct error *err =
        validate_run(call, request->domain, request->workflow_execution, &key, NULL);
    if (err != NULL)
        return err;
    err = engine_describe(api_of(call)->options.engine, &key, call->arena, response);
    if (err == NULL)
        response->active_cluster = show_active_cluster(
            call, &key, response->workflow_execution_info->active_cluster_selection_policy);
    return err;
}
