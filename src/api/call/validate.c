/* validate.c - see validate.h. The parts that requests share; validate_start.c has the start. */
#include "api/call/validate.h"

#include "api/inside.h"
#include "base/uuid.h"
#include "domain/domains.h"
#include "engine/run/run.h"
#include "fiber/clock.h"
#include "wire/maps.h"

#define POLL_TIME_MIN (2 * NS_PER_S)

/* --- domains -------------------------------------------------------------------------------------
 */

struct error *
validate_length(const struct limits *limits, enum dynamic_key key, const char *text,
                const char *what)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = limits->domain;
    int64_t most = dynamic_integer(limits->dynamic, key, &filter);
    if (strlen(text) <= (size_t)(most < 0 ? 0 : most))
        return NULL;
    return error_new(limits->arena, ERR_BAD_REQUEST, "%s length exceeds limit.", what);
}

struct error *
validate_domain_name(const struct limits *limits)
{
    if (limits->domain[0] == '\0')
        return error_new(limits->arena, ERR_BAD_REQUEST, "Domain not set on request.");
    return validate_length(limits, DYNAMIC_DOMAIN_NAME_LENGTH, limits->domain, "Domain");
}

static void
found_domain(struct rpc_call *call, const struct domain *domain, struct call_domain *found)
{
    *found = (struct call_domain){.id = arena_text(call->arena, domain->id),
                                  .name = arena_text(call->arena, domain->name),
                                  .domain = domain};
    rpc_note_domain(call, found->name);
}

struct error *
validate_domain(struct rpc_call *call, const char *name, struct call_domain *found)
{
    const struct api *api = api_of(call);
    struct limits limits = {api->options.dynamic, name, call->arena};
    struct error *err = validate_domain_name(&limits);
    if (err != NULL)
        return err;
    const struct domain *domain = domains_find_name(api->options.domains, name);
    if (domain == NULL)
        return domain_error_unknown(name, call->arena);
    bool is_first = !rpc_has_domain(call); /* a handler may ask for another domain too */
    found_domain(call, domain, found);
    if (!is_first)
        return NULL;
    err = quota_check(call, found->name);
    found->domain = domains_find_name(api->options.domains, name); /* it may have waited */
    return err != NULL || found->domain != NULL ? err : domain_error_unknown(name, call->arena);
}

struct error *
validate_domain_id(struct rpc_call *call, const char *id, struct call_domain *found)
{
    const struct domain *domain = domains_find_id(api_of(call)->options.domains, id);
    if (domain == NULL)
        return domain_error_unknown(id, call->arena);
    found_domain(call, domain, found);
    return NULL;
}

struct error *
validate_not_deprecated(const struct call_domain *domain, struct arena *arena)
{
    int status = domain->domain->record->domain->status;
    if (status == API_VALUE(DOMAIN_STATUS__DOMAIN_STATUS_REGISTERED))
        return NULL;
    return error_new(arena, ERR_BAD_REQUEST, "Domain is deprecated.");
}

struct error *
validate_binary(const struct call_domain *domain, const char *checksum, struct arena *arena)
{
    const API(BadBinaries) *bad = domain->domain->record->domain->bad_binaries;
    if (bad == NULL || wire_map_find(bad->binaries, bad->n_binaries, checksum) == NULL)
        return NULL;
    return error_new(arena, ERR_BAD_REQUEST, "binary %s already marked as bad deployment",
                     checksum);
}

/* --- what many requests have ---------------------------------------------------------------------
 */

struct error *
validate_execution(const API(WorkflowExecution) *execution, struct arena *arena)
{
    struct uuid ignored;
    if (execution == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "Execution is not set on request.");
    if (execution->workflow_id[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST, "WorkflowId is not set on request.");
    if (execution->run_id[0] != '\0' && !uuid_parse(slice_text(execution->run_id), &ignored))
        return error_new(arena, ERR_BAD_REQUEST, "Invalid RunId.");
    return NULL;
}

struct error *
validate_run(struct rpc_call *call, const char *domain_name,
             const API(WorkflowExecution) *execution, struct run_key *key,
             struct call_domain *domain)
{
    struct limits limits = {api_of(call)->options.dynamic, domain_name, call->arena};
    struct call_domain found;
    struct error *err = validate_domain_name(&limits);
    if (err == NULL)
        err = validate_execution(execution, call->arena);
    if (err == NULL)
        err = validate_domain(call, domain_name, &found);
    if (err != NULL)
        return err;
    *key = (struct run_key){found.id, execution->workflow_id, execution->run_id};
    if (domain != NULL)
        *domain = found;
    return NULL;
}

struct error *
validate_task_list(const struct limits *limits, const API(TaskList) *list)
{
    if (list == NULL || list->name[0] == '\0')
        return error_new(limits->arena, ERR_BAD_REQUEST, "TaskList is not set on request.");
    return validate_length(limits, DYNAMIC_TASK_LIST_NAME_LENGTH, list->name, "TaskList");
}

size_t
validate_blob_max(const struct limits *limits)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = limits->domain;
    int64_t most = dynamic_integer(limits->dynamic, DYNAMIC_BLOB_SIZE_ERROR, &filter);
    return most < 0 ? 0 : (size_t)most;
}

struct error *
validate_blob(const struct limits *limits, size_t size)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = limits->domain;
    bool is_large =
        (int64_t)size > dynamic_integer(limits->dynamic, DYNAMIC_BLOB_SIZE_WARN, &filter);
    bool is_good = size <= validate_blob_max(limits);
    if (is_large || !is_good)
        log_warn(limits->log,
                 is_good ? "Blob size close to the limit." : "Blob size exceeds limit.",
                 log_text("wf-domain-name", limits->domain),
                 log_text("wf-id", limits->workflow_id == NULL ? "" : limits->workflow_id),
                 log_number("wf-size", (int64_t)size));
    if (is_good)
        return NULL;
    return error_new(limits->arena, ERR_BAD_REQUEST, "Blob data size exceeds limit.");
}

size_t
validate_payload_size(const API(Payload) *payload)
{
    return payload == NULL ? 0 : payload->data.len;
}

struct error *
validate_signal_name(const struct limits *limits, const char *name)
{
    if (name[0] == '\0')
        return error_new(limits->arena, ERR_BAD_REQUEST, "SignalName is not set on request.");
    return validate_length(limits, DYNAMIC_SIGNAL_NAME_LENGTH, name, "SignalName");
}

struct error *
validate_poll_deadline(struct rpc_call *call)
{
    if (!call->arrival.has_timeout)
        return error_new(call->arena, ERR_BAD_REQUEST, "Context timeout is not set.");
    if (call->arrival.deadline - clock_monotonic() < POLL_TIME_MIN)
        return error_new(call->arena, ERR_BAD_REQUEST, "Context timeout is too short.");
    return NULL;
}
