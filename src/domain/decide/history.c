/* history.c - what is remembered of failovers. See common.h.
 *
 * The history entry of a failover says what moved: the default active cluster if its name changed
 * (an active-active domain raises its version for every attribute that moves, which moves nothing
 * else), and the attributes whose version changed, in order of scope and name, then those that were
 * taken away. An entry copies all its texts: it may be stored after the record that it was made
 * from is gone. */
#include <string.h>

#include "base/check.h"
#include "domain/decide/common.h"
#include "wire/message.h"

#define RECENT_FAILOVERS_MAX 5

static STORED(FailoverRecord) *
record_new(const char *domain_id, int64_t failover_version, const char *origin,
           const struct domain_moment *moment, struct arena *arena)
{
    check(failover_version >= 0 && origin[0] != '\0');
    STORED(FailoverRecord) *record = message_new(arena, STORED_TYPE(failover_record));
    char id[UUID_TEXT_LENGTH + 1];
    uuid_format(&moment->fresh, id);
    record->format = DOMAIN_RECORD_FORMAT;
    record->id = arena_text(arena, id);
    record->domain_id = arena_text(arena, domain_id);
    record->created_time = moment->now;
    record->type = API_VALUE(FAILOVER_TYPE__FAILOVER_TYPE_FORCE);
    record->failover_version = failover_version;
    record->origin = arena_text(arena, origin);
    return record;
}

static API(ActiveClusterInfo) *
info_new(const char *cluster_name, int64_t failover_version, struct arena *arena)
{
    API(ActiveClusterInfo) *info = message_new(arena, API_TYPE(active_cluster_info));
    info->active_cluster_name = arena_text(arena, cluster_name);
    info->failover_version = failover_version;
    return info;
}

static API(ClusterFailover) *
add_failover(STORED(FailoverRecord) *record, struct arena *arena)
{
    API(ClusterFailover) *failover = message_new(arena, API_TYPE(cluster_failover));
    record->cluster_failovers[record->n_cluster_failovers++] = failover;
    return failover;
}

/* `from` NULL: the attribute is new; `to` NULL: it was taken away. */
static void
add_attribute(STORED(FailoverRecord) *record, const struct attribute *from,
              const struct attribute *to, struct arena *arena)
{
    const struct attribute *known = to == NULL ? from : to;
    check(from != NULL || to != NULL);
    check(from == NULL || to == NULL || attribute_compare(from, to) == 0);
    API(ClusterFailover) *failover = add_failover(record, arena);
    failover->cluster_attribute = message_new(arena, API_TYPE(cluster_attribute));
    failover->cluster_attribute->scope = arena_text(arena, known->scope);
    failover->cluster_attribute->name = arena_text(arena, known->name);
    if (from != NULL)
        failover->from_cluster = info_new(from->cluster_name, from->failover_version, arena);
    if (to != NULL)
        failover->to_cluster = info_new(to->cluster_name, to->failover_version, arena);
}

static void
add_domain(STORED(FailoverRecord) *record, const API(Domain) *before, const API(Domain) *after,
           struct arena *arena)
{
    bool is_active_active = after->active_clusters != NULL;
    if (before != NULL && strcmp(before->active_cluster_name, after->active_cluster_name) == 0 &&
        (is_active_active || before->failover_version == after->failover_version))
        return;
    API(ClusterFailover) *failover = add_failover(record, arena);
    if (before != NULL)
        failover->from_cluster =
            info_new(before->active_cluster_name, before->failover_version, arena);
    failover->to_cluster = info_new(after->active_cluster_name, after->failover_version, arena);
}

