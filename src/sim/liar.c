/* liar.c - see liar.h. */
#include "sim/liar.h"

#include <stdio.h>
#include <string.h>

#include "cadenza/admin/v1/service.pb-c.h"
#include "route/route.h"
#include "wire/errors.h"
#include "wire/thrift.h"

#define TASK(name)        ADMIN_VALUE(REPLICATION_TASK_TYPE__REPLICATION_TASK_TYPE_##name)
#define ADMIN_PATH(name)  "/uber.cadence.admin.v1.AdminAPI/" name
#define REPLICATION_QUEUE ADMIN_VALUE(DLQTYPE__DLQ_TYPE_REPLICATION)

uint32_t
liar_shard_of(const char *id)
{
    return route_shard_of(slice_text(id), SIM_SHARDS);
}

/* A history of one version that ends with this event. */
static ADMIN(VersionHistory) *
lie_versions(const API(HistoryEvent) *last, struct arena *arena)
{
    ADMIN(VersionHistory) *history = message_new(arena, ADMIN_TYPE(version_history));
    history->items = arena_zalloc(arena, 1, sizeof *history->items);
    history->items[0] = message_new(arena, ADMIN_TYPE(version_history_item));
    history->items[0]->event_id = last->event_id;
    history->items[0]->version = last->version;
    history->n_items = 1;
    return history;
}

#define UNKNOWN_REST "-2222-4333-8444-555555555555"

static ADMIN(ReplicationTask) *
lie_marker(const struct liar *liar, struct arena *arena)
{
    ADMIN(ReplicationTask) *task = message_new(arena, ADMIN_TYPE(replication_task));
    task->task_type = TASK(FAILOVER_MARKER);
    task->source_task_id = MARKER_ROW;
    task->attributes_case = ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_FAILOVER_MARKER_ATTRIBUTES);
    task->failover_marker_attributes = message_new(arena, ADMIN_TYPE(failover_marker_attributes));
    task->failover_marker_attributes->domain_id = (char *)liar->domain_id;
    task->failover_marker_attributes->failover_version = liar->marker_version;
    task->failover_marker_attributes->creation_time = presence_make_timestamp(arena, clock_wall());
    return task;
}

static ADMIN(GetReplicationMessagesResponse__ShardMessagesEntry) *
lie_entry(const struct liar *liar, uint32_t shard, int64_t after, struct arena *arena)
{
    ADMIN(GetReplicationMessagesResponse__ShardMessagesEntry) *entry =
        message_new(arena, ADMIN_TYPE(get_replication_messages_response__shard_messages_entry));
    ADMIN(ReplicationMessages) *messages = message_new(arena, ADMIN_TYPE(replication_messages));
    entry->key = (int32_t)shard;
    entry->value = messages;
    messages->replication_tasks = arena_zalloc(arena, LIES_MAX + 1, sizeof(void *));
    messages->last_retrieved_message_id = after < 0 ? 0 : after;
    if (shard == liar->shard && after < liar->resync_to) {
        messages->resync_to = liar->resync_to;
        return entry;
    }
    for (size_t i = 0; shard == liar->shard && i < liar->count; i++) {
        if (liar->tasks[i]->source_task_id > after)
            messages->replication_tasks[messages->n_replication_tasks++] = liar->tasks[i];
    }
    if (liar->marker_version != 0 && after < MARKER_ROW)
        messages->replication_tasks[messages->n_replication_tasks++] = lie_marker(liar, arena);
    if (messages->n_replication_tasks > 0)
        messages->last_retrieved_message_id =
            messages->replication_tasks[messages->n_replication_tasks - 1]->source_task_id;
    return entry;
}

static struct error *
lie_messages(struct rpc_call *call)
{
    struct liar *liar = call->door;
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
        if (shard == liar->shard)
            liar->acknowledged = token->last_processed_message_id;
        response->shard_messages[response->n_shard_messages++] =
            lie_entry(liar, shard, token->last_retrieved_message_id, arena);
    }
    return NULL;
}

/* The same as the other cluster says: there is no failover under way. */
static struct error *
lie_describe(struct rpc_call *call)
{
    const struct liar *liar = call->door;
    if (liar->domain.length == 0)
        return error_new(call->arena, ERR_UNAVAILABLE, "not now");
    return message_decode(call->arena, API_TYPE(domain), liar->domain,
                          &((API(DescribeDomainResponse) *)call->response)->domain);
}

