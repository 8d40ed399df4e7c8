/* peer.c - see peer.h. */
#include "replication/peer.h"

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "fiber/probe.h"
#include "route/owner.h"
#include "rpc/client.h"

/* How long a kept connection may be silent before the peer is pinged, and how long its answer may
 * take. */
#define KEPT_KEEPALIVE (2 * NS_PER_S)

static struct grpc_client *
client_new(const struct peer_ways *ways, const struct cluster *cluster, int64_t keepalive)
{
    size_t index = (size_t)(cluster - ways->group->clusters);
    check(index < ways->group->count && cluster != ways->group->current);
    check(cluster->rpc_address != NULL && cluster->rpc_address[0] != '\0');
    const char *server_name = cluster->tls.server_name;
    bool has_name = server_name != NULL && server_name[0] != '\0';
    struct rpc_caller caller = {.caller = "cadence-xdc-client",
                                .caller_type = "internal",
                                .live_token = ways->tokens == NULL ? NULL : ways->tokens[index],
                                .server_name = has_name ? server_name : NULL,
                                .keepalive = keepalive};
    return rpc_client_new(cluster->rpc_address, ways->tls == NULL ? NULL : ways->tls[index],
                          &caller);
}

struct grpc_client *
peer_client_new(const struct peer_ways *ways, const struct cluster *cluster)
{
    return client_new(ways, cluster, 0);
}

/* --- clients that are kept ---- */

struct peer_clients {
    struct peer_ways ways;
    unsigned loops;
    struct grpc_client *all[]; /* by loop, then by cluster of the group; NULL: none yet */
};

struct peer_clients *
peer_clients_new(const struct peer_ways *ways)
{
    size_t count = route_place_count() * ways->group->count;
    struct peer_clients *clients =
        memory_zalloc(1, sizeof *clients + count * sizeof clients->all[0]);
    clients->ways = *ways;
    clients->loops = route_place_count();
    return clients;
}

/* The clients of this loop; no other loop touches them. */
static struct grpc_client **
clients_here(struct peer_clients *clients)
{
    unsigned loop = route_place_here();
    check(loop < clients->loops);
    return &clients->all[loop * clients->ways.group->count];
}

struct grpc_client *
peer_clients_find(struct peer_clients *clients, const struct cluster *cluster)
{
    size_t index = (size_t)(cluster - clients->ways.group->clusters);
    check(index < clients->ways.group->count && cluster != clients->ways.group->current);
    struct grpc_client **client = &clients_here(clients)[index];
    if (*client == NULL) {
        probe("peer_client_kept");
        *client = client_new(&clients->ways, cluster, KEPT_KEEPALIVE);
    }
    return *client;
}

static void
free_here(void *argument)
{
    struct peer_clients *clients = argument;
    struct grpc_client **here = clients_here(clients);
    for (size_t i = 0; i < clients->ways.group->count; i++) {
        struct grpc_client *client = here[i];
        here[i] = NULL;
        if (client != NULL)
            grpc_client_free(client);
    }
}

void
peer_clients_free(struct peer_clients *clients)
{
    if (clients == NULL)
        return;
    loop_call_every(free_here, clients);
    memory_free(clients);
}
