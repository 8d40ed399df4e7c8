/* drain.h - graceful failovers that are under way, as a domain's record has them. Pure.
 *
 * A drain moves one thing, the domain itself or one of its cluster attributes, from its source to
 * its target. In the target it has an end time, and what drains to there is active nowhere in it
 * (ACTIVE_PENDING). In the source it says which markers are due: every shard, once it takes no more
 * writes, puts one into its replication stream. The other clusters of the domain do so as well:
 * the target gets the events that they wrote while they were active from them alone. A drain is
 * part of the record as long as the failover version that it made is in effect and the target has
 * not said that it is over. */
#ifndef CADENZA_DOMAIN_DRAIN_H
#define CADENZA_DOMAIN_DRAIN_H

#include "domain/active.h"

/* What drains: `attribute` NULL or without a scope is the domain itself. NULL: it does not. In the
 * target end_time is not 0. */
const STORED(Drain) *domain_find_drain(const struct domain *domain,
                                       const struct cluster_attribute *attribute);

/* The order of drains in a record: by scope, then name; like strcmp. */
int drain_order(const char *scope, const char *name, const char *other_scope,
                const char *other_name);
int drain_compare(const STORED(Drain) *drain, const char *scope, const char *name);
/* The one of a thing in such a list; NULL: there is none. */
STORED(Drain) *drains_search(STORED(Drain) *const *drains, size_t count, const char *scope,
                             const char *name);

/* A marker that a shard has to write. */
struct drain_marker {
    const char *scope, *name; /* both "": the domain itself */
    int64_t failover_version; /* that the drain made */
};
/* The markers that every shard of the cluster `group->current` has to write for this record, in
 * order of scope and name, into `arena` (texts are the record's). None after a failover by force,
 * nor in the target; for a target of another make only in the source (F-018, F-022). They stay due
 * until the drain is over: each shard remembers which ones it has written. */
size_t domain_markers_due(const struct domain *domain, const struct cluster_group *group,
                          struct arena *arena, struct drain_marker **markers);

/* A drain to this cluster that is over. */
struct drain_end {
    const char *domain_id, *domain_name;
    const char *scope, *name;         /* both "": the domain itself */
    int64_t failover_version;         /* that it made */
    STORED(FailoverRecord) *failover; /* its entry in the history, with how it ended; NULL: none */
};

/* The failover version that moved it to where it is; -1: there is no such attribute. The one of the
 * events may be higher: that of the domain itself rises with its attributes, too. */
int64_t domain_moved_version(const struct domain *domain,
                             const struct cluster_attribute *attribute);
/* Does the drain end in the cluster `group->current`, and has it not ended? */
bool drain_is_to_here(const STORED(Drain) *drain, const struct cluster_group *group);
/* Does the domain, or an attribute of it, have such a drain? */
bool domain_drains_to_here(const struct domain *domain, const struct cluster_group *group);

#endif
