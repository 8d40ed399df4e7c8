/* runs_inside.h - what following the runs of peers (runs_in.c) and what operators ask of it
 * (runs_operate.c) share. */
#ifndef CADENZA_REPLICATION_IN_RUNS_INSIDE_H
#define CADENZA_REPLICATION_IN_RUNS_INSIDE_H

#include "fiber/sync.h"
#include "replication/in/follow_loop.h"
#include "replication/in/runs_apply.h"
#include "route/ask.h"

#define PEER_CALL_TIMEOUT (10 * NS_PER_S)

struct run_source {
    struct followed_peer base;
    struct runs_in *in;
    struct applier *applier;
    struct counter *fetched, *resynced;
    bool has_answered; /* since the start: how many shards it has is known */
    bool is_polling;   /* a call for rows is on its way */
    uint64_t polls;    /* those that have ended, and whose rows are with the applier */
    struct fiber_cond polled;
    uint32_t past_read;     /* shards of it whose runs were read, of a cluster that lost memory */
    bool has_past;          /* all were */
    bool has_looked_back;   /* and once more, after the recovery */
    int64_t look_back_time; /* not before, monotonic */
    struct gauge *past_shown;
};

struct runs_in {
    struct runs_in_options options;
    struct route_service service;
    struct follow_loop follow_loop;
    struct latch operations; /* calls of operators that are under way */
    /* Of a cluster that lost memory (runs_past.c). */
    bool is_recovering, may_read_past, is_asking_again, has_domains_again, is_ending;
    struct map *heard; /* domain id → struct heard */
};

/* --- runs_past.c ---- */

void runs_past_init(struct runs_in *in);
void runs_past_free(struct runs_in *in);
/* Is that peer not waited for? */
bool runs_past_is_waived(const struct runs_in *in, const struct cluster *cluster);
/* Reads what this cluster lost, as far as the peer has it; the last peer ends the recovery. Yields.
 */
must_use struct error *runs_past_read(struct run_source *run_source, struct arena *arena);

/* What applying a message of that peer needs. */
struct apply_world run_source_world(const struct run_source *run_source);

#endif