STORED(FailoverRecord) *
decide_failover_record(const API(Domain) *before, const API(Domain) *after,
                       int64_t failover_version, const char *origin,
                       const struct domain_moment *moment, struct arena *arena)
{
    check(before == NULL || strcmp(before->id, after->id) == 0);
    struct attributes old = attributes_read(before == NULL ? NULL : before->active_clusters, arena);
    struct attributes new = attributes_read(after->active_clusters, arena);
    STORED(FailoverRecord) *record = record_new(after->id, failover_version, origin, moment, arena);
    record->cluster_failovers =
        arena_zalloc(arena, old.count + new.count + 1, sizeof(API(ClusterFailover) *));
    add_domain(record, before, after, arena);
    for (size_t i = 0; i < new.count; i++) {
        const struct attribute *to = &new.all[i];
        const struct attribute *from = attributes_find(&old, to->scope, to->name);
        if (from == NULL || from->failover_version != to->failover_version)
            add_attribute(record, from, to, arena);
    }
    for (size_t i = 0; i < old.count; i++) {
        if (attributes_find(&new, old.all[i].scope, old.all[i].name) == NULL)
            add_attribute(record, &old.all[i], NULL, arena);
    }
    check(record->n_cluster_failovers <= old.count + new.count + 1);
    bool is_bump = before != NULL && before->failover_version != after->failover_version;
    return record->n_cluster_failovers == 0 && !is_bump ? NULL : record;
}

/* The version that the domain itself would have if nothing had moved it since: a domain whose last
 * attribute was taken away stays where it is with a higher one (021). */
static int64_t
own_version(const API(ClusterFailover) *move, const STORED(DomainRecord) *record)
{
    bool has_stayed =
        move->from_cluster != NULL &&
        strcmp(move->from_cluster->active_cluster_name, move->to_cluster->active_cluster_name) == 0;
    return has_stayed ? record->domain->failover_version : domain_record_moved_version(record);
}

/* Is what one move of a failover did still so? `attributes` are those of the domain. */
static bool
is_move_in_effect(const API(ClusterFailover) *move, const STORED(DomainRecord) *record,
                  const struct attributes *attributes)
{
    const API(ClusterAttribute) *named = move->cluster_attribute;
    const struct attribute *known =
        named == NULL ? NULL : attributes_find(attributes, named->scope, named->name);
    if (move->to_cluster == NULL) /* it was taken away */
        return known == NULL;
    int64_t version = named == NULL   ? own_version(move, record)
                      : known == NULL ? -1
                                      : known->failover_version;
    return move->to_cluster->failover_version == version;
}

bool
decide_is_in_effect(const STORED(FailoverRecord) *failover, const STORED(DomainRecord) *record,
                    struct arena *arena)
{
    struct attributes attributes = attributes_read(record->domain->active_clusters, arena);
    for (size_t i = 0; i < failover->n_cluster_failovers; i++) {
        if (is_move_in_effect(failover->cluster_failovers[i], record, &attributes))
            return true;
    }
    return failover->n_cluster_failovers == 0 &&
           failover->failover_version == record->domain->failover_version;
}

void
decide_add_recent(STORED(DomainRecord) *record, const char *from, const char *to,
                  const char *reason, API(FailoverType) type, const struct domain_moment *moment,
                  struct arena *arena)
{
    STORED(RecentFailover) *newest = message_new(arena, STORED_TYPE(recent_failover));
    newest->time = moment->now;
    newest->from_cluster = (char *)from;
    newest->to_cluster = (char *)to;
    newest->type = type;
    newest->reason = (char *)reason;

    size_t kept = record->n_recent_failovers;
    if (kept > RECENT_FAILOVERS_MAX - 1)
        kept = RECENT_FAILOVERS_MAX - 1;
    STORED(RecentFailover) **all = arena_zalloc(arena, kept + 1, sizeof(*all));
    all[0] = newest;
    for (size_t i = 0; i < kept; i++)
        all[i + 1] = record->recent_failovers[i];
    record->recent_failovers = all;
    record->n_recent_failovers = kept + 1;
    check(record->n_recent_failovers <= RECENT_FAILOVERS_MAX);
}
