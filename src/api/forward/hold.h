/* hold.h - calls that wait for the end of a graceful failover, instead of failing (F-042).
 *
 * While a domain drains towards this cluster no cluster may change its workflows: the cluster that
 * was active has stopped, this one has not begun. A call that comes in between waits here, and is
 * carried out when the domain is active; its caller sees a slower answer. Calls about one workflow
 * id go in the order in which they came, one after the other, also those that come when the domain
 * is active and others are still before them, here or in another cluster: the workflow may have
 * moved meanwhile. The cluster that was active sends its calls here, and remembers those that it
 * has sent until they are answered: later calls do not overtake them.
 *
 * Nothing of it is durable, and nothing was written for a call that waits: a caller that loses its
 * server sees ERR_UNAVAILABLE; one that waits too long, or finds too many others, is told to try
 * again. */
#ifndef CADENZA_API_FORWARD_HOLD_H
#define CADENZA_API_FORWARD_HOLD_H

#include "api/inside.h"
#include "domain/active.h"

/* What a call is about. In the call's arena. */
struct hold_subject {
    const char *domain_id, *domain_name;
    const char *workflow_id; /* "": it waits for the domain alone */
    struct cluster_attribute attribute;
    int64_t last_version; /* of its run; -1: there is none, or it does not matter */
    bool is_unknown;      /* what its workflow belongs to: whatever of the domain drains counts */
    bool is_outside;      /* unknown, and runs of the domain never come to this cluster */
    /* As the calling loop knows it; which cluster is active, if any is. */
    enum active_status status;
    const char *cluster_name;
};

/* Do calls about the domain wait while it drains, if their method may wait? No yield. */
bool hold_is_enabled(const struct api *api, const struct domain *domain);
/* Is a graceful failover of the domain, or of one of its attributes, under way, as far as this
 * cluster knows, or is this cluster reading what it lost? No yield. */
bool hold_is_draining(const struct api *api, const struct domain *domain);
/* Answers the call, when its domain has ended draining and every earlier call to the same workflow
 * id that waits, or is in another cluster, has been answered. Yields. Errors: the handler's;
 * ERR_SERVICE_BUSY (it may be tried again, nothing was written); ERR_CANCELLED. */
struct hold_hints {
    bool may_drain;   /* the domain does, as far as this loop knows */
    bool may_forward; /* the call goes to where its workflow is active */
    uint64_t hash;    /* of its workflow */
};
struct call_handling {
    struct error *(*handle)(struct rpc_call *call); /* if it is answered here */
    struct slice message;                           /* what is sent on if it is not */
};
must_use struct error *hold_serve(struct rpc_call *call, const struct hold_hints *hints,
                                  const struct call_handling *call_handling);

/* --- of forward.c ---- */

/* What the call is about; false: nothing that could wait. Yields if workflows of the domain are
 * active in several clusters. */
must_use bool forward_find_subject(struct rpc_call *call, struct hold_subject *subject);
/* Answers it here, or where the workflow is active. `known`: what it is about, found just now;
 * NULL: not known. *redirect: it was refused, and this is the cluster where the workflow is active
 * instead; NULL: it was not refused so. Yields. */
must_use struct error *forward_serve(struct rpc_call *call, const struct hold_subject *known,
                                     const struct call_handling *call_handling,
                                     const char **redirect);
/* Then: answers it there. Yields. */
must_use struct error *forward_follow(struct rpc_call *call,
                                      const struct call_handling *call_handling,
                                      const char *redirect);
/* The cluster that a refusal names as active; NULL: it was not such a refusal, or names the cluster
 * that was asked. */
const char *forward_find_redirect(struct rpc_call *call, const struct error *err,
                                  const char *asked);

#endif
