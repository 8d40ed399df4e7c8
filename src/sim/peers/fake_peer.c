/* fake_peer.c - see fake_peer.h. */
#include "sim/peers/fake_peer.h"

#include <stdio.h>
#include <string.h>

#include "cadenza/admin/v1/service.pb-c.h"
#include "route/owner.h"
#include "rpc/over_grpc.h"
#include "wire/errors.h"
#include "wire/thrift.h"

#define TASK(name)        ADMIN_VALUE(REPLICATION_TASK_TYPE__REPLICATION_TASK_TYPE_##name)
#define ADMIN_PATH(name)  "/uber.cadence.admin.v1.AdminAPI/" name
#define REPLICATION_QUEUE ADMIN_VALUE(DLQTYPE__DLQ_TYPE_REPLICATION)

uint32_t
fake_peer_shard_of(const char *id)
{
    return route_shard_of(slice_text(id), SIM_SHARDS);
}

/* A history of one version that ends with this event. */
static ADMIN(VersionHistory) *
fake_versions(const API(HistoryEvent) *last, struct arena *arena)
{
    ADMIN(VersionHistory) *history = ADMIN_NEW(arena, version_history);
    history->items = arena_zalloc(arena, 1, sizeof *history->items);
    history->items[0] = ADMIN_NEW(arena, version_history_item, .event_id = last->event_id,
                                  .version = last->version);
    history->n_items = 1;
    return history;
}

#define UNKNOWN_REST "-2222-4333-8444-555555555555"

static ADMIN(ReplicationTask) *
fake_marker(const struct fake_peer *fake_peer, struct arena *arena)
{
    return ADMIN_NEW(
        arena, replication_task, .task_type = TASK(FAILOVER_MARKER), .source_task_id = MARKER_ROW,
        .attributes_case = ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_FAILOVER_MARKER_ATTRIBUTES),
        .failover_marker_attributes =
            ADMIN_NEW(arena, failover_marker_attributes, .domain_id = (char *)fake_peer->domain_id,
                      .failover_version = fake_peer->marker_version,
                      .creation_time = presence_make_timestamp(arena, clock_wall())));
}

static ADMIN(GetReplicationMessagesResponse__ShardMessagesEntry) *
fake_entry(const struct fake_peer *fake_peer, uint32_t shard, int64_t after, struct arena *arena)
{
    ADMIN(GetReplicationMessagesResponse__ShardMessagesEntry) *entry =
        message_new(arena, ADMIN_TYPE(get_replication_messages_response__shard_messages_entry));
    ADMIN(ReplicationMessages) *messages = ADMIN_NEW(arena, replication_messages);
    entry->key = (int32_t)shard;
    entry->value = messages;
    messages->replication_tasks = arena_zalloc(arena, FAKE_TASKS_MAX + 1, sizeof(void *));
    messages->last_retrieved_message_id = after < 0 ? 0 : after;
    if (shard == fake_peer->shard && after < fake_peer->resync_to) {
        messages->resync_to = fake_peer->resync_to;
        return entry;
    }
    for (size_t i = 0; shard == fake_peer->shard && i < fake_peer->count; i++) {
        if (fake_peer->tasks[i]->source_task_id > after)
            messages->replication_tasks[messages->n_replication_tasks++] = fake_peer->tasks[i];
    }
    if (fake_peer->marker_version != 0 && after < MARKER_ROW)
        messages->replication_tasks[messages->n_replication_tasks++] =
            fake_marker(fake_peer, arena);
    if (messages->n_replication_tasks > 0)
        messages->last_retrieved_message_id =
            messages->replication_tasks[messages->n_replication_tasks - 1]->source_task_id;
    return entry;
}

