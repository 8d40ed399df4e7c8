/* server_call.c - the life of one call, from its headers to its last byte.
 *
 * The states and their transitions are drawn in server_inside.h. Two things hold a call: its stream
 * and its handler. It is freed by whichever lets go last: call_close for the stream, call_run for
 * the handler. Freed calls are kept with their arena for the next one, so that a small call
 * allocates nothing. */
#include "base/check.h"
#include "base/memory.h"
#include "net/server_inside.h"

static void deadline_passed(struct timer *timer);
static void call_free(struct grpc_call *call);

/* ---- sums of the session ---- */

/* What leaves or enters a state is subtracted or added (sign) from the session's sums. */
static void
account(struct grpc_call *call, int sign)
{
    struct session *session = call->session;
    if (call->state == CALL_RECEIVING)
        session->receiving_bytes += (size_t)sign * call->weight;
    if (call->state == CALL_ANSWERED) {
        if (sign > 0 && session->answer_bytes == 0)
            session->answer_moved_at = clock_monotonic();
        if (call->has_reply)
            session->answer_bytes += (size_t)sign * (GRPC_PREFIX_SIZE + call->reply.length);
        session->answer_count += (size_t)sign;
    }
    if (call->state == CALL_PARKED)
        level_add(session->owner_loop->server->metrics.parked, sign);
}

/* Does the answer still need the bytes of the request? */
static bool
is_reply_in_inbox(const struct grpc_call *call)
{
    uintptr_t reply = (uintptr_t)call->reply.data, inbox = (uintptr_t)call->inbox.bytes;
    return call->has_reply && reply >= inbox && reply - inbox < call->inbox.room;
}

/* Weighs the call again: a large request, and what its arena has taken; the reply counts elsewhere.
 */
static void
call_weigh(struct grpc_call *call)
{
    check(call->fiber == NULL); /* else the arena is the handler's */
    struct session *session = call->session;
    size_t weight = call->inbox.is_owned ? call->inbox.room : 0;
    size_t footprint = arena_footprint(call->arena);
    if (footprint > CALL_ARENA_FREE)
        weight += footprint - CALL_ARENA_FREE;
    if (call->state == CALL_ANSWERED && call->has_reply)
        weight -= call->reply.length < weight ? call->reply.length : weight;
    session->request_bytes += weight - call->weight;
    if (call->state == CALL_RECEIVING)
        session->receiving_bytes += weight - call->weight;
    call->weight = weight;
}

void
call_shed(struct grpc_call *call)
{
    struct session *session = call->session;
    if (call->fiber != NULL || (call->state != CALL_PARKED && call->state != CALL_ANSWERED))
        return;
    if (call->inbox.is_owned && !is_reply_in_inbox(call))
        inbox_clear(&call->inbox);
    if (call->state == CALL_ANSWERED && call->headers != NULL) {
        header_release(&session->headers, call->headers);
        call->headers = NULL;
    }
    call_weigh(call);
    session_open_window(session);
}

void
call_move(struct grpc_call *call, enum call_state state)
{
    struct session *session = call->session;
    account(call, -1);
    if (call->state == CALL_PARKED)
        call->on_gone = NULL; /* answered, or notified already */
    list_remove(&call->node);
    call->state = (uint8_t)state;
    list_push_back(&session->calls[state], &call->node);
    account(call, 1);
    check(session->receiving_bytes <= session->request_bytes);
    check(session->answer_count <= session->call_count);
}

/* ---- made and freed ---- */

static struct grpc_call *
call_take(struct server_loop *owner_loop)
{
    struct list *node = list_pop_front(&owner_loop->spare_calls);
    struct grpc_call *call;
    struct arena *arena;
    if (node == NULL) {
        call = memory_alloc(sizeof *call);
        arena = arena_new(CALL_ARENA_SIZE);
    } else {
        owner_loop->spare_count--;
        call = list_entry(node, struct grpc_call, node);
        arena = call->arena;
    }
    *call = (struct grpc_call){.arena = arena};
    return call;
}

static int64_t
deadline_after(const struct grpc_call *call, int64_t timeout)
{
    int64_t deadline;
    return __builtin_add_overflow(call->began, timeout, &deadline) ? NEVER - 1 : deadline;
}

