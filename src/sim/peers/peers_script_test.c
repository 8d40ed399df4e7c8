/* peers_script_test.c - what a cluster tells another one, asked by hand. */
#include <jansson.h>
#include <string.h>

#include "cadenza/admin/v1/service.pb-c.h"
#include "route/owner.h"
#include "sim/scripts/script.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"
#include "wire/thrift.h"

#define TASK(name)  ADMIN_VALUE(REPLICATION_TASK_TYPE__REPLICATION_TASK_TYPE_##name)
#define UNKNOWN_RUN "11111111-2222-4333-8444-555555555555"

static uint32_t
shard_of(const char *id)
{
    return route_shard_of(slice_text(id), SIM_SHARDS);
}

/* --- the source ---- */

static struct slice
blob_of(const ADMIN(ReplicationTask) *task)
{
    EXPECT_EQ(task->task_type, TASK(HISTORY_V2));
    const API(DataBlob) *blob = task->history_task_v2_attributes->events;
    EXPECT_EQ(blob->encoding_type, API_VALUE(ENCODING_TYPE__ENCODING_TYPE_THRIFTRW));
    return presence_read_bytes(blob->data);
}

/* Cluster 2 is away, and the test asks in its name. */
SCRIPT_TEST(peers_script, a_peer_reads_rows_in_order_behind_what_it_has, script_play(3, 0, body),
            "E-054", "E-055", "E-056", "E-057", "E-058")
{
    script_crash(script, 2);
    const char *run_id = script_start(script, 0, "w");
    script_decide(script, 0, NULL, 0);
    EXPECT_OK(script_signal(script, 0, "w", "s"));
    uint32_t shard = shard_of("w");
    ADMIN(ReplicationMessages) *all = script_messages(script, 0, "cluster2", shard, -1);
    EXPECT_EQ(all->n_replication_tasks, 4);
    EXPECT(!all->has_more && all->sync_shard_status->timestamp != NULL);
    int64_t next_event_id = 1;
    for (size_t i = 0; i < all->n_replication_tasks; i++) {
        const ADMIN(ReplicationTask) *task = all->replication_tasks[i];
        EXPECT(i == 0 || task->source_task_id > all->replication_tasks[i - 1]->source_task_id);
        EXPECT(task->creation_time != NULL);
        const ADMIN(HistoryTaskV2Attributes) *batch = task->history_task_v2_attributes;
        EXPECT_TEXT(batch->domain_id, script->domain_id);
        EXPECT_TEXT(batch->workflow_execution->run_id, run_id);
        struct slice blob = blob_of(task);
        EXPECT_EQ(((const uint8_t *)blob.data)[0], 0x59);
        API(HistoryEvent) **events = NULL;
        size_t count = 0;
        EXPECT_OK(thrift_decode_history(script->arena, ERR_BAD_REQUEST, blob, &events, &count));
        EXPECT_EQ(events[0]->event_id, next_event_id);
        next_event_id = events[count - 1]->event_id + 1;
        EXPECT_EQ(batch->n_version_history_items, 1);
        EXPECT_EQ(batch->version_history_items[0]->event_id, next_event_id - 1);
    }
    /* What was read is acknowledged: -1 goes on behind it, a number behind that number. */
    int64_t second = all->replication_tasks[1]->source_task_id;
    ADMIN(ReplicationMessages) *rest = script_messages(script, 0, "cluster2", shard, second);
    EXPECT_EQ(rest->n_replication_tasks, 2);
    EXPECT_EQ(rest->replication_tasks[0]->source_task_id,
              all->replication_tasks[2]->source_task_id);
    ADMIN(ReplicationMessages) *again = script_messages(script, 0, "cluster2", shard, -1);
    EXPECT_EQ(again->n_replication_tasks, 2);
    EXPECT(all->last_retrieved_message_id >= all->replication_tasks[3]->source_task_id);
    /* Nothing new: an empty answer, after a while, that says how far it looked. */
    rest = script_messages(script, 0, "cluster2", shard, all->last_retrieved_message_id);
    EXPECT_EQ(rest->n_replication_tasks, 0);
    EXPECT(rest->last_retrieved_message_id >= all->last_retrieved_message_id);
}

SCRIPT_TEST(peers_script, a_cluster_that_does_not_have_the_domain_is_told_nothing,
            script_play(3, 2, body), "E-062")
{
    script_start(script, 0, "w");
    script_await(script, 1, "w", 2);
    ADMIN(ReplicationMessages) *none = script_messages(script, 0, "cluster2", shard_of("w"), -1);
    EXPECT_EQ(none->n_replication_tasks, 0);
    EXPECT(none->last_retrieved_message_id > 0);
    EXPECT(script_history(script, 2, "w", "") == NULL);
}

