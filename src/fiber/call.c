/* call.c - letters, and loop_call: a function on another loop as if it were called here.
 *
 * The call is a struct on the caller's stack with every letter in it that can be under way: the
 * request, the answer, and, if the caller is cancelled meanwhile, the word of that and its receipt.
 * The caller returns only when none of them is in a mailbox any more. Who touches which field: the
 * caller's loop `caller`, `is_done` and what begins with cancel_; the other loop `callee`; a letter
 * carries the right to the rest with it.
 *
 *   caller                         callee
 *     request  ------------------>   starts a fiber
 *     cancel   ------------------>   cancels it, if it still runs
 *              <------------------   cancel_receipt
 *              <------------------   answer, when the function has returned */
#include "base/check.h"
#include "fiber/core.h"

bool
loop_post(struct loop *to, struct letter *letter)
{
    check(letter->deliver != NULL);
    return ground_post(to, letter, true);
}

void
loop_post_answer(struct loop *to, struct letter *letter)
{
    check(letter->deliver != NULL);
    bool is_posted = ground_post(to, letter, false);
    check(is_posted);
}

void
loop_post_answers(struct loop *to, struct list *letters)
{
    list_each(node, letters)
        check(list_entry(node, struct letter, node)->deliver != NULL);
    ground_post_all(to, letters);
    check(list_is_empty(letters));
}

struct call {
    struct letter request, answer, cancel, cancel_receipt;
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
    struct call *call = argument;
    fiber_set_deadline(call->deadline);
    call->function(call->argument);
    call->callee = NULL;
    loop_post_answer(call->from, &call->answer);
}

static void
call_deliver_request(struct letter *letter)
{
    struct call *call = container_of(letter, struct call, request);
    call->callee = fiber_start("call", call_run, call);
    if (call->is_cancelled)
        fiber_cancel(call->callee);
}

static void
call_deliver_cancel(struct letter *letter)
{
    struct call *call = container_of(letter, struct call, cancel);
    if (call->callee != NULL)
        fiber_cancel(call->callee);
    loop_post_answer(call->from, &call->cancel_receipt);
}

/* ---- on the caller's loop ---- */

static void
call_deliver_answer(struct letter *letter)
{
    struct call *call = container_of(letter, struct call, answer);
    call->is_done = true;
    fiber_wake(call->caller);
}

static void
call_deliver_receipt(struct letter *letter)
{
    struct call *call = container_of(letter, struct call, cancel_receipt);
    call->is_cancel_received = true;
    fiber_wake(call->caller);
}

/* The deadline is not looked at here: the callee has the same one and its end is what we wait for.
 */
static void
call_wait(struct call *call)
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

struct error *
loop_call(struct loop *to, void (*function)(void *argument), void *argument, struct arena *arena)
{
    struct loop *from = loop_self();
    if (to == from) {
        function(argument);
        return NULL;
    }
    struct call call = {.request.deliver = call_deliver_request,
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
        return error_new(arena, ERR_BUSY, "the mailbox of loop %u is full", to->index);
    call_wait(&call);
    return NULL;
}