/* Sets the deadline. False: the headers were sent with an invalid timeout. */
static bool
take_timeout(struct grpc_call *call, const struct header_gather *gather)
{
    int64_t timeout;
    call->deadline =
        deadline_after(call, call->session->owner_loop->server->options.default_timeout);
    if (gather->timeout_count == 0)
        return true;
    struct slice text = slice_of(gather->timeout, gather->timeout_length);
    if (gather->timeout_count > 1 || !grpc_timeout_parse(text, &timeout))
        return false;
    call->has_timeout = true;
    call->timeout_length = gather->timeout_length;
    memcpy(call->timeout, gather->timeout, gather->timeout_length);
    call->deadline = deadline_after(call, timeout);
    return true;
}

static void
admit(struct grpc_call *call, bool has_good_timeout)
{
    const struct header_verdict *verdict = &call->headers->verdict;
    if (session_held(call->session) >
        call->session->owner_loop->server->options.connection_bytes_max) {
        call_refuse(call, GRPC_RESOURCE_EXHAUSTED, "too many bytes are held for this connection");
    } else if (call->session->headers.is_too_large) {
        call_refuse(call, GRPC_RESOURCE_EXHAUSTED, "the request headers are too large");
    } else if (verdict->http_status != 200) {
        answer_http_status(call, verdict->http_status);
    } else if (verdict->status != GRPC_OK) {
        call_refuse(call, verdict->status, verdict->message);
    } else if (!has_good_timeout) {
        call_refuse(call, GRPC_INVALID_ARGUMENT, "grpc-timeout is malformed or given twice");
    } else if (call->headers->method == NULL) {
        call_refuse(call, GRPC_UNIMPLEMENTED, "unknown service or method");
    }
}

struct grpc_call *
call_new(struct session *session, int32_t stream_id, struct header_block *headers)
{
    struct grpc_call *call = call_take(session->owner_loop);
    call->session = session;
    call->headers = headers;
    call->stream_id = stream_id;
    call->began = clock_monotonic();
    call->state = CALL_RECEIVING;
    list_push_back(&session->calls[CALL_RECEIVING], &call->node);
    session->call_count++;
    bool has_good_timeout = take_timeout(call, &session->headers);
    timer_init(&call->timer, deadline_passed);
    timer_start(&call->timer, call->deadline);
    count_add(session->owner_loop->server->metrics.calls, 1);
    level_add(session->owner_loop->server->metrics.streams, 1);
    admit(call, has_good_timeout);
    return call;
}

static void
call_free(struct grpc_call *call)
{
    struct session *session = call->session;
    struct server_loop *owner_loop = session->owner_loop;
    check(call->fiber == NULL && session->call_count > 0);
    account(call, -1);
    check(session->request_bytes >= call->weight);
    session->request_bytes -= call->weight;
    timer_stop(&call->timer);
    list_remove(&call->node);
    session->call_count--;
    if (call->headers != NULL)
        header_release(&session->headers, call->headers);
    inbox_clear(&call->inbox);
    if (owner_loop->spare_count < SPARE_CALLS_MAX) {
        arena_reset(call->arena);
        list_push_front(&owner_loop->spare_calls, &call->node);
        owner_loop->spare_count++;
    } else {
        arena_free(call->arena);
        memory_free(call);
    }
    session_open_window(session);
}

/* ---- the request ---- */

/* Requests that grow side by side could fill the bound before any of them is whole, and then wait
 * for each other. So they get all but a small part of it, and who needs more is refused, unless it
 * is alone. */
static bool
is_crowded_out(const struct grpc_call *call)
{
    const struct session *session = call->session;
    const struct list *receiving = &session->calls[CALL_RECEIVING];
    size_t bound = session->owner_loop->server->options.connection_bytes_max;
    return call->weight > SMALL_REQUEST && session->receiving_bytes > bound - bound / 32 &&
           receiving->next != receiving->prev;
}

