/* server.h - the gRPC door: accepts connections, hands each complete call to a handler in a fiber,
 * sends the answer.
 *
 * Each connection lives on one loop with everything that belongs to it. A call's arena lives until
 * the answer is handed to HTTP/2. While the handler runs, the arena and the request are the
 * handler's alone, also while it waits in loop_call for another loop that uses them: the server
 * touches neither, not even to answer in its place. When the handler returns, the bytes of the
 * request may be gone, parked or not: what is needed longer is copied to the arena.
 *
 * Bounds: bytes held per connection, streams per connection, connections; a peer that is slow or
 * silent in the middle of a request is cut off after a time. Over the bound of bytes the peer gets
 * no window; requests that could not become whole for lack of it, and new ones, are refused with
 * RESOURCE_EXHAUSTED.
 *
 * A handler answers exactly once, with grpc_reply or grpc_fail, before it returns or, after
 * grpc_park, later: a parked call is a record without a fiber. When the client goes away
 * (RST_STREAM, connection lost) or the deadline passes, a handler's fiber is cancelled, and what it
 * answers afterwards is dropped; a parked call gets its on_gone instead, and must not be answered
 * after it. An answer that would make the unsent ones of its connection exceed their bound is sent
 * as RESOURCE_EXHAUSTED. */
#ifndef CADENZA_NET_SERVER_H
#define CADENZA_NET_SERVER_H

#include "base/log.h"
#include "base/metrics.h"
#include "fiber/tls.h"
#include "net/grpc.h"

struct grpc_server;
struct grpc_call;

/* How the server asks what to do with a path. */
struct grpc_service {
    /* NULL: UNIMPLEMENTED, before the body is read. The answer is kept with the headers of the
     * connection. Must not yield. */
    const void *(*find)(void *context, struct slice path);
    /* Runs in a fiber whose deadline is the call's. */
    void (*handle)(void *context, const void *method, struct grpc_call *call);
    void *context;
};

struct grpc_server_options {
    const char *address;         /* "127.0.0.1:7833"; port 0: a free one */
    struct tls *tls;             /* NULL: plain */
    size_t message_max;          /* 0: GRPC_MESSAGE_MAX_DEFAULT */
    unsigned streams_max;        /* per connection; 0: 100000 */
    unsigned connections_max;    /* 0: 20000; fewer where descriptors or fibers do not suffice */
    size_t connection_bytes_max; /* requests with their headers, what handlers left in arenas, and
                                    unsent answers, per connection; 0: 64 MiB + message_max */
    int64_t default_timeout;     /* of a call without grpc-timeout, ns; 0: 60 s */
    int64_t request_timeout;     /* from a stream's first header to its last byte, ns; 0: 60 s */
    int64_t idle_ping;           /* ping a connection that was silent so long, ns; 0: 2 h */
    int64_t ping_timeout;        /* 0: 20 s */
    const char
        *service_name;     /* what rpc-service must be where it is sent; NULL: "cadence-frontend" */
    const struct log *log; /* may be NULL */
    struct metrics *metrics; /* may be NULL */
    struct grpc_service service;
};

/* Listens; serves on all loops of the process. Yields. Errors: ERR_IO naming the address. */
must_use struct error *grpc_server_open(const struct grpc_server_options *options,
                                        struct arena *arena, struct grpc_server **server);
/* With the real port. */
const char *grpc_server_address(const struct grpc_server *server);
/* Stops accepting, says GOAWAY, lets calls in progress finish until `deadline` (parked ones should
 * be answered by their owners), then cuts what is left, and frees everything. Yields, and ignores
 * cancel. */
void grpc_server_close(struct grpc_server *server, int64_t deadline);

/* --- a call, for handlers; on the loop of its connection only
 * ----------------------------------------- */

struct arena *grpc_call_arena(struct grpc_call *call);
struct slice grpc_call_path(const struct grpc_call *call);
struct slice grpc_call_request(const struct grpc_call *call); /* while the handler runs */
/* A request header, empty if absent; name in lower case. */
struct slice grpc_call_header(const struct grpc_call *call, const char *name);
/* All of them but grpc-timeout and those of HTTP/2 (":path"), in the call's own order. They point
 * into the call. */
const struct call_header *grpc_call_headers(const struct grpc_call *call, struct arena *arena,
                                            size_t *count);
/* Monotonic; always set. */
int64_t grpc_call_deadline(const struct grpc_call *call);
bool grpc_call_has_timeout(const struct grpc_call *call); /* did the client send grpc-timeout? */
const char *grpc_call_peer(const struct grpc_call *call);
/* Of the call's connection. */
struct call_memory *grpc_call_memory(const struct grpc_call *call);

/* Answers with a message; the bytes are copied. */
void grpc_reply(struct grpc_call *call, struct slice message);
/* The same without a copy: the bytes live in the call's arena, in its request, or for ever. */
void grpc_reply_kept(struct grpc_call *call, struct slice message);
/* Answers with an error: status, message, details as the kind says. */
void grpc_fail(struct grpc_call *call, const struct error *err);
/* Keeps the call beyond the handler's return. `on_gone` must not yield; it runs when the client
 * went away or the deadline passed (at the handler's return, if that was before it parked);
 * afterwards the call is gone. */
void grpc_park(struct grpc_call *call, void (*on_gone)(void *context), void *context);

#endif
