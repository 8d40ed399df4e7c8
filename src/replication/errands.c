/* errands.c - see errands.h. Connections stay (peer.h): workflows of two homes may have much to say
 * to each other. */
#include "replication/errands.h"

#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "replication/inside.h"
#include "replication/peer.h"
#include "rpc/client.h"

#define PATH         "/cadenza.admin.v1.ReplicationAPI/RunErrand"
#define CALL_TIMEOUT (10 * NS_PER_S)

static struct error *
send_errand(void *context, const char *name, const STORE_API(RunErrandRequest) *request,
            struct arena *arena, STORE_API(RunErrandResponse) **response)
{
    const struct reapply_sender *sender = context;
    const struct cluster *cluster = cluster_group_find(sender->group, name);
    if (cluster == NULL || cluster == sender->group->current || cluster->rpc_address[0] == '\0')
        return error_new(arena, ERR_UNAVAILABLE, "Cluster %s has no address.", name);
    struct grpc_client *client = peer_clients_find(sender->clients, cluster);
    int64_t deadline = fiber_deadline(), latest = clock_monotonic() + CALL_TIMEOUT;
    fiber_set_deadline(latest < deadline ? latest : deadline);
    struct error *err =
        rpc_client_call(client, PATH, &request->base, arena,
                        &cadenza__admin__v1__run_errand_response__descriptor, response);
    fiber_set_deadline(deadline);
    return err;
}

struct abroad_port
abroad_port_of(struct reapply_sender *sender)
{
    return (struct abroad_port){.send = send_errand, .context = sender};
}

struct error *
replication_run_errand(struct rpc_call *call)
{
    return engine_run_foreign_errand(replication_of(call)->options.engine,
                                     (const STORE_API(RunErrandRequest) *)call->request,
                                     call->arena, (STORE_API(RunErrandResponse) *)call->response);
}