static struct error *
fake_messages(struct rpc_call *call)
{
    struct fake_peer *fake_peer = call->door;
    const ADMIN(GetReplicationMessagesRequest) *request =
        (const ADMIN(GetReplicationMessagesRequest) *)call->request;
    ADMIN(GetReplicationMessagesResponse) *response =
        (ADMIN(GetReplicationMessagesResponse) *)call->response;
    struct arena *arena = call->arena;
    response->shard_messages =
        arena_zalloc(arena, request->n_tokens, sizeof *response->shard_messages);
    for (size_t i = 0; i < request->n_tokens; i++) {
        const ADMIN(ReplicationToken) *token = request->tokens[i];
        uint32_t shard = (uint32_t)token->shard_id;
        if (shard == fake_peer->shard)
            fake_peer->acknowledged = token->last_processed_message_id;
        response->shard_messages[response->n_shard_messages++] =
            fake_entry(fake_peer, shard, token->last_retrieved_message_id, arena);
    }
    return NULL;
}

/* The same as the other cluster says: there is no failover under way. */
static struct error *
fake_describe(struct rpc_call *call)
{
    const struct fake_peer *fake_peer = call->door;
    if (fake_peer->domain.length == 0)
        return error_new(call->arena, ERR_UNAVAILABLE, "not now");
    return message_decode(call->arena, API_TYPE(domain), fake_peer->domain,
                          &((API(DescribeDomainResponse) *)call->response)->domain);
}

static STORE_API(ListedRun) *
fake_run(const struct fake_peer *fake_peer, const char *domain_id, const char *run_id,
         struct arena *arena)
{
    STORE_API(ListedRun) *run = message_new(arena, &cadenza__admin__v1__listed_run__descriptor);
    const API(HistoryEvent) *last = fake_peer->history[fake_peer->history_count - 1];
    run->domain_id = (char *)domain_id;
    run->workflow_id = "w";
    run->run_id = (char *)run_id;
    run->histories = arena_zalloc(arena, 1, sizeof *run->histories);
    run->histories[run->n_histories++] = fake_versions(last, arena);
    return run;
}

static struct error *
fake_runs(struct rpc_call *call)
{
    struct fake_peer *fake_peer = call->door;
    const STORE_API(ListRunsRequest) *request = (const STORE_API(ListRunsRequest) *)call->request;
    STORE_API(ListRunsResponse) *response = (STORE_API(ListRunsResponse) *)call->response;
    unsigned count = (uint32_t)request->shard_id == fake_peer->shard ? fake_peer->run_count : 0;
    response->runs = arena_zalloc(call->arena, count + 1, sizeof *response->runs);
    for (unsigned i = 0; i < count; i++) {
        const char *run_id =
            i == 0 ? UNKNOWN_RUN : arena_format(call->arena, "%08u" UNKNOWN_REST, i);
        response->runs[response->n_runs++] =
            fake_run(fake_peer, fake_peer->domain_id, run_id, call->arena);
    }
    return NULL;
}

static struct error *
fake_history(const struct fake_peer *fake_peer,
             ADMIN(GetWorkflowExecutionRawHistoryV2Response) *response, struct arena *arena)
{
    API(DataBlob) *blob =
        API_NEW(arena, data_blob, .encoding_type = API_VALUE(ENCODING_TYPE__ENCODING_TYPE_THRIFTRW),
                .data = presence_make_bytes(
                    thrift_encode_history(arena, fake_peer->history, fake_peer->history_count)));
    response->history_batches = arena_zalloc(arena, 1, sizeof *response->history_batches);
    response->history_batches[response->n_history_batches++] = blob;
    response->version_history =
        fake_versions(fake_peer->history[fake_peer->history_count - 1], arena);
    return NULL;
}

static struct error *
fake_raw(struct rpc_call *call)
{
    struct fake_peer *fake_peer = call->door;
    fake_peer->raw_calls++;
    if (fake_peer->history != NULL)
        return fake_history(fake_peer,
                            (ADMIN(GetWorkflowExecutionRawHistoryV2Response) *)call->response,
                            call->arena);
    if (fake_peer->is_away)
        return error_new(call->arena, ERR_UNAVAILABLE, "not now");
    if (fake_peer->refuses)
        return error_new(call->arena, ERR_BAD_REQUEST, "no such events");
    return errors_entity_not_exists(call->arena, NULL, "no such run");
}

