/* peer.c - see peer.h. */
#include "replication/peer.h"

#include "base/check.h"
#include "rpc/client.h"

struct grpc_client *
peer_client_new(const struct peer_ways *ways, const struct cluster *cluster)
{
    size_t index = (size_t)(cluster - ways->group->clusters);
    check(index < ways->group->count && cluster != ways->group->current);
    const char *server_name = cluster->tls.server_name;
    bool has_name = server_name != NULL && server_name[0] != '\0';
    struct rpc_caller caller = {.caller = "cadence-xdc-client",
                                .caller_type = "internal",
                                .live_token = ways->tokens == NULL ? NULL : ways->tokens[index],
                                .server_name = has_name ? server_name : NULL};
    return rpc_client_new(cluster->rpc_address, ways->tls == NULL ? NULL : ways->tls[index],
                          &caller);
}
