/* service.h - calls with messages: from bytes to a handler and back, for every door.
 *
 * A door (api/ for clients, replication/ for clusters) has a table of methods. Here they become one
 * gRPC service: the path is found, the request decoded into the call's arena, the handler run in
 * the call's fiber, its answer encoded, errors put in the form that Cadence's clients expect,
 * everything counted under Cadence's metric names. */
#ifndef CADENZA_RPC_SERVICE_H
#define CADENZA_RPC_SERVICE_H

#include <protobuf-c/protobuf-c.h>

#include "base/log.h"
#include "base/metrics.h"
#include "net/server.h"

/* One call on its way through a handler. */
struct rpc_call {
    void *door; /* whose table it was found in */
    struct grpc_call *grpc;
    struct arena *arena;
    const ProtobufCMessage *request; /* decoded; of the method's request type */
    ProtobufCMessage *response;      /* initialised; of the method's response type */
    void (*release)(
        void *kept); /* called with `kept` when the response is encoded; NULL: nothing is kept */
    void *kept;      /* what the response points into */
};

struct rpc_method {
    const char *path; /* "/uber.cadence.api.v1.MetaAPI/Health"; NULL ends a table */
    /* Fills the response, or says why not. Runs in the call's fiber; may yield. */
    struct error *(*handle)(struct rpc_call *call);
};

struct rpc_table {
    const struct rpc_method *methods;
    void *door; /* what its handlers get */
};

struct rpc_service;

/* Tables are copied, what they point to is not. A path in two tables is a check. */
struct rpc_service *rpc_service_new(const struct rpc_table *tables, size_t count,
                                    const struct log *log, struct metrics *metrics);
void rpc_service_free(struct rpc_service *service);
/* What to give to grpc_server_open. */
struct grpc_service rpc_service_port(struct rpc_service *service);

/* The error as the public door says it: what clients do not know becomes UNKNOWN, as in Cadence. */
struct error *rpc_error_at_door(const struct error *err, const char *path, struct arena *arena);

#endif
