/* parked.c - calls that wait as records. See inside.h.
 *
 * Each loop has a list of those that wait on it. Draining walks the lists and hurries everybody;
 * api_free waits until they are empty, so that nobody holds the api any more. */
#include "api/hold.h"
#include "base/check.h"
#include "base/memory.h"
#include "matching/matching.h"

struct api_loop *
api_here(struct api *api)
{
    unsigned index = loop_index(loop_self());
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
    check(parked->api == api_of(call));
    parked->call = call;
    parked->deadline = grpc_call_deadline(call->grpc);
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
    check(parked->call == NULL);
    list_remove(&parked->node);
    latch_done(&loop->open);
    arena_free(parked->arena);
}

/* --- the api's own life --------------------------------------------------------------------------
 */

/* Runs function(api) on every loop, one after the other. */
static void
on_each_loop(struct api *api, void (*function)(void *api))
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (unsigned i = 0; i < api->loop_count; i++) {
        struct error *err = loop_call(loop_at(i), function, api, arena);
        while (err != NULL) { /* its mailbox is full: it has to empty it, and will */
            fiber_yield();
            err = loop_call(loop_at(i), function, api, arena);
        }
    }
}

struct api *
api_new(const struct api_options *options)
{
    struct api *api = memory_zalloc(1, sizeof *api);
    api->options = *options;
    api->loop_count = loop_count();
    quota_init(api);
    forward_init(api);
    api->loops = memory_zalloc(api->loop_count, sizeof *api->loops);
    for (unsigned i = 0; i < api->loop_count; i++) {
        list_init(&api->loops[i].parked);
        latch_init(&api->loops[i].open, 0);
        api->loops[i].askers = map_new();
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

/* Hurrying one may end it, and nobody else. */
static void
hurry_all(void *argument)
{
    struct api *api = argument;
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
        matching_drain(api->options.matching);
    on_each_loop(api, hurry_all);
}

static void
wait_for_all(void *argument)
{
    struct api *api = argument;
    latch_wait(&api_here(api)->open);
    hold_close_here(api);
    forward_close_here(api);
}

void
api_free(struct api *api)
{
    on_each_loop(api, wait_for_all);
    for (unsigned i = 0; i < api->loop_count; i++)
        map_free(api->loops[i].askers);
    quota_free(api);
    forward_free(api);
    memory_free(api->loops);
    memory_free(api);
}
