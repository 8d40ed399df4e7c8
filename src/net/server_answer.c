/* server_answer.c - answers on their way out: a message with trailers, or trailers alone.
 *
 *   success   HEADERS (:status 200, content-type)  DATA (prefix, message)  HEADERS (grpc-status 0)
 *   failure   HEADERS (:status 200, content-type, grpc-status, grpc-message, details) and the end
 * of the stream
 *
 * The message is not copied into nghttp2: a DATA frame is cut from the reply at the moment it is
 * written. */
#include <stdio.h>

#include "base/check.h"
#include "base/text.h"
#include "net/server_inside.h"

/* What every answer with a message has, before and behind it. nghttp2 only reads them. */
static const nghttp2_nv message_fields[] = {
    HTTP2_LITERAL(":status", "200"),
    HTTP2_LITERAL("content-type", "application/grpc"),
};
static const nghttp2_nv message_trailer = HTTP2_LITERAL("grpc-status", "0");

static size_t
body_size(const struct grpc_call *call)
{
    return GRPC_PREFIX_SIZE + call->reply.length;
}

static void
answered(struct grpc_call *call, int failed)
{
    check_that(failed == 0, "%s", nghttp2_strerror(failed));
    call_move(call, CALL_ANSWERED);
    call_shed(call);
    http2_pipe_schedule(&call->session->pipe);
}

/* ---- success ---- */

static void
submit_trailer(nghttp2_session *session, int32_t stream_id)
{
    int failed = nghttp2_submit_trailer(session, stream_id, &message_trailer, 1);
    check_that(failed == 0, "%s", nghttp2_strerror(failed));
}

/* How much goes into the next DATA frame; the bytes themselves are taken in answer_send_data. */
static ssize_t
answer_read(nghttp2_session *session, int32_t stream_id, uint8_t *buffer, size_t room,
            uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    const struct grpc_call *call = source->ptr;
    check(call->reply_sent < body_size(call));
    size_t left = body_size(call) - call->reply_sent;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (left > room)
        return (ssize_t)room;
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    submit_trailer(session, stream_id);
    return (ssize_t)left;
}

int
answer_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *frame_header,
                 size_t length, nghttp2_data_source *source, void *user_data)
{
    struct grpc_call *call = source->ptr;
    check(length <= body_size(call) - call->reply_sent && frame->data.padlen == 0);
    uint8_t prefix[GRPC_PREFIX_SIZE];
    struct http2_piece piece = {0};
    size_t at = call->reply_sent, left = length;
    if (at < GRPC_PREFIX_SIZE) {
        size_t missing = GRPC_PREFIX_SIZE - at;
        grpc_prefix_write(prefix, call->reply.length);
        piece.first = slice_of(prefix + at, left < missing ? left : missing);
        at += piece.first.length;
        left -= piece.first.length;
    }
    if (left > 0)
        piece.second = slice_of(call->reply.data + (at - GRPC_PREFIX_SIZE), left);
    if (!http2_pipe_put(&call->session->pipe, frame_header, &piece))
        return NGHTTP2_ERR_WOULDBLOCK;
    call->reply_sent += length;
    call->session->answer_moved_at = clock_monotonic();
    if (length >= WORTHY_DATA)
        session_credit(call->session, ABUSE_BUDGET_PER_DATA);
    return 0;
}

void
answer_message(struct grpc_call *call, struct slice message)
{
    check(call->reply_sent == 0 && message.length <= UINT32_MAX);
    call->reply = message;
    call->has_reply = true;
    nghttp2_data_provider provider = {.source.ptr = call, .read_callback = answer_read};
    answered(call,
             nghttp2_submit_response(call->session->pipe.session, call->stream_id, message_fields,
                                     array_length(message_fields), &provider));
}

/* ---- failure ---- */

/* YARPC's name of an error, by which Java clients before 4.0 know it: its detail's message without
 * the package. An error without a detail has none. */
static struct slice
error_name(const char *detail_type)
{
    const char *dot = strrchr(detail_type, '.');
    return slice_text(dot == NULL ? detail_type : dot + 1);
}

void
answer_status(struct grpc_call *call, int status, const char *message, const char *detail_type,
              struct slice detail)
{
    /* The call's own arena may be in use by its handler, on another thread. */
    scoped(arena_drop) struct arena *arena = arena_new(512);
    struct slice text = grpc_message_clean(message, arena);
    nghttp2_nv fields[6] = {message_fields[0], message_fields[1]};
    size_t count = array_length(message_fields);
    fields[count++] =
        http2_field("grpc-status", slice_text(arena_format(arena, "%d", status)), NV_COPIED);
    if (text.length > 0)
        fields[count++] = http2_field("grpc-message", text_percent_encode(arena, text), NV_ONCE);
    if (detail_type != NULL) {
        struct slice details =
            grpc_status_details_encode(status, (const char *)text.data, detail_type, detail, arena);
        fields[count++] = http2_field("grpc-status-details-bin", details, NV_ONCE);
        fields[count++] =
            http2_field("rpc-application-error-name", error_name(detail_type), NV_LIVES);
    }
    check(count <= array_length(fields));
    answered(call, nghttp2_submit_response(call->session->pipe.session, call->stream_id, fields,
                                           count, NULL));
}

void
answer_http_status(struct grpc_call *call, int http_status)
{
    char status[16];
    snprintf(status, sizeof status, "%d", http_status);
    nghttp2_nv fields[] = {
        http2_field(":status", slice_text(status), NV_COPIED),
        http2_field("allow", slice_text("POST"), NV_LIVES),
    };
    size_t count = http_status == 405 ? 2 : 1;
    answered(call, nghttp2_submit_response(call->session->pipe.session, call->stream_id, fields,
                                           count, NULL));
}
