/* parked.c - calls that wait as records. See inside.h.
 *
 * Each loop has a list of the calls that wait on it. Draining walks the lists and hurries every
 * call; api_free waits until the lists are empty, so that nothing refers to the api any more. */
#include "api/inside.h"
#include "base/check.h"
#include "base/memory.h"
#include "base/quota.h"
#include "fiber/loop.h"
#include "matching/matching.h"

struct api_loop *
api_here(struct api *api)
{
    unsigned index = route_place_here();
    check(index < api->loop_count);
    return &api->loops[index];
}

static void
caller_gone(void *context)
{
    struct parked *parked = context;
    check(parked->call != NULL);
    parked->call = NULL;
    parked->hurry(parked);
}

void
parked_begin(struct parked *parked, struct rpc_call *call)
{
    check(parked->arena != call->arena && parked->hurry != NULL);
    check(parked->api == api_of(call) && parked->call == NULL);
    check(!fiber_is_cancelled()); /* else the caller has gone, unnoticed */
    parked->call = call;
    parked->deadline = call->arrival.deadline;
    list_push_back(&api_here(parked->api)->parked, &parked->node);
    latch_add(&api_here(parked->api)->open, 1);
    rpc_park(call, caller_gone, parked);
}

void
parked_answer(struct parked *parked, struct error *err)
{
    struct rpc_call *call = parked->call;
    parked->call = NULL;
    if (call != NULL)
        rpc_end(call, err);
}

void
parked_end(struct parked *parked)
{
    struct api_loop *loop = api_here(parked->api);
    check(parked->call == NULL && !list_is_empty(&parked->node));
    list_remove(&parked->node);
    latch_done(&loop->open);
    arena_free(parked->arena);
}

/* Every record of this loop's list belongs to this api, and its call to the record. */
static void
api_loop_check(const struct api *api, const struct api_loop *loop)
{
    check((map_count(loop->queriers) == 0) == (loop->query_bytes == 0));
    if (!CHECK_DEEPLY)
        return;
    list_each(node, &loop->parked) {
        const struct parked *parked = list_entry(node, struct parked, node);
        check(parked->api == api && parked->hurry != NULL);
        check(parked->call == NULL || parked->call->is_parked);
    }
}

/* --- the api's own life --------------------------------------------------------------------------
 */

struct api *
api_new(const struct api_options *options)
{
    struct api *api = memory_zalloc(1, sizeof *api);
    api->options = *options;
    api->service.context = api;
    api->loop_count = route_place_count();
    api->quotas = quotas_new();
    forward_init(api);
    api->loops = memory_zalloc(api->loop_count, sizeof *api->loops);
    for (unsigned i = 0; i < api->loop_count; i++) {
        list_init(&api->loops[i].parked);
        latch_init(&api->loops[i].open, 0);
        api->loops[i].queriers = map_new();
    }
    return api;
}

void
api_set_access(struct api *api, struct access *access)
{
    api->options.access = access;
}

void
api_set_audit(struct api *api, struct audit *audit)
{
    api->options.audit = audit;
}

/* Hurrying one may end it, and no other. */
static void
hurry_all(void *argument)
{
    struct api *api = argument;
    api_loop_check(api, api_here(api));
    list_each_safe(node, &api_here(api)->parked) {
        struct parked *parked = list_entry(node, struct parked, node);
        parked->hurry(parked);
    }
    hold_hurry_here(api);
}

void
api_drain(struct api *api)
{
    atomic_store(&api->is_draining, true);
    if (api->options.matching != NULL)
        matching_shut_down(api->options.matching);
    loop_call_every(hurry_all, api);
}

static void
wait_for_all(void *argument)
{
    struct api *api = argument;
    struct api_loop *loop = api_here(api);
    latch_wait(&loop->open);
    api_loop_check(api, loop);
    check(list_is_empty(&loop->parked) && map_count(loop->queriers) == 0);
    hold_close_here(api);
    forward_close_here(api);
}

void
api_free(struct api *api)
{
    loop_call_every(wait_for_all, api);
    for (size_t i = 0; i < HOLD_BUCKETS; i++)
        check(atomic_load(&api->held[i]) == 0);
    for (unsigned i = 0; i < api->loop_count; i++)
        map_free(api->loops[i].queriers);
    quota_free(api);
    forward_free(api);
    memory_free(api->loops);
    memory_free(api);
}
