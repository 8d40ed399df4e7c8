/* start.c - WorkflowAPI: starts, alone or with a signal, now or later.
 *
 * A start that is accepted for later is checked in the same way, so that its caller learns at once
 * what is wrong with it; what an existing run does not allow it never learns. */
#include "api/call/validate.h"
#include "api/inside.h"
#include "api/visibility/own_writes.h"
#include "domain/active.h"
#include "engine/engine.h"
#include "wire/message.h"

/* --- at the door ---------------------------------------------------------------------------------
 */

#define SHADOW_DOMAIN "cadence-shadower"
#define SHADOW_TYPE   "cadence-shadow-workflow"

/* A start that was checked, and its domain. */
struct admitted {
    struct call_domain domain;
    struct caller_partition partition;
    struct start_command command;
};

static struct error *
check_search(struct rpc_call *call, const API(StartWorkflowExecutionRequest) *request)
{
    const struct api_options *options = &api_of(call)->options;
    struct search_rules rules = {.registry = options->registry, .dynamic = options->dynamic};
    return api_check_search_attributes(&rules, request->search_attributes, request->domain,
                                       call->arena);
}

/* Cadence has a worker of its own for it. Here the run would wait for ever. */
static struct error *
refuse_shadowing(struct rpc_call *call, const API(StartWorkflowExecutionRequest) *request)
{
    if (strcmp(request->domain, SHADOW_DOMAIN) != 0 ||
        strcmp(request->workflow_type->name, SHADOW_TYPE) != 0)
        return NULL;
    return error_new(call->arena, ERR_BAD_REQUEST,
                     "Workflows of type " SHADOW_TYPE
                     " are not served: this server has no worker that shadows workflows. Replay "
                     "histories with the client's workflow replayer instead.");
}

static struct error *
check_start(struct rpc_call *call, const API(StartWorkflowExecutionRequest) *request,
            bool needs_uuid, struct call_domain *domain)
{
    struct limits limits = {api_of(call)->options.dynamic, request->domain, call->arena,
                            api_of(call)->options.log, request->workflow_id};
    struct error *err = validate_start(&limits, request, needs_uuid);
    if (err == NULL)
        err = refuse_shadowing(call, request);
    if (err == NULL)
        err = validate_domain(call, request->domain, domain);
    if (err == NULL)
        err = validate_not_deprecated(domain, call->arena);
    if (err == NULL)
        err = validate_start_blobs(&limits, request);
    if (err == NULL)
        err = check_search(call, request);
    if (err == NULL)
        err = validate_isolation(call, domain);
    return err;
}

static void
fill_command(struct rpc_call *call, struct admitted *admitted)
{
    api_caller_partition(call, &admitted->partition);
    admitted->command.partition_keys = admitted->partition.keys;
    admitted->command.partition_values = admitted->partition.values;
    admitted->command.partition_count = admitted->partition.count;
}

static struct error *
refuse_nothing(struct arena *arena)
{
    return error_new(arena, ERR_BAD_REQUEST, "Request is nil.");
}

static struct error *
admit_start(struct rpc_call *call, const API(StartWorkflowExecutionRequest) *request,
            struct admitted *admitted)
{
    if (request == NULL)
        return refuse_nothing(call->arena);
    struct error *err = check_start(call, request, true, &admitted->domain);
    admitted->command = (struct start_command){.request = request};
    fill_command(call, admitted);
    return err;
}

static struct error *
admit_signal(struct rpc_call *call, const API(SignalWithStartWorkflowExecutionRequest) *request,
             struct admitted *admitted)
{
    if (request == NULL || request->start_request == NULL)
        return refuse_nothing(call->arena);
    struct limits limits = {api_of(call)->options.dynamic, request->start_request->domain,
                            call->arena, api_of(call)->options.log,
                            request->start_request->workflow_id};
    struct error *err = check_start(call, request->start_request, false, &admitted->domain);
    if (err == NULL)
        err = validate_signal_name(&limits, request->signal_name);
    if (err == NULL)
        err = validate_blob(&limits, validate_payload_size(request->signal_input));
    admitted->command =
        (struct start_command){.request = request->start_request, .signal = request};
    fill_command(call, admitted);
    return err;
}

/* --- now -----------------------------------------------------------------------------------------
 */

