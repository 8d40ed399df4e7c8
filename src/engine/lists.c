/* lists.c - what is asked of all shards about the lists of runs. See engine.h. */
#include "engine/inside.h"
#include "route/route.h"

struct lists_call {
    struct shard *shard;
    uint64_t runs;
    struct arena *arena;
    struct error *err;
};

static void
wait_on_loop(void *argument)
{
    struct lists_call *call = argument;
    call->err = shard_visible_wait(call->shard, call->arena);
}

static void
rebuild_on_loop(void *argument)
{
    struct lists_call *call = argument;
    call->err = shard_visible_rebuild(call->shard, call->arena, &call->runs);
}

/* One shard after the other; while one is waited for the others go on. */
static struct error *
visit_all(struct engine *engine, void (*visit)(void *call), struct arena *arena, uint64_t *runs)
{
    struct error *err = NULL;
    for (uint32_t i = 0; err == NULL && i < engine->options.shard_count; i++) {
        struct lists_call call = {.shard = engine->shards[i], .arena = arena};
        err = route_to_shard(i, visit, &call, arena);
        err = err != NULL ? err : call.err;
        *runs += call.runs;
    }
    return err;
}

struct error *
engine_visible_wait(struct engine *engine, struct arena *arena)
{
    uint64_t runs = 0;
    return visit_all(engine, wait_on_loop, arena, &runs);
}

struct error *
engine_visible_rebuild(struct engine *engine, struct arena *arena, uint64_t *runs)
{
    *runs = 0;
    return visit_all(engine, rebuild_on_loop, arena, runs);
}
