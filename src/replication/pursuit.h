/* pursuit.h - keeps following the other clusters of the group, whatever it is that is read from
 * them.
 *
 * One fiber per enabled peer that has an address goes round and round: a round asks the peer and
 * applies what came. A round that fails is tried again after a pause that grows, and the log says
 * once that it began to fail and once that it goes on. A peer whose settings of the group are
 * others is not followed until they are the same. */
#ifndef CADENZA_REPLICATION_PURSUIT_H
#define CADENZA_REPLICATION_PURSUIT_H

#include "base/list.h"
#include "base/log.h"
#include "base/metrics.h"
#include "fiber/sync.h"
#include "replication/agreement.h"
#include "replication/peer.h"

/* One peer: the first member of what the follower keeps of it. */
struct followed {
    struct list node;
    struct pursuit *pursuit;
    const struct cluster *cluster;
    struct grpc_client *client;
    struct fiber *fiber;
    bool is_away;      /* the last round failed */
    bool is_refused;   /* because it wants another token */
    char failure[512]; /* why it failed */
    struct agreement agreement;
    bool has_told_conflict;    /* the log says that its settings are others */
    int64_t heard;             /* when a round last succeeded, by the wall clock; 0: none has */
    int64_t pause;             /* until the next try */
    uint64_t rounds;           /* that have ended, well or not */
    bool is_hurried;           /* the pause shall end before its time */
    struct fiber_cond hurried; /* the pause is over before its time */
    struct fiber_cond ended;   /* a round has */
    struct counter *failed;
};

struct pursuit_options {
    struct peer_ways ways;
    const struct log *log;
    const char *fiber_name;
    const char *fails, *goes_on; /* for the log */
    const char *mark;            /* of a round that fails; a literal, see fiber/mark.h */
    /* Makes what is kept of a peer, with `failed` set; it has its cluster and client afterwards. */
    struct followed *(*make)(void *context, const struct cluster *cluster);
    /* Called once the client is there, before the first round. NULL: nothing to do. */
    void (*begin)(struct followed *peer);
    struct error *(*round)(struct followed *peer, struct arena *arena);
    /* Frees what `make` made; the client goes afterwards. */
    void (*drop)(struct followed *peer);
    void *context;
};

struct pursuit {
    struct pursuit_options options;
    struct list peers; /* struct followed */
    struct latch fibers;
    bool is_stopping;
};

/* On loop 0. `pursuit` stays where it is until it has stopped. */
void pursuit_start(struct pursuit *pursuit, const struct pursuit_options *options);
/* Ends all fibers; the peers stay. Yields; deaf to cancel. */
void pursuit_stop(struct pursuit *pursuit);
/* Drops the peers of one that has stopped. */
void pursuit_free(struct pursuit *pursuit);

/* Tries peers that are away without a pause, and waits for the outcome, at most until `deadline`.
 * On loop 0. Yields. */
void pursuit_try_away(struct pursuit *pursuit, int64_t deadline);

/* Sleeps so that a peer that does not wait until it has something is not asked all the time;
 * `begin` is when the round began, by the monotonic clock. */
must_use struct error *pursuit_rest(int64_t begin, struct arena *arena);

#endif
