/* domains_in.h - follows the domain changes of the other clusters of the group, as soon as they
 * happen.
 *
 * One fiber per enabled peer that has an address: it asks the peer's AdminAPI for messages after
 * the stored position with a long poll, applies each (domain/domains.h), then stores the position.
 * A message is acknowledged only when it is applied, superseded or kept as a dead letter, durably.
 * A peer that cannot be reached is asked again after growing pauses. */
#ifndef CADENZA_REPLICATION_IN_DOMAINS_IN_H
#define CADENZA_REPLICATION_IN_DOMAINS_IN_H

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
        *tls; /* one for each cluster of the group, in its order; NULL: plain to all */
    const struct grpc_live_header *const
        *tokens; /* shown to each, in the same order, NULL where there is none; NULL: none to all */
    const struct log *log;
    struct metrics *metrics;
    /* Called in a fiber of loop 0, when every enabled peer has sent all that it had since the
     * start, and again after domains_in_ask_again; may yield. May be NULL. A peer that cannot be
     * reached delays it. */
    void (*caught_up)(void *context);
    const char *const *waived; /* names of peers that do not delay it, up to NULL; NULL: none */
    void *context;
};

/* Starts following, on loop 0. Never fails: a peer that is unreachable is asked again. */
struct domains_in *domains_in_start(const struct domains_in_options *options);
/* Calls options.caught_up once more, when every peer has nothing more in a round that begins from
 * now on. On loop 0; no yield. */
void domains_in_ask_again(struct domains_in *in);
/* Ends all of it. Yields; cannot be cancelled. */
void domains_in_stop(struct domains_in *in);

#endif
