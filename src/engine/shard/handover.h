/* handover.h - runs go on under another failover version: one of them, or all of a domain that
 * moved. */
#ifndef CADENZA_ENGINE_SHARD_HANDOVER_H
#define CADENZA_ENGINE_SHARD_HANDOVER_H

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
 * event: the decision fails (E-009). A commit of its own; there is room. No yield. */
ticket_t tenure_write_buffered(struct tenure *tenure, struct workflow *workflow,
                               struct loaded_run *loaded, const struct run_context *context,
                               struct arena *arena);

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

#endif