/* Signals of a quarter of a megabyte: more than an answer has room for. */
SCRIPT_TEST(peers_script, an_answer_that_would_be_too_large_is_cut, script_play(3, 0, body),
            "E-064")
{
    script_crash(script, 2);
    script_start(script, 0, "w");
    char *text = arena_alloc(script->arena, 250001);
    memset(text, 'x', 250000);
    text[250000] = '\0';
    for (int i = 0; i < 12; i++) {
        API(SignalWorkflowExecutionRequest) *request = API_NEW(
            script->arena, signal_workflow_execution_request, .domain = SCRIPT_DOMAIN,
            .workflow_execution = script_execution(script, "w", ""), .signal_name = "s",
            .signal_input = presence_make_payload(
                script->arena, (struct maybe_bytes){.is_set = true, .bytes = slice_text(text)}));
        EXPECT_OK(script_call(script, 0, request, NULL));
    }
    size_t answers = 0, tasks = 0;
    int64_t after = -1;
    bool has_more = true;
    while (has_more) {
        ADMIN(ReplicationMessages) *page =
            script_messages(script, 0, "cluster2", shard_of("w"), after);
        EXPECT(protobuf_c_message_get_packed_size(&page->base) < 4u * 1024 * 1024);
        after = page->last_retrieved_message_id;
        has_more = page->has_more;
        tasks += page->n_replication_tasks;
        answers++;
    }
    EXPECT(answers > 1);
    EXPECT_EQ(tasks, 13);
}

/* A cluster that is away: its rows wait, and it reads them from the store, after a restart of the
 * source too. States of activities of runs that have ended are not among them. */
SCRIPT_TEST(peers_script, a_cluster_that_was_away_reads_what_waited_for_it, script_play(2, 0, body),
            "E-063")
{
    script_sleep(script, NS_PER_S);
    script_part(script);
    script_start(script, 0, "w");
    API(Decision) *activity = script_schedule_activity(script, true);
    script_decide(script, 0, &activity, 1);
    API(PollForActivityTaskResponse) *task = script_poll_activity(script, 0, WITHIN);
    EXPECT(task != NULL); /* started without an event */
    EXPECT_OK(SCRIPT_CALL(script, 0, NULL, terminate_workflow_execution, .domain = SCRIPT_DOMAIN,
                          .workflow_execution = script_execution(script, "w", "")));
    script_crash(script, 0);
    script_restart(script, 0);
    script_sleep(script, 60 * NS_PER_S);
    ADMIN(ReplicationMessages) *all = script_messages(script, 0, "cluster1", shard_of("w"), -1);
    EXPECT(all->n_replication_tasks > 0);
    for (size_t i = 0; i < all->n_replication_tasks; i++)
        EXPECT_EQ(all->replication_tasks[i]->task_type, TASK(HISTORY_V2));
    script_heal(script);
    script_expect_same(script, "w");
}

static struct error *
describe_peers(struct script *script, unsigned cluster, bool *is_away)
{
    ProtobufCMessage *answer = NULL;
    struct error *err =
        script_call(script, cluster, STORE_API_NEW(script->arena, describe_peers_request), &answer);
    if (err == NULL)
        *is_away = ((const STORE_API(DescribePeersResponse) *)answer)->peers[0]->is_away;
    return err;
}

static bool
is_peer_away(struct script *script)
{
    bool is_away = false;
    EXPECT_OK(describe_peers(script, 1, &is_away));
    return is_away;
}

/* A cluster that was away for a while is tried with long pauses. An operator who asks once it is
 * back gets a fresh answer, not that of the last try. */
SCRIPT_TEST(peers_script, a_cluster_that_is_back_is_not_said_to_be_away, script_play(2, 0, body))
{
    script_crash(script, 0);
    while (!is_peer_away(script))
        script_sleep(script, NS_PER_S);
    script_sleep(script, 60 * NS_PER_S);
    EXPECT(is_peer_away(script));
    script_restart(script, 0);
    bool is_away;
    while (describe_peers(script, 0, &is_away) != NULL)
        script_sleep(script, 20 * NS_PER_MS);
    EXPECT(!is_peer_away(script));
}

/* --- raw histories ---- */

