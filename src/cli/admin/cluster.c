/* cluster.c - what is asked about task lists and about a cluster as a whole. */
#include "cli/admin/cluster.h"

#include <string.h>

#include "base/buffer.h"
#include "base/check.h"
#include "base/farm.h"
#include "base/vector.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "fiber/clock.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "uber/cadence/api/v1/service_meta.pb-c.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/names.h"

#define WORKFLOW_API "/uber.cadence.api.v1.WorkflowAPI/"
#define TIMEOUT      (5 * NS_PER_S)

/* ---- task lists ---- */

static void
print_pollers(const API(DescribeTaskListResponse) *response, struct arena *arena)
{
    struct table table = {.columns = 3, .arena = arena};
    table_add(&table, "POLLER IDENTITY", "LAST ACCESS TIME", "RATE PER SECOND");
    for (size_t i = 0; i < response->n_pollers; i++) {
        const API(PollerInfo) *poller = response->pollers[i];
        table_add(&table, poller->identity, show_time(poller->last_access_time, arena),
                  arena_format(arena, "%g", poller->rate_per_second));
    }
    cli_print("%s", table_text(&table));
}

/* How many tasks wait, as far as it is known: "3", "-". */
static const char *
task_list_backlog(const API(DescribeTaskListResponse) *list, struct arena *arena)
{
    if (list->task_list_status == NULL)
        return "-";
    return arena_format(arena, "%lld", (long long)list->task_list_status->backlog_count_hint);
}

struct error *
task_list_show(struct cli_call *call, const ProtobufCMessage *message)
{
    check(message->descriptor == API_TYPE(describe_task_list_response));
    const API(DescribeTaskListResponse) *response = (const API(DescribeTaskListResponse) *)message;
    const API(TaskListStatus) *status = response->task_list_status;
    if (call->as_json) {
        cli_print_json(render_message(message, RENDER_READABLE, call->arena));
        return NULL;
    }
    if (response->n_pollers == 0)
        cli_print("No worker polls it.\n");
    else
        print_pollers(response, call->arena);
    if (status != NULL)
        cli_print("%lld tasks wait, %g new ones a second; read level %lld, ack level %lld.\n",
                  (long long)status->backlog_count_hint, status->new_tasks_per_second,
                  (long long)status->read_level, (long long)status->ack_level);
    return NULL;
}

struct error *
task_list_complete(struct cli_call *call, ProtobufCMessage *request)
{
    ((API(DescribeTaskListRequest) *)request)->include_task_list_status = true;
    return NULL;
}

struct error *
task_list_show_all(struct cli_call *call, const ProtobufCMessage *message)
{
    check(message->descriptor == API_TYPE(get_task_lists_by_domain_response));
    const API(GetTaskListsByDomainResponse) *response =
        (const API(GetTaskListsByDomainResponse) *)message;
    struct table table = {.columns = 4, .arena = call->arena};
    if (call->as_json) {
        cli_print_json(render_message(message, RENDER_READABLE, call->arena));
        return NULL;
    }
    table_add(&table, "TASK LIST", "TYPE", "POLLERS", "BACKLOG");
    for (size_t i = 0; i < response->n_decision_task_list_map; i++) {
        const API(DescribeTaskListResponse) *one = response->decision_task_list_map[i]->value;
        table_add(&table, response->decision_task_list_map[i]->key, "decision",
                  arena_format(call->arena, "%zu", one->n_pollers),
                  task_list_backlog(one, call->arena));
    }
    for (size_t i = 0; i < response->n_activity_task_list_map; i++) {
        const API(DescribeTaskListResponse) *one = response->activity_task_list_map[i]->value;
        table_add(&table, response->activity_task_list_map[i]->key, "activity",
                  arena_format(call->arena, "%zu", one->n_pollers),
                  task_list_backlog(one, call->arena));
    }
    cli_print("%s", table_text(&table));
    return NULL;
}

