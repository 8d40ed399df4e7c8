/* test_raw.c - frames by hand, and a reader of frames. */
#include "net/test_raw.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/test.h"
#include "base/text.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "net/http2.h"

#define INPUT_SIZE (1 << 20)
#define PATIENCE   (10 * NS_PER_S)

/* ---- opening ---- */

void
raw_forget(struct raw *raw)
{
    raw->http_status = raw->grpc_status = -1;
    raw->reset_code = raw->goaway_code = -1;
    raw->data_bytes = raw->pings = raw->goaways = 0;
    raw->is_stream_ended = false;
    raw->details[0] = raw->error_name[0] = raw->rpc_service[0] = '\0';
}

void
raw_connect(struct raw *raw, const struct test_service *service)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    *raw = (struct raw){.input = memory_alloc(INPUT_SIZE)};
    raw_forget(raw);
    EXPECT_OK(socket_connect(grpc_server_address(service->server), clock_monotonic() + PATIENCE,
                             arena, &raw->socket));
    EXPECT_EQ(nghttp2_hd_inflate_new2(&raw->inflater, http2_memory()), 0);
}

void
raw_open(struct raw *raw, const struct test_service *service)
{
    raw_connect(raw, service);
    raw_send(raw, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    raw_frame(raw, NGHTTP2_SETTINGS, 0, 0, (struct slice){0});
}

void
raw_close(struct raw *raw)
{
    nghttp2_hd_inflate_del(raw->inflater);
    socket_close(raw->socket);
    memory_free(raw->input);
}

/* ---- sending ---- */

bool
raw_send(struct raw *raw, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    int64_t deadline = clock_monotonic() + PATIENCE;
    while (count > 0) {
        int64_t taken = socket_write(raw->socket, at, count);
        if (taken < 0)
            return false;
        at += taken;
        count -= (size_t)taken;
        if (taken > 0)
            continue;
        if (clock_monotonic() >= deadline)
            return false;
        (void)socket_wait(raw->socket, SOCKET_WRITABLE, deadline);
    }
    return true;
}

bool
raw_frame(struct raw *raw, unsigned type, unsigned flags, int32_t stream, struct slice payload)
{
    uint8_t header[9] = {
        (uint8_t)(payload.length >> 16),
        (uint8_t)(payload.length >> 8),
        (uint8_t)payload.length,
        (uint8_t)type,
        (uint8_t)flags,
        (uint8_t)(stream >> 24),
        (uint8_t)(stream >> 16),
        (uint8_t)(stream >> 8),
        (uint8_t)stream,
    };
    return raw_send(raw, header, sizeof header) && raw_send(raw, payload.data, payload.length);
}

/* An integer with a prefix of seven bits. */
static uint8_t *
put_length(uint8_t *at, size_t length)
{
    if (length < 127) {
        *at++ = (uint8_t)length;
        return at;
    }
    *at++ = 127;
    for (length -= 127; length >= 128; length /= 128)
        *at++ = (uint8_t)(length % 128 + 128);
    *at++ = (uint8_t)length;
    return at;
}

static uint8_t *
put_text(uint8_t *at, const char *text)
{
    size_t length = strlen(text);
    at = put_length(at, length);
    memcpy(at, text, length);
    return at + length;
}

struct slice
raw_block(const struct raw_field *fields, struct arena *arena)
{
    size_t room = 0;
    for (const struct raw_field *field = fields; field->name != NULL; field++)
        room += strlen(field->name) + strlen(field->value) + 16;
    uint8_t *bytes = arena_alloc(arena, room), *at = bytes;
    for (const struct raw_field *field = fields; field->name != NULL; field++) {
        *at++ = 0; /* literal, not indexed, new name */
        at = put_text(at, field->name);
        at = put_text(at, field->value);
    }
    return slice_of(bytes, (size_t)(at - bytes));
}

bool
raw_headers(struct raw *raw, unsigned flags, int32_t stream, const struct raw_field *fields)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    raw->stream = stream;
    return raw_frame(raw, NGHTTP2_HEADERS, flags | NGHTTP2_FLAG_END_HEADERS, stream,
                     raw_block(fields, arena));
}

struct raw_field *
raw_good_fields(const char *path, struct arena *arena)
{
    const struct raw_field good[] = {
        {":method", "POST"},       {":scheme", "http"}, {":path", path},
        {":authority", "test"},    {"te", "trailers"},  {"content-type", "application/grpc"},
        {"rpc-encoding", "proto"}, {NULL, NULL},
    };
    struct raw_field *fields = arena_alloc(arena, sizeof good);
    return memcpy(fields, good, sizeof good);
}

bool
raw_request(struct raw *raw, int32_t stream, const char *path, struct slice message)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    uint8_t *body = arena_alloc(arena, message.length + GRPC_PREFIX_SIZE);
    grpc_prefix_write(body, message.length);
    if (message.length > 0)
        memcpy(body + GRPC_PREFIX_SIZE, message.data, message.length);
    return raw_headers(raw, 0, stream, raw_good_fields(path, arena)) &&
           raw_frame(raw, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream,
                     slice_of(body, message.length + GRPC_PREFIX_SIZE));
}

