/* server_session.c - one HTTP/2 connection of the server: bytes in, calls out, and the clock.
 *
 * It never waits: the owner of the socket feeds it bytes (session_receive) and calls session_tick
 * when that asked for it. So a fuzzer can drive it without a socket.
 *
 * Memory is bounded by windows: the connection's window is only given back while the bytes that
 * calls hold are below the bound; a peer that goes on sending runs out of window, not we out of
 * memory. Where waiting could not help, requests are refused instead (relieve, and call_receive).
 */
#include "base/check.h"
#include "net/server_inside.h"

static void
ack_alone(struct timer *timer)
{
    http2_pipe_schedule(&container_of(timer, struct session, ack_timer)->pipe);
}

static void
submit_settings(struct session *session)
{
    const struct grpc_server_options *options = &session->owner_loop->server->options;
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options->streams_max},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_BYTES_MAX},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    nghttp2_session *http = session->pipe.session;
    int failed = nghttp2_submit_settings(http, NGHTTP2_FLAG_NONE, settings, array_length(settings));
    check_that(failed == 0, "%s", nghttp2_strerror(failed));
    failed =
        nghttp2_session_set_local_window_size(http, NGHTTP2_FLAG_NONE, 0, HTTP2_CONNECTION_WINDOW);
    check_that(failed == 0, "%s", nghttp2_strerror(failed));
}

void
session_init(struct session *session, struct server_loop *owner_loop, struct socket *socket,
             const char *peer)
{
    int64_t now = clock_monotonic();
    *session = (struct session){
        .owner_loop = owner_loop,
        .peer = peer,
        .began = now,
        .last_received = now,
        .abuse_budget = ABUSE_BUDGET_MAX,
        .abuse_budget_at = now,
    };
    for (size_t i = 0; i < CALL_STATE_COUNT; i++)
        list_init(&session->calls[i]);
    list_init(&session->runnable_node);
    timer_init(&session->ack_timer, ack_alone);
    http2_pipe_init(&session->pipe, socket, owner_loop->scratch);
    session->pipe.unsent = &session->answer_bytes;

    nghttp2_option *option = http2_options();
    nghttp2_session_callbacks *callbacks = http2_callbacks();
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_http_messaging(option, 1); /* see server_fields.c */
    session_set_callbacks(callbacks);
    int failed = nghttp2_session_server_new3(&session->pipe.session, callbacks, session, option,
                                             http2_memory());
    check_that(failed == 0, "%s", nghttp2_strerror(failed));
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    submit_settings(session);
    http2_pipe_schedule(&session->pipe);
}

/* ---- bytes ---- */

static uint32_t
code_of(ssize_t failure)
{
    return failure == NGHTTP2_ERR_FLOODED ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_INTERNAL_ERROR;
}

/* At the end of the tick. But clients in Go send a ping with each answer, to measure the way: a
 * write for each of these alone would be a third of all writes, so it waits a little for an answer
 * that takes it along. */
static void
session_schedule(struct session *session)
{
    nghttp2_session *http = session->pipe.session;
    if (nghttp2_session_want_write(http) == 0)
        return;
    if (session->ping_acks != 1 || nghttp2_session_get_outbound_queue_size(http) != 1)
        http2_pipe_schedule(&session->pipe);
    else if (!timer_is_pending(&session->ack_timer))
        timer_start(&session->ack_timer, clock_monotonic() + PING_ACK_DELAY);
}

bool
session_receive(struct session *session, struct slice bytes)
{
    nghttp2_session *http = session->pipe.session;
    session->last_received = clock_monotonic();
    count_add(session->owner_loop->server->metrics.bytes_in, bytes.length);
    ssize_t taken = nghttp2_session_mem_recv(http, bytes.data, bytes.length);
    if (taken < 0) {
        count_add(session->owner_loop->server->metrics.protocol_errors, 1);
        if (taken != NGHTTP2_ERR_BAD_CLIENT_MAGIC)
            nghttp2_session_terminate_session(http, code_of(taken));
        return false;
    }
    check((size_t)taken == bytes.length);
    session_open_window(session);
    session_schedule(session);
    return true;
}

/* Brings the metric of bytes sent up to date. */
static void
session_show_bytes(struct session *session)
{
    count_add(session->owner_loop->server->metrics.bytes_out,
              session->pipe.bytes_out - session->bytes_shown);
    session->bytes_shown = session->pipe.bytes_out;
}

