/* client_inside.h - the client's own structures. Private to net/client*.c.
 *
 * Who owns what: a call lives on the stack of the fiber that made it. A link is one connection with
 * its own fiber; the client has at most one that takes new calls, and perhaps some that were told
 * to go away and finish what they have. A stream is what nghttp2 knows of a call: it may outlive
 * the call (cancelled, but the reset has not left yet), then its `call` is NULL. */
#ifndef CADENZA_NET_CLIENT_INSIDE_H
#define CADENZA_NET_CLIENT_INSIDE_H

#include "fiber/clock.h"
#include "fiber/sync.h"
#include "net/client.h"
#include "net/http2.h"
#include "net/inbox.h"

#define BACKOFF_FIRST      (20 * NS_PER_MS)
#define BACKOFF_MAX        (5 * NS_PER_S)
#define KEEPALIVE_DEFAULT  (310 * NS_PER_S) /* the usual limit of servers is five minutes */
#define KEEPALIVE_MAX      (600 * NS_PER_S)
#define RESPONSE_ARENA_MAX (1u << 20) /* larger answers grow with what has come */
#define CLIENT_WINDOW      (16 << 20) /* of a connection */
#define ATTEMPTS_MAX       3          /* of a call that certainly nobody has looked at */

struct client_call {
    struct list node; /* in client->waiting, or in none */
    const struct grpc_request *request;
    struct arena *arena;
    struct fiber *fiber;
    int64_t deadline;             /* of the fiber */
    struct client_stream *stream; /* NULL: not sent yet, or closed */
    struct inbox inbox;           /* the answer */
    enum inbox_verdict verdict;
    int http_status; /* 0: none came */
    int status;      /* grpc-status; -1: none came */
    struct slice message, details;
    uint32_t reset_code;
    struct error *err; /* why there is no answer, once it is done */
    bool is_done;
    bool is_untouched; /* failed, and the server has certainly not begun it */
};

struct client_stream {
    struct list node; /* in link->streams */
    struct client_link *link;
    struct client_call *call; /* NULL: nobody waits any more */
    int32_t id;
    size_t sent;  /* of prefix and message */
    bool is_open; /* its HEADERS were sent */
};

struct client_link {
    struct http2_pipe pipe; /* first: nghttp2 gives it to the send callback */
    struct list node;       /* in client->links */
    struct grpc_client *client;
    struct list streams;
    size_t stream_count;
    int64_t last_received;
    int64_t ping_sent; /* 0: none is under way */
    bool is_retired;   /* takes no new calls */
    bool is_proven;    /* the peer's SETTINGS came: it speaks HTTP/2 */
};

struct grpc_client {
    char *address, *authority, *server_name;
    struct tls *tls;
    size_t message_max;
    int64_t connect_timeout, keepalive;
    bool is_probing;
    nghttp2_nv *fields; /* of every call */
    size_t field_count;
    char *field_bytes;                          /* what they point to */
    const struct grpc_live_header *live_header; /* NULL: none */
    struct client_link *link;                   /* takes new calls; NULL: none now */
    struct list links;                          /* all */
    struct fiber *connecting;                   /* NULL: nobody does */
    struct list waiting;                        /* calls without a stream, in order */
    struct latch busy;                          /* calls, and fibers of links */
    int64_t backoff, retry_at;
    char *failure; /* of the last attempt to connect */
    uint8_t *scratch;
    bool is_closing;
};

/* client.c */
/* Sends calls that wait as far as there is room, connects if there is no link, fails them while it
 * is too early to try again. */
void client_drive(struct grpc_client *client);
/* Ends a call; wakes its fiber. `err` NULL: see what came. */
void client_call_done(struct client_call *call, struct error *err, bool is_untouched);

/* client_link.c */
/* The fiber that connects and then serves the link until it breaks. Argument: the client. */
void client_link_run(void *argument);

/* client_stream.c */
void link_set_callbacks(nghttp2_session_callbacks *callbacks);
/* May it take one more? */
bool link_has_room(const struct client_link *link);
/* Sends a call. False: this link takes no more for ever, it is retired now. */
must_use bool link_submit(struct client_link *link, struct client_call *call);
/* No new calls; those it has may finish. */
void link_retire(struct client_link *link);
/* Asks whether the peer is there; none may be under way. */
void link_ping(struct client_link *link);
/* Nobody waits for this call any more: reset its stream. */
void stream_abandon(struct client_stream *stream);
void stream_free(struct client_stream *stream);

/* client_result.c */
/* What the server said, as an error or a message. */
must_use struct error *client_result(const struct client_call *call, struct slice *response);
/* The fields that go with every call. */
void client_fields_init(struct grpc_client *client, const struct grpc_client_options *options);

#endif
