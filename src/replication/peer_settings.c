/* peer_settings.c - see peer_settings.h. */
#include "replication/peer_settings.h"

#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/probe.h"
#include "uber/cadence/admin/v1/replication.pb-c.h"
#include "wire/message.h"
#include "wire/names.h"

struct slice
group_settings_encode(const struct cluster_group *group, struct arena *arena)
{
    ADMIN(GroupSettings) *settings = message_new(arena, ADMIN_TYPE(group_settings));
    settings->cluster = (char *)group->current->name;
    settings->failover_version_increment = group->failover_version_increment;
    settings->members = arena_zalloc(arena, group->count + 1, sizeof *settings->members);
    for (size_t i = 0; i < group->count; i++) {
        const struct cluster *cluster = &group->clusters[i];
        ADMIN(GroupMember) *member = message_new(arena, ADMIN_TYPE(group_member));
        member->name = (char *)cluster->name;
        member->initial_failover_version = cluster->initial_failover_version;
        member->new_initial_failover_version = cluster->new_initial_failover_version;
        member->region = cluster->region == NULL ? "" : (char *)cluster->region;
        settings->members[settings->n_members++] = member;
    }
    settings->regions = arena_zalloc(arena, group->region_count + 1, sizeof *settings->regions);
    for (size_t i = 0; i < group->region_count; i++) {
        ADMIN(GroupRegion) *region = message_new(arena, ADMIN_TYPE(group_region));
        region->name = (char *)group->regions[i].name;
        region->initial_failover_version = group->regions[i].initial_failover_version;
        settings->regions[settings->n_regions++] = region;
    }
    return message_encode(arena, &settings->base);
}

/* The reverse. The texts stay in the message. */
static struct cluster_group
group_of(const ADMIN(GroupSettings) *settings, struct arena *arena)
{
    struct cluster *clusters = arena_zalloc(arena, settings->n_members + 1, sizeof *clusters);
    struct region *regions = arena_zalloc(arena, settings->n_regions + 1, sizeof *regions);
    for (size_t i = 0; i < settings->n_members; i++) {
        const ADMIN(GroupMember) *member = settings->members[i];
        clusters[i] =
            (struct cluster){.name = member->name,
                             .initial_failover_version = member->initial_failover_version,
                             .new_initial_failover_version = member->new_initial_failover_version,
                             .region = member->region[0] == '\0' ? NULL : member->region};
    }
    for (size_t i = 0; i < settings->n_regions; i++)
        regions[i] = (struct region){settings->regions[i]->name,
                                     settings->regions[i]->initial_failover_version};
    clusters[settings->n_members].name =
        settings->cluster; /* behind the members: the cluster that sent them */
    return (struct cluster_group){.failover_version_increment =
                                      settings->failover_version_increment,
                                  .current = &clusters[settings->n_members],
                                  .clusters = clusters,
                                  .count = settings->n_members,
                                  .regions = regions,
                                  .region_count = settings->n_regions};
}

static struct error *
compare(const struct cluster_group *group, const struct cluster *peer, struct slice received,
        struct arena *arena, bool *has_conflict)
{
    ADMIN(GroupSettings) *settings = NULL;
    struct error *err = message_decode(arena, ADMIN_TYPE(group_settings), received, &settings);
    if (err != NULL)
        return error_wrap(err, "group_settings");
    struct cluster_group theirs = group_of(settings, arena);
    if (theirs.failover_version_increment <= 0)
        return error_new(arena, ERR_BAD_REQUEST, "group_settings: the increment is %lld",
                         (long long)theirs.failover_version_increment);
    const char *conflict = cluster_group_conflict(group, &theirs, peer, arena);
    *has_conflict = conflict != NULL;
    if (conflict == NULL)
        return NULL;
    probe("group_settings_differ");
    return error_new(arena, ERR_BAD_REQUEST, "clusterGroupMetadata differs: %s", conflict);
}

struct error *
peer_settings_check(struct peer_settings *peer_settings, const struct cluster_group *group,
                    const struct cluster *peer, struct slice received, struct arena *arena)
{
    check(peer != group->current);
    check((peer_settings->accepted == NULL) == (peer_settings->length == 0));
    bool is_known = peer_settings->accepted != NULL && peer_settings->length == received.length &&
                    memcmp(peer_settings->accepted, received.data, received.length) == 0;
    if (received.length == 0 || is_known) /* as nearly always */
        return NULL;
#ifdef CADENZA_FAULT_group_settings_unchecked
    return NULL; /* a fault: nothing is compared */
#endif
    struct error *err = compare(group, peer, received, arena, &peer_settings->has_conflict);
    check(err != NULL || !peer_settings->has_conflict);
    peer_settings_free(peer_settings);
    if (err != NULL)
        return err;
    peer_settings->accepted = memory_zalloc(1, received.length);
    peer_settings->length = received.length;
    memcpy(peer_settings->accepted, received.data, received.length);
    return NULL;
}

void
peer_settings_free(struct peer_settings *peer_settings)
{
    if (peer_settings->accepted != NULL)
        memory_free(peer_settings->accepted);
    peer_settings->accepted = NULL;
    peer_settings->length = 0;
}