size_t
session_held(const struct session *session)
{
    return session->request_bytes + session->headers.held + session->answer_bytes;
}

static bool
is_over_bound(const struct session *session)
{
    return session_held(session) > session->owner_loop->server->options.connection_bytes_max;
}

/* Over the bound and nothing under way that will change it: requests that wait for the window would
 * wait for ever. The youngest go, until the others have room. */
static void
relieve(struct session *session)
{
    struct list *receiving = &session->calls[CALL_RECEIVING];
    if (session->is_relieving)
        return;
    session->is_relieving = true;
    while (is_over_bound(session) && !list_is_empty(receiving) && session->handler_count == 0 &&
           session->answer_bytes == 0 && list_is_empty(&session->calls[CALL_READY]))
        call_refuse(list_entry(receiving->prev, struct grpc_call, node), GRPC_RESOURCE_EXHAUSTED,
                    "too many bytes are held for this connection");
    session->is_relieving = false;
}

void
session_open_window(struct session *session)
{
    if (session->is_ended)
        return;
    if (is_over_bound(session)) {
        relieve(session);
        if (is_over_bound(session))
            return;
    }
    if (session->owed == 0)
        return;
    nghttp2_session *http = session->pipe.session;
    size_t owed = session->owed;
    session->owed = 0;
    nghttp2_session_consume_connection(http, owed);
    session_schedule(session);
}

void
session_credit(struct session *session, int64_t gain)
{
    if (session->abuse_budget < ABUSE_BUDGET_MAX)
        session->abuse_budget += gain;
}

void
session_penalize(struct session *session, int64_t cost)
{
    session->abuse_budget -= cost;
    if (session->abuse_budget > 0)
        return;
    int64_t now = clock_monotonic();
    session->abuse_budget += (now - session->abuse_budget_at) / (NS_PER_S / ABUSE_BUDGET_PER_S);
    session->abuse_budget_at = now;
    if (session->abuse_budget > ABUSE_BUDGET_MAX)
        session->abuse_budget = ABUSE_BUDGET_MAX;
    if (session->abuse_budget > 0)
        return;
    count_add(session->owner_loop->server->metrics.protocol_errors, 1);
    nghttp2_session_terminate_session(session->pipe.session, NGHTTP2_ENHANCE_YOUR_CALM);
}

void
session_reject(struct session *session, int32_t stream_id)
{
    count_add(session->owner_loop->server->metrics.protocol_errors, 1);
    session_penalize(session, RESET_COST);
    nghttp2_submit_rst_stream(session->pipe.session, NGHTTP2_FLAG_NONE, stream_id,
                              NGHTTP2_PROTOCOL_ERROR);
}

bool
session_is_over(const struct session *session)
{
    return session->pipe.is_broken || (nghttp2_session_want_read(session->pipe.session) == 0 &&
                                       http2_pipe_is_drained(&session->pipe));
}

/* ---- the clock ---- */

static void
earliest(int64_t *next, int64_t due)
{
    if (due < *next)
        *next = due;
}

/* False: the preface and the first SETTINGS did not come in time. */
static bool
is_shaking_hands(const struct session *session, int64_t now, int64_t *next)
{
    int64_t timeout = session->owner_loop->server->options.request_timeout;
    if (timeout > HANDSHAKE_TIMEOUT)
        timeout = HANDSHAKE_TIMEOUT;
    earliest(next, session->began + timeout);
    return now - session->began < timeout;
}

/* Requests that take too long to arrive: they came in order, so the first is the oldest. */
static void
expire_requests(struct session *session, int64_t now, int64_t *next)
{
    int64_t timeout = session->owner_loop->server->options.request_timeout;
    struct list *receiving = &session->calls[CALL_RECEIVING];
    while (!list_is_empty(receiving)) {
        struct grpc_call *call = list_entry(receiving->next, struct grpc_call, node);
        if (now - call->began < timeout) {
            earliest(next, call->began + timeout);
            return;
        }
        call_refuse(call, GRPC_DEADLINE_EXCEEDED, "the request did not arrive in time");
    }
}

static void
send_ping(struct session *session, int64_t now)
{
    nghttp2_submit_ping(session->pipe.session, NGHTTP2_FLAG_NONE, NULL);
    session->ping_sent = now;
    http2_pipe_schedule(&session->pipe);
}

