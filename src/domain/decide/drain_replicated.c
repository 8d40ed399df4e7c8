/* drain_replicated.c - what other clusters say of graceful failovers, merged into a record. See
 * common.h.
 *
 * Messages come late, twice and by way of third clusters, and a domain may have thousands of
 * attributes that drain: each list is walked once. */
#include "base/check.h"
#include "domain/decide/common.h"
#include "domain/drain.h"

/* The versions that moved a domain and its attributes to where they are. */
struct known_versions {
    int64_t own;
    struct attributes attributes;
};

static struct known_versions
known_of(const STORED(DomainRecord) *record, struct arena *arena)
{
    return (struct known_versions){domain_record_moved_version(record),
                                   attributes_read(record->domain->active_clusters, arena)};
}

static struct known_versions
known_by_sender(const struct replicated_drains *replicated, struct arena *arena)
{
    return (struct known_versions){replicated->moved_version,
                                   attributes_read(replicated->domain->active_clusters, arena)};
}

static bool
is_of_domain(const STORED(Drain) *drain)
{
    return drain->scope[0] == '\0' && drain->name[0] == '\0';
}

/* The version of what the drain moves; -1: there is no such attribute. */
static int64_t
version_of(const struct known_versions *known_versions, const STORED(Drain) *drain)
{
    if (is_of_domain(drain))
        return known_versions->own;
    const struct attribute *found =
        attributes_find(&known_versions->attributes, drain->scope, drain->name);
    return found == NULL ? -1 : found->failover_version;
}

/* Drops those of ours that a newer version made void, and those that the others know to be over. */
static bool
drop_void(const STORED(DomainRecord) *before, const struct replicated_drains *replicated,
          struct arena *arena, STORED(DomainRecord) *record)
{
    struct known_versions then = known_of(before, arena), now = known_of(record, arena);
    struct known_versions theirs = known_by_sender(replicated, arena);
    struct drain_change *gone = arena_zalloc(arena, before->n_drains + 1, sizeof *gone);
    size_t count = 0;
    for (size_t i = 0; i < before->n_drains; i++) {
        const STORED(Drain) *ours = before->drains[i];
        const STORED(Drain) *same =
            drains_search(replicated->drains, replicated->count, ours->scope, ours->name);
        bool goes_on = same != NULL && same->failover_version == ours->failover_version;
        /* Only the target ends it: there, what others do not know yet is not over. */
        bool is_over = ours->end_time == 0 && replicated->is_complete && same == NULL &&
                       version_of(&theirs, ours) == version_of(&then, ours);
        bool is_void = version_of(&now, ours) > version_of(&then, ours) && !goes_on;
        if (is_void || is_over)
            gone[count++] = (struct drain_change){.scope = ours->scope, .name = ours->name};
    }
    return decide_change_drains(record, gone, count, arena) > 0;
}

bool
decide_merge_drains(const STORED(DomainRecord) *before, const struct replicated_drains *replicated,
                    struct arena *arena, STORED(DomainRecord) *record)
{
    bool has_dropped = before != NULL && drop_void(before, replicated, arena, record);
    struct known_versions then = {0}, now = known_of(record, arena);
    struct known_versions made = known_by_sender(replicated, arena);
    struct drain_change *begun = arena_zalloc(arena, replicated->count + 1, sizeof *begun);
    size_t count = 0;
    if (before != NULL)
        then = known_of(before, arena);
    for (size_t i = 0; i < replicated->count; i++) {
        STORED(Drain) *theirs = replicated->drains[i];
        int64_t old = before == NULL ? -1 : version_of(&then, theirs);
        int64_t new = version_of(&now, theirs);
        const STORED(Drain) *ours =
            drains_search(record->drains, record->n_drains, theirs->scope, theirs->name);
        bool is_known = ours != NULL && ours->failover_version == theirs->failover_version;
        if (is_known || new <= old || new != version_of(&made, theirs) ||
            theirs->failover_version > new)
            continue; /* known, or it came too late */
        int64_t shown = old >= 0 && is_of_domain(theirs) ? before->domain->failover_version : old;
        if (old >= 0 && shown != theirs->previous_failover_version)
            continue; /* it drains what had moved before: this cluster's events are not all */
        check(theirs->failover_version > theirs->previous_failover_version);
        theirs->end_time = 0;
        begun[count++] = (struct drain_change){theirs->scope, theirs->name, theirs};
    }
    decide_change_drains(record, begun, count, arena);
    return has_dropped || count > 0;
}
