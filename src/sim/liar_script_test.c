/* liar_script_test.c - what a cluster does with what a peer tells it, of which nothing is true.
 *
 * Cluster 0 is real until both know the domain; then somebody else answers at its address, with
 * messages made by hand. */
#include <string.h>

#include "base/memory.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "net/server.h"
#include "route/route.h"
#include "rpc/service.h"
#include "sim/script.h"
#include "wire/errors.h"
#include "wire/thrift.h"

#define TASK(name)        ADMIN_VALUE(REPLICATION_TASK_TYPE__REPLICATION_TASK_TYPE_##name)
#define ADMIN_PATH(name)  "/uber.cadence.admin.v1.AdminAPI/" name
#define UNKNOWN_RUN       "11111111-2222-4333-8444-555555555555"
#define REPLICATION_QUEUE ADMIN_VALUE(DLQTYPE__DLQ_TYPE_REPLICATION)

static uint32_t
shard_of(const char *id)
{
    return route_shard_of(slice_text(id), SIM_SHARDS);
}

static ADMIN(VersionHistoryItem) *
version_item(struct script *script, int64_t event_id, int64_t event_version)
{
    ADMIN(VersionHistoryItem) *item = message_new(script->arena, ADMIN_TYPE(version_history_item));
    item->event_id = event_id;
    item->version = event_version;
    return item;
}

#define TASKS_MAX 8

struct liar {
    struct rpc_service *service;
    struct grpc_server *server;
    struct metrics *metrics;
    struct arena *arena;
    uint32_t shard;
    ADMIN(ReplicationTask) *tasks[TASKS_MAX];
    size_t count;
    int64_t acknowledged; /* of the shard, as the cluster says */
    unsigned raw_calls;
    bool is_away; /* cannot be asked for histories */
    bool refuses; /* says that such a request makes no sense */
    /* Every shard that is asked for has the marker of this failover, behind all else; 0: none. */
    int64_t marker_version;
    const char *domain_id;
    struct slice domain; /* as it is described; empty: not at all */
};

#define MARKER_ROW 1000

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
    messages->replication_tasks = arena_zalloc(arena, TASKS_MAX + 1, sizeof(void *));
    messages->last_retrieved_message_id = after < 0 ? 0 : after;
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

static struct error *
lie_raw(struct rpc_call *call)
{
    struct liar *liar = call->door;
    liar->raw_calls++;
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

static const struct rpc_method lies[] = {
    {ADMIN_PATH("GetReplicationMessages"), lie_messages},
    {ADMIN_PATH("GetWorkflowExecutionRawHistoryV2"), lie_raw},
    {ADMIN_PATH("GetDomainReplicationMessages"), lie_domains},
    {"/uber.cadence.api.v1.DomainAPI/DescribeDomain", lie_describe},
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

static API(HistoryEvent) *
started_event(struct script *script, int64_t event_version)
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

static API(HistoryEvent) *
signal_event(struct script *script, int64_t event_id, int64_t event_version)
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

static ADMIN(ReplicationTask) *
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
    batch->version_history_items = arena_zalloc(arena, 1, sizeof(void *));
    batch->version_history_items[0] =
        version_item(script, events[count - 1]->event_id, events[count - 1]->version);
    batch->n_version_history_items = 1;
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

/* Somebody else answers at the address of cluster 0 from now on. */
static void
begin_to_lie(struct script *script, struct liar *liar)
{
    liar->shard = shard_of("w");
    script_crash(script, 0);
    script_outside(script, start_liar, liar);
}

static void
await_acknowledged(struct script *script, const struct liar *liar, int64_t row, int64_t time)
{
    int64_t limit = clock_monotonic() + time;
    while (liar->acknowledged < row) {
        EXPECT(clock_monotonic() < limit);
        script_sleep(script, 100 * NS_PER_MS);
    }
}

static size_t
count_letters(struct script *script, const char *source)
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
        EXPECT_EQ(response->history[i]->shard_id, shard_of("w"));
        count += (size_t)response->history[i]->count;
    }
    return count;
}

static ADMIN(ReadDLQMessagesResponse) *
read_letters(struct script *script, int32_t page_size, ProtobufCBinaryData token)
{
    ADMIN(ReadDLQMessagesRequest) *request =
        message_new(script->arena, ADMIN_TYPE(read_dlqmessages_request));
    request->type = REPLICATION_QUEUE;
    request->shard_id = (int32_t)shard_of("w");
    request->source_cluster = "cluster0";
    request->page_size = page_size;
    request->next_page_token = token;
    ADMIN(ReadDLQMessagesResponse) *response = NULL;
    EXPECT_OK(
        script_admin(script, 1, "ReadDLQMessages", request, read_dlqmessages_response, &response));
    return response;
}