static struct error *
ask_raw(struct script *script, ADMIN(GetWorkflowExecutionRawHistoryV2Request) *request,
        ADMIN(GetWorkflowExecutionRawHistoryV2Response) **response)
{
    return script_call(script, 0, request, response);
}

static ADMIN(GetWorkflowExecutionRawHistoryV2Request) *
raw_request(struct script *script, const char *run_id)
{
    return ADMIN_NEW(script->arena, get_workflow_execution_raw_history_v2_request,
                     .domain = SCRIPT_DOMAIN,
                     .workflow_execution = script_execution(script, "w", run_id), .page_size = 1);
}

static ADMIN(VersionHistoryItem) *
raw_end(struct script *script, int64_t event_id, int64_t event_version)
{
    return ADMIN_NEW(script->arena, version_history_item, .event_id = event_id,
                     .version = event_version);
}

/* Batches of all pages, one a page. */
static size_t
count_raw(struct script *script, ADMIN(GetWorkflowExecutionRawHistoryV2Request) *request)
{
    size_t count = 0;
    do {
        ADMIN(GetWorkflowExecutionRawHistoryV2Response) *page = NULL;
        EXPECT_OK(ask_raw(script, request, &page));
        EXPECT(page->n_history_batches <= 1);
        count += page->n_history_batches;
        request->next_page_token = page->next_page_token;
    } while (request->next_page_token.len > 0);
    return count;
}

/* The last event of the one batch that there is. */
static int64_t
newest_raw(struct script *script, ADMIN(GetWorkflowExecutionRawHistoryV2Request) *request)
{
    ADMIN(GetWorkflowExecutionRawHistoryV2Response) *page = NULL;
    API(HistoryEvent) **events = NULL;
    size_t count = 0;
    EXPECT_OK(ask_raw(script, request, &page));
    EXPECT_EQ(page->n_history_batches, 1);
    EXPECT_EQ(page->next_page_token.len, 0);
    EXPECT_OK(thrift_decode_history(script->arena, ERR_CORRUPT,
                                    presence_read_bytes(page->history_batches[0]->data), &events,
                                    &count));
    return events[count - 1]->event_id;
}

/* How many histories the run has from inside, and which is the current one. */
static void
expect_branches(struct script *script, const char *run_id, size_t count)
{
    ADMIN(DescribeWorkflowExecutionResponse) *response =
        SCRIPT_ADMIN_OK(script, 0, describe_workflow_execution, .domain = SCRIPT_DOMAIN,
                        .workflow_execution = raw_request(script, run_id)->workflow_execution);
    json_t *state = json_loads(response->mutable_state_in_database, 0, NULL);
    json_t *all = json_object_get(state, "VersionHistories"), *current, *items;
    json_t *histories = json_object_get(all, "Histories");
    EXPECT_EQ(json_array_size(histories), count);
    current = json_array_get(
        histories, (size_t)json_integer_value(json_object_get(all, "CurrentVersionHistoryIndex")));
    items = json_object_get(current, "Items");
    EXPECT_EQ(json_array_size(items), count); /* the winner's: one version, then another */
    const json_t *info = json_object_get(state, "ExecutionInfo");
    EXPECT_TEXT(json_string_value(json_object_get(info, "BranchToken")),
                json_string_value(json_object_get(current, "BranchToken")));
    json_decref(state);
}

SCRIPT_TEST(peers_script, a_raw_history_is_read_between_two_events_batch_by_batch,
            script_play(2, 0, body), "E-022")
{
    const char *run_id = script_start(script, 0, "w"); /* 1, 2 */
    script_decide(script, 0, NULL, 0);                 /* 3 | 4 */
    EXPECT_OK(script_signal(script, 0, "w", "s"));     /* 5, 6 */
    ADMIN(GetWorkflowExecutionRawHistoryV2Response) *page = NULL;
    ADMIN(GetWorkflowExecutionRawHistoryV2Request) *request = raw_request(script, "no uuid");
    EXPECT_KIND(ask_raw(script, request, &page), ERR_BAD_REQUEST);
    request = raw_request(script, run_id);
    request->page_size = 0;
    EXPECT_KIND(ask_raw(script, request, &page), ERR_BAD_REQUEST);
    request = raw_request(script, UNKNOWN_RUN);
    EXPECT_KIND(ask_raw(script, request, &page), ERR_ENTITY_NOT_EXISTS);
    EXPECT_EQ(count_raw(script, raw_request(script, run_id)), 4);
    int64_t event_version = script_history(script, 0, "w", "")->events[0]->version;
    request = raw_request(script, run_id);
    request->start_event = raw_end(script, 2, event_version);
    EXPECT_EQ(count_raw(script, request), 3);
    request = raw_request(script, run_id);
    request->start_event = raw_end(script, 2, event_version);
    request->end_event = raw_end(script, 5, event_version);
    EXPECT_EQ(count_raw(script, request), 2);
    request = raw_request(script, run_id);
    request->start_event = raw_end(script, 4, event_version);
    request->end_event = raw_end(script, 6, event_version);
    EXPECT_EQ(newest_raw(script, request), 6); /* the end lies within a batch: it is whole */
    request = raw_request(script, run_id);
    request->start_event = raw_end(script, 4, event_version);
    request->end_event = raw_end(script, 5, event_version);
    EXPECT_OK(ask_raw(script, request, &page));
    EXPECT_EQ(page->n_history_batches, 0);
    request->start_event = raw_end(script, 4, event_version + 1);
    EXPECT_KIND(ask_raw(script, request, &page), ERR_BAD_REQUEST);
}

