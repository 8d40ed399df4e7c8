/* reapply.c - see reapply.h. */
#include "replication/reapply.h"

#include "base/check.h"
#include "engine/replicated.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "replication/inside.h"
#include "replication/peer.h"
#include "rpc/client.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"
#include "wire/thrift.h"

#define PATH         "/uber.cadence.admin.v1.AdminAPI/ReapplyEvents"
#define CALL_TIMEOUT (10 * NS_PER_S)

/* --- sending ---- */

static ADMIN(ReapplyEventsRequest) *
make_request(const struct reapply_message *message, struct arena *arena)
{
    ADMIN(ReapplyEventsRequest) *request = message_new(arena, ADMIN_TYPE(reapply_events_request));
    request->domain = (char *)message->domain_name;
    request->workflow_execution = message_new(arena, API_TYPE(workflow_execution));
    request->workflow_execution->workflow_id = (char *)message->workflow_id;
    request->workflow_execution->run_id = (char *)message->run_id;
    request->events = message_new(arena, API_TYPE(data_blob));
    request->events->encoding_type = API_VALUE(ENCODING_TYPE__ENCODING_TYPE_THRIFTRW);
    request->events->data =
        presence_make_bytes(thrift_encode_kept(arena, message->events, message->count));
    return request;
}

static struct error *
send_events(void *context, const struct reapply_message *message, struct arena *arena)
{
    const struct reapply_sender *sender = context;
    check(message->count > 0); /* who has nothing to hand on does not call */
    const struct cluster *cluster = cluster_group_find(sender->group, message->cluster);
    if (cluster == NULL || cluster == sender->group->current || cluster->rpc_address[0] == '\0')
        return error_new(arena, ERR_UNAVAILABLE, "Cluster %s has no address.", message->cluster);
    struct grpc_client *client = peer_clients_find(sender->clients, cluster);
    ADMIN(ReapplyEventsRequest) *request = make_request(message, arena);
    ADMIN(ReapplyEventsResponse) *response = NULL;
    int64_t deadline = fiber_deadline(), latest = clock_monotonic() + CALL_TIMEOUT;
    fiber_set_deadline(latest < deadline ? latest : deadline);
    struct error *err = rpc_client_call(client, PATH, &request->base, arena,
                                        ADMIN_TYPE(reapply_events_response), &response);
    fiber_set_deadline(deadline);
    probe(err == NULL ? "lost_events_sent_to_peer" : "lost_events_not_sent");
    return err;
}

struct reapply_port
reapply_port_of(struct reapply_sender *sender)
{
    return (struct reapply_port){.send = send_events, .context = sender};
}

/* --- receiving ---- */

static struct error *
check_request(const ADMIN(ReapplyEventsRequest) *request, struct arena *arena)
{
    const API(WorkflowExecution) *execution = request->workflow_execution;
    if (execution == NULL || execution->workflow_id[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST, "WorkflowId is not set on request.");
    if (request->domain[0] == '\0')
        return error_new(arena, ERR_BAD_REQUEST, "Domain not set on request.");
    if (request->events == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "Empty request.");
    return NULL;
}

struct error *
replication_reapply_events(struct rpc_call *call)
{
    const struct replication_options *options = &replication_of(call)->options;
    const ADMIN(ReapplyEventsRequest) *request = (const ADMIN(ReapplyEventsRequest) *)call->request;
    API(HistoryEvent) **events = NULL;
    size_t count = 0;
    struct error *err = check_request(request, call->arena);
    if (err == NULL)
        err = thrift_decode_history(call->arena, ERR_BAD_REQUEST,
                                    presence_read_bytes(request->events->data), &events, &count);
    if (err != NULL)
        return err;
    const struct domain *domain = domains_find_name(options->domains, request->domain);
    if (domain == NULL)
        return errors_entity_not_exists(call->arena, NULL, "Domain %s does not exist.",
                                        request->domain);
    struct run_key key = {arena_text(call->arena, domain->id),
                          request->workflow_execution->workflow_id,
                          request->workflow_execution->run_id};
    return engine_reapply(options->engine, &key, events, count, call->arena);
}
