/* active.c - see active.h. */
#include "domain/active.h"

#include <string.h>

#include "base/check.h"
#include "domain/attributes.h"
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

const struct domain_place *
domain_places(const struct domain *domain, struct arena *arena, size_t *count)
{
    const API(Domain) *record = domain->record->domain;
    struct attributes attributes = attributes_read(record->active_clusters, arena);
    struct domain_place *places = arena_zalloc(arena, attributes.count + 1, sizeof *places);
    places[0].cluster_name = arena_text(arena, record->active_cluster_name);
    for (size_t i = 0; i < attributes.count; i++)
        places[i + 1] = (struct domain_place){
            .scope = arena_text(arena, attributes.all[i].scope),
            .name = arena_text(arena, attributes.all[i].name),
            .cluster_name = arena_text(arena, attributes.all[i].cluster_name),
        };
    *count = attributes.count + 1;
    return places;
}

/* NULL: there is no such attribute. */
static const API(ActiveClusterInfo) *
find_attribute(const API(ActiveClusters) *clusters, const struct cluster_attribute *attribute)
{
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
status_of(const char *cluster_name, const struct cluster_group *group)
{
    bool is_here = strcmp(cluster_name, group->current->name) == 0;
    return is_here ? ACTIVE_HERE : ACTIVE_ELSEWHERE;
}

/* Without an attribute. */
static struct active_cluster
active_by_default(const STORED(DomainRecord) *record, const struct cluster_group *group)
{
    if (!record->domain->is_global_domain) /* nobody else has it */
        return (struct active_cluster){.status = ACTIVE_HERE,
                                       .cluster_name = record->domain->active_cluster_name,
                                       .failover_version = FAILOVER_VERSION_LOCAL};
    struct active_cluster active = {.status = status_of(record->domain->active_cluster_name, group),
                                    .cluster_name = record->domain->active_cluster_name,
                                    .failover_version = record->domain->failover_version};
    if (active.status == ACTIVE_HERE && record->failover_end_time != 0)
        active.status = ACTIVE_PENDING; /* the end time is known only where the domain moves to */
    return active;
}

static struct active_cluster
active_for_attribute(const struct domain *domain, const struct cluster_attribute *attribute,
                     const struct cluster_group *group)
{
    const STORED(DomainRecord) *record = domain->record;
    const API(ActiveClusterInfo) *info =
        find_attribute(record->domain->active_clusters, attribute);
    if (info != NULL)
        return (struct active_cluster){.status = status_of(info->active_cluster_name, group),
                                       .cluster_name = info->active_cluster_name,
                                       .failover_version = info->failover_version};
    if (!domain_is_active_active(domain) &&
        find_attribute(record->removed_attributes, attribute) != NULL) {
        struct active_cluster active = active_by_default(record, group);
        active.is_stand_in = true;
        return active;
    }
    return (struct active_cluster){
        .status = ACTIVE_UNKNOWN_ATTRIBUTE, .cluster_name = "", .failover_version = -1};
}

struct active_cluster
domain_active(const struct domain *domain, const struct cluster_attribute *attribute,
              const struct cluster_group *group)
{
    check(domain->record->domain != NULL && group->current != NULL);
    if (attribute != NULL && attribute->scope != NULL)
        return active_for_attribute(domain, attribute, group);
    return active_by_default(domain->record, group);
}
