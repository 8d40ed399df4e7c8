/* over_grpc.c - see over_grpc.h. */
#include "rpc/over_grpc.h"

static struct slice
get_header(const void *carrier, const char *name)
{
    return grpc_call_header(carrier, name);
}

static const struct call_header *
get_headers(const void *carrier, struct arena *arena, size_t *count)
{
    return grpc_call_headers(carrier, arena, count);
}

static void
reply(void *carrier, struct slice message)
{
    grpc_reply_kept(carrier, message);
}

static void
fail(void *carrier, const struct error *err)
{
    grpc_fail(carrier, err);
}

static void
park(void *carrier, void (*on_gone)(void *context), void *context)
{
    grpc_park(carrier, on_gone, context);
}

static const struct rpc_port port = {
    .header = get_header, .headers = get_headers, .reply = reply, .fail = fail, .park = park};

static const void *
find(void *context, struct slice path)
{
    return rpc_service_find(context, path);
}

static void
handle(void *context, const void *found, struct grpc_call *grpc)
{
    rpc_service_serve(context, found,
                      &(struct rpc_arrival){.port = &port,
                                            .carrier = grpc,
                                            .arena = grpc_call_arena(grpc),
                                            .path = grpc_call_path(grpc),
                                            .bytes = grpc_call_request(grpc),
                                            .deadline = grpc_call_deadline(grpc),
                                            .has_timeout = grpc_call_has_timeout(grpc),
                                            .peer = grpc_call_peer(grpc),
                                            .memory = grpc_call_memory(grpc)});
}

struct grpc_service
rpc_over_grpc(struct rpc_service *service)
{
    return (struct grpc_service){.find = find, .handle = handle, .context = service};
}
