/* server_runner.c - fibers that run handlers: as few as needed, and no more than the bound.
 *
 * A fiber per call would need a stack per call for a burst of polls that all park at once. Instead
 * a runner takes one call after another as long as handlers return without waiting. Before it
 * enters a handler it makes sure that another runner is due if more calls are ready: should the
 * handler wait, that one goes on. So a burst of calls that do not wait costs two fibers, and calls
 * that wait have a fiber each.
 *
 * Connections with ready calls are served in turn, one call each: a busy one does not hold up the
 * others. A fiber that was cancelled stays so, therefore its runner ends with its call. */
#include "base/check.h"
#include "net/server_inside.h"

#define CALLS_PER_TURN 128 /* then sockets get their turn */

static void runner_start(struct server_loop *owner_loop);

static void
session_feed(struct session *session)
{
    bool is_hungry = !list_is_empty(&session->calls[CALL_READY]) && !session->is_ended &&
                     session->handler_count < HANDLERS_MAX;
    if (is_hungry && list_is_empty(&session->runnable_node))
        list_push_back(&session->owner_loop->runnable, &session->runnable_node);
}

/* The next call to run; its session goes to the end of the queue. NULL: none. */
static struct grpc_call *
next_call(struct server_loop *owner_loop)
{
    for (struct list *node; (node = list_pop_front(&owner_loop->runnable)) != NULL;) {
        struct session *session = list_entry(node, struct session, runnable_node);
        struct list *ready = &session->calls[CALL_READY];
        if (!list_is_empty(ready) && session->handler_count < HANDLERS_MAX)
            return list_entry(ready->next, struct grpc_call, node);
    }
    return NULL;
}

static void
runner_run(void *argument)
{
    struct server_loop *owner_loop = argument;
    check(owner_loop->is_runner_due && owner_loop->runners <= owner_loop->runners_max);
    owner_loop->is_runner_due = false;
    unsigned turn = 0;
    for (struct grpc_call *call; (call = next_call(owner_loop)) != NULL;) {
        struct session *session = call->session;
        bool has_more = session->calls[CALL_READY].next != session->calls[CALL_READY].prev;
        if (has_more)
            list_push_back(&owner_loop->runnable, &session->runnable_node);
        if (!list_is_empty(&owner_loop->runnable))
            runner_start(owner_loop);
        call_run(call);
        if (fiber_is_cancelled())
            break;
        if (++turn % CALLS_PER_TURN == 0)
            fiber_yield();
    }
    check(owner_loop->runners > 0);
    owner_loop->runners--;
    if (!list_is_empty(&owner_loop->runnable))
        runner_start(owner_loop);
    latch_done(&owner_loop->open);
}

static void
runner_start(struct server_loop *owner_loop)
{
    if (owner_loop->is_runner_due || owner_loop->runners >= owner_loop->runners_max)
        return;
    owner_loop->is_runner_due = true;
    owner_loop->runners++;
    latch_add(&owner_loop->open, 1);
    fiber_start("call", runner_run, owner_loop);
}

void
runner_wanted(struct session *session)
{
    session_feed(session);
    if (!list_is_empty(&session->owner_loop->runnable))
        runner_start(session->owner_loop);
}