static struct error *
fake_domains(struct rpc_call *call)
{
    ADMIN(GetDomainReplicationMessagesResponse) *response =
        (ADMIN(GetDomainReplicationMessagesResponse) *)call->response;
    response->messages = ADMIN_NEW(call->arena, replication_messages);
    const ADMIN(GetDomainReplicationMessagesRequest) *request =
        (const ADMIN(GetDomainReplicationMessagesRequest) *)call->request;
    response->messages->last_retrieved_message_id =
        presence_read_int64(request->last_retrieved_message_id).value;
    return NULL;
}

static struct error *
fake_ended(struct rpc_call *call)
{
    struct fake_peer *fake_peer = call->door;
    fake_peer->cross_task_calls++;
    if (fake_peer->is_cadence)
        return error_new(call->arena, ERR_UNIMPLEMENTED, "unknown method");
    return error_new(call->arena, ERR_ALREADY_COMPLETED, "workflow execution already completed");
}

static void
note_start(struct fake_peer *fake_peer, const API(StartWorkflowExecutionRequest) *request)
{
    snprintf(fake_peer->request_id, sizeof fake_peer->request_id, "%s", request->request_id);
    fake_peer->starts++;
}

static struct error *
fake_started(struct rpc_call *call)
{
    note_start(call->door, (const API(StartWorkflowExecutionRequest) *)call->request);
    ((API(StartWorkflowExecutionResponse) *)call->response)->run_id = UNKNOWN_RUN;
    return NULL;
}

static struct error *
fake_signaled(struct rpc_call *call)
{
    const API(SignalWithStartWorkflowExecutionRequest) *request =
        (const API(SignalWithStartWorkflowExecutionRequest) *)call->request;
    note_start(call->door, request->start_request);
    ((struct fake_peer *)call->door)->signals++;
    ((API(SignalWithStartWorkflowExecutionResponse) *)call->response)->run_id = UNKNOWN_RUN;
    return NULL;
}

static const struct rpc_method lies[] = {
    {ADMIN_PATH("GetReplicationMessages"), fake_messages},
    {ADMIN_PATH("GetWorkflowExecutionRawHistoryV2"), fake_raw},
    {ADMIN_PATH("GetDomainReplicationMessages"), fake_domains},
    {"/cadenza.admin.v1.ReplicationAPI/ListRuns", fake_runs},
    {"/cadenza.admin.v1.ReplicationAPI/RunErrand", fake_ended},
    {"/uber.cadence.api.v1.DomainAPI/DescribeDomain", fake_describe},
    {"/uber.cadence.api.v1.WorkflowAPI/StartWorkflowExecution", fake_started},
    {"/uber.cadence.api.v1.WorkflowAPI/SignalWithStartWorkflowExecution", fake_signaled},
    {NULL, NULL},
};

static void
fake_peer_main(void *argument)
{
    struct fake_peer *fake_peer = argument;
    struct arena *arena = arena_new(0);
    struct rpc_table table = {.methods = lies, .door = fake_peer};
    fake_peer->metrics = metrics_new();
    fake_peer->service = rpc_service_new(&table, 1, NULL, fake_peer->metrics);
    struct grpc_server_options door = {.address = "host0:" SIM_PORT,
                                       .metrics = fake_peer->metrics,
                                       .service = rpc_over_grpc(fake_peer->service)};
    EXPECT_OK(grpc_server_open(&door, arena, &fake_peer->server));
    fiber_wait_uncancellable(); /* until it is crashed */
}

API(HistoryEvent) *
fake_start_event(struct script *script, int64_t event_version)
{
    return API_NEW(
        script->arena, history_event, .event_id = 1, .version = event_version, .task_id = 1,
        .event_time = presence_make_timestamp(script->arena, clock_wall()),
        .attributes_case =
            API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES),
        .workflow_execution_started_event_attributes = API_NEW(
            script->arena, workflow_execution_started_event_attributes,
            .workflow_type = API_NEW(script->arena, workflow_type, .name = "t"),
            .task_list = API_NEW(script->arena, task_list, .name = SCRIPT_LIST),
            .execution_start_to_close_timeout = presence_make_duration(script->arena, 3600),
            .task_start_to_close_timeout = presence_make_duration(script->arena, 10),
            .original_execution_run_id = UNKNOWN_RUN, .first_execution_run_id = UNKNOWN_RUN));
}