/* Two histories of one run: clusters that did not hear of each other wrote different events. */
SCRIPT_TEST(peers_script, a_raw_history_reads_over_a_fork, script_play(2, 0, body), "E-021")
{
    const char *run_id = script_start(script, 0, "w"); /* 1, 2 */
    script_decide(script, 0, NULL, 0);                 /* 3 | 4 */
    script_expect_same(script, "w");
    script_part(script);
    EXPECT_OK(script_signal(script, 0, "w", "old")); /* 5, 6 */
    script_failover(script, 1);
    EXPECT_OK(script_signal(script, 1, "w", "new")); /* 5, 6 */
    script_decide(script, 1, NULL, 0);               /* 7 | 8 */
    int64_t old_version = script_history(script, 0, "w", "")->events[4]->version;
    int64_t new_version = script_history(script, 1, "w", "")->events[4]->version;
    EXPECT(new_version > old_version);
    script_heal(script);
    script_expect_same(script, "w");
    expect_branches(script, run_id, 2);
    ADMIN(GetWorkflowExecutionRawHistoryV2Request) *request = raw_request(script, run_id);
    request->start_event = raw_end(script, 5, old_version);
    request->end_event = raw_end(script, 7, new_version);
    EXPECT_EQ(count_raw(script, request), 1); /* 5 and 6 of the new one */
    request = raw_request(script, run_id);
    request->end_event = raw_end(script, 6, old_version);
    EXPECT_EQ(count_raw(script, request), 4); /* 1 2 | 3 | 4 | 5 */
    request = raw_request(script, run_id);
    request->start_event = raw_end(script, 4, old_version);
    EXPECT(count_raw(script, request) >= 3); /* 5 6 | 7 | 8, perhaps more */
    script_expect_same(script, "w");
}

/* --- all that a cluster of Cadence's own asks of another one ---- */

/* What clients did there to a history that lost; the events as Cadence has them. */
static void
ask_reapply(struct script *script, const char *run_id, API(DataBlob) *events)
{
    EXPECT_OK(SCRIPT_ADMIN(script, 0, NULL, reapply_events, .domain = SCRIPT_DOMAIN,
                           .workflow_execution = script_execution(script, "w", run_id),
                           .events = events));
}

static void
ask_of_domains(struct script *script)
{
    ADMIN(GetDomainReplicationMessagesRequest) *changes =
        ADMIN_NEW(script->arena, get_domain_replication_messages_request);
    struct maybe_int64 begin = {.is_set = true, .value = 0};
    changes->last_retrieved_message_id = presence_make_int64(script->arena, begin);
    changes->last_processed_message_id = presence_make_int64(script->arena, begin);
    changes->cluster_name = "cluster2";
    ADMIN(GetDomainReplicationMessagesResponse) *replicated = script_ok(script, 0, changes);
    EXPECT(replicated->messages != NULL && replicated->messages->n_replication_tasks > 0);
    API(DescribeDomainResponse) *described =
        SCRIPT_OK(script, 0, describe_domain,
                  .describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME),
                  .name = SCRIPT_DOMAIN);
    EXPECT_TEXT(described->domain->id, script->domain_id);
}

