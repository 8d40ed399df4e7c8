/* versions.c - the arithmetic of failover versions: pure functions of the group. See group.h. */
#include <string.h>

#include "base/check.h"
#include "cluster/group.h"

static bool
has_remainder(const struct cluster *cluster, int64_t remainder)
{
    return cluster->initial_failover_version == remainder ||
           cluster->new_initial_failover_version == remainder;
}

const struct cluster *
cluster_group_find(const struct cluster_group *group, const char *name)
{
    for (size_t i = 0; i < group->count; i++) {
        if (strcmp(group->clusters[i].name, name) == 0)
            return &group->clusters[i];
    }
    return NULL;
}

const struct cluster *
cluster_group_of_version(const struct cluster_group *group, int64_t failover_version)
{
    if (failover_version < 0)
        return NULL;
    check(group->failover_version_increment > 0);
    int64_t remainder = failover_version % group->failover_version_increment;
    for (size_t i = 0; i < group->count; i++) {
        if (has_remainder(&group->clusters[i], remainder))
            return &group->clusters[i];
    }
    return NULL;
}

const struct region *
cluster_group_find_region(const struct cluster_group *group, const char *name)
{
    for (size_t i = 0; i < group->region_count; i++) {
        if (strcmp(group->regions[i].name, name) == 0)
            return &group->regions[i];
    }
    return NULL;
}

const struct region *
cluster_group_region_of_version(const struct cluster_group *group, int64_t failover_version)
{
    if (failover_version < 0)
        return NULL;
    check(group->failover_version_increment > 0);
    int64_t remainder = failover_version % group->failover_version_increment;
    for (size_t i = 0; i < group->region_count; i++) {
        if (group->regions[i].initial_failover_version == remainder)
            return &group->regions[i];
    }
    return NULL;
}

bool
cluster_group_next_version(const struct cluster_group *group, const struct cluster *cluster,
                           int64_t failover_version, int64_t *next)
{
    check(cluster >= group->clusters && cluster < group->clusters + group->count);
    int64_t increment = group->failover_version_increment;
    int64_t from = failover_version < 0 ? 0 : failover_version;
    int64_t candidate = from - from % increment; /* the round that `from` is in */
    if (__builtin_add_overflow(candidate, cluster->initial_failover_version, &candidate))
        return false;
    if (candidate < from && __builtin_add_overflow(candidate, increment, &candidate))
        return false;
    check(candidate % increment == cluster->initial_failover_version);
    check(candidate >= from && candidate - from < increment);
    *next = candidate;
    return true;
}

const struct cluster_group *
cluster_group_migrate(const struct cluster_group *group, struct arena *arena)
{
    struct cluster_group *migrated = arena_make(arena, struct cluster_group);
    struct cluster *clusters = arena_zalloc(arena, group->count, sizeof *clusters);
    *migrated = *group;
    check(group->current >= group->clusters && group->current < group->clusters + group->count);
    check(group->primary >= group->clusters && group->primary < group->clusters + group->count);
    migrated->clusters = clusters;
    for (size_t i = 0; i < group->count; i++) {
        struct cluster *cluster = &clusters[i];
        *cluster = group->clusters[i];
        if (cluster->new_initial_failover_version >= 0) {
            cluster->initial_failover_version = group->clusters[i].new_initial_failover_version;
            cluster->new_initial_failover_version = group->clusters[i].initial_failover_version;
        }
    }
    migrated->current = &clusters[group->current - group->clusters];
    migrated->primary = &clusters[group->primary - group->clusters];
    return migrated;
}

bool
cluster_group_is_primary(const struct cluster_group *group)
{
    return group->current == group->primary;
}

bool
cluster_group_has_peers(const struct cluster_group *group)
{
    for (size_t i = 0; i < group->count; i++) {
        if (group->clusters[i].is_enabled && &group->clusters[i] != group->current)
            return true;
    }
    return false;
}
