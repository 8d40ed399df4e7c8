/* idle.c - what all shards wait for, and that the clock jumped. See engine.h. */
#include "base/check.h"
#include "engine/engine.h"
#include "engine/inside.h"
#include "route/owner.h"

void
engine_look_idle(struct engine *engine, struct shard_idle *idle, struct arena *arena)
{
    check_that(route_place_count() == 1, "time is skipped by a process of one loop");
    *idle = (struct shard_idle){.next = INT64_MAX};
    for (uint32_t i = 0; i < engine->options.shard_count && !idle->is_busy; i++)
        shard_look_idle(engine->shards[i], idle, arena);
}

void
engine_clock_jumped(struct engine *engine)
{
    check(route_place_count() == 1);
    for (uint32_t i = 0; i < engine->options.shard_count; i++)
        shard_clock_jumped(engine->shards[i]);
}
