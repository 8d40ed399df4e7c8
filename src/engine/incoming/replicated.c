/* replicated.c - what other clusters decided goes to the shard of their workflow id. See
 * replicated.h. */
#include "engine/replicated.h"

#include "engine/inside.h"
#include "route/route.h"

struct apply_call {
    struct shard *shard;
    const struct replicated_events *events;
    struct arena *arena;
    struct replicated_outcome *outcome;
    struct error *err;
};

static void
apply_on_loop(void *argument)
{
    struct apply_call *call = argument;
    call->err = shard_apply_replicated(call->shard, call->events, call->arena, call->outcome);
}

struct error *
engine_apply_replicated(struct engine *engine, const struct replicated_events *events,
                        struct arena *arena, struct replicated_outcome *outcome)
{
    uint32_t number = engine_shard_of(engine, events->key.workflow_id);
    struct apply_call call = {
        .shard = engine->shards[number], .events = events, .arena = arena, .outcome = outcome};
    struct error *err = route_to_shard(number, apply_on_loop, &call, arena);
    return err != NULL ? err : call.err;
}

struct list_runs_call {
    struct shard *shard;
    const struct cluster *cluster;
    struct slice from;
    size_t count_max;
    struct arena *arena;
    struct listed_runs *listed;
    struct error *err;
};

static void
list_on_loop(void *argument)
{
    struct list_runs_call *call = argument;
    call->err = shard_list_runs(call->shard, call->cluster, call->from, call->count_max,
                                call->arena, call->listed);
}

struct error *
engine_list_runs(struct engine *engine, uint32_t shard, const struct cluster *cluster,
                 struct slice from, size_t count_max, struct arena *arena,
                 struct listed_runs *listed)
{
    struct list_runs_call call = {.shard = engine->shards[shard],
                                  .cluster = cluster,
                                  .from = from,
                                  .count_max = count_max,
                                  .arena = arena,
                                  .listed = listed};
    struct error *err = route_to_shard(shard, list_on_loop, &call, arena);
    return err != NULL ? err : call.err;
}