static void
ask_dead_letter(struct script *script, const char *run_id)
{
    ADMIN(GetDLQReplicationMessagesRequest) *request =
        ADMIN_NEW(script->arena, get_dlqreplication_messages_request);
    ADMIN(ReplicationTaskInfo) *info = ADMIN_NEW(
        script->arena, replication_task_info, .domain_id = (char *)script->domain_id,
        .workflow_execution = script_execution(script, "w", run_id), .first_event_id = 1,
        .next_event_id = 3, .version = script_history(script, 0, "w", "")->events[0]->version);
    request->task_infos = &info;
    request->n_task_infos = 1;
    ADMIN(GetDLQReplicationMessagesResponse) *response = script_ok(script, 0, request);
    EXPECT_EQ(response->n_replication_tasks, 1);
}

/* The test asks in the name of cluster 2, which is away, as a cluster of the Go server does. */
SCRIPT_TEST(peers_script, what_a_cluster_of_cadence_asks_is_answered, script_play(3, 0, body),
            "J-013")
{
    script_crash(script, 2);
    const char *run_id = script_start(script, 0, "w");
    EXPECT_OK(script_signal(script, 0, "w", "s"));
    ADMIN(ReplicationMessages) *all = script_messages(script, 0, "cluster2", shard_of("w"), -1);
    EXPECT_EQ(all->n_replication_tasks, 2);
    EXPECT_EQ(count_raw(script, raw_request(script, run_id)), 2);
    EXPECT(script_describe(script, 0, "w") != NULL);
    ask_of_domains(script);
    ask_dead_letter(script, run_id);
    size_t before = script_history(script, 0, "w", "")->n_events;
    ask_reapply(script, run_id, all->replication_tasks[1]->history_task_v2_attributes->events);
    EXPECT(script_history(script, 0, "w", "")->n_events >= before);
}

/* --- operators ---- */

/* A cluster that lost a run (it was never told: the domain did not list it) is given it by hand. */
SCRIPT_TEST(peers_script, a_run_is_fetched_from_another_cluster_on_demand, script_play(3, 2, body),
            "E-075")
{
    const char *run_id = script_start(script, 0, "w");
    script_decide(script, 0, NULL, 0);
    EXPECT(script_history(script, 2, "w", "") == NULL);
    ADMIN(ResendReplicationTasksRequest) *request = ADMIN_NEW(
        script->arena, resend_replication_tasks_request, .domain_id = (char *)script->domain_id,
        .remote_cluster = "cluster0", .workflow_execution = script_execution(script, "w", run_id));
    EXPECT_OK(script_call(script, 2, request, NULL));
    API(History) *history = script_history(script, 2, "w", "");
    EXPECT(history != NULL);
    EXPECT_EQ(history->n_events, 4);
    request->remote_cluster = "nobody";
    EXPECT_KIND(script_call(script, 2, request, NULL), ERR_BAD_REQUEST);
}

/* What a row said once is made again of the history. */
SCRIPT_TEST(peers_script, a_message_is_made_again_for_a_cluster_that_has_its_dead_letter,
            script_play(2, 0, body), "E-074")
{
    const char *run_id = script_start(script, 0, "w");
    script_decide(script, 0, NULL, 0);
    ADMIN(GetDLQReplicationMessagesRequest) *request =
        ADMIN_NEW(script->arena, get_dlqreplication_messages_request);
    ADMIN(ReplicationTaskInfo) *infos[2];
    for (int i = 0; i < 2; i++) {
        infos[i] = ADMIN_NEW(
            script->arena, replication_task_info, .domain_id = (char *)script->domain_id,
            .workflow_execution =
                script_execution(script, "w", i == 0 ? (char *)run_id : UNKNOWN_RUN),
            .task_id = 77, .version = script_history(script, 0, "w", "")->events[0]->version,
            .first_event_id = 1, .next_event_id = 3);
    }
    request->task_infos = infos;
    request->n_task_infos = 2;
    ADMIN(GetDLQReplicationMessagesResponse) *response = script_ok(script, 0, request);
    EXPECT_EQ(response->n_replication_tasks, 1);
    EXPECT_EQ(response->replication_tasks[0]->source_task_id, 77);
    EXPECT_EQ(((const uint8_t *)blob_of(response->replication_tasks[0]).data)[0], 0x59);
}

/* --- queues that nobody has any more ---- */

SCRIPT_TEST(peers_script, who_asks_for_tasks_of_cross_cluster_queues_gets_none,
            script_play(2, 0, body), "E-078")
{
    ADMIN(GetCrossClusterTasksResponse) *response =
        SCRIPT_ADMIN_OK(script, 0, get_cross_cluster_tasks, .target_cluster = "cluster1");
    EXPECT_EQ(response->n_tasks_by_shard, 0);
    EXPECT_OK(SCRIPT_ADMIN(script, 0, NULL, respond_cross_cluster_tasks_completed));
}
