/* failover_state.h - what a shard does when a domain moves, as a tenure has it, and what other
 * rooms ask of failover/, which stands above shard/ and does the work: runs go on under another
 * failover version, one of them or all of a domain; markers say that a source has written all it
 * will. */
#ifndef CADENZA_ENGINE_SHARD_FAILOVER_STATE_H
#define CADENZA_ENGINE_SHARD_FAILOVER_STATE_H

#include "base/list.h"
#include "engine/shard/shard.h"

struct loaded_run;
struct tenure;
struct workflow;

/* --- take_over.c ---- */

/* Was the run last written by an earlier version than that of the context, and is there something
 * to take over before it goes on here? Not if it never left: the version of an active-active domain
 * rises with each of its attributes that moves. */
bool tenure_must_take_over(const struct tenure *tenure, const struct run *run,
                           const struct run_context *context);
/* Does it, as a commit of its own. has_changes: a decision is due in any case. There is room. No
 * yield. */
ticket_t tenure_take_over(struct tenure *tenure, struct workflow *workflow,
                          struct loaded_run *loaded, const struct run_context *context,
                          bool has_changes, struct arena *arena);

/* What was taken while a decision was started is in the history, with the version of its last
 * event, or with a later one of this cluster: the decision fails (E-009). A commit of its own;
 * there is room. No yield. */
ticket_t tenure_write_buffered(struct tenure *tenure, struct workflow *workflow,
                               struct loaded_run *loaded, int64_t version,
                               const struct run_context *context, struct arena *arena);

/* --- handover.c ---- */

/* If the domain has moved since that notification version: a fiber goes through its open runs. No
 * yield. */
void handover_begin(struct tenure *tenure, const struct domain *domain, uint64_t version);
/* Entities have changed: the same for the runs of all domains that have some, in one walk, however
 * many change meanwhile. */
void handover_begin_entities(struct tenure *tenure);
/* The same in any case. When all runs are handed over, markers of the domain that were due before
 * are put. */
void handover_start(struct tenure *tenure, const char *domain_id);

/* --- markers of failovers (markers.c) ---- */

struct markers {
    struct list due; /* struct marker; the shard record has the same */
    uint64_t newest; /* order */
};

void markers_init(struct tenure *tenure);
void markers_free(struct tenure *tenure);
/* What the shard record says; and the other way. */
void markers_begin(struct tenure *tenure, const STORED(ShardRecord) *record);
void markers_note(const struct tenure *tenure, STORED(ShardRecord) *record, struct arena *arena);
/* A change of a domain is being handled: markers that it makes due, if it moved since that
 * notification version, are part of the record from now on. */
void markers_on_change(struct tenure *tenure, const struct domain *domain, uint64_t before);
/* Is one of the domain due? */
bool markers_has(const struct tenure *tenure, const char *domain_id);
/* Puts those that are due up to `order`, behind all that was submitted, and they are due no
 * more. There is room. No yield. */
void markers_put(struct tenure *tenure, const char *domain_id, uint64_t order, struct arena *arena);
/* The shard was taken: what the last owner left is gone on with. */
void markers_resume(struct tenure *tenure);
/* Those that a cluster waits for are put once more: it reads the runs, since its rows were dropped.
 * No yield. Errors: as of a step, nothing was done. */
must_use struct error *markers_repeat(struct tenure *tenure, const struct cluster *target,
                                      struct arena *arena);

#endif