void
call_receive(struct grpc_call *call, struct slice piece)
{
    const struct grpc_server_options *options = &call->session->owner_loop->server->options;
    if (call->state != CALL_RECEIVING)
        return; /* refused already: what still comes is thrown away */
    enum inbox_verdict verdict =
        inbox_add(&call->inbox, piece, options->message_max, REQUEST_ARENA_MAX, call->arena);
    call_weigh(call);
    if (verdict != INBOX_OK)
        call_refuse(call, inbox_status(verdict), inbox_sentence(verdict));
    else if (is_crowded_out(call))
        call_refuse(call, GRPC_RESOURCE_EXHAUSTED,
                    "too many bytes of other requests are on their way on this connection");
}

/* ---- the handler ---- */

void
call_run(struct grpc_call *call)
{
    struct session *session = call->session;
    const struct grpc_service *service = &session->owner_loop->server->options.service;
    check(call->state == CALL_READY && call->fiber == NULL);
    call_move(call, CALL_RUNNING);
    call->fiber = fiber_self();
    session->handler_count++;
    level_add(session->owner_loop->server->metrics.handlers, 1);
    fiber_set_deadline(call->deadline);
    service->handle(service->context, call->headers->method, call);
    fiber_set_deadline(NEVER);
    check_that(call->state != CALL_RUNNING, "the handler of %.*s has not answered",
               SLICE_ARG(call->headers->path));
    call->fiber = NULL;
    session->handler_count--;
    level_add(session->owner_loop->server->metrics.handlers, -1);
    /* Gone before it was parked: its keeper has not heard of it yet. */
    if (call->is_parked && call->state != CALL_PARKED && call->on_gone != NULL)
        call->on_gone(call->gone_context);
    if (call->state == CALL_GONE)
        call_free(call);
    else
        call_shed(call);
    runner_wanted(session);
    if (session->is_ended && session->handler_count == 0 && session->pipe.fiber != NULL)
        fiber_wake(session->pipe.fiber);
}

/* Is the body as long as the headers said? */
static bool
has_said_length(const struct grpc_call *call)
{
    int64_t said = call->headers->body_length;
    return said < 0 || (uint64_t)said == call->inbox.prefix_length + call->inbox.received;
}

void
call_complete(struct grpc_call *call)
{
    struct session *session = call->session;
    call->is_whole = true;
    if (call->state != CALL_RECEIVING)
        return;
    if (!has_said_length(call)) {
        session_reject(session, call->stream_id);
        return;
    }
    enum inbox_verdict verdict = inbox_end(&call->inbox);
    if (verdict != INBOX_OK) {
        call_refuse(call, inbox_status(verdict), inbox_sentence(verdict));
        return;
    }
    session_credit(session, ABUSE_BUDGET_PER_CALL);
    call_move(call, CALL_READY);
    runner_wanted(session);
}

/* ---- the end ---- */

/* Notifies the keeper of a parked call that it is gone. */
static void
call_let_go(struct grpc_call *call)
{
    void (*on_gone)(void *) = call->on_gone;
    check(call->state == CALL_PARKED);
    call->on_gone = NULL; /* once */
    if (on_gone != NULL)
        on_gone(call->gone_context);
}

void
call_refuse(struct grpc_call *call, enum grpc_status status, const char *message)
{
    answer_status(call, (int)status, message, NULL, (struct slice){0});
}

static void
deadline_passed(struct timer *timer)
{
    struct grpc_call *call = container_of(timer, struct grpc_call, timer);
    if (call->state == CALL_GONE)
        return;
    if (call->state == CALL_ANSWERED) { /* the client does not take its answer */
        nghttp2_submit_rst_stream(call->session->pipe.session, NGHTTP2_FLAG_NONE, call->stream_id,
                                  NGHTTP2_CANCEL);
        http2_pipe_schedule(&call->session->pipe);
        return;
    }
    call->is_expired = true;
    if (call->state == CALL_PARKED)
        call_let_go(call);
    call_refuse(call, GRPC_DEADLINE_EXCEEDED, "the deadline of the call has passed");
    if (call->fiber != NULL)
        fiber_cancel(call->fiber);
}

void
call_close(struct grpc_call *call)
{
    check(!call->is_closed && call->state != CALL_GONE);
    call->is_closed = true;
    level_add(call->session->owner_loop->server->metrics.streams, -1);
    if (call->state == CALL_PARKED)
        call_let_go(call);
    if (call->fiber == NULL) {
        call_free(call);
        return;
    }
    call_move(call, CALL_GONE);
    fiber_cancel(call->fiber);
}
