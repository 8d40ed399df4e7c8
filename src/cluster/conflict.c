/* conflict.c - do two clusters mean the same thing by a failover version? See group.h.
 *
 * A version names a cluster by its remainder, so clusters that differ in the increment, or in whose
 * remainder is whose, would take each other's domains for those of a third. The files of a group
 * are changed one after the other: a cluster, a region or a second initial version that only one of
 * them knows yet is not a conflict. */
#include <string.h>

#include "base/check.h"
#include "cluster/group.h"

#define NAMED_MAX 3 /* differences that are listed one by one */

struct conflicts {
    struct arena *arena;
    const char *peer;
    const char *text; /* NULL: none yet */
    size_t count;
};

static void
add(struct conflicts *conflicts, const char *what, const char *here, const char *there)
{
    struct arena *arena = conflicts->arena;
    if (conflicts->count++ >= NAMED_MAX)
        return;
    const char *one =
        arena_format(arena, "%s is %s here and %s in %s", what, here, there, conflicts->peer);
    conflicts->text =
        conflicts->text == NULL ? one : arena_format(arena, "%s; %s", conflicts->text, one);
}

static void
add_numbers(struct conflicts *conflicts, const char *what, int64_t here, int64_t there)
{
    struct arena *arena = conflicts->arena;
    if (here != there)
        add(conflicts, what, arena_format(arena, "%lld", (long long)here),
            arena_format(arena, "%lld", (long long)there));
}

/* The last step of a migration: in one file what was the second version is the first one already.
 */
static bool
is_migrated(const struct cluster *one, const struct cluster *other)
{
    return one->new_initial_failover_version == other->initial_failover_version &&
           other->new_initial_failover_version == -1;
}

/* A cluster that both know. */
static void
compare_cluster(struct conflicts *conflicts, const struct cluster *ours,
                const struct cluster *theirs)
{
    struct arena *arena = conflicts->arena;
    if (!is_migrated(ours, theirs) && !is_migrated(theirs, ours))
        add_numbers(conflicts,
                    arena_format(arena, "clusterGroup.%s.initialFailoverVersion", ours->name),
                    ours->initial_failover_version, theirs->initial_failover_version);
    if (ours->new_initial_failover_version != -1 && theirs->new_initial_failover_version != -1)
        add_numbers(conflicts,
                    arena_format(arena, "clusterGroup.%s.newInitialFailoverVersion", ours->name),
                    ours->new_initial_failover_version, theirs->new_initial_failover_version);
    if (ours->region != NULL && theirs->region != NULL && strcmp(ours->region, theirs->region) != 0)
        add(conflicts, arena_format(arena, "clusterGroup.%s.region", ours->name), ours->region,
            theirs->region);
}

/* "cluster west", "region us-west"; NULL: the remainder has no owner. */
static const char *
owner_of(const struct cluster_group *group, int64_t remainder, struct arena *arena)
{
    const struct cluster *cluster = cluster_group_of_version(group, remainder);
    const struct region *region =
        cluster != NULL ? NULL : cluster_group_region_of_version(group, remainder);
    if (cluster != NULL)
        return arena_format(arena, "cluster %s", cluster->name);
    return region == NULL ? NULL : arena_format(arena, "region %s", region->name);
}

/* A remainder that one gives to an owner that the other does not know, and the other to another
 * one.
 */
static void
compare_owner(struct conflicts *conflicts, const struct cluster_group *ours,
              const struct cluster_group *theirs, int64_t remainder)
{
    const char *here = owner_of(ours, remainder, conflicts->arena);
    const char *there = owner_of(theirs, remainder, conflicts->arena);
    if (remainder >= 0 && here != NULL && there != NULL && strcmp(here, there) != 0)
        add(conflicts,
            arena_format(conflicts->arena, "initial failover version %lld", (long long)remainder),
            arena_format(conflicts->arena, "of %s", here),
            arena_format(conflicts->arena, "of %s", there));
}

static void
compare_clusters(struct conflicts *conflicts, const struct cluster_group *ours,
                 const struct cluster_group *theirs)
{
    for (size_t i = 0; i < ours->count; i++) {
        const struct cluster *cluster = &ours->clusters[i];
        const struct cluster *same = cluster_group_find(theirs, cluster->name);
        if (same != NULL)
            compare_cluster(conflicts, cluster, same);
    }
    for (size_t i = 0; i < ours->region_count; i++) {
        const struct region *region = &ours->regions[i];
        const struct region *same = cluster_group_find_region(theirs, region->name);
        if (same != NULL)
            add_numbers(
                conflicts,
                arena_format(conflicts->arena, "regions.%s.initialFailoverVersion", region->name),
                region->initial_failover_version, same->initial_failover_version);
    }
}

static void
compare_owners(struct conflicts *conflicts, const struct cluster_group *ours,
               const struct cluster_group *theirs)
{
    for (size_t i = 0; i < ours->count; i++) {
        const struct cluster *cluster = &ours->clusters[i];
        compare_owner(conflicts, ours, theirs, cluster->initial_failover_version);
        compare_owner(conflicts, ours, theirs, cluster->new_initial_failover_version);
    }
    for (size_t i = 0; i < ours->region_count; i++)
        compare_owner(conflicts, ours, theirs, ours->regions[i].initial_failover_version);
}

const char *
cluster_group_conflict(const struct cluster_group *ours, const struct cluster_group *theirs,
                       const struct cluster *peer, struct arena *arena)
{
    check(theirs->current != NULL);
    struct conflicts conflicts = {.arena = arena, .peer = peer->name};
    if (strcmp(theirs->current->name, peer->name) != 0)
        add(&conflicts,
            arena_format(arena, "the name of the cluster at %s",
                         peer->rpc_address == NULL ? "its address" : peer->rpc_address),
            peer->name, theirs->current->name);
    add_numbers(&conflicts, "failoverVersionIncrement", ours->failover_version_increment,
                theirs->failover_version_increment);
    compare_clusters(&conflicts, ours, theirs);
    if (conflicts.count == 0) /* otherwise they follow from what is listed already */
        compare_owners(&conflicts, ours, theirs);
    if (conflicts.count <= NAMED_MAX)
        return conflicts.text;
    return arena_format(arena, "%s; and %zu more", conflicts.text, conflicts.count - NAMED_MAX);
}
