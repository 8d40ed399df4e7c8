/* all_shards.c - what is asked of all shards: about visibility, about runs that stand still.
 * See engine.h. */
#include <stdlib.h>

#include "engine/inside.h"
#include "route/route.h"

#define ALL_SHARDS UINT64_MAX

struct shards_call {
    struct shard *shard;
    uint64_t runs;
    struct arena *arena;
    struct error *err;
};

static void
wait_on_loop(void *argument)
{
    struct shards_call *call = argument;
    call->err = shard_visibility_wait(call->shard, call->arena);
}

static void
rebuild_on_loop(void *argument)
{
    struct shards_call *call = argument;
    call->err = shard_visibility_rebuild(call->shard, call->arena, &call->runs);
}

/* One shard after the other; while one is waited for the others go on. */
static struct error *
run_on_shards(struct engine *engine, uint64_t shards, void (*visit_shard)(void *call),
              struct arena *arena, uint64_t *runs)
{
    struct error *err = NULL;
    for (uint32_t i = 0; err == NULL && i < engine->options.shard_count; i++) {
        if ((shards >> i % 64 & 1) == 0)
            continue;
        struct shards_call call = {.shard = engine->shards[i], .arena = arena};
        err = route_to_shard(i, visit_shard, &call, arena);
        err = err != NULL ? err : call.err;
        *runs += call.runs;
    }
    return err;
}

struct error *
engine_visibility_wait(struct engine *engine, struct arena *arena)
{
    return engine_visibility_wait_some(engine, ALL_SHARDS, arena);
}

struct error *
engine_visibility_wait_some(struct engine *engine, uint64_t shards, struct arena *arena)
{
    uint64_t runs = 0;
    return run_on_shards(engine, shards, wait_on_loop, arena, &runs);
}

struct error *
engine_visibility_rebuild(struct engine *engine, struct arena *arena, uint64_t *runs)
{
    *runs = 0;
    return run_on_shards(engine, ALL_SHARDS, rebuild_on_loop, arena, runs);
}

struct failing_call {
    struct shard *shard;
    struct arena *arena;
    struct failing_decision *decisions;
    size_t count;
};

static void
failing_on_loop(void *argument)
{
    struct failing_call *call = argument;
    call->count = shard_list_failing(call->shard, call->arena, &call->decisions);
}

static int
compare_attempts(const void *one, const void *other)
{
    const struct failing_decision *first = one, *second = other;
    return (first->attempt < second->attempt) - (first->attempt > second->attempt);
}

struct error *
engine_list_failing(struct engine *engine, size_t count_max, struct arena *arena,
                    struct failing_decision **decisions, size_t *count, size_t *total)
{
    vector_of(struct failing_decision) all = {0};
    for (uint32_t i = 0; i < engine->options.shard_count; i++) {
        struct failing_call call = {.shard = engine->shards[i], .arena = arena};
        struct error *err = route_to_shard(i, failing_on_loop, &call, arena);
        if (err != NULL)
            return err;
        for (size_t each = 0; each < call.count; each++)
            vector_push_in(&all, arena, call.decisions[each]);
    }
    if (all.count > 0)
        qsort(all.items, all.count, sizeof *all.items, compare_attempts);
    *decisions = all.items;
    *total = all.count;
    *count = all.count < count_max ? all.count : count_max;
    return NULL;
}
