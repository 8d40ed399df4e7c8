/* follow_loop.h - follows the other clusters of the group; what is read from them is the caller's.
 *
 * One fiber per enabled peer that has an address repeats a round: it asks the peer and applies the
 * answer. A round that fails is tried again after a growing pause; the log says once that rounds
 * began to fail, and once that they succeed again. A peer whose group settings conflict with ours
 * is not followed until they agree. */
#ifndef CADENZA_REPLICATION_IN_FOLLOW_LOOP_H
#define CADENZA_REPLICATION_IN_FOLLOW_LOOP_H

#include "base/list.h"
#include "base/log.h"
#include "base/metrics.h"
#include "fiber/sync.h"
#include "replication/peer.h"
#include "replication/peer_settings.h"

/* One peer: the first member of what the follower keeps of it. */
struct followed_peer {
    struct list node;
    struct follow_loop *follow_loop;
    const struct cluster *cluster;
    struct grpc_client *client;
    struct fiber *fiber;
    bool is_away;      /* the last round failed */
    bool is_refused;   /* because it does not accept our token */
    char failure[512]; /* why it failed */
    struct peer_settings peer_settings;
    bool has_logged_conflict;  /* the log says that its settings conflict */
    int64_t succeeded_at;      /* when a round last succeeded, by the wall clock; 0: none has */
    int64_t pause;             /* until the next try */
    uint64_t rounds;           /* that have ended, well or not */
    bool is_hurried;           /* the pause shall end before its time */
    struct fiber_cond hurried; /* is_hurried was set */
    struct fiber_cond ended;   /* a round has ended */
    struct counter *failed;
};

struct follow_loop_options {
    struct peer_ways ways;
    const struct log *log;
    const char *fiber_name;
    const char *failing_text, *resumed_text; /* for the log */
    const char *probe; /* of a round that fails; a literal, see fiber/probe.h */
    /* Allocates the state of a peer, with `failed` set; its cluster and client are set afterwards.
     */
    struct followed_peer *(*make)(void *context, const struct cluster *cluster);
    /* Called once the client is there, before the first round. NULL: nothing to do. */
    void (*begin)(struct followed_peer *peer);
    struct error *(*round)(struct followed_peer *peer, struct arena *arena);
    /* Frees what `make` made; the client is freed afterwards. */
    void (*drop)(struct followed_peer *peer);
    void *context;
};

struct follow_loop {
    struct follow_loop_options options;
    struct list peers; /* struct followed_peer */
    struct latch fibers;
    bool is_stopping;
};

/* On loop 0. `follow_loop` must not move until it was freed. */
void follow_loop_start(struct follow_loop *follow_loop, const struct follow_loop_options *options);
/* Ends all fibers; the peers stay. Yields; cannot be cancelled. */
void follow_loop_stop(struct follow_loop *follow_loop);
/* Frees the peers; only after follow_loop_stop. */
void follow_loop_free(struct follow_loop *follow_loop);

/* Asks unreachable peers again at once, and waits for the outcome, at most until `deadline`.
 * On loop 0. Yields. */
void follow_loop_try_away(struct follow_loop *follow_loop, int64_t deadline);

/* Sleeps until a second after `begin` (when the round began, monotonic), so that a peer which
 * answers at once though it has nothing is not asked all the time. */
must_use struct error *follow_loop_rest(int64_t begin, struct arena *arena);

#endif
