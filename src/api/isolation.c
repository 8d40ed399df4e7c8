/* isolation.c - isolation groups at the door: nothing new comes from a group that was drained. */
#include "api/inside.h"
#include "api/validate.h"

static bool
is_drained(const API(IsolationGroupConfiguration) *groups, const char *name)
{
    for (size_t i = 0; groups != NULL && i < groups->n_isolation_groups; i++) {
        const API(IsolationGroupPartition) *group = groups->isolation_groups[i];
        if (strcmp(group->name, name) == 0 &&
            group->state == API_VALUE(ISOLATION_GROUP_STATE__ISOLATION_GROUP_STATE_DRAINED))
            return true;
    }
    return false;
}

struct error *
validate_isolation(struct rpc_call *call, const struct call_domain *domain)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain->name;
    if (!dynamic_flag(api_of(call)->options.dynamic, DYNAMIC_TASK_LIST_ISOLATION, &filter))
        return NULL;
    struct caller_partition partition;
    api_caller_partition(call, &partition);
    if (partition.count == 0 ||
        !is_drained(domain->domain->record->domain->isolation_groups, partition.values[0]))
        return NULL;
    return error_new(call->arena, ERR_BAD_REQUEST, "Domain %s is drained from isolation group %s.",
                     domain->name, partition.values[0]);
}
