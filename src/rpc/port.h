/* port.h - how a call came, and how it is answered: what a transport does for the calls it carries.
 *
 * gRPC is one transport (over_grpc.h); a test that calls without a network is another
 * (service_test.c). A call knows the facts of its arrival and the functions of its port, and
 * nothing of either transport. */
#ifndef CADENZA_RPC_PORT_H
#define CADENZA_RPC_PORT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "net/call.h"

/* Each gets the carrier of the call; on the loop of the call only. No yield. */
struct rpc_port {
    /* A header of the request, empty if absent; `name` in lower case. */
    struct slice (*header)(const void *carrier, const char *name);
    /* All of them that are the caller's, in its order. They point into the call. */
    const struct call_header *(*headers)(const void *carrier, struct arena *arena, size_t *count);
    /* Answers once: with bytes that live in the call's arena, in its request or for ever, or with
     * an error. Nobody waits any more: then nothing happens. */
    void (*reply)(void *carrier, struct slice message);
    void (*fail)(void *carrier, const struct error *err);
    /* Keeps the call beyond its handler. `on_gone` must not yield; it is called when the caller has
     * gone or its time has passed, after which the call does not exist any more. */
    void (*park)(void *carrier, void (*on_gone)(void *context), void *context);
};

struct rpc_arrival {
    const struct rpc_port *port;
    void *carrier;
    struct arena *arena;        /* lives until the call is answered, or gone */
    struct slice path;          /* "/uber.cadence.api.v1.MetaAPI/Health" */
    struct slice bytes;         /* the request; while the handler runs */
    int64_t deadline;           /* monotonic; always set */
    bool has_timeout;           /* did the caller set it? */
    const char *peer;           /* the address that it came from */
    struct call_memory *memory; /* of its connection */
};

#endif
