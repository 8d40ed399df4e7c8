/* domains_in.h - follows the domain changes of the other clusters of the group, as soon as they
 * happen.
 *
 * One fiber per enabled peer that has an address: it asks the peer's AdminAPI for messages after
 * the stored position with a long poll, applies each (domain/domains.h), then stores the position.
 * A message is acknowledged only when it is applied, superseded or parked, durably. A peer that
 * cannot be reached is asked again with growing pauses. */
#ifndef CADENZA_REPLICATION_DOMAINS_IN_H
#define CADENZA_REPLICATION_DOMAINS_IN_H

#include "base/log.h"
#include "base/metrics.h"
#include "cluster/group.h"
#include "domain/domains.h"
#include "net/client.h"

struct domains_in;

struct domains_in_options {
    struct domains *domains;
    const struct cluster_group *group;
    struct tls *const
        *tls; /* to speak to each cluster of the group, in its order; NULL: plain to all */
    const struct grpc_live_header *const
        *tokens; /* shown to each, in the same order, NULL where there is none; NULL: none to all */
    const struct log *log;
    struct metrics *metrics;
    /* Called once, in a fiber of loop 0, when every enabled peer has told all it knows since the
     * start; may yield. NULL: nobody asks. A peer that cannot be reached keeps it waiting. */
    void (*caught_up)(void *context);
    void *context;
};

/* Starts following, on loop 0. Never fails: a peer that is away is waited for. */
struct domains_in *domains_in_start(const struct domains_in_options *options);
/* Ends all of it. Yields; deaf to cancel. */
void domains_in_stop(struct domains_in *in);

#endif
