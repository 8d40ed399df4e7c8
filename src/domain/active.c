/* active.c - see active.h. */
#include "domain/active.h"

#include <string.h>

#include "base/check.h"
#include "domain/drain.h"
#include "wire/maps.h"

bool
domain_is_active_active(const struct domain *domain)
{
    const API(ActiveClusters) *clusters = domain->record->domain->active_clusters;
    size_t count = clusters == NULL ? 0 : clusters->n_active_clusters_by_cluster_attribute;
    for (size_t i = 0; i < count; i++) {
        if (clusters->active_clusters_by_cluster_attribute[i]->value->n_cluster_attributes > 0)
            return true;
    }
    return false;
}

/* NULL: the domain has no such attribute. */
static const API(ActiveClusterInfo) *
find_attribute(const API(Domain) *domain, const struct cluster_attribute *attribute)
{
    const API(ActiveClusters) *clusters = domain->active_clusters;
    if (clusters == NULL || attribute->name == NULL)
        return NULL;
    API(ActiveClusters__ActiveClustersByClusterAttributeEntry) *scope =
        wire_map_find(clusters->active_clusters_by_cluster_attribute,
                      clusters->n_active_clusters_by_cluster_attribute, attribute->scope);
    if (scope == NULL)
        return NULL;
    API(ClusterAttributeScope__ClusterAttributesEntry) *entry = wire_map_find(
        scope->value->cluster_attributes, scope->value->n_cluster_attributes, attribute->name);
    return entry == NULL ? NULL : entry->value;
}

static enum active_status
status_of(const struct domain *domain, const struct cluster_attribute *attribute,
          const char *cluster_name, const struct cluster_group *group)
{
    if (strcmp(cluster_name, group->current->name) != 0)
        return ACTIVE_ELSEWHERE;
    const STORED(Drain) *drain = domain_find_drain(domain, attribute);
    return drain != NULL && drain_is_to_here(drain, group) ? ACTIVE_PENDING : ACTIVE_HERE;
}

static struct active_cluster
active_for_attribute(const struct domain *domain, const struct cluster_attribute *attribute,
                     const struct cluster_group *group)
{
    const API(ActiveClusterInfo) *info = find_attribute(domain->record->domain, attribute);
    if (info == NULL)
        return (struct active_cluster){
            .status = ACTIVE_UNKNOWN_ATTRIBUTE, .cluster_name = "", .failover_version = -1};
    return (struct active_cluster){
        .status = status_of(domain, attribute, info->active_cluster_name, group),
        .cluster_name = info->active_cluster_name,
        .failover_version = info->failover_version};
}

struct active_cluster
domain_active(const struct domain *domain, const struct cluster_attribute *attribute,
              const struct cluster_group *group)
{
    const STORED(DomainRecord) *record = domain->record;
    check(record->domain != NULL && group->current != NULL);
    if (attribute != NULL && attribute->scope != NULL)
        return active_for_attribute(domain, attribute, group);
    if (!record->domain->is_global_domain) /* nobody else has it */
        return (struct active_cluster){.status = ACTIVE_HERE,
                                       .cluster_name = record->domain->active_cluster_name,
                                       .failover_version = FAILOVER_VERSION_LOCAL};
    return (struct active_cluster){
        .status = status_of(domain, NULL, record->domain->active_cluster_name, group),
        .cluster_name = record->domain->active_cluster_name,
        .failover_version = record->domain->failover_version};
}