struct error *
task_list_show_partitions(struct cli_call *call, const ProtobufCMessage *message)
{
    check(message->descriptor == API_TYPE(list_task_list_partitions_response));
    const API(ListTaskListPartitionsResponse) *response =
        (const API(ListTaskListPartitionsResponse) *)message;
    struct table table = {.columns = 3, .arena = call->arena};
    if (call->as_json) {
        cli_print_json(render_message(message, RENDER_READABLE, call->arena));
        return NULL;
    }
    table_add(&table, "PARTITION", "TYPE", "HOST");
    for (size_t i = 0; i < response->n_decision_task_list_partitions; i++)
        table_add(&table, response->decision_task_list_partitions[i]->key, "decision",
                  response->decision_task_list_partitions[i]->owner_host_name);
    for (size_t i = 0; i < response->n_activity_task_list_partitions; i++)
        table_add(&table, response->activity_task_list_partitions[i]->key, "activity",
                  response->activity_task_list_partitions[i]->owner_host_name);
    cli_print("%s", table_text(&table));
    return NULL;
}

/* ---- the cluster ---- */

struct error *
cluster_show_search_attributes(struct cli_call *call, const ProtobufCMessage *message)
{
    check(message->descriptor == API_TYPE(get_search_attributes_response));
    const API(GetSearchAttributesResponse) *response =
        (const API(GetSearchAttributesResponse) *)message;
    struct table table = {.columns = 2, .arena = call->arena};
    if (call->as_json) {
        cli_print_json(render_message(message, RENDER_READABLE, call->arena));
        return NULL;
    }
    table_add(&table, "KEY", "VALUE TYPE");
    for (size_t i = 0; i < response->n_keys; i++)
        table_add(&table, response->keys[i]->key,
                  show_enum(API_TYPE(indexed_value_type), "INDEXED_VALUE_TYPE_",
                            (int)response->keys[i]->value, call->arena));
    cli_print("%s", table_text(&table));
    return NULL;
}

/* Health and version of the server, on one page. */
struct error *
cli_cluster_health(struct cli_call *call)
{
    API(HealthRequest) health = API_VALUE(HEALTH_REQUEST__INIT);
    API(GetClusterInfoRequest) info = API_VALUE(GET_CLUSTER_INFO_REQUEST__INIT);
    ProtobufCMessage *first = NULL, *second = NULL;
    struct error *err = cli_ask(call, "/uber.cadence.api.v1.MetaAPI/Health", &health.base, TIMEOUT,
                                API_TYPE(health_response), &first);
    if (err == NULL)
        err = cli_ask(call, WORKFLOW_API "GetClusterInfo", &info.base, TIMEOUT,
                      API_TYPE(get_cluster_info_response), &second);
    if (err != NULL)
        return err;
    const API(HealthResponse) *healthy = (const API(HealthResponse) *)first;
    const API(SupportedClientVersions) *versions =
        ((const API(GetClusterInfoResponse) *)second)->supported_client_versions;
    call->exit_code = healthy->ok ? 0 : 1;
    if (call->as_json) {
        cli_print_json(json_pack("{s:s, s:b, s:s, s:s, s:s}", "address", call->address, "ok",
                                 (int)healthy->ok, "message", healthy->message, "goClients",
                                 versions->go_sdk, "javaClients", versions->java_sdk));
        return NULL;
    }
    cli_print("%s: %s (%s)\nclients: Go up to %s, Java up to %s\n", call->address,
              healthy->ok ? "healthy" : "not healthy", show_text(healthy->message, call->arena),
              show_text(versions->go_sdk, call->arena), show_text(versions->java_sdk, call->arena));
    return NULL;
}

/* ---- the other clusters ---- */

const char *
peer_past_text(const STORE_API(Peer) *peer, struct arena *arena)
{
    check(peer->is_past_wanted);
    if (peer->past_shards == 0)
        return "has not answered yet";
    return arena_format(arena, "%d of %d shards were read", (int)peer->past_read,
                        (int)peer->past_shards);
}

bool
peers_have_past_wanted(const STORE_API(DescribePeersResponse) *peers)
{
    for (size_t i = 0; i < peers->n_peers; i++)
        if (peers->peers[i]->is_past_wanted)
            return true;
    return false;
}

