/* active.c - see active.h. */
#include "domain/active.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "domain/attributes.h"
#include "domain/drain.h"
#include "domain/entity.h"
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

const struct domain_assignment *
domain_assignments(const struct domain *domain, struct arena *arena, size_t *count)
{
    const API(Domain) *record = domain->record->domain;
    struct attributes attributes = attributes_read(record->active_clusters, arena);
    struct domain_assignment *assignments =
        arena_zalloc(arena, attributes.count + 1, sizeof *assignments);
    assignments[0].cluster_name = arena_text(arena, record->active_cluster_name);
    for (size_t i = 0; i < attributes.count; i++)
        assignments[i + 1] = (struct domain_assignment){
            .scope = arena_text(arena, attributes.all[i].scope),
            .name = arena_text(arena, attributes.all[i].name),
            .cluster_name = arena_text(arena, attributes.all[i].cluster_name),
        };
    *count = attributes.count + 1;
    return assignments;
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

/* `group` NULL: seen from nowhere. */
static enum active_status
status_of(const struct domain *domain, const struct cluster_attribute *attribute,
          const char *cluster_name, const struct cluster_group *group)
{
    if (group == NULL || strcmp(cluster_name, group->current->name) != 0)
        return ACTIVE_ELSEWHERE;
#ifndef CADENZA_FAULT_recovering_member_decides
    if (domain->is_recovering)
        return ACTIVE_PENDING;
#endif
    const STORED(Drain) *drain = domain_find_drain(domain, attribute);
    return drain != NULL && drain_is_to_here(drain, group) ? ACTIVE_PENDING : ACTIVE_HERE;
}

static const struct active_cluster active_nowhere = {
    .status = ACTIVE_UNKNOWN_ATTRIBUTE, .cluster_name = "", .failover_version = -1};

/* Without an attribute. */
static struct active_cluster
active_by_default(const struct domain *domain, const struct cluster_group *group)
{
    const STORED(DomainRecord) *record = domain->record;
    if (!record->domain->is_global_domain) /* no other cluster has it */
        return (struct active_cluster){.status = ACTIVE_HERE,
                                       .cluster_name = record->domain->active_cluster_name,
                                       .failover_version = FAILOVER_VERSION_LOCAL};
    if (record->domain->active_cluster_name[0] == '\0')
        return active_nowhere;
    return (struct active_cluster){
        .status = status_of(domain, NULL, record->domain->active_cluster_name, group),
        .cluster_name = record->domain->active_cluster_name,
        .failover_version = record->domain->failover_version};
}

static struct active_cluster
active_for_attribute(const struct domain *domain, const struct cluster_attribute *attribute,
                     const struct cluster_group *group)
{
    const STORED(DomainRecord) *record = domain->record;
    const API(ActiveClusterInfo) *info = find_attribute(record->domain->active_clusters, attribute);
    if (info != NULL)
        return (struct active_cluster){
            .status = status_of(domain, attribute, info->active_cluster_name, group),
            .cluster_name = info->active_cluster_name,
            .failover_version = info->failover_version};
    if (!domain_is_active_active(domain) &&
        find_attribute(record->removed_attributes, attribute) != NULL) {
        struct active_cluster active = active_by_default(domain, group);
        active.is_stand_in = true;
        return active;
    }
    return active_nowhere;
}

static struct active_cluster
find_active(const struct domain *domain, const struct cluster_attribute *attribute,
            const struct cluster_group *group)
{
    check(domain->record->domain != NULL && (group == NULL || group->current != NULL));
    bool has_attribute = attribute != NULL && attribute->scope != NULL;
    struct active_cluster active = has_attribute ? active_for_attribute(domain, attribute, group)
                                                 : active_by_default(domain, group);
    if (group != NULL && domain->is_recovering && active.status == ACTIVE_UNKNOWN_ATTRIBUTE)
        return (struct active_cluster){.status = ACTIVE_PENDING, /* it may have been added since */
                                       .cluster_name = group->current->name,
                                       .failover_version = -1};
    return active;
}

struct active_cluster
domain_active(const struct domain *domain, const struct cluster_attribute *attribute,
              const struct cluster_group *group)
{
    check(group != NULL);
    return find_active(domain, attribute, group);
}

struct active_cluster
domain_find_active(const struct domain *domain, const struct cluster_attribute *attribute)
{
    return find_active(domain, attribute, NULL);
}

/* --- runs that have nothing but versions ---- */

/* Is one of the domain's regions active in that cluster? */
static bool
has_region_in(const API(Domain) *domain, const char *cluster_name)
{
    const API(ActiveClusters) *clusters = domain->active_clusters;
    if (clusters == NULL)
        return false;
    API(ActiveClusters__ActiveClustersByClusterAttributeEntry) *scope =
        wire_map_find(clusters->active_clusters_by_cluster_attribute,
                      clusters->n_active_clusters_by_cluster_attribute, REGION_SCOPE);
    for (size_t i = 0; scope != NULL && i < scope->value->n_cluster_attributes; i++) {
        const API(ActiveClusterInfo) *info = scope->value->cluster_attributes[i]->value;
        if (strcmp(info->active_cluster_name, cluster_name) == 0)
            return true;
    }
    return false;
}

static struct active_cluster
active_for_region(const struct domain *domain, const char *region,
                  const struct cluster_group *group)
{
    struct cluster_attribute attribute = {REGION_SCOPE, region};
    return region == NULL ? active_nowhere : active_for_attribute(domain, &attribute, group);
}

/* Version → cluster → region. */
static struct active_cluster
active_for_version(const struct domain *domain, int64_t last_version,
                   const struct cluster_group *group)
{
    const struct cluster *writer = cluster_group_of_version(group, last_version);
    const struct region *region = cluster_group_region_of_version(group, last_version);
    if (writer == NULL)
        return active_for_region(domain, region == NULL ? NULL : region->name, group);
    struct active_cluster of_region = active_for_region(domain, writer->region, group);
    if (!has_region_in(domain->record->domain, writer->name))
        return of_region;
    bool is_region_there = strcmp(of_region.cluster_name, writer->name) == 0;
    int64_t version = last_version;
    if (is_region_there && of_region.failover_version > version)
        version = of_region.failover_version; /* it was elsewhere and came back */
    return (struct active_cluster){
        .status = is_region_there ? of_region.status : status_of(domain, NULL, writer->name, group),
        .cluster_name = writer->name,
        .failover_version = version};
}

struct active_cluster
domain_active_run(const struct domain *domain, const struct cluster_attribute *attribute,
                  int64_t last_version, const struct cluster_group *group)
{
    const API(Domain) *shown = domain->record->domain;
    bool has_attribute = attribute != NULL && attribute->scope != NULL;
#ifdef CADENZA_FAULT_home_of_last_writer
    const struct cluster *writer = cluster_group_of_version(group, last_version);
    if (has_attribute && writer != NULL)
        return (struct active_cluster){status_of(domain, attribute, writer->name, group),
                                       writer->name, last_version};
#endif
    if (has_attribute || !shown->is_global_domain || shown->active_cluster_name[0] != '\0')
        return domain_active(domain, attribute, group);
    return active_for_version(domain, last_version, group);
}

/* --- what runs belong to ---- */

struct cluster_attribute
cluster_attribute_of(const API(ActiveClusterSelectionPolicy) *policy)
{
    if (policy == NULL || policy->cluster_attribute == NULL)
        return (struct cluster_attribute){0};
    return (struct cluster_attribute){policy->cluster_attribute->scope,
                                      policy->cluster_attribute->name};
}

bool
cluster_attribute_equals(const struct cluster_attribute *one, const struct cluster_attribute *other)
{
    if (one->scope == NULL || other->scope == NULL)
        return one->scope == other->scope;
    return strcmp(one->scope, other->scope) == 0 && strcmp(one->name, other->name) == 0;
}

bool
domain_has_attribute(const struct domain *domain, const struct cluster_attribute *attribute)
{
    return attribute->scope == NULL ||
           find_attribute(domain->record->domain->active_clusters, attribute) != NULL;
}

struct cluster_attribute
domain_choose_attribute(const struct domain *domain, const struct cluster_group *group)
{
    struct cluster_attribute region = {REGION_SCOPE, group->current->region};
    if (group->region_count == 0 || region.name == NULL || !domain_has_attribute(domain, &region))
        return (struct cluster_attribute){0};
    return region;
}

/* --- after memory was lost ---- */

bool
domain_has_lost(const struct domain *domain, int64_t version, const struct cluster_group *group)
{
    const STORED(DomainRecord) *record = domain->record;
    bool is_own = version >= 0 && cluster_group_of_version(group, version) == group->current;
    bool is_of_entity = entity_is_version(version, group);
#ifdef CADENZA_FAULT_lost_version_written
    return false;
#endif
    return is_own && (domain->is_recovering ||
                      version < (is_of_entity ? record->lost_entity_below : record->lost_below));
}

/* --- where the domain is active at all ---- */

static int
compare_names(const void *one, const void *other)
{
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

size_t
domain_active_clusters(const struct domain *domain, struct arena *arena, const char ***names)
{
    struct attributes all = attributes_read(domain->record->domain->active_clusters, arena);
    const char **found = arena_zalloc(arena, all.count, sizeof *found);
    size_t count = 0;
    for (size_t i = 0; i < all.count; i++)
        found[i] = all.all[i].cluster_name;
    if (all.count > 1)
        qsort(found, all.count, sizeof *found, compare_names);
    for (size_t i = 0; i < all.count; i++)
        if (count == 0 || strcmp(found[count - 1], found[i]) != 0)
            found[count++] = found[i];
    *names = found;
    return count;
}
