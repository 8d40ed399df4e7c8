/* http2.c - nghttp2 with our memory, and the output side of a connection.
 *
 * Output is gathered by nghttp2_session_send into the scratch block: frames of control are copied
 * by http2_pipe_send, DATA frames by http2_pipe_put straight from the message
 * (NGHTTP2_DATA_FLAG_NO_COPY), so that a message byte is copied once between the handler and the
 * socket. */
#include "net/http2.h"

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"

#define FRAME_HEADER_SIZE 9

/* ---- nghttp2 ---- */

/* A stream and its frames take and free ten blocks, so they are taken like those of arenas, which
 * need the size of what they get back: it is kept in front of the block. */
struct http2_block {
    size_t size; /* of all of it */
    _Alignas(16) uint8_t bytes[];
};

static struct http2_block *
block_of(void *bytes)
{
    return container_of(bytes, struct http2_block, bytes);
}

static void *
allocate(size_t size, void *context)
{
    check(size <= SIZE_MAX - sizeof(struct http2_block));
    struct http2_block *http2_block = memory_take(sizeof *http2_block + size);
    http2_block->size = sizeof *http2_block + size;
    return http2_block->bytes;
}

static void
release(void *bytes, void *context)
{
    if (bytes != NULL)
        memory_give(block_of(bytes), block_of(bytes)->size);
}

static void *
allocate_zeroed(size_t count, size_t size, void *context)
{
    size_t total;
    bool is_too_much = __builtin_mul_overflow(count, size, &total);
    check(!is_too_much);
    return memset(allocate(total, context), 0, total);
}

static void *
reallocate(void *bytes, size_t size, void *context)
{
    void *moved = allocate(size, context);
    if (bytes == NULL)
        return moved;
    size_t old = block_of(bytes)->size - sizeof(struct http2_block);
    memcpy(moved, bytes, old < size ? old : size);
    release(bytes, context);
    return moved;
}

nghttp2_mem *
http2_memory(void)
{
    /* nghttp2 copies it; const in all but its signature. */
    static const nghttp2_mem memory = {NULL, allocate, release, allocate_zeroed, reallocate};
    return (nghttp2_mem *)(uintptr_t)&memory;
}

nghttp2_option *
http2_options(void)
{
    nghttp2_option *option;
    int failed = nghttp2_option_new(&option);
    check(failed == 0);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_settings(option, 32);
    nghttp2_option_set_max_outbound_ack(option, 1000);
    nghttp2_option_set_max_continuations(option, 8);
    /* nghttp2 measures this by the real clock, which simulation must not see: the server has its
     * own limit. */
    nghttp2_option_set_stream_reset_rate_limit(option, UINT64_MAX, UINT64_MAX);
    return option;
}

nghttp2_session_callbacks *
http2_callbacks(void)
{
    nghttp2_session_callbacks *callbacks;
    int failed = nghttp2_session_callbacks_new(&callbacks);
    check(failed == 0);
    nghttp2_session_callbacks_set_send_callback(callbacks, http2_pipe_send);
    return callbacks;
}

nghttp2_nv
http2_field(const char *name, struct slice value, enum http2_value how)
{
    static const uint8_t flags[] = {
        [NV_LIVES] = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE,
        [NV_COPIED] = NGHTTP2_NV_FLAG_NO_COPY_NAME,
        [NV_ONCE] = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_INDEX,
    };
    static const uint8_t nothing[1];
    return (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name,
        .namelen = strlen(name),
        .value = (uint8_t *)(uintptr_t)(value.length == 0 ? nothing : value.data),
        .valuelen = value.length,
        .flags = flags[how],
    };
}

nghttp2_nv
http2_field_named(struct slice name, struct slice value, enum http2_value how)
{
    nghttp2_nv field = http2_field("", value, how);
    field.name = (uint8_t *)(uintptr_t)name.data;
    field.namelen = name.length;
    if (how != NV_LIVES)
        field.flags &= (uint8_t)~NGHTTP2_NV_FLAG_NO_COPY_NAME;
    return field;
}

/* ---- the pipe ---- */

static void
flush_deferred(struct deferred *deferred)
{
    struct http2_pipe *pipe = container_of(deferred, struct http2_pipe, flush);
    http2_pipe_flush(pipe);
    /* The fiber waits for input only: let it look again. */
    bool needs_fiber = pipe->is_broken || http2_pipe_is_blocked(pipe) ||
                       (pipe->unsent != NULL && *pipe->unsent > 0) ||
                       nghttp2_session_want_read(pipe->session) == 0;
    if (needs_fiber && pipe->fiber != NULL)
        fiber_wake(pipe->fiber);
}