static const char *
peer_state_text(const STORE_API(Peer) *peer)
{
    if (!peer->is_followed)
        return "not followed";
    return peer->has_other_settings ? "other settings" : peer->is_away ? "away" : "followed";
}

static const char *
peers_table(const STORE_API(DescribePeersResponse) *peers, struct arena *arena)
{
    struct table table = {.columns = 5, .arena = arena};
    table_add(&table, "CLUSTER", "ADDRESS", "STATE", "LAST HEARD", "WAITING");
    for (size_t i = 0; i < peers->n_peers; i++) {
        const STORE_API(Peer) *peer = peers->peers[i];
        int64_t heard = peer->heard_nanoseconds / NS_PER_S * NS_PER_S;
        table_add(&table, peer->name, show_or_dash(peer->address, arena), peer_state_text(peer),
                  heard == 0 ? "-" : render_time(heard, arena),
                  arena_format(arena, "%lld", (long long)peer->waiting));
    }
    return table_text(&table);
}

const char *
peers_text(const STORE_API(DescribePeersResponse) *peers, struct arena *arena)
{
    struct buffer text = {0};
    bool is_recovering = peers_have_past_wanted(peers);
    if (peers->n_peers == 0)
        buffer_append_format(&text, "%s is alone.\n", show_text(peers->cluster, arena));
    else
        buffer_append_text(&text, peers_table(peers, arena));
    for (size_t i = 0; i < peers->n_peers; i++)
        if (peers->peers[i]->failure[0] != '\0')
            buffer_append_format(&text, "%s: %s\n", show_text(peers->peers[i]->name, arena),
                                 show_text(peers->peers[i]->failure, arena));
    if (is_recovering)
        buffer_append_format(&text, "%s lost memory and reads from the others what it had:\n",
                             show_text(peers->cluster, arena));
    for (size_t i = 0; i < peers->n_peers; i++)
        if (peers->peers[i]->is_past_wanted)
            buffer_append_format(&text, "  %s: %s\n", show_text(peers->peers[i]->name, arena),
                                 peer_past_text(peers->peers[i], arena));
    const char *kept = arena_text_of(arena, buffer_slice(&text));
    buffer_free(&text);
    return kept;
}

/* Of numbers a message leaves out 0, which says something here. */
json_t *
peers_json(const STORE_API(DescribePeersResponse) *peers, struct arena *arena)
{
    json_t *all = render_message(&peers->base, RENDER_READABLE, arena);
    json_t *shown = json_object_get(all, "peers");
    for (size_t i = 0; i < peers->n_peers; i++) {
        json_t *peer = json_array_get(shown, i);
        if (!peers->peers[i]->is_past_wanted)
            continue;
        json_object_set_new(peer, "pastRead", json_integer(peers->peers[i]->past_read));
        json_object_set_new(peer, "pastShards", json_integer(peers->peers[i]->past_shards));
    }
    return all;
}

struct error *
cluster_show_peers(struct cli_call *call, const ProtobufCMessage *message)
{
    check(message->descriptor == &cadenza__admin__v1__describe_peers_response__descriptor);
    const STORE_API(DescribePeersResponse) *peers =
        (const STORE_API(DescribePeersResponse) *)message;
    if (call->as_json)
        cli_print_json(peers_json(peers, call->arena));
    else
        cli_print("%s", peers_text(peers, call->arena));
    return NULL;
}

/* ---- shards ---- */

struct error *
cli_admin_get_shard(struct cli_call *call)
{
    const char *workflow_id;
    int64_t count;
    struct error *err = cli_need(call, "workflow_id", &workflow_id);
    if (err == NULL)
        err = cli_number(call, "number_of_shards", 1, INT32_MAX, 0, &count);
    if (err != NULL)
        return err;
    if (count == 0)
        return cli_wrong(call, error_new(call->arena, ERR_BAD_REQUEST,
                                         "--number_of_shards is missing: give the number that the "
                                         "cluster was made with (16 unless set)"));
    uint32_t hash = farm_fingerprint32(slice_text(workflow_id));
    cli_print("ShardId for workflowID: %s is %lld\n", show_text(workflow_id, call->arena),
              (long long)(hash % (uint64_t)count));
    return NULL;
}
