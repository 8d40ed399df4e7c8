/* isolation.c - isolation groups at the door: nothing new is taken from a group that was drained;
 * operators drain them for a domain or for the whole cluster. */
#include "api/call/validate.h"
#include "api/inside.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/message.h"

bool
api_isolates(const struct api *api, const char *domain_name)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain_name;
    return dynamic_flag(api->options.dynamic, DYNAMIC_TASK_LIST_ISOLATION, &filter);
}

struct error *
validate_isolation(struct rpc_call *call, const struct call_domain *domain)
{
    if (!api_isolates(api_of(call), domain->name))
        return NULL;
    struct caller_partition partition;
    api_caller_partition(call, &partition);
    if (partition.count == 0 ||
        !domains_is_group_isolated(api_of(call)->options.domains, domain->id, partition.values[0]))
        return NULL;
    return error_new(call->arena, ERR_BAD_REQUEST, "Domain %s is drained from isolation group %s.",
                     domain->name, partition.values[0]);
}

/* --- operators -----------------------------------------------------------------------------------
 */

/* A copy in the call's arena. */
static API(IsolationGroupConfiguration) *
copy_groups(const API(IsolationGroupConfiguration) *groups, struct arena *arena)
{
    API(IsolationGroupConfiguration) *copy = NULL;
    if (groups == NULL)
        return message_new(arena, API_TYPE(isolation_group_configuration));
    struct slice bytes = message_encode(arena, &groups->base);
    struct error *err =
        message_decode(arena, API_TYPE(isolation_group_configuration), bytes, &copy);
    return err == NULL ? copy : message_new(arena, API_TYPE(isolation_group_configuration));
}

static struct error *
check_groups(const API(IsolationGroupConfiguration) *groups, struct arena *arena)
{
    if (groups == NULL)
        return error_new(arena, ERR_BAD_REQUEST,
                         "invalid request, isolationGroup configuration must be set");
    for (size_t i = 0; i < groups->n_isolation_groups; i++) {
        const API(IsolationGroupPartition) *group = groups->isolation_groups[i];
        bool is_known =
            group->state == API_VALUE(ISOLATION_GROUP_STATE__ISOLATION_GROUP_STATE_HEALTHY) ||
            group->state == API_VALUE(ISOLATION_GROUP_STATE__ISOLATION_GROUP_STATE_DRAINED);
        if (group->name[0] == '\0' || !is_known)
            return error_new(arena, ERR_BAD_REQUEST, "an isolation group needs a name and a state");
    }
    return NULL;
}

struct error *
api_get_global_groups(struct rpc_call *call)
{
    ADMIN(GetGlobalIsolationGroupsResponse) *response =
        (ADMIN(GetGlobalIsolationGroupsResponse) *)call->response;
    response->isolation_groups =
        copy_groups(domains_cluster_isolation(api_of(call)->options.domains), call->arena);
    return NULL;
}

struct error *
api_update_global_groups(struct rpc_call *call)
{
    const ADMIN(UpdateGlobalIsolationGroupsRequest) *request =
        (const ADMIN(UpdateGlobalIsolationGroupsRequest) *)call->request;
    struct error *err = check_groups(request->isolation_groups, call->arena);
    if (err != NULL)
        return err;
    return domains_set_cluster_isolation(api_of(call)->options.domains, request->isolation_groups,
                                         call->arena);
}

struct error *
api_get_domain_groups(struct rpc_call *call)
{
    const ADMIN(GetDomainIsolationGroupsRequest) *request =
        (const ADMIN(GetDomainIsolationGroupsRequest) *)call->request;
    ADMIN(GetDomainIsolationGroupsResponse) *response =
        (ADMIN(GetDomainIsolationGroupsResponse) *)call->response;
    struct call_domain domain;
    struct error *err = validate_domain(call, request->domain, &domain);
    if (err != NULL)
        return err;
    response->isolation_groups =
        copy_groups(domain.domain->record->domain->isolation_groups, call->arena);
    return NULL;
}

struct error *
api_update_domain_groups(struct rpc_call *call)
{
    const ADMIN(UpdateDomainIsolationGroupsRequest) *request =
        (const ADMIN(UpdateDomainIsolationGroupsRequest) *)call->request;
    struct call_domain domain;
    struct error *err = validate_domain(call, request->domain, &domain);
    if (err == NULL)
        err = check_groups(request->isolation_groups, call->arena);
    return err != NULL ? err
                       : domains_set_isolation(api_of(call)->options.domains, request, call->arena);
}
