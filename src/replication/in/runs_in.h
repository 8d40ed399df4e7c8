/* runs_in.h - follows the runs of the other clusters of the group.
 *
 * One fiber per enabled peer that has an address asks it for the rows of all its shards, with a
 * long poll, and reads on while what came is applied (runs_apply.h). The position in the rows of a
 * peer is stored by that peer, as what was acknowledged: a row is, once all up to it is applied,
 * known or a dead letter, durably. A peer that cannot be reached is asked again after growing
 * pauses. */
#ifndef CADENZA_REPLICATION_IN_RUNS_IN_H
#define CADENZA_REPLICATION_IN_RUNS_IN_H

#include "base/log.h"
#include "base/metrics.h"
#include "cluster/group.h"
#include "domain/domains.h"
#include "engine/replicated.h"
#include "net/client.h"

struct runs_in;

struct runs_in_options {
    struct engine *engine;
    struct domains *domains;
    struct drains *drains; /* notified of markers */
    const struct cluster_group *group;
    struct tls *const
        *tls; /* one for each cluster of the group, in its order; NULL: plain to all */
    const struct grpc_live_header *const
        *tokens; /* shown to each, in the same order, NULL where there is none; NULL: none to all */
    const struct log *log;
    struct metrics *metrics;
    /* This cluster lost memory (design/031): the runs of all peers are read, once runs_in_read_past
     * was called; then `have_past` is, and after runs_in_read_past once more `recovered`, in a
     * fiber that may yield. If that fails it is called again. */
    bool is_recovering;
    const char *const *waived; /* names of peers that are not waited for, up to NULL; NULL: none */
    void (*have_past)(void *context);
    struct error *(*recovered)(void *context, struct arena *arena);
    void *context;
};

/* Starts following, on loop 0. Never fails: a peer that is unreachable is asked again. */
struct runs_in *runs_in_start(const struct runs_in_options *options);
/* Ends all of it. Yields; cannot be cancelled. */
void runs_in_stop(struct runs_in *in);

/* --- of a cluster that lost memory; where the domains live ---- */

/* The domains of all peers are here: now their runs may be read; the second time: now it may end.
 */
void runs_in_read_past(struct runs_in *in);
/* The highest versions of this cluster in the histories of a domain that peers have. */
struct heard_versions runs_in_heard(const struct runs_in *in, const char *domain_id);

/* For operators; from any loop. Yield. Errors: ERR_BAD_REQUEST (no such peer, or it can never be
 * applied), others: try again. */

/* Applies a dead letter (E-073); events and states that are known already are fine. */
must_use struct error *runs_in_apply(struct runs_in *in, const char *source,
                                     const ADMIN(ReplicationTask) *task, struct arena *arena);
/* Reads events of one run from a peer and applies them (E-075); ends not included, as in
 * struct replicated_gap. */
must_use struct error *runs_in_resend(struct runs_in *in, const char *source,
                                      const struct replicated_gap *range, struct arena *arena);
/* Lets a peer read a whole run from here and apply it; what it has already is fine. Errors
 * beside those above: ERR_ENTITY_NOT_EXISTS, as the peer says it. */
must_use struct error *runs_in_push(struct runs_in *in, const char *target,
                                    const struct run_key *key, struct arena *arena);
/* Is all applied that a peer had sent and that can be applied? Waits for the answer that may be on
 * its way. Errors besides: ERR_UNAVAILABLE (no). */
must_use struct error *runs_in_check_applied(struct runs_in *in, const char *source, bool is_all,
                                             struct arena *arena);
/* The state of one peer. */
struct peer_state {
    const struct cluster *cluster;
    const char *failure;     /* of the last call; NULL: it succeeded, or there was none yet */
    bool has_other_settings; /* `failure` is that its group settings conflict with ours */
    int64_t succeeded_at;    /* when one last succeeded, by the wall clock; 0: none has */
    size_t waiting;          /* messages that it sent and that are not applied */
    int64_t oldest;          /* when the oldest of them happened, by its clock; 0: none */
    /* This cluster lost memory and reads the runs of the peer: how many shards of how many it has
     * read; 0 of 0: it has not answered yet. */
    bool is_past_wanted;
    uint32_t past_read, past_shards;
};
/* All peers that are followed. */
must_use struct error *runs_in_list(struct runs_in *in, struct arena *arena,
                                    const struct peer_state **states, size_t *count);

#endif
