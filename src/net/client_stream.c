/* client_stream.c - calls as streams of HTTP/2: what is sent, and what nghttp2 reports about them.
 */
#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "net/client_inside.h"

/* ---- sending ---- */

static size_t
body_size(const struct client_stream *stream)
{
    return GRPC_PREFIX_SIZE + stream->call->request->message.length;
}

static ssize_t
request_read(nghttp2_session *session, int32_t stream_id, uint8_t *buffer, size_t room,
             uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    const struct client_stream *stream = source->ptr;
    if (stream->call == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* cancelled: nghttp2 resets the stream */
    size_t left = body_size(stream) - stream->sent;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (left <= room)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)(left < room ? left : room);
}

static int
send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *frame_header,
          size_t length, nghttp2_data_source *source, void *user_data)
{
    struct client_stream *stream = source->ptr;
    if (stream->call == NULL) /* cancelled between the two callbacks */
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    struct slice message = stream->call->request->message;
    uint8_t prefix[GRPC_PREFIX_SIZE];
    struct http2_piece piece = {0};
    size_t at = stream->sent, left = length;
    check(frame->data.padlen == 0 && length <= body_size(stream) - at);
    if (at < GRPC_PREFIX_SIZE) {
        size_t missing = GRPC_PREFIX_SIZE - at;
        grpc_prefix_write(prefix, message.length);
        piece.first = slice_of(prefix + at, left < missing ? left : missing);
        at += piece.first.length;
        left -= piece.first.length;
    }
    if (left > 0)
        piece.second = slice_of(message.data + (at - GRPC_PREFIX_SIZE), left);
    if (!http2_pipe_put(&stream->link->pipe, frame_header, &piece))
        return NGHTTP2_ERR_WOULDBLOCK;
    stream->sent += length;
    return 0;
}

bool
link_has_room(const struct client_link *link)
{
    return link->stream_count < nghttp2_session_get_remote_settings(
                                    link->pipe.session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

/* The path (a pseudo header, so first), the fields of every call, the timeout, those of this call.
 */
static nghttp2_nv *
fields_of(const struct grpc_client *client, const struct client_call *call, size_t *count)
{
    const struct grpc_request *request = call->request;
    size_t room = client->field_count + request->header_count + 3;
    nghttp2_nv *fields = arena_alloc(call->arena, room * sizeof *fields);
    size_t at = 0;
    fields[at++] = http2_field(":path", slice_text(request->path), NV_COPIED);
    memcpy(fields + at, client->fields, client->field_count * sizeof *fields);
    at += client->field_count;
    if (call->deadline != NEVER) {
        int64_t left = call->deadline - clock_monotonic();
        const char *timeout = grpc_timeout_format(left, call->arena);
        fields[at++] = http2_field("grpc-timeout", slice_text(timeout), NV_COPIED);
    }
    const struct grpc_live_header *live = client->live_header;
    const char *value = live == NULL ? NULL : live->value(live->context, call->arena);
    if (value != NULL)
        fields[at++] = http2_field_named(slice_text(live->name), slice_text(value), NV_COPIED);
    for (size_t i = 0; i < request->header_count; i++)
        fields[at++] =
            http2_field_named(request->headers[i].name, request->headers[i].value, NV_COPIED);
    check(at <= room);
    *count = at;
    return fields;
}

void
link_retire(struct client_link *link)
{
    link->is_retired = true;
    if (link->client->link == link)
        link->client->link = NULL;
}

bool
link_submit(struct client_link *link, struct client_call *call)
{
    struct client_stream *stream = memory_alloc(sizeof *stream);
    *stream = (struct client_stream){.link = link, .call = call};
    size_t count;
    nghttp2_nv *fields = fields_of(link->client, call, &count);
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = request_read};
    stream->id = nghttp2_submit_request(link->pipe.session, NULL, fields, count, &provider, stream);
    if (stream->id < 0) { /* numbers of streams are used up */
        memory_free(stream);
        link_retire(link);
        fiber_wake(link->pipe.fiber);
        return false;
    }
    if (link->stream_count == 0) {
        link->last_received = clock_monotonic(); /* the silence before it means nothing */
        fiber_wake(link->pipe.fiber);            /* from now on silence counts */
    }
    list_push_back(&link->streams, &stream->node);
    link->stream_count++;
    call->stream = stream;
    http2_pipe_schedule(&link->pipe);
    return true;
}

void
stream_free(struct client_stream *stream)
{
    check(stream->call == NULL && stream->link->stream_count > 0);
    list_remove(&stream->node);
    stream->link->stream_count--;
    memory_free(stream);
}

static void
reset(struct client_stream *stream)
{
    nghttp2_submit_rst_stream(stream->link->pipe.session, NGHTTP2_FLAG_NONE, stream->id,
                              NGHTTP2_CANCEL);
    http2_pipe_schedule(&stream->link->pipe);
}

/* A stream whose HEADERS have not left yet is reset when they have: nghttp2 forgets whom a stream
 * belongs to when it is cancelled before that. */
void
stream_abandon(struct client_stream *stream)
{
    check(stream->call != NULL);
    stream->call = NULL;
    if (stream->is_open)
        reset(stream);
}

/* ---- receiving ---- */

static struct client_stream *
stream_of(nghttp2_session *session, int32_t stream_id)
{
    return nghttp2_session_get_stream_user_data(session, stream_id);
}

static void
take_number(struct slice value, int unset, int *number)
{
    int64_t parsed;
    if (*number == unset && text_parse_int64(value, 0, 999, &parsed))
        *number = (int)parsed;
}

static void
take_text(struct client_call *call, struct slice value, struct slice *text)
{
    if (text->length == 0)
        *text = arena_slice(call->arena, value);
}

static int
on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name_bytes,
          size_t name_length, const uint8_t *value_bytes, size_t value_length, uint8_t flags,
          void *user_data)
{
    struct client_stream *stream = stream_of(session, frame->hd.stream_id);
    if (stream == NULL || stream->call == NULL)
        return 0;
    struct client_call *call = stream->call;
    struct slice name = slice_of(name_bytes, name_length);
    struct slice value = slice_of(value_bytes, value_length);
    if (slice_equal(name, slice_text(":status")))
        take_number(value, 0, &call->http_status);
    else if (slice_equal(name, slice_text("grpc-status")))
        take_number(value, -1, &call->status);
    else if (slice_equal(name, slice_text("grpc-message")))
        take_text(call, value, &call->message);
    else if (slice_equal(name, slice_text("grpc-status-details-bin")))
        take_text(call, value, &call->details);
    return 0;
}