/* False: the peer has not answered a ping in time. */
static bool
keep_alive(struct session *session, int64_t now, int64_t *next)
{
    const struct grpc_server_options *options = &session->owner_loop->server->options;
    if (session->ping_sent == 0 && now - session->last_received >= options->idle_ping)
        send_ping(session, now);
    if (session->ping_sent == 0) {
        earliest(next, session->last_received + options->idle_ping);
        return true;
    }
    earliest(next, session->ping_sent + options->ping_timeout);
    return now - session->ping_sent < options->ping_timeout;
}

/* False: output waits and the peer has taken nothing for too long. */
static bool
is_moving(const struct session *session, int64_t now, int64_t *next)
{
    const struct grpc_server_options *options = &session->owner_loop->server->options;
    int64_t until;
    if (http2_pipe_is_blocked(&session->pipe))
        until = session->pipe.progress_at + options->ping_timeout;
    else if (session->answer_bytes > 0) /* its window is closed: other frames do not count */
        until = session->answer_moved_at + options->request_timeout;
    else
        return true;
    earliest(next, until);
    return now < until;
}

/* First step of a graceful end. */
static void
session_begin_goaway(struct session *session)
{
    if (session->is_goaway_sent)
        return;
    session->is_goaway_sent = true;
    session->goaway_sent_at = clock_monotonic();
    nghttp2_submit_shutdown_notice(session->pipe.session);
    send_ping(session, session->goaway_sent_at);
}

static void
send_final_goaway(struct session *session)
{
    nghttp2_session *http = session->pipe.session;
    session->is_final_goaway_sent = true;
    nghttp2_submit_goaway(http, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(http),
                          NGHTTP2_NO_ERROR, NULL, 0);
    http2_pipe_schedule(&session->pipe);
}

static void
finish_goaway(struct session *session, int64_t now, int64_t *next)
{
    if (!session->is_goaway_sent || session->is_final_goaway_sent)
        return;
    if (session->goaway_sent_at == 0 || now - session->goaway_sent_at >= NOTICE_TIMEOUT)
        send_final_goaway(session);
    else
        earliest(next, session->goaway_sent_at + NOTICE_TIMEOUT);
}

void
session_check(const struct session *session)
{
    size_t weight = 0, receiving = 0, handlers = 0, count = 0, answers = 0;
    check(session->receiving_bytes <= session->request_bytes);
    check(session->answer_count <= session->call_count);
    check(session->handler_count <= session->call_count);
    check(session->is_goaway_sent || !session->is_final_goaway_sent);
    if (!CHECK_DEEPLY)
        return;
    for (size_t state = 0; state < CALL_STATE_COUNT; state++)
        list_each(node, &session->calls[state]) {
            const struct grpc_call *call = list_entry(node, struct grpc_call, node);
            check(call->state == state && call->session == session);
            weight += call->weight;
            receiving += state == CALL_RECEIVING ? call->weight : 0;
            answers += state == CALL_ANSWERED;
            handlers += call->fiber != NULL;
            count++;
        }
    check(count == session->call_count && handlers == session->handler_count);
    check(weight == session->request_bytes && receiving == session->receiving_bytes);
    check(answers == session->answer_count);
}

bool
session_tick(struct session *session, int64_t now, int64_t *next)
{
    session_check(session);
    *next = NEVER;
    session_show_bytes(session);
    if (!session->has_settings && !is_shaking_hands(session, now, next))
        return false;
    if (session->owner_loop->is_closing) {
        session_begin_goaway(session);
        earliest(next, session->owner_loop->close_deadline);
        if (now >= session->owner_loop->close_deadline)
            return false;
    }
    finish_goaway(session, now, next);
    expire_requests(session, now, next);
    return keep_alive(session, now, next) && is_moving(session, now, next);
}

/* ---- the end ---- */

void
session_end(struct session *session)
{
    check(!session->is_ended);
    session->is_ended = true;
    for (size_t state = 0; state < CALL_GONE; state++)
        while (!list_is_empty(&session->calls[state]))
            call_close(list_entry(session->calls[state].next, struct grpc_call, node));
    list_remove(&session->runnable_node);
    timer_stop(&session->ack_timer);
    session_show_bytes(session);
    http2_pipe_close(&session->pipe);
}

void
session_free(struct session *session)
{
    check(session->is_ended && session->handler_count == 0 && session->call_count == 0);
    header_gather_free(&session->headers);
}
