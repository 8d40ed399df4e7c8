/* cross_tasks.c - see cross_tasks.h. Connections are kept (peer.h): workflows with different homes
 * may send each other many tasks. */
#include "replication/cross_tasks.h"

#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "replication/inside.h"
#include "replication/peer.h"
#include "rpc/client.h"

#define PATH         "/cadenza.admin.v1.ReplicationAPI/RunErrand"
#define WORKFLOW_API "/uber.cadence.api.v1.WorkflowAPI/"
#define CALL_TIMEOUT (10 * NS_PER_S)

/* NULL: it cannot be called. */
static struct grpc_client *
find_client(const struct reapply_sender *sender, const char *name)
{
    const struct cluster *cluster = cluster_group_find(sender->group, name);
    if (cluster == NULL || cluster == sender->group->current || cluster->rpc_address[0] == '\0')
        return NULL;
    return peer_clients_find(sender->clients, cluster);
}

static struct error *
call_cluster(void *context, const char *name, const char *path, const ProtobufCMessage *request,
             const ProtobufCMessageDescriptor *type, struct arena *arena,
             ProtobufCMessage **response)
{
    struct grpc_client *client = find_client(context, name);
    if (client == NULL)
        return error_new(arena, ERR_UNAVAILABLE, "Cluster %s has no address.", name);
    int64_t deadline = fiber_deadline(), latest = clock_monotonic() + CALL_TIMEOUT;
    fiber_set_deadline(latest < deadline ? latest : deadline);
    struct error *err = rpc_client_call_at(client, path, request, arena, type, response);
    fiber_set_deadline(deadline);
    return err;
}

static struct error *
send_cross_task(void *context, const char *name, const STORE_API(RunErrandRequest) *request,
                struct arena *arena, STORE_API(RunErrandResponse) **response)
{
    return call_cluster(context, name, PATH, &request->base,
                        &cadenza__admin__v1__run_errand_response__descriptor, arena,
                        (ProtobufCMessage **)response);
}

static struct error *
send_start(void *context, const char *name, const STORED(TransferRow) *row, struct arena *arena)
{
    ProtobufCMessage *unused = NULL;
    if (row->signal_with_start != NULL)
        return call_cluster(context, name, WORKFLOW_API "SignalWithStartWorkflowExecution",
                            &row->signal_with_start->base,
                            API_TYPE(signal_with_start_workflow_execution_response), arena,
                            &unused);
    return call_cluster(context, name, WORKFLOW_API "StartWorkflowExecution", &row->start->base,
                        API_TYPE(start_workflow_execution_response), arena, &unused);
}

struct remote_port
remote_port_of(struct reapply_sender *sender)
{
    return (struct remote_port){.send = send_cross_task, .start = send_start, .context = sender};
}

struct error *
replication_run_cross_task(struct rpc_call *call)
{
    return engine_run_remote_cross_task(
        replication_of(call)->options.engine, (const STORE_API(RunErrandRequest) *)call->request,
        call->arena, (STORE_API(RunErrandResponse) *)call->response);
}
