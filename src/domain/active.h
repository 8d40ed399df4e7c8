/* active.h - the one question that everything asks: given this domain and this run's attribute,
 * which cluster is active, with which version, and may this cluster mutate? Pure. */
#ifndef CADENZA_DOMAIN_ACTIVE_H
#define CADENZA_DOMAIN_ACTIVE_H

#include <stdbool.h>

#include "cluster/group.h"
#include "domain/domain.h"

/* What a run belongs to; NULL scope: nothing, so the domain itself decides. */
struct cluster_attribute {
    const char *scope;
    const char *name;
};

enum active_status {
    ACTIVE_HERE,              /* this cluster may mutate */
    ACTIVE_ELSEWHERE,         /* another one may */
    ACTIVE_PENDING,           /* a graceful failover is on its way to this cluster: not yet */
    ACTIVE_UNKNOWN_ATTRIBUTE, /* the domain has no such attribute: nobody may */
};

struct active_cluster {
    enum active_status status;
    const char *cluster_name; /* who is active; "" for an unknown attribute */
    int64_t failover_version; /* of the events that it writes; FAILOVER_VERSION_LOCAL for local
                                 domains; -1 for an unknown attribute */
    bool is_stand_in; /* the attribute was taken away with all others: the domain itself decides for
                         the workflows that it had, and nothing new begins with it */
};

/* Answers for `domain` as it is in the cluster `group->current`. */
struct active_cluster domain_active(const struct domain *domain,
                                    const struct cluster_attribute *attribute,
                                    const struct cluster_group *group);
/* Where something of a domain is active. */
struct domain_place {
    const char *scope, *name; /* the attribute; NULL: the domain itself */
    const char *cluster_name;
};
/* All of them, the domain itself first; texts are copies in the arena. */
const struct domain_place *domain_places(const struct domain *domain, struct arena *arena,
                                         size_t *count);
/* Has the domain attributes of its own (is it active-active)? */
bool domain_is_active_active(const struct domain *domain);

#endif
