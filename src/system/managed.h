/* managed.h - managed failover: domains that let the operators of the clusters decide where they
 * are active (IsManagedByCadence in their data) are moved in batches.
 *
 * Four workflow types, as Cadence's tools start them, and one story: an activity picks the domains
 * and says where each goes, then batch after batch is moved by another one, with a wait between
 * two. A failover moves domains out of some clusters into another one; a rebalance moves each
 * domain to the cluster that its data prefer. A drill moves them back after a while. `pause` holds
 * it before the next batch, `resume` continues it, the query `state` says how far it is. */
#ifndef CADENZA_SYSTEM_MANAGED_H
#define CADENZA_SYSTEM_MANAGED_H

#include "base/buffer.h"
#include "system/worker.h"
#include "uber/cadence/api/v1/domain.pb-c.h"

#define MANAGED_LIST         "cadence-sys-failoverManager-tasklist"
#define MANAGED_FAILOVER     "cadence-sys-failoverManager-workflow"
#define MANAGED_FAILOVER_V2  "cadence-sys-failover-v2-workflow"
#define MANAGED_REBALANCE    "cadence-sys-rebalance-workflow"
#define MANAGED_REBALANCE_V2 "cadence-sys-rebalance-v2-workflow"
#define MANAGED_PICK         "cadence-sys-getDomains-activity"
#define MANAGED_MOVE         "cadence-sys-failover-activity"

#define MANAGED_QUERY  "state"
#define MANAGED_PAUSE  "pause"
#define MANAGED_RESUME "resume"

/* Reason of failures that are not tried again, as Cadence's workers call errors without a name. */
#define MANAGED_ERROR "cadenceInternal:Generic"

enum managed_kind { KIND_FAILOVER, KIND_FAILOVER_V2, KIND_REBALANCE, KIND_REBALANCE_V2 };
/* Of a workflow type; false: it is none of them. */
bool managed_kind_find(const char *type, enum managed_kind *kind);

/* --- the input of a run (managed_params.c) ---- */

/* A cluster attribute; or where it is to be active, and where it was. */
struct managed_attribute {
    const char *scope, *name, *target, *previous;
};

struct managed_params {
    const char *target;
    const char **sources;
    size_t source_count;
    const char **domains; /* none: all */
    size_t domain_count;
    struct managed_attribute *attributes; /* that move, too */
    size_t attribute_count;
    int64_t batch_size, wait; /* domains; seconds between two batches */
    int64_t drill_wait;       /* seconds before they go back; 0: no drill */
    int64_t timeout;          /* of a graceful failover, seconds; 0: it is forced */
};
/* Error: why a run with this input fails. */
must_use struct error *managed_read_params(struct slice input, enum managed_kind kind,
                                           struct arena *arena, struct managed_params *params);

/* --- what is to be moved, from one activity to the other (managed_params.c) ---- */

struct managed_move {
    const char *domain;
    const char *target, *previous; /* of the domain itself; "": it stays */
    struct managed_attribute *attributes;
    size_t attribute_count;
    int64_t timeout; /* as above */
};
struct managed_moves {
    struct managed_move *all;
    size_t count;
};
struct slice managed_write_moves(const struct managed_moves *moves, struct arena *arena);
/* False: the bytes are not that. */
must_use bool managed_read_moves(struct slice bytes, struct arena *arena,
                                 struct managed_moves *moves);
/* Preferences of a domain's data: a list of attributes and where each is to be. False: none. */
must_use bool managed_read_preferences(const char *text, struct arena *arena,
                                       struct managed_attribute **all, size_t *count);
/* The way back. */
struct managed_move managed_reverse(const struct managed_move *move, struct arena *arena);

/* --- the outcome (managed_outcome.c) ---- */

struct managed_outcome {
    const char *domain;
    const char *error; /* NULL: it has moved */
};
struct managed_outcomes {
    struct managed_outcome *all;
    size_t count, capacity;
};
void managed_add_outcome(struct managed_outcomes *outcomes, const char *domain, const char *error,
                         struct arena *arena);
/* Adds the outcomes in the bytes; false: the bytes are not that. */
must_use bool managed_add_outcomes(struct managed_outcomes *outcomes, struct slice bytes,
                                   struct arena *arena);
/* In the format of the activity and the newer workflows, and in that of the older ones: names
 * only. */
void managed_append_outcomes(struct buffer *out, const struct managed_outcomes *outcomes);
void managed_append_names(struct buffer *out, const char *member,
                          const struct managed_outcomes *outcomes, bool has_failed);
size_t managed_count(const struct managed_outcomes *outcomes, bool has_failed);
/* Where the moved domains were before. */
void managed_append_snapshots(struct buffer *out, const struct managed_moves *moves);
/* Moves the bytes of the buffer into the arena. */
struct slice managed_take(struct buffer *out, struct arena *arena);

/* --- which domains (managed_pick.c) ---- */

/* Is the domain to be moved, and where to? Pure: a dry run asks the same. */
bool managed_pick(enum managed_kind kind, const struct managed_params *params,
                  const API(Domain) *domain, struct arena *arena, struct managed_move *move);

/* --- workers in the other cluster (managed_pollers.c) ---- */

/* Is every list of the domain that is polled here polled in the other cluster, too? Error: what
 * keeps the domain from going there. Yields. */
must_use struct error *managed_check_pollers(const struct system_task *task, const char *domain,
                                             const char *target);

#endif