struct error *
api_start_workflow(struct rpc_call *call)
{
    API(StartWorkflowExecutionResponse) *response =
        (API(StartWorkflowExecutionResponse) *)call->response;
    struct admitted admitted;
    struct start_answer answer = {0};
    struct error *err =
        admit_start(call, (const API(StartWorkflowExecutionRequest) *)call->request, &admitted);
    if (err == NULL)
        err = engine_start(api_of(call)->options.engine, admitted.domain.id, &admitted.command,
                           call->arena, &answer);
    if (err != NULL)
        return err;
    response->run_id = (char *)answer.run_id;
    own_writes_note(call, admitted.command.request->workflow_id);
    return NULL;
}

struct error *
api_signal_with_start(struct rpc_call *call)
{
    API(SignalWithStartWorkflowExecutionResponse) *response =
        (API(SignalWithStartWorkflowExecutionResponse) *)call->response;
    struct admitted admitted;
    struct start_answer answer = {0};
    struct error *err = admit_signal(
        call, (const API(SignalWithStartWorkflowExecutionRequest) *)call->request, &admitted);
    if (err == NULL)
        err = engine_start(api_of(call)->options.engine, admitted.domain.id, &admitted.command,
                           call->arena, &answer);
    if (err != NULL)
        return err;
    response->run_id = (char *)answer.run_id;
    own_writes_note(call, admitted.command.request->workflow_id);
    return NULL;
}

/* --- later ---------------------------------------------------------------------------------------
 */

/* May requests of the domain be done later? No queue has to be set up for them here, so they may
 * unless the domain's configuration switches them off; the queue that it names is ignored. */
static struct error *
check_queue(const struct call_domain *domain, struct arena *arena)
{
    const API(AsyncWorkflowConfiguration) *queue =
        domain->domain->record->domain->async_workflow_config;
    if (queue == NULL || queue->enabled)
        return NULL;
    return error_new(arena, ERR_BAD_REQUEST,
                     "async workflow is not enabled for domain %s: its configuration switches it "
                     "off; 'cadenza admin async-wf-queue update' changes that",
                     domain->name);
}

/* Later there would be no caller to tell. */
static struct error *
check_attribute(struct rpc_call *call, const struct admitted *admitted)
{
    const struct domains *domains = api_of(call)->options.domains;
    const struct domain *domain = admitted->domain.domain;
    struct cluster_attribute attribute =
        cluster_attribute_of(admitted->command.request->active_cluster_selection_policy);
    struct active_cluster active = domains_active_run(domains, domain, &attribute, -1);
    bool may_signal = admitted->command.signal != NULL; /* an open run of the entity */
    if (active.is_unresolved)
        return may_signal ? NULL
                          : domains_refuse_unresolved(domains, domain, &attribute, call->arena);
    if (active.status == ACTIVE_UNKNOWN_ATTRIBUTE)
        return error_new(call->arena, ERR_BAD_REQUEST, UNKNOWN_ATTRIBUTE_FAULT);
    if (!may_signal && !domains_takes_runs(domains, domain, &attribute))
        return error_new(call->arena, ERR_BAD_REQUEST, DELETED_ENTITY_FAULT, attribute.name,
                         attribute.scope);
    return NULL;
}

static struct error *
accept_start(struct rpc_call *call, struct admitted *admitted)
{
    struct error *err = check_queue(&admitted->domain, call->arena);
    if (err == NULL)
        err = check_attribute(call, admitted);
    if (err == NULL)
        err = engine_accept(api_of(call)->options.engine, admitted->domain.id, &admitted->command,
                            call->arena);
    return err;
}

struct error *
api_start_workflow_later(struct rpc_call *call)
{
    const API(StartWorkflowExecutionAsyncRequest) *request =
        (const API(StartWorkflowExecutionAsyncRequest) *)call->request;
    struct admitted admitted;
    struct error *err = admit_start(call, request->request, &admitted);
    return err != NULL ? err : accept_start(call, &admitted);
}

struct error *
api_signal_with_start_later(struct rpc_call *call)
{
    const API(SignalWithStartWorkflowExecutionAsyncRequest) *request =
        (const API(SignalWithStartWorkflowExecutionAsyncRequest) *)call->request;
    struct admitted admitted;
    struct error *err = admit_signal(call, request->request, &admitted);
    return err != NULL ? err : accept_start(call, &admitted);
}