static struct error *
merge_letters(struct script *script)
{
    ADMIN(MergeDLQMessagesRequest) *merge =
        message_new(script->arena, ADMIN_TYPE(merge_dlqmessages_request));
    merge->type = REPLICATION_QUEUE;
    merge->shard_id = (int32_t)shard_of("w");
    merge->source_cluster = "cluster0";
    ADMIN(MergeDLQMessagesResponse) *merged = NULL;
    return script_admin(script, 1, "MergeDLQMessages", merge, merge_dlqmessages_response, &merged);
}

static void
purge_letters(struct script *script, int64_t to)
{
    ADMIN(PurgeDLQMessagesRequest) *purge =
        message_new(script->arena, ADMIN_TYPE(purge_dlqmessages_request));
    purge->type = REPLICATION_QUEUE;
    purge->shard_id = (int32_t)shard_of("w");
    purge->source_cluster = "cluster0";
    purge->inclusive_end_message_id =
        presence_make_int64(script->arena, (struct maybe_int64){true, to});
    ADMIN(PurgeDLQMessagesResponse) *purged = NULL;
    EXPECT_OK(
        script_admin(script, 1, "PurgeDLQMessages", purge, purge_dlqmessages_response, &purged));
}

/* A batch whose events disagree in version; a good one behind it; one without versions, of an older
 * Cadence. */
static void
play_poison(struct script *script)
{
    struct liar liar = {0};
    API(HistoryEvent) *first[] = {started_event(script, 1), signal_event(script, 2, 11)};
    API(HistoryEvent) *good[] = {started_event(script, 1)};
    liar.tasks[0] = lie(script, 7, first, 2);
    liar.tasks[1] = lie(script, 8, good, 1);
    liar.tasks[2] = lie(script, 9, good, 1);
    liar.tasks[2]->history_task_v2_attributes->n_version_history_items = 0;
    liar.count = 3;
    begin_to_lie(script, &liar);
    await_acknowledged(script, &liar, 9, 30 * NS_PER_S);
    EXPECT_EQ(count_letters(script, "cluster0"), 1);
    EXPECT(script_history(script, 1, "w", UNKNOWN_RUN) != NULL); /* the stream went on */
    ADMIN(ReadDLQMessagesResponse) *read = read_letters(script, 10, (ProtobufCBinaryData){0});
    EXPECT_EQ(read->n_replication_tasks, 1);
    EXPECT_EQ(read->replication_tasks[0]->source_task_id, 7);
    EXPECT_EQ(read->n_replication_tasks_info, 1);
    EXPECT_EQ(read->replication_tasks_info[0]->task_id, 7);
    EXPECT_TEXT(read->replication_tasks_info[0]->workflow_execution->workflow_id, "w");
    /* It will not be better: merging says why, and it stays; purging takes it away. */
    EXPECT_KIND(merge_letters(script), ERR_BAD_REQUEST);
    EXPECT_EQ(count_letters(script, "cluster0"), 1);
    purge_letters(script, 6);
    EXPECT_EQ(count_letters(script, "cluster0"), 1);
    purge_letters(script, 7);
    EXPECT_EQ(count_letters(script, "cluster0"), 0);
}

TEST(liar_script, a_batch_that_is_wrong_is_parked_and_the_stream_goes_on, "E-025", "E-047", "E-071",
     "E-072")
{
    script_play(2, 0, play_poison);
}

/* A gap that the source cannot fill any more: the run is gone there. */
static void
play_gone(struct script *script)
{
    struct liar liar = {0};
    API(HistoryEvent) *late[] = {signal_event(script, 5, 1)};
    liar.tasks[0] = lie(script, 7, late, 1);
    liar.count = 1;
    begin_to_lie(script, &liar);
    await_acknowledged(script, &liar, 7, 30 * NS_PER_S);
    EXPECT(liar.raw_calls > 0);
    EXPECT_EQ(count_letters(script, "cluster0"), 0);
    EXPECT(script_history(script, 1, "w", UNKNOWN_RUN) == NULL);
}

TEST(liar_script, events_of_a_run_that_the_source_has_no_more_are_skipped, "E-061")
{
    script_play(2, 0, play_gone);
}

