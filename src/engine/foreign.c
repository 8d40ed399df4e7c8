/* foreign.c - facts of other clusters go to the shard of their workflow id. See foreign.h. */
#include "engine/foreign.h"

#include "engine/inside.h"
#include "route/route.h"

struct foreign_call {
    struct shard *shard;
    const struct foreign_events *events;
    struct arena *arena;
    struct foreign_outcome *outcome;
    struct error *err;
};

static void
apply_on_loop(void *argument)
{
    struct foreign_call *call = argument;
    call->err = shard_apply_foreign(call->shard, call->events, call->arena, call->outcome);
}

struct error *
engine_apply_foreign(struct engine *engine, const struct foreign_events *events,
                     struct arena *arena, struct foreign_outcome *outcome)
{
    uint32_t number = engine_shard_of(engine, events->key.workflow_id);
    struct foreign_call call = {
        .shard = engine->shards[number], .events = events, .arena = arena, .outcome = outcome};
    struct error *err = route_to_shard(number, apply_on_loop, &call, arena);
    return err != NULL ? err : call.err;
}