static STORE_API(ListedRun) *
lie_run(const struct liar *liar, const char *domain_id, const char *run_id, struct arena *arena)
{
    STORE_API(ListedRun) *run = message_new(arena, &cadenza__admin__v1__listed_run__descriptor);
    const API(HistoryEvent) *last = liar->history[liar->history_count - 1];
    run->domain_id = (char *)domain_id;
    run->workflow_id = "w";
    run->run_id = (char *)run_id;
    run->histories = arena_zalloc(arena, 1, sizeof *run->histories);
    run->histories[run->n_histories++] = lie_versions(last, arena);
    return run;
}

static struct error *
lie_runs(struct rpc_call *call)
{
    struct liar *liar = call->door;
    const STORE_API(ListRunsRequest) *request = (const STORE_API(ListRunsRequest) *)call->request;
    STORE_API(ListRunsResponse) *response = (STORE_API(ListRunsResponse) *)call->response;
    unsigned count = (uint32_t)request->shard_id == liar->shard ? liar->run_count : 0;
    response->runs = arena_zalloc(call->arena, count + 1, sizeof *response->runs);
    for (unsigned i = 0; i < count; i++) {
        const char *run_id =
            i == 0 ? UNKNOWN_RUN : arena_format(call->arena, "%08u" UNKNOWN_REST, i);
        response->runs[response->n_runs++] = lie_run(liar, liar->domain_id, run_id, call->arena);
    }
    return NULL;
}

static struct error *
lie_history(const struct liar *liar, ADMIN(GetWorkflowExecutionRawHistoryV2Response) *response,
            struct arena *arena)
{
    API(DataBlob) *blob = message_new(arena, API_TYPE(data_blob));
    blob->encoding_type = API_VALUE(ENCODING_TYPE__ENCODING_TYPE_THRIFTRW);
    blob->data =
        presence_make_bytes(thrift_encode_history(arena, liar->history, liar->history_count));
    response->history_batches = arena_zalloc(arena, 1, sizeof *response->history_batches);
    response->history_batches[response->n_history_batches++] = blob;
    response->version_history = lie_versions(liar->history[liar->history_count - 1], arena);
    return NULL;
}

static struct error *
lie_raw(struct rpc_call *call)
{
    struct liar *liar = call->door;
    liar->raw_calls++;
    if (liar->history != NULL)
        return lie_history(liar, (ADMIN(GetWorkflowExecutionRawHistoryV2Response) *)call->response,
                           call->arena);
    if (liar->is_away)
        return error_new(call->arena, ERR_UNAVAILABLE, "not now");
    if (liar->refuses)
        return error_new(call->arena, ERR_BAD_REQUEST, "no such events");
    return errors_entity_not_exists(call->arena, NULL, "no such run");
}

static struct error *
lie_domains(struct rpc_call *call)
{
    ADMIN(GetDomainReplicationMessagesResponse) *response =
        (ADMIN(GetDomainReplicationMessagesResponse) *)call->response;
    response->messages = message_new(call->arena, ADMIN_TYPE(replication_messages));
    const ADMIN(GetDomainReplicationMessagesRequest) *request =
        (const ADMIN(GetDomainReplicationMessagesRequest) *)call->request;
    response->messages->last_retrieved_message_id =
        presence_read_int64(request->last_retrieved_message_id).value;
    return NULL;
}

static struct error *
lie_ended(struct rpc_call *call)
{
    struct liar *liar = call->door;
    liar->errands++;
    if (liar->is_cadence)
        return error_new(call->arena, ERR_UNIMPLEMENTED, "unknown method");
    return error_new(call->arena, ERR_ALREADY_COMPLETED, "workflow execution already completed");
}

static void
note_start(struct liar *liar, const API(StartWorkflowExecutionRequest) *request)
{
    snprintf(liar->request_id, sizeof liar->request_id, "%s", request->request_id);
    liar->starts++;
}

static struct error *
lie_started(struct rpc_call *call)
{
    note_start(call->door, (const API(StartWorkflowExecutionRequest) *)call->request);
    ((API(StartWorkflowExecutionResponse) *)call->response)->run_id = UNKNOWN_RUN;
    return NULL;
}