void
http2_pipe_init(struct http2_pipe *pipe, struct socket *socket, uint8_t *scratch)
{
    *pipe = (struct http2_pipe){
        .socket = socket,
        .scratch = scratch,
        .progress_at = clock_monotonic(),
    };
    list_init(&pipe->flush.node);
    pipe->flush.run = flush_deferred;
}

void
http2_pipe_close(struct http2_pipe *pipe)
{
    loop_undefer(&pipe->flush);
    pipe->is_broken = true;
    nghttp2_session_del(pipe->session);
    pipe->session = NULL;
    memory_free(pipe->held);
    pipe->held = NULL;
    if (pipe->socket != NULL)
        socket_close(pipe->socket);
    pipe->socket = NULL;
}

void
http2_pipe_schedule(struct http2_pipe *pipe)
{
    if (!pipe->is_broken && pipe->session != NULL)
        loop_defer(&pipe->flush);
}

bool
http2_pipe_is_blocked(const struct http2_pipe *pipe)
{
    return pipe->held != NULL;
}

bool
http2_pipe_is_drained(const struct http2_pipe *pipe)
{
    return pipe->held == NULL && nghttp2_session_want_write(pipe->session) == 0;
}

/* How many of `count` bytes the socket took now. */
static size_t
pipe_write(struct http2_pipe *pipe, const uint8_t *bytes, size_t count)
{
    size_t taken = 0;
    while (taken < count && !pipe->is_broken) {
        int64_t some = pipe->socket == NULL
                           ? (int64_t)(count - taken)
                           : socket_write(pipe->socket, bytes + taken, count - taken);
        if (some == 0)
            break;
        if (some < 0)
            pipe->is_broken = true;
        else
            taken += (size_t)some;
    }
    if (taken > 0)
        pipe->progress_at = clock_monotonic();
    pipe->bytes_out += taken;
    return taken;
}

/* False: something is still held. */
static bool
write_held(struct http2_pipe *pipe)
{
    if (pipe->held == NULL)
        return true;
    check(pipe->held_sent < pipe->held_length);
    pipe->held_sent +=
        pipe_write(pipe, pipe->held + pipe->held_sent, pipe->held_length - pipe->held_sent);
    if (pipe->held_sent < pipe->held_length)
        return false;
    memory_free(pipe->held);
    pipe->held = NULL;
    return true;
}

/* Writes what was gathered; what the socket refuses is kept. */
static void
write_gathered(struct http2_pipe *pipe)
{
    check(pipe->held == NULL && pipe->fill <= HTTP2_SCRATCH_SIZE);
    size_t taken = pipe_write(pipe, pipe->scratch, pipe->fill);
    if (taken == pipe->fill)
        return;
    pipe->held_length = pipe->fill - taken;
    pipe->held_sent = 0;
    pipe->held = memory_alloc(pipe->held_length);
    memcpy(pipe->held, pipe->scratch + taken, pipe->held_length);
}

void
http2_pipe_flush(struct http2_pipe *pipe)
{
    while (!pipe->is_broken && write_held(pipe)) {
        pipe->fill = 0;
        int failed = nghttp2_session_send(pipe->session);
        if (failed != 0) {
            pipe->is_broken = true;
            return;
        }
        if (pipe->fill == 0)
            return;
        write_gathered(pipe);
    }
}

static void
gather(struct http2_pipe *pipe, const void *bytes, size_t count)
{
    check(count <= HTTP2_SCRATCH_SIZE - pipe->fill);
    if (count > 0)
        memcpy(pipe->scratch + pipe->fill, bytes, count);
    pipe->fill += count;
}

bool
http2_pipe_put(struct http2_pipe *pipe, const uint8_t *frame_header,
               const struct http2_piece *piece)
{
    size_t size = FRAME_HEADER_SIZE + piece->first.length + piece->second.length;
    check(size <= HTTP2_SCRATCH_SIZE);
    if (size > HTTP2_SCRATCH_SIZE - pipe->fill)
        return false;
    gather(pipe, frame_header, FRAME_HEADER_SIZE);
    gather(pipe, piece->first.data, piece->first.length);
    gather(pipe, piece->second.data, piece->second.length);
    return true;
}

ssize_t
http2_pipe_send(nghttp2_session *session, const uint8_t *bytes, size_t count, int flags,
                void *context)
{
    struct http2_pipe *pipe = context;
    size_t room = HTTP2_SCRATCH_SIZE - pipe->fill;
    if (room == 0)
        return NGHTTP2_ERR_WOULDBLOCK;
    size_t taken = count < room ? count : room;
    gather(pipe, bytes, taken);
    return (ssize_t)taken;
}
