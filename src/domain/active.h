/* active.h - the one question that everything asks: given this domain and this run's attribute,
 * which cluster is active, with which version, and may this cluster mutate? Pure.
 *
 * The home of a run follows from what was stored with it when it began, and never from which
 * cluster wrote its last event: an attribute is active where the domain says, a run that belongs to
 * nothing is active where the domain itself is. A region that a run came from is an attribute of
 * the scope "region". */
#ifndef CADENZA_DOMAIN_ACTIVE_H
#define CADENZA_DOMAIN_ACTIVE_H

#include <stdbool.h>

#include "cluster/group.h"
#include "domain/domain.h"
#include "uber/cadence/api/v1/common.pb-c.h"

#define REGION_SCOPE "region" /* of attributes that are regions of the group's config */

/* What a run belongs to; NULL scope: nothing, so the domain itself decides. */
struct cluster_attribute {
    const char *scope;
    const char *name;
};

enum active_status {
    ACTIVE_HERE,      /* this cluster may mutate */
    ACTIVE_ELSEWHERE, /* another one may */
    ACTIVE_PENDING,   /* a graceful failover is on its way to this cluster, or it lost memory
                         and is recovering: not yet */
    ACTIVE_UNKNOWN_ATTRIBUTE, /* the domain has no such attribute, or is active nowhere for a run
                                 without one: no cluster may */
};

struct active_cluster {
    enum active_status status;
    const char *cluster_name; /* the active cluster; "" for an unknown attribute */
    int64_t failover_version; /* of the events that it writes; FAILOVER_VERSION_LOCAL for local
                                 domains; -1 for an unknown attribute */
    bool is_stand_in; /* the attribute was taken away with all others: the domain itself decides for
                         what belongs to it, and for what clients start with it that do not know
                         of that */
    bool is_unresolved; /* of an entity: the domain does not have its region, so its runs stay with
                           the cluster that wrote their last event; a new one has no home */
};

/* Answers for `domain` as it is in the cluster `group->current`. */
struct active_cluster domain_active(const struct domain *domain,
                                    const struct cluster_attribute *attribute,
                                    const struct cluster_group *group);
/* The same without a point of view: the status is ACTIVE_ELSEWHERE where some cluster is active. */
struct active_cluster domain_find_active(const struct domain *domain,
                                         const struct cluster_attribute *attribute);
/* The same for a run whose last event has the version `last_version`, -1: it has none. That is
 * looked at only for a run without an attribute in a domain that is active in no cluster of its own
 * (its active cluster name is empty: a domain with regions alone). Such a run goes on in the
 * cluster that wrote the version, if one of the domain's regions is active there, else in the
 * active cluster of that cluster's region, else nowhere. */
struct active_cluster domain_active_run(const struct domain *domain,
                                        const struct cluster_attribute *attribute,
                                        int64_t last_version, const struct cluster_group *group);
/* What the policy of a run or a request names; nothing if it is NULL. The texts are the policy's.
 */
struct cluster_attribute cluster_attribute_of(const API(ActiveClusterSelectionPolicy) *policy);
/* Do two runs belong to the same? */
bool cluster_attribute_equals(const struct cluster_attribute *one,
                              const struct cluster_attribute *other);
/* What a run belongs to that says nothing: the region of the cluster that was asked to start it, if
 * the group has regions and the domain has that one; else nothing. */
struct cluster_attribute domain_choose_attribute(const struct domain *domain,
                                                 const struct cluster_group *group);
/* Did this cluster lose memory since it wrote with that version, so that it must not write with it
 * any more: others may have the events that it does not remember? A version of another cluster: no.
 */
bool domain_has_lost(const struct domain *domain, int64_t version,
                     const struct cluster_group *group);
/* Does the domain have this attribute? True for a run that belongs to none. */
bool domain_has_attribute(const struct domain *domain, const struct cluster_attribute *attribute);
/* Where something of a domain is active. */
struct domain_assignment {
    const char *scope, *name; /* the attribute; NULL: the domain itself */
    const char *cluster_name;
};
/* All of them, the domain itself first; texts are copies in the arena. */
const struct domain_assignment *domain_assignments(const struct domain *domain, struct arena *arena,
                                                   size_t *count);
/* Does the domain have attributes of its own (is it active-active)? */
bool domain_is_active_active(const struct domain *domain);
/* The clusters that an active-active domain's attributes are active in, each once, by name; none
 * for other domains. The texts are the domain's. */
size_t domain_active_clusters(const struct domain *domain, struct arena *arena,
                              const char ***names);

#endif