static struct error *
lie_signaled(struct rpc_call *call)
{
    const API(SignalWithStartWorkflowExecutionRequest) *request =
        (const API(SignalWithStartWorkflowExecutionRequest) *)call->request;
    note_start(call->door, request->start_request);
    ((struct liar *)call->door)->signals++;
    ((API(SignalWithStartWorkflowExecutionResponse) *)call->response)->run_id = UNKNOWN_RUN;
    return NULL;
}

static const struct rpc_method lies[] = {
    {ADMIN_PATH("GetReplicationMessages"), lie_messages},
    {ADMIN_PATH("GetWorkflowExecutionRawHistoryV2"), lie_raw},
    {ADMIN_PATH("GetDomainReplicationMessages"), lie_domains},
    {"/cadenza.admin.v1.ReplicationAPI/ListRuns", lie_runs},
    {"/cadenza.admin.v1.ReplicationAPI/RunErrand", lie_ended},
    {"/uber.cadence.api.v1.DomainAPI/DescribeDomain", lie_describe},
    {"/uber.cadence.api.v1.WorkflowAPI/StartWorkflowExecution", lie_started},
    {"/uber.cadence.api.v1.WorkflowAPI/SignalWithStartWorkflowExecution", lie_signaled},
    {NULL, NULL},
};

static void
liar_main(void *argument)
{
    struct liar *liar = argument;
    struct arena *arena = arena_new(0);
    struct rpc_table table = {.methods = lies, .door = liar};
    liar->metrics = metrics_new();
    liar->service = rpc_service_new(&table, 1, NULL, liar->metrics);
    struct grpc_server_options door = {.address = "host0:" SIM_PORT,
                                       .metrics = liar->metrics,
                                       .service = rpc_service_port(liar->service)};
    EXPECT_OK(grpc_server_open(&door, arena, &liar->server));
    fiber_wait_uncancellable(); /* until it is crashed */
}

API(HistoryEvent) *
lie_start(struct script *script, int64_t event_version)
{
    API(HistoryEvent) *event = message_new(script->arena, API_TYPE(history_event));
    event->event_id = 1;
    event->version = event_version;
    event->task_id = 1;
    event->event_time = presence_make_timestamp(script->arena, clock_wall());
    event->attributes_case =
        API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES);
    API(WorkflowExecutionStartedEventAttributes) *started =
        message_new(script->arena, API_TYPE(workflow_execution_started_event_attributes));
    started->workflow_type = message_new(script->arena, API_TYPE(workflow_type));
    started->workflow_type->name = "t";
    started->task_list = message_new(script->arena, API_TYPE(task_list));
    started->task_list->name = SCRIPT_LIST;
    started->execution_start_to_close_timeout = presence_make_duration(script->arena, 3600);
    started->task_start_to_close_timeout = presence_make_duration(script->arena, 10);
    started->original_execution_run_id = UNKNOWN_RUN;
    started->first_execution_run_id = UNKNOWN_RUN;
    event->workflow_execution_started_event_attributes = started;
    return event;
}

API(HistoryEvent) *
lie_signal(struct script *script, int64_t event_id, int64_t event_version)
{
    API(HistoryEvent) *event = message_new(script->arena, API_TYPE(history_event));
    event->event_id = event_id;
    event->version = event_version;
    event->task_id = event_id;
    event->event_time = presence_make_timestamp(script->arena, clock_wall());
    event->attributes_case =
        API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES);
    event->workflow_execution_signaled_event_attributes =
        message_new(script->arena, API_TYPE(workflow_execution_signaled_event_attributes));
    event->workflow_execution_signaled_event_attributes->signal_name = "s";
    return event;
}

