/* server_callbacks.c - what nghttp2 reports to the server, turned into calls.
 *
 * Headers are gathered by the session until their block is whole, so a malformed block makes no
 * call. Frames that do nothing useful cost abuse budget (session_penalize): pings, settings, window
 * updates, empty DATA, young streams reset. Good requests give some back, so an honest client never
 * runs out of it. */
#include "base/check.h"
#include "net/server_inside.h"

#define TINY_DATA 64 /* DATA frames below this, in the middle of a request, count as noise */

static struct grpc_call *
call_of(nghttp2_session *session, int32_t stream_id)
{
    return nghttp2_session_get_stream_user_data(session, stream_id);
}

static int
on_begin_headers(nghttp2_session *http, const nghttp2_frame *frame, void *user_data)
{
    struct session *session = user_data;
    header_begin(&session->headers, frame->headers.cat != NGHTTP2_HCAT_REQUEST);
    return 0;
}

static int
on_header(nghttp2_session *http, const nghttp2_frame *frame, nghttp2_rcbuf *name,
          nghttp2_rcbuf *value, uint8_t flags, void *user_data)
{
    struct session *session = user_data;
    header_add(&session->headers, name, value);
    return 0;
}

static void
begin_call(struct session *session, const nghttp2_frame *frame)
{
    struct header_gather *gather = &session->headers;
    struct header_block *headers = header_end(gather, session->owner_loop->server);
    bool is_malformed = headers->verdict.is_malformed || gather->is_disordered;
    if (is_malformed && !gather->is_too_large) { /* else a part is missing, and it is refused */
        header_release(gather, headers);
        session_reject(session, frame->hd.stream_id);
        return;
    }
    struct grpc_call *call = call_new(session, frame->hd.stream_id, headers);
    int failed =
        nghttp2_session_set_stream_user_data(session->pipe.session, frame->hd.stream_id, call);
    check_that(failed == 0, "%s", nghttp2_strerror(failed));
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
        call_complete(call);
}

static void
end_request(struct session *session, const nghttp2_frame *frame)
{
    struct grpc_call *call = call_of(session->pipe.session, frame->hd.stream_id);
    if (call != NULL)
        call_complete(call);
}

/* They mean nothing to us. */
static void
take_trailers(struct session *session, const nghttp2_frame *frame)
{
    bool is_last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (is_last && header_end_trailers(&session->headers))
        end_request(session, frame);
    else
        session_reject(session, frame->hd.stream_id);
}

static void
received_ping(struct session *session, const nghttp2_frame *frame)
{
    if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) {
        session->ping_acks++;
        session_penalize(session, 1);
        return;
    }
    session->ping_sent = 0;
    if (session->is_goaway_sent)
        session->goaway_sent_at = 0; /* one round trip is over: the second GOAWAY may go */
}

static void
received_reset(struct session *session, const nghttp2_frame *frame)
{
    const struct grpc_call *call = call_of(session->pipe.session, frame->hd.stream_id);
    count_add(session->owner_loop->server->metrics.resets, 1);
    if (call == NULL || clock_monotonic() - call->began < RAPID_RESET_AGE)
        session_penalize(session, RESET_COST);
}

static int
on_frame(nghttp2_session *http, const nghttp2_frame *frame, void *user_data)
{
    struct session *session = user_data;
    bool is_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
            begin_call(session, frame);
        else
            take_trailers(session, frame);
        break;
    case NGHTTP2_DATA:
        if (is_end)
            end_request(session, frame);
        else if (frame->hd.length < TINY_DATA)
            session_penalize(session, 1);
        break;
    case NGHTTP2_SETTINGS:
        session->has_settings = true;
        session_penalize(session, 1);
        break;
    case NGHTTP2_PING:
        received_ping(session, frame);
        break;
    case NGHTTP2_RST_STREAM:
        received_reset(session, frame);
        break;
    default:
        session_penalize(session, 1);
    }
    return 0;
}

/* The stream's window is opened again at once: a message has its own limit. The connection's is
 * what bounds memory, see session_open_window. */
static int
on_data(nghttp2_session *http, uint8_t flags, int32_t stream_id, const uint8_t *bytes, size_t count,
        void *user_data)
{
    struct session *session = user_data;
    struct grpc_call *call = call_of(http, stream_id);
    session->owed += count;
    if (call != NULL) {
        call_receive(call, slice_of(bytes, count));
        nghttp2_session_consume_stream(http, stream_id, count);
    }
    return 0;
}

static int
on_stream_close(nghttp2_session *http, int32_t stream_id, uint32_t code, void *user_data)
{
    struct session *session = user_data;
    struct grpc_call *call = call_of(http, stream_id);
    if (call != NULL)
        call_close(call);
    bool may_end = session->is_goaway_sent && session->call_count == 0;
    if (may_end && session->pipe.fiber != NULL)
        fiber_wake(session->pipe.fiber);
    return 0;
}

static void
sent_ping(struct session *session, const nghttp2_frame *frame)
{
    bool is_ack = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;
    check(!is_ack || session->ping_acks > 0);
    session->ping_acks -= is_ack;
}

/* An answer went out while its request was still coming: tell the client to stop. Not earlier,
 * since nghttp2 sends nothing more on a stream once a reset is queued. */
static int
on_frame_sent(nghttp2_session *http, const nghttp2_frame *frame, void *user_data)
{
    if (frame->hd.type == NGHTTP2_PING)
        sent_ping(user_data, frame);
    if (frame->hd.type != NGHTTP2_HEADERS || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
        return 0;
    const struct grpc_call *call = call_of(http, frame->hd.stream_id);
    if (call != NULL && !call->is_whole)
        nghttp2_submit_rst_stream(http, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    return 0;
}

static int
on_frame_not_sent(nghttp2_session *http, const nghttp2_frame *frame, int code, void *user_data)
{
    bool is_answer = frame->hd.type == NGHTTP2_HEADERS && code != NGHTTP2_ERR_STREAM_CLOSING &&
                     code != NGHTTP2_ERR_STREAM_CLOSED;
    if (is_answer)
        nghttp2_submit_rst_stream(http, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                  NGHTTP2_INTERNAL_ERROR);
    return 0;
}

static int
on_invalid_frame(nghttp2_session *http, const nghttp2_frame *frame, int code, void *user_data)
{
    struct session *session = user_data;
    count_add(session->owner_loop->server->metrics.protocol_errors, 1);
    session_penalize(session, RESET_COST);
    return 0;
}

void
session_set_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback2(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_sent);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, answer_send_data);
}
