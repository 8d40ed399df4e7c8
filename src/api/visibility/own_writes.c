/* own_writes.c - see own_writes.h. The memory of a connection is one bit per shard, modulo 64, and
 * the time of the newest write: noting one costs next to nothing. */
#include "api/visibility/own_writes.h"

#include "engine/engine.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"

#define OWN_WRITES_AGE_MAX                                                                         \
    (10 * NS_PER_S) /* older writes are in the lists, or these are too far behind to wait */

void
own_writes_note(struct rpc_call *call, const char *workflow_id)
{
    struct call_memory *memory = call->arrival.memory;
    uint32_t shard = engine_shard_of(api_of(call)->options.engine, workflow_id);
    memory->bits |= (uint64_t)1 << shard % 64;
    memory->time = clock_monotonic();
}

void
own_writes_wait(struct rpc_call *call, const char *domain)
{
    struct call_memory *memory = call->arrival.memory;
    int64_t now = clock_monotonic(), noted = memory->time;
    if (memory->bits == 0)
        return;
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain;
    int64_t longest =
        dynamic_duration(api_of(call)->options.dynamic, DYNAMIC_LIST_OWN_STARTS_WAIT, &filter);
    if (longest > 0 && now - noted < OWN_WRITES_AGE_MAX) {
        int64_t before = fiber_deadline(), latest = now + longest;
        fiber_set_deadline(latest < before ? latest : before);
        struct error *err =
            engine_visibility_wait_some(api_of(call)->options.engine, memory->bits, call->arena);
        fiber_set_deadline(before);
        probe(err == NULL ? "list_shows_own_start" : "list_waited_in_vain");
    }
    if (memory->time == noted) /* nothing was written meanwhile */
        memory->bits = 0;
}
