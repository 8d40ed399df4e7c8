/* step.h - what a step reads, and steps that the shard makes by itself. */
#ifndef CADENZA_ENGINE_SHARD_STEP_H
#define CADENZA_ENGINE_SHARD_STEP_H

#include "engine/shard/shard.h"

struct tenure;
struct workflow;

/* --- reader.c ---- */

struct shard_reader {
    struct tenure *tenure;
    struct workflow *workflow; /* locked */
    struct arena *arena;       /* of the call */
};
/* Adds batches of a branch, numbered by this owner. */
void tenure_add_nodes(struct tenure *tenure, const struct history_branch *branch,
                      const struct history_node *nodes, size_t count, struct batch *batch);

/* --- step.c ---- */

/* Runs what is due of a run whose wake-up timer fires, and sets the next wake-up timer. *is_stale:
 * the run has another wake-up timer, or none, or is gone. Yields. Errors: as shard_step. */
must_use struct error *tenure_wake(struct tenure *tenure, const struct run_key *key, uint64_t row,
                                   struct arena *arena, bool *is_stale);

/* --- reset.c ---- */

/* Resets the run of a bad binary, if it is still the current one. Yields. Errors: as shard_reset.
 */
must_use struct error *tenure_auto_reset(struct tenure *tenure, const struct run_key *key,
                                         const struct auto_reset *reset, struct arena *arena);

#endif
