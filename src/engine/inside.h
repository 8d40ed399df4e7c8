/* inside.h - what the files of engine/ itself share. */
#ifndef CADENZA_ENGINE_INSIDE_H
#define CADENZA_ENGINE_INSIDE_H

#include <stdatomic.h>

#include "engine/engine.h"

struct engine {
    struct engine_options options;
    struct shard **shards; /* each used on its loop only */
    atomic_size_t letters; /* on their way to a shard */
};

typedef void look_function(void *context, const struct run *run,
                           const STORED(CurrentRecord) *current);

/* shard_step, shard_look and shard_look_surely on the loop of the workflow id's shard. Yield. */
must_use struct error *engine_step(struct engine *engine, const struct shard_step *step,
                                   struct arena *arena);
must_use struct error *engine_look(struct engine *engine, const struct run_key *key,
                                   look_function *look, void *context, struct arena *arena);
must_use struct error *engine_look_surely(struct engine *engine, const struct run_key *key,
                                          look_function *look, void *context, struct arena *arena);

#endif
