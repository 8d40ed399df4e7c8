/* step_batch.h - all that a step means, as one batch (step_batch.c). No yields. */
#ifndef CADENZA_ENGINE_SHARD_STEP_BATCH_H
#define CADENZA_ENGINE_SHARD_STEP_BATCH_H

#include "engine/shard/workflows.h"

struct tenure;

struct step_batch {
    struct tenure *tenure;
    struct workflow *workflow; /* locked */
    struct arena *arena;
    struct batch *batch;
    struct step_batch_run {
        struct run *run;
        struct loaded_run *loaded; /* NULL: it begins */
        struct effects effects;
        const struct domain *domain;
    } runs[STEP_RUNS_MAX];
    size_t count;
};
void step_batch_begin(struct step_batch *step_batch, struct tenure *tenure,
                      struct workflow *workflow, struct arena *arena);
/* Finishes a mutation, of a run that begins (NULL), is loaded, or takes the place of one that is.
 */
void step_batch_add(struct step_batch *step_batch, struct mutation *mutation,
                    struct loaded_run *loaded);
/* The workflow id has this run now, as it is. */
void step_batch_put_current(struct step_batch *step_batch, const struct run *run);
ticket_t step_batch_submit(struct step_batch *step_batch);
bool workflow_has_current(const struct workflow *workflow, const struct run *run);

#endif