static int
on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *bytes,
        size_t count, void *user_data)
{
    struct client_stream *stream = stream_of(session, stream_id);
    if (stream == NULL || stream->call == NULL || stream->call->verdict != INBOX_OK)
        return 0;
    struct client_call *call = stream->call;
    call->verdict = inbox_add(&call->inbox, slice_of(bytes, count),
                              stream->link->client->message_max, RESPONSE_ARENA_MAX, call->arena);
    if (call->verdict != INBOX_OK)
        reset(stream);
    return 0;
}

static void
finish(struct client_stream *stream, uint32_t code)
{
    struct client_call *call = stream->call;
    struct grpc_client *client = stream->link->client;
    stream->call = NULL;
    if (call != NULL) {
        bool is_refused = code == NGHTTP2_REFUSED_STREAM;
        struct error *err = NULL;
        call->reset_code = code;
        if (is_refused)
            err = error_new(call->arena, ERR_UNAVAILABLE, "%s: the server refused the call: %s",
                            client->address, "nothing was done");
        client_call_done(call, err, is_refused);
    }
    stream_free(stream);
}

static int
on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t code, void *user_data)
{
    struct client_link *link = user_data;
    struct client_stream *stream = stream_of(session, stream_id);
    if (stream != NULL)
        finish(stream, code);
    if (!link->is_retired)
        client_drive(link->client);
    else if (link->stream_count == 0)
        fiber_wake(link->pipe.fiber);
    return 0;
}

/* A server that calls us too noisy gets fewer pings from now on. */
static void
received_goaway(struct client_link *link, const nghttp2_goaway *goaway)
{
    struct grpc_client *client = link->client;
    if (goaway->error_code == NGHTTP2_ENHANCE_YOUR_CALM)
        client->keepalive =
            client->keepalive < KEEPALIVE_MAX / 2 ? client->keepalive * 2 : KEEPALIVE_MAX;
    link_retire(link);
}

static int
on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct client_link *link = user_data;
    bool is_ack = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;
    switch (frame->hd.type) {
    case NGHTTP2_SETTINGS:
        link->is_proven = true;
        if (!link->is_retired)
            client_drive(link->client);
        break;
    case NGHTTP2_PING:
        if (is_ack)
            link->ping_sent = 0;
        break;
    case NGHTTP2_DATA:
        if (link->client->is_probing && link->ping_sent == 0)
            link_ping(link);
        break;
    case NGHTTP2_GOAWAY:
        received_goaway(link, &frame->goaway);
        break;
    default:
        break;
    }
    return 0;
}

static int
on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    struct client_stream *stream = stream_of(session, frame->hd.stream_id);
    if (stream == NULL)
        return 0;
    stream->is_open = true;
    if (stream->call == NULL)
        reset(stream);
    return 0;
}

/* Request HEADERS that cannot go out any more, e.g. because a GOAWAY came: nobody has seen them. */
static int
on_frame_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int code, void *user_data)
{
    struct client_link *link = user_data;
    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    list_each_safe(node, &link->streams) {
        struct client_stream *stream = list_entry(node, struct client_stream, node);
        if (stream->id != frame->hd.stream_id)
            continue;
        nghttp2_session_set_stream_user_data(session, stream->id, NULL);
        finish(stream, NGHTTP2_REFUSED_STREAM);
        break;
    }
    return 0;
}

void
link_set_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_sent);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
}
