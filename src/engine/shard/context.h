/* context.h - what a step may look at, and whether its run is active here (context.c). */
#ifndef CADENZA_ENGINE_SHARD_CONTEXT_H
#define CADENZA_ENGINE_SHARD_CONTEXT_H

#include "engine/shard/shard.h"

struct tenure;

/* Was a step refused because its run is not active here, or belongs to nothing that the domain has
 * (any more)? A change of the domain may end it. */
bool is_inactive_error(const struct error *err);

struct step_context {
    struct run_context of_run;   /* of the run of the request, if there is one */
    struct run_context of_begun; /* of a run that begins */
};
/* What the runs of a step may look at, of this moment. Errors: ERR_DOMAIN_NOT_ACTIVE,
 * ERR_ENTITY_NOT_EXISTS (no such domain), ERR_BAD_REQUEST (no such cluster attribute). */
must_use struct error *tenure_make_context(struct tenure *tenure, const struct shard_step *wanted,
                                           const struct run *run, struct arena *arena,
                                           struct step_context *context);

/* May this version change what that one wrote (E-002)? Error: ERR_DOMAIN_NOT_ACTIVE, naming the
 * cluster that did. */
must_use struct error *tenure_check_newest(const struct tenure *tenure, int64_t last_version,
                                           const struct run_context *context, struct arena *arena);

/* What applying old events may look at. Error: ERR_ENTITY_NOT_EXISTS (no such domain). */
must_use struct error *tenure_read_context(struct tenure *tenure, const char *domain_id,
                                           struct arena *arena, struct run_context *context);

#endif