API(HistoryEvent) *
fake_signal_event(struct script *script, int64_t event_id, int64_t event_version)
{
    return API_NEW(
        script->arena, history_event, .event_id = event_id, .version = event_version,
        .task_id = event_id, .event_time = presence_make_timestamp(script->arena, clock_wall()),
        .attributes_case =
            API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES),
        .workflow_execution_signaled_event_attributes = API_NEW(
            script->arena, workflow_execution_signaled_event_attributes, .signal_name = "s"));
}

ADMIN(ReplicationTask) *
fake_task(struct script *script, int64_t row, API(HistoryEvent) **events, size_t count)
{
    struct arena *arena = script->arena;
    ADMIN(ReplicationTask) *task = ADMIN_NEW(
        arena, replication_task, .task_type = TASK(HISTORY_V2), .source_task_id = row,
        .attributes_case = ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_HISTORY_TASK_V2_ATTRIBUTES));
    ADMIN(HistoryTaskV2Attributes) *batch =
        ADMIN_NEW(arena, history_task_v2_attributes, .domain_id = (char *)script->domain_id,
                  .workflow_execution = API_NEW(arena, workflow_execution, .workflow_id = "w",
                                                .run_id = UNKNOWN_RUN));
    ADMIN(VersionHistory) *versions = fake_versions(events[count - 1], arena);
    batch->version_history_items = versions->items;
    batch->n_version_history_items = versions->n_items;
    batch->events =
        API_NEW(arena, data_blob, .encoding_type = API_VALUE(ENCODING_TYPE__ENCODING_TYPE_THRIFTRW),
                .data = presence_make_bytes(thrift_encode_history(arena, events, count)));
    task->history_task_v2_attributes = batch;
    return task;
}

static void
start_fake_peer(struct script *script, void *context)
{
    host_start(script->sim->hosts[0].host, fake_peer_main, context);
}

void
fake_peer_begin(struct script *script, struct fake_peer *fake_peer)
{
    fake_peer->shard = fake_peer_shard_of("w");
    script_crash(script, 0);
    script_outside(script, start_fake_peer, fake_peer);
}

void
fake_peer_await(struct script *script, const struct fake_peer *fake_peer, int64_t row, int64_t time)
{
    int64_t limit = clock_monotonic() + time;
    while (fake_peer->acknowledged < row) {
        EXPECT(clock_monotonic() < limit);
        script_sleep(script, 100 * NS_PER_MS);
    }
}

size_t
dead_letters_count(struct script *script, const char *source)
{
    ADMIN(CountDLQMessagesResponse) *response =
        SCRIPT_ADMIN_OK(script, 1, count_dlqmessages, .force_fetch = true);
    size_t count = 0;
    for (size_t i = 0; i < response->n_history; i++) {
        EXPECT_TEXT(response->history[i]->source_cluster, source);
        EXPECT_EQ(response->history[i]->shard_id, fake_peer_shard_of("w"));
        count += (size_t)response->history[i]->count;
    }
    return count;
}

ADMIN(ReadDLQMessagesResponse) *
dead_letters_read(struct script *script, int32_t page_size, ProtobufCBinaryData token)
{
    return SCRIPT_ADMIN_OK(script, 1, read_dlqmessages, .type = REPLICATION_QUEUE,
                           .shard_id = (int32_t)fake_peer_shard_of("w"),
                           .source_cluster = "cluster0", .page_size = page_size,
                           .next_page_token = token);
}

struct error *
dead_letters_merge(struct script *script)
{
    return SCRIPT_ADMIN(script, 1, NULL, merge_dlqmessages, .type = REPLICATION_QUEUE,
                        .shard_id = (int32_t)fake_peer_shard_of("w"), .source_cluster = "cluster0");
}

void
dead_letters_purge(struct script *script, int64_t to)
{
    EXPECT_OK(SCRIPT_ADMIN(script, 1, NULL, purge_dlqmessages, .type = REPLICATION_QUEUE,
                           .shard_id = (int32_t)fake_peer_shard_of("w"),
                           .source_cluster = "cluster0",
                           .inclusive_end_message_id =
                               presence_make_int64(script->arena, (struct maybe_int64){true, to})));
}
