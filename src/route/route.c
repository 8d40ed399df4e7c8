/* route.c - see route.h. */
#include "route/route.h"

#include "base/check.h"
#include "base/farm.h"
#include "fiber/loop.h"

uint32_t
route_shard_of(struct slice workflow_id, uint32_t shard_count)
{
    check(shard_count > 0);
    return farm_fingerprint32(workflow_id) % shard_count;
}

struct error *
route_to_shard(uint32_t shard, void (*function)(void *argument), void *argument,
               struct arena *arena)
{
    return loop_call(loop_at(shard % loop_count()), function, argument, arena);
}

struct error *
route_to_domains(void (*function)(void *argument), void *argument, struct arena *arena)
{
    return loop_call(loop_at(0), function, argument, arena);
}
