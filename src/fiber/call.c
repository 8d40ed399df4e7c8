/* call.c - messages, and loop_call: a function on another loop as if it were called here.
 *
 * The call is a struct on the caller's stack with every message in it that can be under way: the
 * request, the answer, and, if the caller is cancelled meanwhile, the cancel message and its
 * receipt. The caller returns only when none of them is in a mailbox any more. Who touches which
 * field: the caller's loop `caller`, `is_done` and what begins with cancel_; the other loop
 * `callee`; a message carries the right to the rest with it.
 *
 *   caller                         callee
 *     request  ------------------>   starts a fiber
 *     cancel   ------------------>   cancels it, if it still runs
 *              <------------------   cancel_receipt
 *              <------------------   answer, when the function has returned */
#include "base/check.h"
#include "fiber/core.h"

bool
loop_post(struct loop *to, struct loop_message *message)
{
    check(message->deliver != NULL);
    return platform_post(to, message, true);
}

void
loop_post_answer(struct loop *to, struct loop_message *message)
{
    check(message->deliver != NULL);
    bool is_posted = platform_post(to, message, false);
    check(is_posted);
}

void
loop_post_answers(struct loop *to, struct list *messages)
{
    list_each(node, messages)
        check(list_entry(node, struct loop_message, node)->deliver != NULL);
    platform_post_all(to, messages);
    check(list_is_empty(messages));
}

enum crossing
loop_crossing_now(struct loop *self, bool may_be_lost, bool may_come_twice)
{
    return platform_crossing(self, may_be_lost, may_come_twice);
}

struct pending_call {
    struct loop_message request, answer, cancel, cancel_receipt;
    void (*function)(void *argument);
    void *argument;
    struct loop *from, *to;
    struct fiber *caller;
    int64_t deadline;
    bool is_cancelled; /* before the call began */
    bool is_done;
    bool is_cancel_sent;
    bool is_cancel_received;
    struct fiber *callee; /* while it runs */
};

/* ---- on the callee's loop ---- */

static void
call_run(void *argument)
{
    struct pending_call *call = argument;
    fiber_set_deadline(call->deadline);
    call->function(call->argument);
    call->callee = NULL;
    loop_post_answer(call->from, &call->answer);
}

static void
call_deliver_request(struct loop_message *message)
{
    struct pending_call *call = container_of(message, struct pending_call, request);
    call->callee = fiber_start("call", call_run, call);
    if (call->is_cancelled)
        fiber_cancel(call->callee);
}

static void
call_deliver_cancel(struct loop_message *message)
{
    struct pending_call *call = container_of(message, struct pending_call, cancel);
    if (call->callee != NULL)
        fiber_cancel(call->callee);
    loop_post_answer(call->from, &call->cancel_receipt);
}

/* ---- on the caller's loop ---- */

static void
call_deliver_answer(struct loop_message *message)
{
    struct pending_call *call = container_of(message, struct pending_call, answer);
    call->is_done = true;
    fiber_wake(call->caller);
}

static void
call_deliver_receipt(struct loop_message *message)
{
    struct pending_call *call = container_of(message, struct pending_call, cancel_receipt);
    call->is_cancel_received = true;
    fiber_wake(call->caller);
}

/* The deadline is not checked here: the callee has the same one, and its end is what we wait
 * for. */
static void
call_wait(struct pending_call *call)
{
    while (!call->is_done) {
        enum wake wake = fiber_wait_for(call->is_cancelled || call->is_cancel_sent);
        if (wake == WAKE_CANCELLED) {
            call->is_cancel_sent = true;
            loop_post_answer(call->to, &call->cancel);
        }
    }
    while (call->is_cancel_sent && !call->is_cancel_received)
        fiber_wait_uncancellable();
}

/* False: the mailbox is full, nothing ran. */
static bool
try_call(struct loop *to, void (*function)(void *argument), void *argument)
{
    struct loop *from = loop_self();
    if (to == from) {
        function(argument);
        return true;
    }
    struct pending_call call = {.request.deliver = call_deliver_request,
                                .answer.deliver = call_deliver_answer,
                                .cancel.deliver = call_deliver_cancel,
                                .cancel_receipt.deliver = call_deliver_receipt,
                                .function = function,
                                .argument = argument,
                                .from = from,
                                .to = to,
                                .caller = fiber_self(),
                                .deadline = fiber_deadline(),
                                .is_cancelled = fiber_is_cancelled()};
    if (!loop_post(to, &call.request))
        return false;
    call_wait(&call);
    return true;
}

struct error *
loop_call(struct loop *to, void (*function)(void *argument), void *argument, struct arena *arena)
{
    if (try_call(to, function, argument))
        return NULL;
    return error_new(arena, ERR_BUSY, "the mailbox of loop %u is full", to->head.index);
}

void
loop_call_surely(struct loop *to, void (*function)(void *argument), void *argument)
{
    while (!try_call(to, function, argument))
        fiber_yield();
}

void
loop_call_every(void (*function)(void *argument), void *argument)
{
    for (unsigned i = 0; i < loop_count(); i++)
        loop_call_surely(loop_at(i), function, argument);
}