ADMIN(ReplicationTask) *
lie(struct script *script, int64_t row, API(HistoryEvent) **events, size_t count)
{
    struct arena *arena = script->arena;
    ADMIN(ReplicationTask) *task = message_new(arena, ADMIN_TYPE(replication_task));
    task->task_type = TASK(HISTORY_V2);
    task->source_task_id = row;
    task->attributes_case = ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_HISTORY_TASK_V2_ATTRIBUTES);
    ADMIN(HistoryTaskV2Attributes) *batch =
        message_new(arena, ADMIN_TYPE(history_task_v2_attributes));
    batch->domain_id = (char *)script->domain_id;
    batch->workflow_execution = message_new(arena, API_TYPE(workflow_execution));
    batch->workflow_execution->workflow_id = "w";
    batch->workflow_execution->run_id = UNKNOWN_RUN;
    ADMIN(VersionHistory) *versions = lie_versions(events[count - 1], arena);
    batch->version_history_items = versions->items;
    batch->n_version_history_items = versions->n_items;
    batch->events = message_new(arena, API_TYPE(data_blob));
    batch->events->encoding_type = API_VALUE(ENCODING_TYPE__ENCODING_TYPE_THRIFTRW);
    batch->events->data = presence_make_bytes(thrift_encode_history(arena, events, count));
    task->history_task_v2_attributes = batch;
    return task;
}

static void
start_liar(struct script *script, void *context)
{
    host_start(script->sim->hosts[0].host, liar_main, context);
}

void
liar_begin(struct script *script, struct liar *liar)
{
    liar->shard = liar_shard_of("w");
    script_crash(script, 0);
    script_outside(script, start_liar, liar);
}

void
liar_await(struct script *script, const struct liar *liar, int64_t row, int64_t time)
{
    int64_t limit = clock_monotonic() + time;
    while (liar->acknowledged < row) {
        EXPECT(clock_monotonic() < limit);
        script_sleep(script, 100 * NS_PER_MS);
    }
}

size_t
letters_count(struct script *script, const char *source)
{
    ADMIN(CountDLQMessagesRequest) *request =
        message_new(script->arena, ADMIN_TYPE(count_dlqmessages_request));
    request->force_fetch = true;
    ADMIN(CountDLQMessagesResponse) *response = NULL;
    EXPECT_OK(script_admin(script, 1, "CountDLQMessages", request, count_dlqmessages_response,
                           &response));
    size_t count = 0;
    for (size_t i = 0; i < response->n_history; i++) {
        EXPECT_TEXT(response->history[i]->source_cluster, source);
        EXPECT_EQ(response->history[i]->shard_id, liar_shard_of("w"));
        count += (size_t)response->history[i]->count;
    }
    return count;
}

ADMIN(ReadDLQMessagesResponse) *
letters_read(struct script *script, int32_t page_size, ProtobufCBinaryData token)
{
    ADMIN(ReadDLQMessagesRequest) *request =
        message_new(script->arena, ADMIN_TYPE(read_dlqmessages_request));
    request->type = REPLICATION_QUEUE;
    request->shard_id = (int32_t)liar_shard_of("w");
    request->source_cluster = "cluster0";
    request->page_size = page_size;
    request->next_page_token = token;
    ADMIN(ReadDLQMessagesResponse) *response = NULL;
    EXPECT_OK(
        script_admin(script, 1, "ReadDLQMessages", request, read_dlqmessages_response, &response));
    return response;
}

struct error *
letters_merge(struct script *script)
{
    ADMIN(MergeDLQMessagesRequest) *merge =
        message_new(script->arena, ADMIN_TYPE(merge_dlqmessages_request));
    merge->type = REPLICATION_QUEUE;
    merge->shard_id = (int32_t)liar_shard_of("w");
    merge->source_cluster = "cluster0";
    ADMIN(MergeDLQMessagesResponse) *merged = NULL;
    return script_admin(script, 1, "MergeDLQMessages", merge, merge_dlqmessages_response, &merged);
}

void
letters_purge(struct script *script, int64_t to)
{
    ADMIN(PurgeDLQMessagesRequest) *purge =
        message_new(script->arena, ADMIN_TYPE(purge_dlqmessages_request));
    purge->type = REPLICATION_QUEUE;
    purge->shard_id = (int32_t)liar_shard_of("w");
    purge->source_cluster = "cluster0";
    purge->inclusive_end_message_id =
        presence_make_int64(script->arena, (struct maybe_int64){true, to});
    ADMIN(PurgeDLQMessagesResponse) *purged = NULL;
    EXPECT_OK(
        script_admin(script, 1, "PurgeDLQMessages", purge, purge_dlqmessages_response, &purged));
}
