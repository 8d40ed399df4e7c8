/* group_observation.c - what a cluster shows of a domain, compared with what it has shown before.
 * See group_load.h. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "sim/group/group_load.h"
#include "wire/maps.h"

/* Two names in one scope, one in another; in the order of the wire. */
const struct load_attribute group_attributes[GROUP_ATTRIBUTES] = {
    {.scope = "city", .name = "bergen"},
    {.scope = "city", .name = "oslo"},
    {.scope = "region", .name = "north"},
};

int
group_cluster_number(const char *name)
{
    unsigned number = 0;
    bool is_one = sscanf(name, "cluster%u", &number) == 1 && number < SIM_GROUP_MAX;
    return is_one ? (int)number : -1;
}

int
group_moved(const API(ClusterAttribute) *attribute)
{
    if (attribute == NULL)
        return MOVES_DOMAIN;
    for (int i = 0; i < GROUP_ATTRIBUTES; i++) {
        if (strcmp(attribute->scope, group_attributes[i].scope) == 0 &&
            strcmp(attribute->name, group_attributes[i].name) == 0)
            return MOVES_FIRST_ATTRIBUTE + i;
    }
    return -1;
}

/* NULL: it has no such attribute. */
static const API(ActiveClusterInfo) *
find_attribute(const API(Domain) *domain, const struct load_attribute *attribute)
{
    const API(ActiveClusters) *active = domain->active_clusters;
    if (active == NULL)
        return NULL;
    const API(ActiveClusters__ActiveClustersByClusterAttributeEntry) *scope =
        wire_map_find(active->active_clusters_by_cluster_attribute,
                      active->n_active_clusters_by_cluster_attribute, attribute->scope);
    if (scope == NULL)
        return NULL;
    const API(ClusterAttributeScope__ClusterAttributesEntry) *entry = wire_map_find(
        scope->value->cluster_attributes, scope->value->n_cluster_attributes, attribute->name);
    return entry == NULL ? NULL : entry->value;
}

int64_t
group_shown_version(const API(Domain) *shown, unsigned what)
{
    if (what == MOVES_DOMAIN)
        return shown->failover_version;
    const API(ActiveClusterInfo) *info =
        find_attribute(shown, &group_attributes[what - MOVES_FIRST_ATTRIBUTE]);
    return info == NULL ? -1 : info->failover_version;
}

/* One version of what is shown: it belongs to the cluster that is shown with it, and is no older
 * than before. */
struct shown_version {
    unsigned what; /* MOVES_* */
    const char *active_cluster;
    int64_t failover_version;
};

static void
note_version(struct group_load *load, struct group_domain *domain, unsigned cluster,
             const struct group_observation *before, const struct shown_version *shown)
{
    check(shown->what < MOVES_END && cluster < SIM_GROUP_MAX);
    int64_t version = shown->failover_version;
    int active = group_cluster_number(shown->active_cluster);
    if (active < 0 || sim_group_of_version(version) != active)
        verdict_violate(&load->verdict, "cluster%u shows %s (%u) active in %s with version %lld",
                        cluster, domain->name, shown->what, shown->active_cluster,
                        (long long)version);
    if (before->is_there && version < before->failover_version[shown->what])
        verdict_violate(&load->verdict, "cluster%u shows %s (%u) with version %lld after %lld",
                        cluster, domain->name, shown->what, (long long)version,
                        (long long)before->failover_version[shown->what]);
    int64_t *newest = &domain->observed[cluster].failover_version[shown->what];
    *newest = version > *newest ? version : *newest;
}

static void
note_attributes(struct group_load *load, struct group_domain *domain, unsigned cluster,
                const struct group_observation *before, const API(Domain) *shown)
{
    for (unsigned i = 0; i < GROUP_ATTRIBUTES; i++) {
        const API(ActiveClusterInfo) *info = find_attribute(shown, &group_attributes[i]);
        if (info == NULL) {
            verdict_violate(&load->verdict, "cluster%u shows %s without an attribute", cluster,
                            domain->name);
            return;
        }
        struct shown_version version = {.what = MOVES_FIRST_ATTRIBUTE + i,
                                        .active_cluster = info->active_cluster_name,
                                        .failover_version = info->failover_version};
        note_version(load, domain, cluster, before, &version);
    }
}

void
group_observation_note(struct group_load *load, struct group_domain *domain, unsigned cluster,
                       const struct group_observation *before, const API(Domain) *shown)
{
    if (group_is_namesake(domain, cluster, shown))
        return;
    struct group_observation *observed = &domain->observed[cluster];
    uint32_t sequence = load_sequence(shown);
    if (before->is_there && sequence < before->sequence)
        verdict_violate(&load->verdict, "cluster%u shows description %u of %s after %u", cluster,
                        sequence, domain->name, before->sequence);
    if (sequence > domain->sequence_tried)
        verdict_violate(&load->verdict, "cluster%u shows a description of %s that nobody wrote",
                        cluster, domain->name);
    if (shown->is_global_domain != domain->is_global)
        verdict_violate(&load->verdict, "cluster%u shows %s as %s domain", cluster, domain->name,
                        shown->is_global_domain ? "a global" : "a local");
    if (domain->is_global) {
        struct shown_version version = {.what = MOVES_DOMAIN,
                                        .active_cluster = shown->active_cluster_name,
                                        .failover_version = shown->failover_version};
        note_version(load, domain, cluster, before, &version);
    }
    if (domain->is_active_active)
        note_attributes(load, domain, cluster, before, shown);
    observed->sequence = sequence > observed->sequence ? sequence : observed->sequence;
    observed->is_there = true;
}
