/* client.h - calls with messages to other servers: encode, call, decode. For peers, the command
 * line and simulated clients. */
#ifndef CADENZA_RPC_CLIENT_H
#define CADENZA_RPC_CLIENT_H

#include <protobuf-c/protobuf-c.h>

#include "net/client.h"

/* Who calls, for the headers that Cadence's servers expect of everybody. */
struct rpc_caller {
    const char *caller;                        /* rpc-caller: "cadenza-cli", "cadence-xdc-client" */
    const char *caller_type;                   /* cadence-caller-type: "cli", "internal" */
    const char *client_name, *feature_version; /* cadence-client-*; NULL: not sent */
    const char *token;                         /* cadence-authorization; NULL: not sent */
    const struct grpc_live_header *live_token; /* a token that is renewed; NULL: none */
    const char *server_name; /* that the certificate of the other side must have; NULL: its host */
    int64_t keepalive;       /* as in net/client.h; 0: 10 s */
};

/* A client that sends those headers. Does not connect yet. */
struct grpc_client *rpc_client_new(const char *address, struct tls *tls,
                                   const struct rpc_caller *caller);

/* One unary call, until the fiber's deadline. *response points to a message of `type` in the arena.
 * Yields. Errors: as grpc_client_call; ERR_UNCATEGORISED when the answer cannot be decoded. */
#define rpc_client_call(client, path, request, arena, type, response)                              \
    rpc_client_call_at((client), (path), (request), (arena), (type),                               \
                       (ProtobufCMessage **)(response) + 0 * sizeof(&(*(response))->base))
must_use struct error *rpc_client_call_at(struct grpc_client *client, const char *path,
                                          const ProtobufCMessage *request, struct arena *arena,
                                          const ProtobufCMessageDescriptor *type,
                                          ProtobufCMessage **response);

#endif