/* What operators are told of a cluster that is behind. */
static const STORE_API(Peer) *
describe_peer(struct script *script)
{
    STORE_API(DescribePeersRequest) request = CADENZA__ADMIN__V1__DESCRIBE_PEERS_REQUEST__INIT;
    ProtobufCMessage *answer = NULL;
    EXPECT_OK(script_call_at(script, 1, "/cadenza.admin.v1.ReplicationAPI/DescribePeers",
                             &request.base,
                             &cadenza__admin__v1__describe_peers_response__descriptor, &answer));
    const STORE_API(DescribePeersResponse) *response =
        (const STORE_API(DescribePeersResponse) *)answer;
    EXPECT_EQ(response->n_peers, 1);
    return response->peers[0];
}

/* A domain that this cluster has not heard of: tried again, soon at first, then slowly, then
 * parked, after five minutes. Then the domain is there, and merging applies what was parked. */
static void
play_patience(struct script *script)
{
    struct liar liar = {0};
    API(HistoryEvent) *good[] = {started_event(script, 1)};
    liar.tasks[0] = lie(script, 7, good, 1);
    liar.tasks[0]->history_task_v2_attributes->domain_id = "99999999-2222-4333-8444-555555555555";
    liar.count = 1;
    int64_t created = clock_wall() / NS_PER_S * NS_PER_S;
    liar.tasks[0]->creation_time = presence_make_timestamp(script->arena, created);
    begin_to_lie(script, &liar);
    script_sleep(script, 120 * NS_PER_S);
    EXPECT(liar.acknowledged < 7);
    EXPECT_EQ(count_letters(script, "cluster0"), 0);
    const STORE_API(Peer) *peer = describe_peer(script);
    EXPECT_EQ(peer->waiting, 1);
    EXPECT_EQ(peer->oldest_nanoseconds, created);
    await_acknowledged(script, &liar, 7, 300 * NS_PER_S);
    EXPECT_EQ(count_letters(script, "cluster0"), 1);
    peer = describe_peer(script);
    EXPECT_EQ(peer->waiting, 0);
    EXPECT_EQ(peer->oldest_nanoseconds, 0);
}

TEST(liar_script, what_cannot_be_applied_yet_is_tried_for_minutes_then_parked, "E-065")
{
    script_play(2, 0, play_patience);
}

/* While the source cannot be asked for what is missing, nothing is parked. */
static void
play_silent(struct script *script)
{
    struct liar liar = {.is_away = true};
    API(HistoryEvent) *late[] = {signal_event(script, 5, 1)};
    liar.tasks[0] = lie(script, 7, late, 1);
    liar.count = 1;
    begin_to_lie(script, &liar);
    script_sleep(script, 900 * NS_PER_S);
    EXPECT(liar.acknowledged < 7);
    EXPECT_EQ(count_letters(script, "cluster0"), 0);
    liar.is_away = false;
    await_acknowledged(script, &liar, 7, 60 * NS_PER_S);
}

TEST(liar_script, nothing_is_parked_while_the_source_cannot_be_asked, "E-060")
{
    script_play(2, 0, play_silent);
}

/* What was parked fits once the events before it are here: merging applies it, and it goes. */
static void
play_merge(struct script *script)
{
    struct liar liar = {.refuses = true};
    API(HistoryEvent) *late[] = {signal_event(script, 2, 1)};
    API(HistoryEvent) *good[] = {started_event(script, 1)};
    liar.tasks[0] = lie(script, 7, late, 1);
    liar.count = 1;
    begin_to_lie(script, &liar);
    await_acknowledged(script, &liar, 7, 400 * NS_PER_S);
    EXPECT_EQ(count_letters(script, "cluster0"), 1);
    liar.tasks[1] = lie(script, 8, good, 1);
    liar.count = 2;
    await_acknowledged(script, &liar, 8, 30 * NS_PER_S);
    EXPECT_OK(merge_letters(script));
    EXPECT_EQ(count_letters(script, "cluster0"), 0);
    EXPECT_EQ(script_history(script, 1, "w", UNKNOWN_RUN)->n_events, 2);
}

TEST(liar_script, merging_applies_what_was_parked_and_forgets_it, "E-073")
{
    script_play(2, 0, play_merge);
}

/* --- markers, as a Cadence cluster sends them: it does not say how many shards it has ---- */

static API(Domain) *
describe_domain(struct script *script)
{
    struct load_call call = {.clients = script->clients, .host = 1, .arena = script->arena};
    API(Domain) *domain = NULL;
    fiber_set_deadline(clock_monotonic() + NS_PER_S);
    EXPECT_OK(load_describe(&call, SCRIPT_DOMAIN, &domain));
    fiber_set_deadline(NEVER);
    return domain;
}

