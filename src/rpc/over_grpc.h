/* over_grpc.h - the calls of a service, carried by gRPC. */
#ifndef CADENZA_RPC_OVER_GRPC_H
#define CADENZA_RPC_OVER_GRPC_H

#include "net/server.h"
#include "rpc/service.h"

/* What to give to grpc_server_open. The service outlives the server. */
struct grpc_service rpc_over_grpc(struct rpc_service *service);

#endif
