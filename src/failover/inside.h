/* inside.h - the coordinator of graceful failovers from inside. Only files of failover/ include it.
 *
 * coordinator.c follows the domains and decides when a drain is over; ready.c is told which shards
 * are ready, progress.c says how far a drain is; rows.c knows the rows, left.c those of drains that
 * something else ended. All where the domains live, but for what asks. */
#ifndef CADENZA_FAILOVER_INSIDE_H
#define CADENZA_FAILOVER_INSIDE_H

#include "base/list.h"
#include "domain/drain_end.h"
#include "failover/drains.h"
#include "fiber/sync.h"
#include "route/ask.h"

/* What is known of one shard. */
struct drain_shard {
    bool is_ready;
    const char *blocked; /* which dead letter, in the arena of the drain; NULL: none */
};

/* A cluster that the drain waits for. */
struct drain_source {
    const char *cluster_name;
    struct drain_shard *shards; /* shard_count of them; NULL: no marker came yet */
    uint32_t shard_count;
    uint32_t ready_count;
};

/* One drain: what moves (the domain, or an attribute of it) and its new failover version. */
struct pending {
    struct list node;    /* empty: it has ended */
    unsigned references; /* fibers that use it across a yield, and the list */
    struct arena *arena; /* holds all of it */
    const char *domain_id, *domain_name;
    const STORED(Drain) *drain;   /* as the record has it */
    struct slice key;             /* what the keys of its rows begin with */
    struct drain_source *sources; /* the record's `waits_for`, in its order */
    size_t source_count;
    int64_t marker_time;  /* of the earliest marker, by the source's clock; 0: none came */
    bool is_read;         /* its rows were */
    uint64_t round;       /* in which the fiber handled it last */
    bool is_over;         /* the record no longer has it: something else ended it */
    STORED(DrainEnd) end; /* how, if a row says so; 0: none was read */
    int64_t end_time;
};

struct drains {
    struct drains_options options;
    struct route_service service;
    struct list pending; /* struct pending */
    struct domain_listener listener;
    struct fiber_cond changed; /* for the fiber */
    struct fiber *fiber;
    struct latch fibers; /* that one */
    bool is_closing;
    bool is_woken; /* something changed since the fiber last looked */
    uint64_t round;
    bool is_swept; /* rows that are no longer needed have been deleted */
    struct {
        struct counter *completed, *failures, *ignored, *inserted;
        struct histogram *latency;
        struct gauge *markers;
    } metrics; /* each NULL: nothing is counted */
};

/* What moves: without a scope, the domain itself. */
static inline struct cluster_attribute
drain_attribute(const char *scope, const char *name)
{
    bool has_scope = scope[0] != '\0';
    return (struct cluster_attribute){has_scope ? scope : NULL, has_scope ? name : NULL};
}

/* NULL: it does not drain to here, with that version. */
struct pending *drains_find(struct drains *drains, const char *domain_id, const char *scope,
                            const char *name, int64_t failover_version);
/* Makes the fiber handle all of them. */
void drains_wake(struct drains *drains);
/* Aborts unless the invariants of all of them hold; walks over them only where CHECK_DEEPLY says
 * so. */
void drains_check(const struct drains *drains);

/* --- pending.c ---------------------------------------------------------------------------------
 */

/* One reference, for the list. */
struct pending *pending_new(const char *domain_id, const char *domain_name,
                            const STORED(Drain) *drain);
struct pending *pending_take(struct pending *pending);
void pending_drop(struct pending *pending);
/* Aborts unless the invariants hold; looks at every shard only where CHECK_DEEPLY says so. */
void pending_check(const struct pending *pending);
/* NULL: the drain does not wait for that cluster. */
struct drain_source *pending_source(const struct pending *pending, const char *cluster_name);
/* Shards of all that it waits for, as far as they are known; and those of them that are ready. */
uint32_t pending_shards(const struct pending *pending);
uint32_t pending_ready_shards(const struct pending *pending);
/* All shards of all of them are ready. */
bool pending_is_ready(const struct pending *pending);
/* Enters what it waits for and how far that is: `clusters` and what follows from them. */
void pending_measure(const struct pending *pending, struct arena *arena,
                     struct drain_progress *progress);
/* Enters what a row says. */
void pending_enter(struct pending *pending, struct drain_source *source, uint32_t shard,
                   const STORED(DrainShardRecord) *record);
/* What it lacks, for people, one line each: "east shard 3: a dead letter". */
const char **pending_list_missing(const struct pending *pending, struct arena *arena,
                                  size_t *count);

/* --- rows.c ------------------------------------------------------------------------------------
 */

#define DRAIN_SHARD_FORMAT 1
#define DRAIN_SHARDS_MAX   (1u << 20) /* more than any cluster has */

/* Puts the row of one shard. */
void batch_add_drain_shard(struct batch *batch, const struct pending *pending,
                           const struct drain_source *source, uint32_t shard,
                           const STORED(DrainShardRecord) *record);
/* Reads the rows of a drain into it. Yields. */
must_use struct error *pending_read(struct drains *drains, struct pending *pending,
                                    struct arena *arena);
/* How the drain ends, with what is ready and what is missing at this moment. */
STORED(DrainOutcome) *pending_outcome(const struct pending *pending, STORED(DrainEnd) end,
                                      struct arena *arena);

/* --- left.c ------------------------------------------------------------------------------------
 */

/* Is a row, by the rest of its key behind that of the drain, one that says how it ended? */
bool drain_left_is(struct slice rest, struct arena *arena);
/* Enters what it says. */
must_use struct error *pending_enter_left(struct pending *pending, struct slice value,
                                          struct arena *arena);
/* Deletes rows of drains that no host waits for any longer; those that ended and were not reported
 * are added to the list, as over. Yields. */
must_use struct error *drains_sweep(struct drains *drains, struct arena *arena);

#endif