/* The domain drains from the liar to cluster 1, and all markers are on their way. */
static void
drain_from(struct script *script, struct liar *liar)
{
    liar->domain_id = script->domain_id;
    liar->domain = message_encode(script->arena, &describe_domain(script)->base);
    API(FailoverDomainRequest) *request =
        message_new(script->arena, API_TYPE(failover_domain_request));
    request->domain_name = SCRIPT_DOMAIN;
    request->domain_active_cluster_name = presence_make_text("cluster1");
    request->failover_timeout = presence_make_duration(script->arena, 300);
    API(FailoverDomainResponse) *response = NULL;
    EXPECT_OK(script_call(script, 1, "DomainAPI/FailoverDomain", request, failover_domain_response,
                          &response));
    liar->marker_version = response->domain->failover_version;
}

static uint64_t
ready_shards(struct script *script)
{
    return world_mark_count(script->sim->world, "source_shard_ready");
}

static void
await_ready(struct script *script, uint64_t count)
{
    int64_t limit = clock_monotonic() + 30 * NS_PER_S;
    while (ready_shards(script) < count) {
        EXPECT(clock_monotonic() < limit);
        script_sleep(script, 50 * NS_PER_MS);
    }
}

/* It is active soon, long before the timeout. */
static void
expect_active(struct script *script)
{
    await_ready(script, SIM_SHARDS);
    script_sleep(script, NS_PER_S);
    script_start(script, 1, "after");
}

/* What came before the marker waits for events that the source does not give just now. */
static void
play_marker_waits(struct script *script)
{
    struct liar liar = {.is_away = true};
    API(HistoryEvent) *late[] = {signal_event(script, 5, 1)};
    liar.tasks[0] = lie(script, 7, late, 1);
    liar.count = 1;
    begin_to_lie(script, &liar);
    drain_from(script, &liar);
    await_ready(script, SIM_SHARDS - 1);
    script_sleep(script, 60 * NS_PER_S);
    EXPECT_EQ(ready_shards(script), SIM_SHARDS - 1);
    liar.is_away = false;
    expect_active(script);
    await_acknowledged(script, &liar, MARKER_ROW, 30 * NS_PER_S);
}

TEST(liar_script, a_shard_is_ready_when_all_before_its_marker_is_applied, "F-024")
{
    script_play(2, 0, play_marker_waits);
}

/* It is not ready while what came before its marker is parked. */
static void
play_marker_blocked(struct script *script)
{
    struct liar liar = {0};
    API(HistoryEvent) *wrong[] = {started_event(script, 1), signal_event(script, 2, 11)};
    liar.tasks[0] = lie(script, 7, wrong, 2);
    liar.count = 1;
    begin_to_lie(script, &liar);
    drain_from(script, &liar);
    await_ready(script, SIM_SHARDS - 1);
    script_sleep(script, 60 * NS_PER_S);
    EXPECT_EQ(ready_shards(script), SIM_SHARDS - 1);
    EXPECT(world_mark_count(script->sim->world, "source_shard_blocked") > 0);
    EXPECT(liar.acknowledged < MARKER_ROW);
    purge_letters(script, 7);
    expect_active(script);
    await_acknowledged(script, &liar, MARKER_ROW, 30 * NS_PER_S);
}

TEST(liar_script, a_shard_is_not_ready_while_something_before_its_marker_is_parked)
{
    script_play(2, 0, play_marker_blocked);
}

/* It is when that was merged. */
static void
play_marker_merged(struct script *script)
{
    struct liar liar = {.refuses = true};
    API(HistoryEvent) *late[] = {signal_event(script, 2, 1)};
    API(HistoryEvent) *good[] = {started_event(script, 1)};
    liar.tasks[0] = lie(script, 7, late, 1);
    liar.count = 1;
    begin_to_lie(script, &liar);
    await_acknowledged(script, &liar, 7, 400 * NS_PER_S);
    liar.tasks[1] = lie(script, 8, good, 1);
    liar.count = 2;
    drain_from(script, &liar);
    await_ready(script, SIM_SHARDS - 1);
    script_sleep(script, 5 * NS_PER_S);
    EXPECT_EQ(ready_shards(script), SIM_SHARDS - 1);
    EXPECT_OK(merge_letters(script));
    expect_active(script);
    EXPECT_EQ(script_history(script, 1, "w", UNKNOWN_RUN)->n_events, 2);
}

TEST(liar_script, a_shard_is_ready_when_what_was_parked_is_merged)
{
    script_play(2, 0, play_marker_merged);
}
