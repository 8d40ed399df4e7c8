/* attributes.c - what the attributes of a domain must be like together, and taking some away. See
 * common.h.
 *
 * Regions are attributes of scope "region". The clusters that they name may hold at most one of
 * each region that the group's configuration knows: a region has one cluster that is active for a
 * domain. It is checked when a change is requested. Two clusters that are asked at the same time
 * can still break it together: every workflow has one home even so, and the next move of a
 * region must repair it.
 *
 * An attribute that is taken away leaves its version behind, raised once more: it is newer than
 * what others know of it, and older than what it becomes if it comes back. The version of the
 * domain rises above it, since workflows that belonged to the attribute follow the domain itself
 * once the domain has no attributes at all (active.h). */
#include <string.h>

#include "base/check.h"
#include "domain/active.h"
#include "domain/decide/common.h"

struct error *
decide_check_attribute_count(const struct attributes *attributes, const struct domain_rules *rules,
                             struct arena *arena)
{
    if ((int64_t)attributes->count <= rules->attributes_max)
        return NULL;
    size_t removed = 0;
    for (size_t i = 0; i < attributes->count; i++)
        removed += attributes->all[i].is_removed;
    return error_new(arena, ERR_BAD_REQUEST,
                     "The domain would have %zu cluster attributes (%zu of them taken away "
                     "before), more than the %lld that are allowed.",
                     attributes->count, removed, (long long)rules->attributes_max);
}

/* The region of the cluster that the attribute names; NULL: it is not a region, or the cluster
 * has none. */
static const char *
region_of(const struct attribute *attribute, const struct cluster_group *group)
{
    if (attribute->is_removed || strcmp(attribute->scope, REGION_SCOPE) != 0)
        return NULL;
    const struct cluster *cluster = cluster_group_find(group, attribute->cluster_name);
    return cluster == NULL ? NULL : cluster->region;
}

struct error *
decide_check_regions(const struct attributes *attributes, const struct cluster_group *group,
                     struct arena *arena)
{
    const char **active = arena_zalloc(arena, group->count, sizeof *active);
    for (size_t i = 0; i < attributes->count; i++) {
        const struct attribute *one = &attributes->all[i];
        const char *region = region_of(one, group);
        if (region == NULL)
            continue;
        for (size_t n = 0; n < group->count; n++) {
            const struct cluster *cluster = &group->clusters[n];
            bool is_other = active[n] != NULL && strcmp(cluster->name, one->cluster_name) != 0;
            if (is_other && strcmp(cluster->region, region) == 0)
                return error_new(arena, ERR_BAD_REQUEST,
                                 "A domain can be active in one cluster of each region: %s.%s "
                                 "names %s and %s.%s names %s, which both lie in region %s.",
                                 REGION_SCOPE, active[n], cluster->name, REGION_SCOPE, one->name,
                                 one->cluster_name, region);
        }
        size_t index = (size_t)(cluster_group_find(group, one->cluster_name) - group->clusters);
        check(index < group->count);
        active[index] = one->name;
    }
    return NULL;
}

/* --- taking away -------------------------------------------------------------------------------
 */

static bool
is_meant(const struct attribute *attribute, const struct move *move)
{
    if (attribute->is_removed)
        return false;
    for (size_t i = 0; i < move->n_removed; i++) {
        const API(ClusterAttribute) *named = move->removed[i];
        bool is_same = named->name[0] == '\0' || strcmp(named->name, attribute->name) == 0;
        if (is_same && strcmp(named->scope, attribute->scope) == 0)
            return true;
    }
    return move->removes_all;
}

/* Each one that the request names must exist: otherwise a typing error would leave the attribute
 * that was meant where it is. */
static struct error *
check_named(const struct attributes *attributes, const struct move *move, struct arena *arena)
{
    for (size_t i = 0; i < move->n_removed; i++) {
        struct move only = {.removed = &move->removed[i], .n_removed = 1};
        bool is_there = false;
        for (size_t n = 0; !is_there && n < attributes->count; n++)
            is_there = is_meant(&attributes->all[n], &only);
        if (!is_there)
            return error_new(arena, ERR_BAD_REQUEST, "The domain has no cluster attribute %s.%s.",
                             move->removed[i]->scope,
                             move->removed[i]->name[0] == '\0' ? "*" : move->removed[i]->name);
    }
    return NULL;
}

struct error *
decide_remove_attributes(STORED(DomainRecord) *record, const struct move *move,
                         const struct domain_rules *rules, struct arena *arena)
{
    check(move_removes(move));
    API(Domain) *domain = record->domain;
    struct attributes all =
        attributes_read_all(domain->active_clusters, record->removed_attributes, arena);
    struct error *err = check_named(&all, move, arena);
    if (err == NULL && domain->active_clusters == NULL)
        err = error_new(arena, ERR_BAD_REQUEST, "The domain has no cluster attributes.");
    if (err != NULL)
        return err;
    struct drain_change *gone = arena_zalloc(arena, all.count + 1, sizeof *gone);
    size_t count = 0;
    for (size_t i = 0; i < all.count; i++) {
        struct attribute *one = &all.all[i];
        if (!is_meant(one, move))
            continue;
        int64_t least = 0;
        if (__builtin_add_overflow(one->failover_version, 1, &least) ||
            !cluster_group_next_version(rules->group, rules->group->current, least,
                                        &one->failover_version))
            return error_new(arena, ERR_BAD_REQUEST,
                             "The cluster attribute %s.%s has no failover version left.",
                             one->scope, one->name);
        check(one->failover_version >= least);
        one->is_removed = true;
        gone[count++] = (struct drain_change){.scope = one->scope, .name = one->name};
    }
    decide_change_drains(record, gone, count, arena); /* nothing waits for them any longer */
    domain->active_clusters = attributes_write(&all, arena);
    record->removed_attributes = attributes_write_removed(&all, arena);
    check(record->removed_attributes != NULL);
    return NULL;
}

int64_t
decide_version_above_removed(const STORED(DomainRecord) *record, struct arena *arena)
{
    struct attributes removed = attributes_read(record->removed_attributes, arena);
    int64_t highest = record->domain->failover_version;
    for (size_t i = 0; i < removed.count; i++) {
        if (removed.all[i].failover_version > highest)
            highest = removed.all[i].failover_version;
    }
    return highest;
}
