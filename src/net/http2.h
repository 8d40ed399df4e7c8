/* http2.h - what both sides of an HTTP/2 connection share: nghttp2 set up, and the pipe that moves
 * its bytes.
 *
 * Private to net/. A pipe joins an nghttp2 session and a socket. What submits something calls
 * http2_pipe_schedule; at the end of the tick everything that was submitted leaves in one write.
 * One fiber per connection reads and waits; only when the socket takes no more is that fiber woken
 * to wait for room.
 *
 * The pipe gathers into `scratch`, which all pipes of an owner share: it holds nothing between two
 * calls. What the socket did not take is kept in a block of its own. */
#ifndef CADENZA_NET_HTTP2_H
#define CADENZA_NET_HTTP2_H

#include <nghttp2/nghttp2.h>

#include "base/slice.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "fiber/socket.h"

#define HTTP2_SCRATCH_SIZE      65536
#define HTTP2_STREAM_WINDOW     (1 << 20)
#define HTTP2_CONNECTION_WINDOW (4 << 20)

/* Memory of nghttp2 comes from base/memory.h, so that a simulated crash takes it along. */
nghttp2_mem *http2_memory(void);
/* Options and callbacks that both sides want; the callers add theirs and delete both after making
 * the session, before anything yields: nghttp2 takes these two from malloc. */
nghttp2_option *http2_options(void);
nghttp2_session_callbacks *http2_callbacks(void);

/* A header field whose name is a literal of ours. `value` must live until it was sent: NV_LIVES, is
 * copied: NV_COPIED, is copied and not kept in the compression table because it will not come
 * again: NV_ONCE. */
enum http2_value { NV_LIVES, NV_COPIED, NV_ONCE };
nghttp2_nv http2_field(const char *name, struct slice value, enum http2_value how);
/* A field of two literals, for constants. */
#define HTTP2_LITERAL(field_name, field_value)                                                     \
    {                                                                                              \
        .name = (uint8_t *)(uintptr_t)(field_name), .value = (uint8_t *)(uintptr_t)(field_value),  \
        .namelen = sizeof(field_name) - 1, .valuelen = sizeof(field_value) - 1,                    \
        .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE,                     \
    }
/* One with a name that lives as long as the value (NV_LIVES) or is copied with it. */
nghttp2_nv http2_field_named(struct slice name, struct slice value, enum http2_value how);

struct http2_pipe {
    nghttp2_session *session;
    struct socket *socket; /* NULL: output is thrown away (fuzzing) */
    struct fiber *fiber;   /* reads and waits for the socket; NULL: nobody */
    uint8_t *scratch;      /* HTTP2_SCRATCH_SIZE bytes of the owner */
    size_t fill;           /* of scratch, while gathering */
    uint8_t *held;         /* what the socket did not take yet, or NULL */
    size_t held_length;
    size_t held_sent;
    struct deferred flush;
    const size_t *unsent; /* bytes that HTTP/2 still has to send; not 0 after a flush: the peer's
                           * window is closed, and the fiber is woken. NULL: not asked for */
    uint64_t bytes_out;
    int64_t progress_at; /* monotonic: when the socket last took bytes */
    bool is_broken;      /* the socket is of no use any more */
};

/* A frame of user data for send_data_callback: where its bytes are. */
struct http2_piece {
    struct slice first;  /* e.g. what is left of the message prefix */
    struct slice second; /* e.g. bytes of the message */
};

/* The session is set by the caller afterwards. */
void http2_pipe_init(struct http2_pipe *pipe, struct socket *socket, uint8_t *scratch);
/* Frees the session, what is held, and closes the socket. */
void http2_pipe_close(struct http2_pipe *pipe);
/* Flushes at the end of this tick. */
void http2_pipe_schedule(struct http2_pipe *pipe);
/* Moves output to the socket until there is none or the socket is full. Never yields. */
void http2_pipe_flush(struct http2_pipe *pipe);
/* Does output wait for the socket? */
bool http2_pipe_is_blocked(const struct http2_pipe *pipe);
/* Is all output gone to the socket? */
bool http2_pipe_is_drained(const struct http2_pipe *pipe);
/* Copies one DATA frame into the gathered output. False: no room, call again later. For
 * send_data_callback. */
must_use bool http2_pipe_put(struct http2_pipe *pipe, const uint8_t *frame_header,
                             const struct http2_piece *piece);
/* For nghttp2's send callback; `pipe` is what the session's user data must begin with. */
ssize_t http2_pipe_send(nghttp2_session *session, const uint8_t *bytes, size_t count, int flags,
                        void *pipe);

#endif
