/* domain_drain.h - the progress of a graceful failover, for people. Inside cli/ only. */
#ifndef CADENZA_CLI_DOMAIN_DOMAIN_DRAIN_H
#define CADENZA_CLI_DOMAIN_DOMAIN_DRAIN_H

#include "cli/base/inside.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/names.h"

/* What was seen of one thing that moves gracefully. */
struct drain_state {
    const char *domain, *target;
    const char *scope, *name; /* of the cluster attribute that moves; NULL: the domain itself */
    int64_t version;          /* that it takes; 0: not known yet */
    const API(FailoverProgress) *progress; /* the newest; NULL: none was seen */
    const API(FailoverInfo) *info; /* the same of a server that has no more; NULL: none was seen */
    int64_t passed;                /* ns since it began */
    const char *active;            /* which cluster is active at the end; NULL: it has not ended */
    const API(FailoverOutcome) *outcome; /* how it ended; NULL: the server does not say */
};

/* --- texts (drain_text.c), pure ---- */

/* "orders", or "region.lisbon of orders". */
const char *drain_what(const struct drain_state *state, struct arena *arena);
/* "12 of 16 shards of east, nothing from north yet"; NULL: nobody said anything. */
const char *drain_shards(API(ClusterShards) *const *clusters, size_t count, struct arena *arena);
/* What was seen last of its shards; NULL: nothing. */
const char *drain_seen(const struct drain_state *state, struct arena *arena);
/* Where it is: "orders moves to cluster1: 12 of 16 shards of cluster0, 0.2 s". */
const char *drain_line(const struct drain_state *state, struct arena *arena);
/* What came of it, in a sentence or two. Says no more than the server compared. */
const char *drain_report(const struct drain_state *state, struct arena *arena);

/* --- looking (domain_drain.c) ---- */

/* A graceful failover that was asked for. */
struct drain_request {
    const API(Domain) *domain;             /* as it was answered */
    const API(ActiveClusters) *attributes; /* that were to move; NULL: none */
    bool moves_domain;
    int64_t began; /* monotonic */
};
/* Follows the graceful failover of a domain until it is over and tells what came of it. `begun`
 * NULL: somebody else began it. Yields. Errors: the server's; ERR_ENTITY_NOT_EXISTS (none is under
 * way, and begun is NULL). */
must_use struct error *domain_follow_drain(struct cli_call *call, const char *name,
                                           const struct drain_request *requested);

#endif
