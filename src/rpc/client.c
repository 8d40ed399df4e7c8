/* client.c - see client.h. */
#include "rpc/client.h"

#include "fiber/clock.h"
#include "wire/message.h"

struct grpc_client *
rpc_client_new(const char *address, struct tls *tls, const struct rpc_caller *caller)
{
    const struct {
        const char *name, *value;
    } known[] = {
        {"rpc-caller", caller->caller},
        {"rpc-service", "cadence-frontend"},
        {"rpc-encoding", "proto"},
        {"cadence-caller-type", caller->caller_type},
        {"cadence-client-name", caller->client_name},
        {"cadence-client-library-version", caller->feature_version},
        {"cadence-client-feature-version", caller->feature_version},
        {"cadence-authorization", caller->token},
    };
    struct call_header headers[array_length(known)];
    size_t count = 0;
    for (size_t i = 0; i < array_length(known); i++) {
        if (known[i].value != NULL)
            headers[count++] =
                (struct call_header){slice_text(known[i].name), slice_text(known[i].value)};
    }
    return grpc_client_new(&(struct grpc_client_options){
        .address = address,
        .tls = tls,
        .server_name = caller->server_name,
        /* our peers tolerate frequent pings */
        .keepalive = caller->keepalive > 0 ? caller->keepalive : 10 * NS_PER_S,
        .headers = headers,
        .header_count = count,
        .live_header = caller->live_token,
    });
}

struct error *
rpc_client_call_at(struct grpc_client *client, const char *path, const ProtobufCMessage *request,
                   struct arena *arena, const ProtobufCMessageDescriptor *type,
                   ProtobufCMessage **response)
{
    struct grpc_request call = {.path = path, .message = message_encode(arena, request)};
    struct slice bytes;
    struct error *err = grpc_client_call(client, &call, arena, &bytes);
    if (err == NULL)
        err = message_decode_at(arena, ERR_UNCATEGORISED, type, bytes, response);
    return err;
}
