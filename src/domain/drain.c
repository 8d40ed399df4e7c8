/* drain.c - see drain.h. */
#include "domain/drain.h"

#include <string.h>

#include "base/check.h"

int
drain_order(const char *scope, const char *name, const char *other_scope, const char *other_name)
{
    int order = strcmp(scope, other_scope);
    return order != 0 ? order : strcmp(name, other_name);
}

int
drain_compare(const STORED(Drain) *drain, const char *scope, const char *name)
{
    return drain_order(drain->scope, drain->name, scope, name);
}

STORED(Drain) *
drains_search(STORED(Drain) *const *drains, size_t count, const char *scope, const char *name)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = drain_compare(drains[middle], scope, name);
        if (order == 0)
            return drains[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const STORED(Drain) *
domain_find_drain(const struct domain *domain, const struct cluster_attribute *attribute)
{
    const STORED(DomainRecord) *record = domain->record;
    bool has_attribute = attribute != NULL && attribute->scope != NULL;
    const char *scope = has_attribute ? attribute->scope : "";
    const char *name = has_attribute && attribute->name != NULL ? attribute->name : "";
    return drains_search(record->drains, record->n_drains, scope, name);
}

int64_t
domain_moved_version(const struct domain *domain, const struct cluster_attribute *attribute)
{
    bool has_attribute = attribute != NULL && attribute->scope != NULL;
    return has_attribute ? domain_find_active(domain, attribute).failover_version
                         : domain_record_moved_version(domain->record);
}

bool
drain_is_to_here(const STORED(Drain) *drain, const struct cluster_group *group)
{
    check(group->current != NULL);
    bool is_target = cluster_group_of_version(group, drain->failover_version) == group->current;
    return is_target && drain->end_time != 0;
}

static bool
is_marker_due(const STORED(Drain) *drain, const struct cluster_group *group)
{
    if (cluster_group_of_version(group, drain->failover_version) == group->current)
        return false;
    for (size_t i = 0; i < drain->n_waits_for; i++) {
        if (strcmp(drain->waits_for[i], group->current->name) == 0)
            return true;
    }
    return false;
}

size_t
domain_markers_due(const struct domain *domain, const struct cluster_group *group,
                   struct arena *arena, struct drain_marker **markers)
{
    const STORED(DomainRecord) *record = domain->record;
    size_t count = 0;
    *markers = arena_zalloc(arena, record->n_drains + 1, sizeof **markers);
    for (size_t i = 0; i < record->n_drains; i++) {
        const STORED(Drain) *drain = record->drains[i];
        check(drain->failover_version > drain->previous_failover_version);
        if (is_marker_due(drain, group) && !domain->is_recovering)
            (*markers)[count++] =
                (struct drain_marker){drain->scope, drain->name, drain->failover_version};
    }
    return count;
}

bool
domain_drains_to_here(const struct domain *domain, const struct cluster_group *group)
{
    const STORED(DomainRecord) *record = domain->record;
    for (size_t i = 0; i < record->n_drains; i++) {
        if (drain_is_to_here(record->drains[i], group))
            return true;
    }
    return false;
}
