/* route.c - see route.h. */
#include "route/route.h"

#include "route/inside.h"

static struct loop *
shard_loop(uint32_t shard)
{
    return route_loop_of(owner_of_shard(shard));
}

void
route_within_process(struct owner owner, void (*function)(void *argument), void *argument)
{
    loop_call_surely(route_loop_of(owner), function, argument);
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
