/* client.h - calls to other servers: one connection per client and loop, made when needed and made
 * again when lost.
 *
 * A client belongs to the loop that made it; any number of fibers may call at the same time
 * (streams of one connection). */
#ifndef CADENZA_NET_CLIENT_H
#define CADENZA_NET_CLIENT_H

#include "base/log.h"
#include "fiber/tls.h"
#include "net/grpc.h"

struct grpc_client;

/* A header whose value does not last, e.g. a token. */
struct grpc_live_header {
    const char *name; /* a literal */
    /* The value for a call that is sent now, in the arena; NULL: none. No yield; on any loop. */
    const char *(*value)(void *context, struct arena *arena);
    void *context;
};

struct grpc_client_options {
    const char *address;     /* "127.0.0.1:7833" */
    struct tls *tls;         /* NULL: plain */
    const char *server_name; /* for TLS; NULL: the host of the address */
    size_t message_max;      /* 0: GRPC_MESSAGE_MAX_DEFAULT */
    int64_t connect_timeout; /* ns; 0: 5 s */
    int64_t keepalive; /* ping while calls wait and nothing came for so long, ns, so that a lost
                          peer is noticed; 0: 5 min. Other makes of servers cut off who pings more
                          often than that; ours do not: between cadenzas 10 s is a good choice */
    bool is_probing;   /* a ping with each answer, at most one under way: clients in Go do that to
                          learn the bandwidth, so a load that shall be like theirs does, too */
    const struct call_header *headers; /* sent with every call: rpc-caller and so on */
    size_t header_count;
    const struct grpc_live_header *live_header; /* outlives the client; NULL: none */
};

/* Does not connect yet. */
struct grpc_client *grpc_client_new(const struct grpc_client_options *options);
/* Ends all calls with ERR_CANCELLED, closes, frees. Yields. */
void grpc_client_free(struct grpc_client *client);
/* The next call connects at once, though attempts before it failed: somebody wants to know. */
void grpc_client_hurry(struct grpc_client *client);

struct grpc_request {
    const char *path; /* "/uber.cadence.api.v1.MetaAPI/Health" */
    struct slice message;
    const struct call_header *headers; /* of this call, beside the client's */
    size_t header_count;
};
/* One unary call, until the fiber's deadline (sent as grpc-timeout) or cancel (sent as RST_STREAM).
 * Yields. Errors: what the server said, as the kind whose status and detail it has (ERR_BAD_REQUEST
 * for 3 without detail, …, otherwise ERR_UNCATEGORISED with the status in the message);
 * ERR_UNAVAILABLE (no connection: nothing was sent, or it is unknown whether it was done: the
 * message says which), ERR_DEADLINE, ERR_CANCELLED. */
must_use struct error *grpc_client_call(struct grpc_client *client,
                                        const struct grpc_request *request, struct arena *arena,
                                        struct slice *response);

#endif
