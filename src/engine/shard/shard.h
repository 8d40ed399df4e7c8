/* shard.h - the owner of a slice of workflow ids: a log, and what it means.
 *
 * A shard lives on one loop. It holds the workflow ids that were used lately, each with a lock, the
 * current-run record and its loaded runs. A step is decided, adopted and submitted under the lock
 * without a yield; the lock is free again at once, and the caller waits for durability. Nothing
 * undurable leaves: not answers, not refusals, not reads, not outbox rows.
 *
 * 1. Taking the shard raises its guard (the range id); an owner that was overtaken is fenced at its
 *    next commit, drops everything it knew, and tells its callers to try again.
 * 2. An entry with an undurable batch is pinned and never read from the store.
 * 3. A row of the outbox is known here exactly as long as it is in the store and this owner is to
 *    see it through: so each is deleted exactly once.
 * 4. The alarm of a run is never later than run_next_deadline. A closed run is deleted after its
 *    retention: nobody who asks finds it any more. */
#ifndef CADENZA_ENGINE_SHARD_SHARD_H
#define CADENZA_ENGINE_SHARD_SHARD_H

#include "base/list.h"
#include "base/log.h"
#include "base/metrics.h"
#include "cluster/group.h"
#include "domain/domains.h"
#include "engine/command/command.h"
#include "route/task.h"

/* What the shard needs from the world; filled by server/ or a test. */
struct task_port {
    /* Hands a task to the owner of its list. On the shard's loop, no yield; copies what it needs.
     * False: no room now, the shard offers it again later. */
    bool (*offer)(void *context, const struct task *task);
    void *context;
};

struct shard_options {
    uint32_t number;
    struct store *store;
    const struct domains *domains;
    const struct cluster_group *group;
    const struct dynamic *dynamic;
    const struct log *log;
    struct metrics *metrics;
    struct task_port tasks;
    const char *host;   /* who we are, for the shard record */
    bool is_alone;      /* nobody else may own it: taken again at once when it was lost */
    size_t runs_max;    /* cached runs, about; 0: a default */
    size_t batches_max; /* that wait to be committed; 0: a default */
    size_t
        transfers_max; /* rows of the outbox in memory; 0: a default. The others are read later */
    size_t alarms_max; /* alarms in memory; 0: a default. Later ones are read when they come near */
};

struct shard;

/* On its loop. Owns nothing yet. */
struct shard *shard_new(const struct shard_options *options);
/* Takes ownership: raises the range id, reads the outbox, begins to work it off. Yields. Harmless
 * when it is ours already. Errors: the store's. */
must_use struct error *shard_take(struct shard *shard, struct arena *arena);
/* Stops, waits for what is in flight, frees. Nobody may call any more. Yields; deaf to cancel. */
void shard_close(struct shard *shard);
bool shard_is_owned(const struct shard *shard);
uint64_t shard_range_id(const struct shard *shard); /* 0: not owned */

/* --- steps -------------------------------------------------------------------------------------
 */

struct shard_step {
    struct run_key key; /* run_id "": the current run */
    /* Is the run needed? false: only the current-run record (step->mutation may be NULL even if
     * there is one). */
    bool needs_run;
    bool may_be_missing; /* decide even if there is no run (a start); else ERR_ENTITY_NOT_EXISTS */
    /* What the run that a start begins belongs to; NULL: to nothing but its domain. */
    const API(ActiveClusterSelectionPolicy) *policy;
    bool ignores_activity; /* decide even where the domain is not active (none yet do) */
    uint64_t range_id; /* only if the shard still has this one (a task's); 0: any, take it if not
                          owned. Else ERR_SHARD_OWNERSHIP_LOST */
    struct error *(*decide)(void *context, struct step *step);
    void *context;
};
/* Locks, decides, adopts, submits, unlocks; waits until durable. Yields. Errors: what decide
 * refused with; ERR_DOMAIN_NOT_ACTIVE; ERR_SERVICE_BUSY (no room, nothing was done);
 * ERR_SHARD_OWNERSHIP_LOST, ERR_UNAVAILABLE (try again; it may have been done); ERR_DEADLINE,
 * ERR_CANCELLED. */
must_use struct error *shard_step(struct shard *shard, const struct shard_step *step,
                                  struct arena *arena);

/* Calls `look` with the run under the lock; it copies what it needs, without a yield. Then waits
 * until all that it saw is durable. Errors: as above, ERR_ENTITY_NOT_EXISTS. */
must_use struct error *shard_look(struct shard *shard, const struct run_key *key,
                                  void (*look)(void *context, const struct run *run,
                                               const STORED(CurrentRecord) *current),
                                  void *context, struct arena *arena);

/* --- the outbox --------------------------------------------------------------------------------
 */

/* A task that was offered needs its row no more: stored by the list, or void. On the shard's loop;
 * rows of another range id are ignored. */
void shard_task_done(struct shard *shard, uint64_t range_id, uint64_t row);

/* --- waiting for news of a run
 * -------------------------------------------------------------------- */

/* A record of who waits for the next durable events of a run. On the shard's loop. `fire` is called
 * once, without a yield: there are events from `next_event_id` on, or the run is closed, or the
 * shard was lost (is_lost); or, rarely, the run is known no more: so look again. Then it is in no
 * list any more. */
struct run_watch {
    struct list node; /* list_init before first use */
    int64_t next_event_id;
    void (*fire)(struct run_watch *watch, bool is_lost);
    struct watched *watched; /* the shard's; NULL before first use */
};
/* Fires at once (before it returns) if there is something already. `key->run_id` must be set. The
 * shard must be owned; else fires with is_lost. */
void shard_watch(struct shard *shard, const struct run_key *key, struct run_watch *watch);
/* Harmless when it has fired. */
void shard_unwatch(struct shard *shard, struct run_watch *watch);

#endif