/* ---- reading ---- */

static uint32_t
number_at(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void
keep_text(char *text, size_t size, const nghttp2_nv *field)
{
    EXPECT(field->valuelen < size);
    memcpy(text, field->value, field->valuelen);
    text[field->valuelen] = '\0';
}

static void
take_field(struct raw *raw, const nghttp2_nv *field)
{
    if (!raw->is_watched)
        return;
    struct slice name = slice_of(field->name, field->namelen);
    if (slice_equal(name, slice_text("grpc-status-details-bin")))
        keep_text(raw->details, sizeof raw->details, field);
    if (slice_equal(name, slice_text("rpc-application-error-name")))
        keep_text(raw->error_name, sizeof raw->error_name, field);
    if (slice_equal(name, slice_text("rpc-service")))
        keep_text(raw->rpc_service, sizeof raw->rpc_service, field);
    int64_t number;
    if (!text_parse_int64(slice_of(field->value, field->valuelen), 0, 999, &number))
        return;
    if (slice_equal(name, slice_text(":status")))
        raw->http_status = (int)number;
    if (slice_equal(name, slice_text("grpc-status")))
        raw->grpc_status = (int)number;
}

static void
take_headers(struct raw *raw, const uint8_t *bytes, size_t count)
{
    int flags = 0;
    for (;;) {
        nghttp2_nv field;
        ssize_t used = nghttp2_hd_inflate_hd2(raw->inflater, &field, &flags, bytes, count, 1);
        EXPECT(used >= 0);
        bytes += used;
        count -= (size_t)used;
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0)
            take_field(raw, &field);
        if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0)
            break;
    }
    nghttp2_hd_inflate_end_headers(raw->inflater);
}

static void
take_frame(struct raw *raw, const uint8_t *header, const uint8_t *payload, size_t length)
{
    unsigned type = header[3], flags = header[4];
    raw->is_watched = (int32_t)number_at(header + 5) == raw->stream;
    bool may_end = type == NGHTTP2_HEADERS || type == NGHTTP2_DATA;
    if (type == NGHTTP2_HEADERS)
        take_headers(raw, payload, length);
    if (type == NGHTTP2_DATA)
        raw->data_bytes += (unsigned)length;
    if (type == NGHTTP2_RST_STREAM && raw->is_watched)
        raw->reset_code = number_at(payload);
    if (type == NGHTTP2_PING)
        raw->pings++;
    if (type == NGHTTP2_GOAWAY) {
        raw->goaway_code = number_at(payload + 4);
        raw->goaways++;
    }
    if (may_end && raw->is_watched && (flags & NGHTTP2_FLAG_END_STREAM) != 0)
        raw->is_stream_ended = true;
}

static void
take_frames(struct raw *raw)
{
    size_t at = 0;
    while (raw->input_length - at >= 9) {
        const uint8_t *header = raw->input + at;
        size_t length = (size_t)header[0] << 16 | (size_t)header[1] << 8 | header[2];
        if (raw->input_length - at < 9 + length)
            break;
        take_frame(raw, header, header + 9, length);
        at += 9 + length;
    }
    memmove(raw->input, raw->input + at, raw->input_length - at);
    raw->input_length -= at;
}

/* Reads once; waits for it if needed. */
static void
read_once(struct raw *raw, int64_t deadline)
{
    int64_t count =
        socket_read(raw->socket, raw->input + raw->input_length, INPUT_SIZE - raw->input_length);
    if (count < 0)
        raw->is_closed = true;
    if (count == 0)
        (void)socket_wait(raw->socket, SOCKET_READABLE, deadline);
    if (count > 0) {
        raw->input_length += (size_t)count;
        take_frames(raw);
    }
}

void
raw_read_for(struct raw *raw, int64_t patience)
{
    int64_t deadline = clock_monotonic() + patience;
    while (!raw->is_closed && clock_monotonic() < deadline)
        read_once(raw, deadline);
}

static bool
has_ended(const struct raw *raw)
{
    return raw->is_closed || raw->is_stream_ended || raw->reset_code >= 0 || raw->goaway_code >= 0;
}

bool
raw_wait(struct raw *raw)
{
    int64_t deadline = clock_monotonic() + PATIENCE;
    while (!has_ended(raw) && clock_monotonic() < deadline)
        read_once(raw, deadline);
    return has_ended(raw);
}

bool
raw_wait_closed(struct raw *raw)
{
    int64_t deadline = clock_monotonic() + PATIENCE;
    while (!raw->is_closed && clock_monotonic() < deadline)
        read_once(raw, deadline);
    return raw->is_closed;
}

/* ---- the end of a test ---- */

void
raw_expect_alive(struct test_service *service, struct arena *arena)
{
    struct slice response;
    struct grpc_client *client = test_client(service);
    EXPECT_OK(test_call(client, "/test/echo", slice_text("alive"), arena, &response));
    EXPECT(slice_equal(response, slice_text("alive")));
    grpc_client_free(client);
}

void
raw_finish(struct raw *raw, struct test_service *service, struct arena *arena)
{
    raw_close(raw);
    raw_expect_alive(service, arena);
    test_service_close(service);
}
