/* client.c - see client.h. */
#include "rpc/client.h"

#include "fiber/clock.h"
#include "wire/message.h"

struct grpc_client *
rpc_client_new(const char *address, struct tls *tls, const struct rpc_caller *caller)
{
    const struct grpc_header headers[] = {
        {slice_text("rpc-caller"), slice_text(caller->caller)},
        {slice_text("rpc-service"), slice_text("cadence-frontend")},
        {slice_text("rpc-encoding"), slice_text("proto")},
        {slice_text("cadence-caller-type"), slice_text(caller->caller_type)},
    };
    return grpc_client_new(&(struct grpc_client_options){
        .address = address,
        .tls = tls,
        .server_name = caller->server_name,
        .keepalive = 10 * NS_PER_S, /* the peers are ours and do not mind */
        .headers = headers,
        .header_count = array_length(headers),
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
