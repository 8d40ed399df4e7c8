/* route.c - see route.h. */
#include "route/route.h"

#include "base/check.h"

unsigned
route_loop_of_shard(uint32_t shard)
{
    return shard % loop_count();
}

static struct loop *
shard_loop(uint32_t shard)
{
    return loop_at(route_loop_of_shard(shard));
}

struct error *
route_to_shard(uint32_t shard, void (*function)(void *argument), void *argument,
               struct arena *arena)
{
    return loop_call(shard_loop(shard), function, argument, arena);
}

bool
route_post_to_shard(uint32_t shard, struct loop_message *message)
{
    return loop_post(shard_loop(shard), message);
}

void
route_answer_to_shard(uint32_t shard, struct loop_message *message)
{
    loop_post_answer(shard_loop(shard), message);
}
