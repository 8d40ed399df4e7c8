/* inside.h - what the handlers of api/ share. Only files of api/ include it. */
#ifndef CADENZA_API_INSIDE_H
#define CADENZA_API_INSIDE_H

#include "api/api.h"

struct api {
    struct api_options options;
};

/* The api that a call came to. */
static inline struct api *
api_of(const struct rpc_call *call)
{
    return call->door;
}

/* Handlers, one file per service. */
struct error *api_health(struct rpc_call *call);
struct error *api_grpc_health_check(struct rpc_call *call);
struct error *api_get_cluster_info(struct rpc_call *call);
struct error *api_register_domain(struct rpc_call *call);
struct error *api_describe_domain(struct rpc_call *call);
struct error *api_list_domains(struct rpc_call *call);
struct error *api_update_domain(struct rpc_call *call);
struct error *api_deprecate_domain(struct rpc_call *call);
struct error *api_failover_domain(struct rpc_call *call);
struct error *api_delete_domain(struct rpc_call *call);
struct error *api_list_failover_history(struct rpc_call *call);
struct error *api_backup(struct rpc_call *call);

#endif
