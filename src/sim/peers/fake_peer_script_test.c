/* fake_peer_script_test.c - what a cluster does with the messages of a peer that never tells the
 * truth (fake_peer.h).
 *
 * Cluster 0 is real until both know the domain; then the fake peer answers in its place. */
#include <string.h>

#include "cadenza/admin/v1/service.pb-c.h"
#include "sim/active/active_script.h"
#include "sim/peers/fake_peer.h"

/* A batch whose events disagree in version; a good one behind it; one without versions, of an older
 * Cadence. */
SCRIPT_TEST(liar_script, a_batch_that_is_wrong_is_a_dead_letter_and_the_stream_goes_on,
            script_play(2, 0, body), "E-025", "E-047", "E-071", "E-072")
{
    struct fake_peer fake_peer = {0};
    API(HistoryEvent) *first[] = {fake_start_event(script, 1), fake_signal_event(script, 2, 11)};
    API(HistoryEvent) *good[] = {fake_start_event(script, 1)};
    fake_peer.tasks[0] = fake_task(script, FAKE_ROW(7), first, 2);
    fake_peer.tasks[1] = fake_task(script, FAKE_ROW(8), good, 1);
    fake_peer.tasks[2] = fake_task(script, FAKE_ROW(9), good, 1);
    fake_peer.tasks[2]->history_task_v2_attributes->n_version_history_items = 0;
    fake_peer.count = 3;
    fake_peer_begin(script, &fake_peer);
    fake_peer_await(script, &fake_peer, FAKE_ROW(9), 30 * NS_PER_S);
    EXPECT_EQ(dead_letters_count(script, "cluster0"), 1);
    EXPECT(script_history(script, 1, "w", UNKNOWN_RUN) != NULL); /* the stream went on */
    ADMIN(ReadDLQMessagesResponse) *read = dead_letters_read(script, 10, (ProtobufCBinaryData){0});
    EXPECT_EQ(read->n_replication_tasks, 1);
    EXPECT_EQ(read->replication_tasks[0]->source_task_id, FAKE_ROW(7));
    EXPECT_EQ(read->n_replication_tasks_info, 1);
    EXPECT_EQ(read->replication_tasks_info[0]->task_id, FAKE_ROW(7));
    EXPECT_TEXT(read->replication_tasks_info[0]->workflow_execution->workflow_id, "w");
    EXPECT_EQ(read->replication_tasks_info[0]->first_event_id, 1);
    EXPECT_EQ(read->replication_tasks_info[0]->next_event_id, 3);
    /* It will never fit: merging says why, and it stays; purging removes it. */
    struct error *err = dead_letters_merge(script);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "0 messages were applied; message 1073741831 was not") != NULL);
    EXPECT_EQ(dead_letters_count(script, "cluster0"), 1);
    dead_letters_purge(script, FAKE_ROW(6));
    EXPECT_EQ(dead_letters_count(script, "cluster0"), 1);
    dead_letters_purge(script, FAKE_ROW(7));
    EXPECT_EQ(dead_letters_count(script, "cluster0"), 0);
}

/* An event of a decision, which has no time. */
static API(HistoryEvent) *
timeless(struct script *script, int64_t event_id, int kind)
{
    API(HistoryEvent) *event = API_NEW(script->arena, history_event);
    event->event_id = event->task_id = event_id;
    event->version = 1;
    event->attributes_case = (API(HistoryEvent__AttributesCase))kind;
    return event;
}

static API(HistoryEvent) *
fake_scheduled(struct script *script, int64_t event_id)
{
    API(HistoryEvent) *event = timeless(script, event_id, EVENT(DECISION_TASK_SCHEDULED));
    event->decision_task_scheduled_event_attributes =
        API_NEW(script->arena, decision_task_scheduled_event_attributes,
                .task_list = API_NEW(script->arena, task_list, .name = SCRIPT_LIST));
    return event;
}

static API(HistoryEvent) *
fake_started(struct script *script, int64_t event_id, int64_t schedule_id)
{
    API(HistoryEvent) *event = timeless(script, event_id, EVENT(DECISION_TASK_STARTED));
    event->decision_task_started_event_attributes = API_NEW(
        script->arena, decision_task_started_event_attributes, .scheduled_event_id = schedule_id);
    return event;
}

static API(HistoryEvent) *
fake_completed(struct script *script, int64_t event_id, int64_t schedule_id, int64_t started_id)
{
    API(HistoryEvent) *event = timeless(script, event_id, EVENT(DECISION_TASK_COMPLETED));
    event->decision_task_completed_event_attributes =
        API_NEW(script->arena, decision_task_completed_event_attributes,
                .scheduled_event_id = schedule_id, .started_event_id = started_id);
    return event;
}

static API(HistoryEvent) *
fake_unstarted(struct script *script, int64_t event_id, int64_t schedule_id)
{
    API(HistoryEvent) *event = timeless(script, event_id, EVENT(DECISION_TASK_TIMED_OUT));
    event->decision_task_timed_out_event_attributes = API_NEW(
        script->arena, decision_task_timed_out_event_attributes, .scheduled_event_id = schedule_id,
        .timeout_type = API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_START));
    return event;
}

/* What Cadence applies is applied: events without a time, a started decision that was never
 * started, the end of a decision while another one is pending, or none. What cannot be, is not. */
SCRIPT_TEST(liar_script, what_cadence_applies_is_applied_though_it_is_odd, script_play(2, 0, body))
{
    struct fake_peer fake_peer = {0};
    API(HistoryEvent) *odd[] = {fake_start_event(script, 1),     fake_scheduled(script, 2),
                                fake_started(script, 3, 2),      fake_unstarted(script, 4, 2),
                                fake_scheduled(script, 5),       fake_started(script, 6, 5),
                                fake_completed(script, 7, 2, 3), fake_completed(script, 8, 5, 6)};
    API(HistoryEvent) *wrong[] = {fake_started(script, 9, 2)};
    odd[0]->event_time = NULL;
    fake_peer.tasks[0] = fake_task(script, FAKE_ROW(7), odd, array_length(odd));
    fake_peer.tasks[1] = fake_task(script, FAKE_ROW(8), wrong, 1);
    fake_peer.count = 2;
    fake_peer_begin(script, &fake_peer);
    fake_peer_await(script, &fake_peer, FAKE_ROW(8), 400 * NS_PER_S);
    API(History) *history = script_history(script, 1, "w", UNKNOWN_RUN);
    EXPECT(history != NULL);
    EXPECT_EQ(history->n_events, array_length(odd));
    for (size_t i = 0; i < history->n_events; i++)
        EXPECT(history->events[i]->event_time == NULL); /* as it was told */
    ADMIN(ReadDLQMessagesResponse) *read = dead_letters_read(script, 10, (ProtobufCBinaryData){0});
    EXPECT_EQ(read->n_replication_tasks, 1);
    EXPECT_EQ(read->replication_tasks_info[0]->first_event_id, 9);
    script_failover(script, 1); /* who goes on with it finds that its time was long ago */
    active_expect_closed(script, 1, "w", UNKNOWN_RUN, CLOSE(TIMED_OUT));
}

/* --- messages that come again ---- */

/* What there is now for cluster 2, which is away, joins what the fake peer will say. */
static void
record_messages(struct script *script, struct fake_peer *fake_peer)
{
    ADMIN(ReplicationMessages) *messages =
        script_messages(script, 0, "cluster2", fake_peer_shard_of("w"), -1);
    for (size_t i = 0; i < messages->n_replication_tasks; i++) {
        EXPECT(fake_peer->count < FAKE_TASKS_MAX);
        ADMIN(ReplicationTask) *task = messages->replication_tasks[i];
        task->source_task_id = FAKE_ROW((int64_t)fake_peer->count);
        fake_peer->tasks[fake_peer->count++] = task;
    }
}

/* Cluster 1 knows that the activity was started for this attempt, and has so many events. */
static void
await_attempt(struct script *script, size_t events, int32_t attempt)
{
    int64_t limit = clock_monotonic() + WITHIN;
    script_await(script, 1, "w", events);
    const API(PendingActivityInfo) *activity = NULL;
    do {
        EXPECT(clock_monotonic() < limit);
        script_sleep(script, 50 * NS_PER_MS);
        API(DescribeWorkflowExecutionResponse) *run = script_describe(script, 1, "w");
        EXPECT_EQ(run->n_pending_activities, 1);
        activity = run->pending_activities[0];
    } while (activity->attempt != attempt || activity->last_started_time == NULL);
}

/* The run, as the cluster describes it. */
static struct slice
run_now(struct script *script)
{
    return message_encode(script->arena, &script_describe(script, 1, "w")->base);
}

/* All that the real cluster said comes once more, behind all that came later: a start when the run
 * has gone on, the first attempt of an activity when the second has begun. */
SCRIPT_TEST(liar_script, messages_that_come_again_change_nothing, script_play(3, 0, body))
{
    struct fake_peer fake_peer = {0};
    script_crash(script, 2);
    const char *run_id = script_start(script, 0, "w");
    API(Decision) *decision = script_schedule_activity(script, true);
    script_decide(script, 0, &decision, 1);
    API(PollForActivityTaskResponse) *task = script_poll_activity(script, 0, WITHIN);
    EXPECT(task != NULL);
    record_messages(script, &fake_peer);
    SCRIPT_OK(script, 0, respond_activity_task_failed, .task_token = task->task_token,
              .failure = API_NEW(script->arena, failure, .reason = "not yet"));
    EXPECT(script_poll_activity(script, 0, 60 * NS_PER_S) != NULL);
    EXPECT_OK(script_signal(script, 0, "w", "s"));
    record_messages(script, &fake_peer);
    await_attempt(script, 7, 1);
    struct slice run = run_now(script);
    fake_peer_begin(script, &fake_peer);
    fake_peer_await(script, &fake_peer, FAKE_ROW((int64_t)fake_peer.count - 1), 30 * NS_PER_S);
    EXPECT(slice_equal(run_now(script), run));
    EXPECT_EQ(script_history(script, 1, "w", run_id)->n_events, 7);
    EXPECT_EQ(dead_letters_count(script, "cluster0"), 0);
}

/* A gap that the source cannot fill any more: the run is gone there. */
SCRIPT_TEST(liar_script, events_of_a_run_that_the_source_has_no_more_are_skipped,
            script_play(2, 0, body), "E-061")
{
    struct fake_peer fake_peer = {0};
    API(HistoryEvent) *late[] = {fake_signal_event(script, 5, 1)};
    fake_peer.tasks[0] = fake_task(script, FAKE_ROW(7), late, 1);
    fake_peer.count = 1;
    fake_peer_begin(script, &fake_peer);
    fake_peer_await(script, &fake_peer, FAKE_ROW(7), 30 * NS_PER_S);
    EXPECT(fake_peer.raw_calls > 0);
    EXPECT_EQ(dead_letters_count(script, "cluster0"), 0);
    EXPECT(script_history(script, 1, "w", UNKNOWN_RUN) == NULL);
}

/* What operators are told of a cluster that is behind. */
static const STORE_API(Peer) *
describe_peer(struct script *script)
{
    ProtobufCMessage *answer = NULL;
    EXPECT_OK(
        script_call(script, 1, STORE_API_NEW(script->arena, describe_peers_request), &answer));
    const STORE_API(DescribePeersResponse) *response =
        (const STORE_API(DescribePeersResponse) *)answer;
    EXPECT_EQ(response->n_peers, 1);
    return response->peers[0];
}

/* A domain that this cluster has not heard of: tried again, soon at first, then slowly, then
 * a dead letter, after five minutes. Then the domain is there, and merging applies it. */
SCRIPT_TEST(liar_script, what_cannot_be_applied_yet_is_tried_for_minutes_then_a_dead_letter,
            script_play(2, 0, body), "E-065")
{
    struct fake_peer fake_peer = {0};
    API(HistoryEvent) *good[] = {fake_start_event(script, 1)};
    fake_peer.tasks[0] = fake_task(script, FAKE_ROW(7), good, 1);
    fake_peer.tasks[0]->history_task_v2_attributes->domain_id =
        "99999999-2222-4333-8444-555555555555";
    fake_peer.count = 1;
    int64_t created = clock_wall() / NS_PER_S * NS_PER_S;
    fake_peer.tasks[0]->creation_time = presence_make_timestamp(script->arena, created);
    fake_peer_begin(script, &fake_peer);
    script_sleep(script, 120 * NS_PER_S);
    EXPECT(fake_peer.acknowledged < FAKE_ROW(7));
    EXPECT_EQ(dead_letters_count(script, "cluster0"), 0);
    const STORE_API(Peer) *peer = describe_peer(script);
    EXPECT_EQ(peer->waiting, 1);
    EXPECT_EQ(peer->oldest_nanoseconds, created);
    fake_peer_await(script, &fake_peer, FAKE_ROW(7), 300 * NS_PER_S);
    EXPECT_EQ(dead_letters_count(script, "cluster0"), 1);
    peer = describe_peer(script);
    EXPECT_EQ(peer->waiting, 0);
    EXPECT_EQ(peer->oldest_nanoseconds, 0);
}

/* While the source cannot be asked for what is missing, nothing becomes a dead letter. */
SCRIPT_TEST(liar_script, nothing_is_a_dead_letter_while_the_source_cannot_be_asked,
            script_play(2, 0, body), "E-060")
{
    struct fake_peer fake_peer = {.is_away = true};
    API(HistoryEvent) *late[] = {fake_signal_event(script, 5, 1)};
    fake_peer.tasks[0] = fake_task(script, FAKE_ROW(7), late, 1);
    fake_peer.count = 1;
    fake_peer_begin(script, &fake_peer);
    script_sleep(script, 900 * NS_PER_S);
    EXPECT(fake_peer.acknowledged < FAKE_ROW(7));
    EXPECT_EQ(dead_letters_count(script, "cluster0"), 0);
    fake_peer.is_away = false;
    fake_peer_await(script, &fake_peer, FAKE_ROW(7), 60 * NS_PER_S);
}

/* A dead letter fits once the events before it are here: merging applies it, and it goes. */
SCRIPT_TEST(liar_script, merging_applies_a_dead_letter_and_forgets_it, script_play(2, 0, body),
            "E-073")
{
    struct fake_peer fake_peer = {.refuses = true};
    API(HistoryEvent) *late[] = {fake_signal_event(script, 2, 1)};
    API(HistoryEvent) *good[] = {fake_start_event(script, 1)};
    fake_peer.tasks[0] = fake_task(script, FAKE_ROW(7), late, 1);
    fake_peer.count = 1;
    fake_peer_begin(script, &fake_peer);
    fake_peer_await(script, &fake_peer, FAKE_ROW(7), 400 * NS_PER_S);
    EXPECT_EQ(dead_letters_count(script, "cluster0"), 1);
    fake_peer.tasks[1] = fake_task(script, FAKE_ROW(8), good, 1);
    fake_peer.count = 2;
    fake_peer_await(script, &fake_peer, FAKE_ROW(8), 30 * NS_PER_S);
    EXPECT_OK(dead_letters_merge(script));
    EXPECT_EQ(dead_letters_count(script, "cluster0"), 0);
    EXPECT_EQ(script_history(script, 1, "w", UNKNOWN_RUN)->n_events, 2);
}

/* Two runs that a re-sync reads are wrong: each becomes a dead letter, and the stream goes on. Once
 * the source has repaired them, merging fetches them. */
SCRIPT_TEST(liar_script, runs_that_a_resync_cannot_apply_are_dead_letters, script_play(2, 0, body),
            "E-071")
{
    API(HistoryEvent) *wrong[] = {fake_start_event(script, 1), fake_signal_event(script, 2, 11)};
    API(HistoryEvent) *good[] = {fake_start_event(script, 1), fake_signal_event(script, 2, 1)};
    struct fake_peer fake_peer = {.resync_to = FAKE_ROW(50),
                                  .run_count = 2,
                                  .history = wrong,
                                  .history_count = 2,
                                  .domain_id = script->domain_id};
    fake_peer_begin(script, &fake_peer);
    fake_peer_await(script, &fake_peer, FAKE_ROW(50), 30 * NS_PER_S);
    EXPECT_EQ(dead_letters_count(script, "cluster0"), 2);
    EXPECT(script_history(script, 1, "w", UNKNOWN_RUN) == NULL);
    ADMIN(ReadDLQMessagesResponse) *read = dead_letters_read(script, 10, (ProtobufCBinaryData){0});
    EXPECT_EQ(read->n_replication_tasks_info, 2);
    EXPECT_TEXT(read->replication_tasks_info[0]->workflow_execution->run_id, UNKNOWN_RUN);
    EXPECT_KIND(dead_letters_merge(script), ERR_BAD_REQUEST);
    fake_peer.run_count = 1;
    fake_peer.history = good;
    dead_letters_purge(script, FAKE_ROW(50)); /* the first one, by its number */
    EXPECT_EQ(dead_letters_count(script, "cluster0"), 1);
    EXPECT_OK(dead_letters_merge(script));
    EXPECT_EQ(dead_letters_count(script, "cluster0"), 0);
    EXPECT_EQ(world_probe_count(script->sim->world, "resync_dead_letter_kept"), 2);
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

/* The domain drains from the fake peer to cluster 1, and all markers are on their way. */
static void
drain_from(struct script *script, struct fake_peer *fake_peer)
{
    fake_peer->domain_id = script->domain_id;
    fake_peer->domain = message_encode(script->arena, &describe_domain(script)->base);
    API(FailoverDomainResponse) *response =
        SCRIPT_OK(script, 1, failover_domain, .domain_name = SCRIPT_DOMAIN,
                  .domain_active_cluster_name = presence_make_text("cluster1"),
                  .failover_timeout = presence_make_duration(script->arena, 300));
    fake_peer->marker_version = response->domain->failover_version;
}

static uint64_t
ready_shards(struct script *script)
{
    return world_probe_count(script->sim->world, "source_shard_ready");
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
SCRIPT_TEST(liar_script, a_shard_is_ready_when_all_before_its_marker_is_applied,
            script_play(2, 0, body), "F-024")
{
    struct fake_peer fake_peer = {.is_away = true};
    API(HistoryEvent) *late[] = {fake_signal_event(script, 5, 1)};
    fake_peer.tasks[0] = fake_task(script, FAKE_ROW(7), late, 1);
    fake_peer.count = 1;
    fake_peer_begin(script, &fake_peer);
    drain_from(script, &fake_peer);
    await_ready(script, SIM_SHARDS - 1);
    script_sleep(script, 60 * NS_PER_S);
    EXPECT_EQ(ready_shards(script), SIM_SHARDS - 1);
    fake_peer.is_away = false;
    expect_active(script);
    fake_peer_await(script, &fake_peer, MARKER_ROW, 30 * NS_PER_S);
}

/* It is not ready while a dead letter stands before its marker. */
SCRIPT_TEST(liar_script, a_shard_is_not_ready_while_a_dead_letter_is_before_its_marker,
            script_play(2, 0, body))
{
    struct fake_peer fake_peer = {0};
    API(HistoryEvent) *wrong[] = {fake_start_event(script, 1), fake_signal_event(script, 2, 11)};
    fake_peer.tasks[0] = fake_task(script, FAKE_ROW(7), wrong, 2);
    fake_peer.count = 1;
    fake_peer_begin(script, &fake_peer);
    drain_from(script, &fake_peer);
    await_ready(script, SIM_SHARDS - 1);
    script_sleep(script, 60 * NS_PER_S);
    EXPECT_EQ(ready_shards(script), SIM_SHARDS - 1);
    EXPECT(world_probe_count(script->sim->world, "source_shard_blocked") > 0);
    EXPECT(fake_peer.acknowledged < MARKER_ROW);
    dead_letters_purge(script, FAKE_ROW(7));
    expect_active(script);
    fake_peer_await(script, &fake_peer, MARKER_ROW, 30 * NS_PER_S);
}

/* It is when that was merged. */
SCRIPT_TEST(liar_script, a_shard_is_ready_when_its_dead_letter_is_merged, script_play(2, 0, body))
{
    struct fake_peer fake_peer = {.refuses = true};
    API(HistoryEvent) *late[] = {fake_signal_event(script, 2, 1)};
    API(HistoryEvent) *good[] = {fake_start_event(script, 1)};
    fake_peer.tasks[0] = fake_task(script, FAKE_ROW(7), late, 1);
    fake_peer.count = 1;
    fake_peer_begin(script, &fake_peer);
    fake_peer_await(script, &fake_peer, FAKE_ROW(7), 400 * NS_PER_S);
    fake_peer.tasks[1] = fake_task(script, FAKE_ROW(8), good, 1);
    fake_peer.count = 2;
    drain_from(script, &fake_peer);
    await_ready(script, SIM_SHARDS - 1);
    script_sleep(script, 5 * NS_PER_S);
    EXPECT_EQ(ready_shards(script), SIM_SHARDS - 1);
    EXPECT_OK(dead_letters_merge(script));
    expect_active(script);
    EXPECT_EQ(script_history(script, 1, "w", UNKNOWN_RUN)->n_events, 2);
}

/* A parent went to cluster 0, without its child, and has ended there: so the fake peer says when it
 * is told of the end of the child, and that history never comes. Then it is moved back by force:
 * here it is open and waits for its child, so it must hear of it. */
SCRIPT_TEST(liar_script, a_parent_hears_of_its_child_though_it_has_ended_in_a_history_that_lost,
            active_play(2, body))
{
    active_move(script, "region0", 1);
    active_start(script, 1, "parent", "region0");
    API(Decision) *child =
        active_start_child(script, "child", active_policy(script, "region", "region1"));
    script_decide(script, 1, &child, 1);
    API(PollForDecisionTaskResponse) *first = script_poll(script, 1, WITHIN);
    API(PollForDecisionTaskResponse) *second = script_poll(script, 1, WITHIN);
    EXPECT(first != NULL && second != NULL);
    bool is_child = strcmp(first->workflow_execution->workflow_id, "child") == 0;
    EXPECT_OK(script_complete(script, 1, is_child ? second : first, NULL, 0));
    active_move(script, "region0", 0);
    active_await_move(script, 1, "region0", 0);
    struct fake_peer fake_peer = {0};
    fake_peer_begin(script, &fake_peer);
    API(Decision) *end = script_complete_workflow(script);
    EXPECT_OK(script_complete(script, 1, is_child ? first : second, &end, 1));
    script_sleep(script, 30 * NS_PER_S);
    EXPECT(fake_peer.cross_task_calls > 0);
    active_move(script, "region0", 1);
    active_end(script, 1, "parent");
    API(History) *parent = script_history(script, 1, "parent", "");
    EXPECT_EQ(script_count_events(parent, EVENT(CHILD_WORKFLOW_EXECUTION_COMPLETED)), 1);
}

/* The parent "w" hears that its child has ended, which had gone on as another run. */
static void
play_child(struct script *script)
{
    script_start(script, 1, "w");
    API(Decision) *child = script_start_child(script, "child");
    script_decide(script, 1, &child, 1);
    API(PollForDecisionTaskResponse) *first = script_poll(script, 1, WITHIN);
    API(PollForDecisionTaskResponse) *second = script_poll(script, 1, WITHIN);
    EXPECT(first != NULL && second != NULL);
    bool is_child = strcmp(first->workflow_execution->workflow_id, "child") == 0;
    EXPECT_OK(script_complete(script, 1, is_child ? second : first, NULL, 0));
    API(Decision) *next = API_DECISION(script->arena, continue_as_new_workflow_execution);
    EXPECT_OK(script_complete(script, 1, is_child ? first : second, &next, 1));
    API(Decision) *end = script_complete_workflow(script);
    script_decide(script, 1, &end, 1);
    script_decide(script, 1, NULL, 0);
    script_expect_same(script, "w");
}

/* Another history of "w", of cluster 0: as it is before the end of its child, then a signal. */
static ADMIN(ReplicationTask) *
fake_fork(struct script *script, int64_t event_version)
{
    struct arena *arena = script->arena;
    API(History) *here = script_history(script, 1, "w", "");
    EXPECT_EQ(script_count_events(here, EVENT(CHILD_WORKFLOW_EXECUTION_COMPLETED)), 1);
    size_t end = 0;
    while (here->events[end]->attributes_case != EVENT(CHILD_WORKFLOW_EXECUTION_COMPLETED))
        end++;
    const API(HistoryEvent) *before = here->events[end - 1];
    API(HistoryEvent) *signal = fake_signal_event(script, before->event_id + 1, event_version);
    signal->task_id = (int64_t)1 << 40;
    ADMIN(ReplicationTask) *task = fake_task(script, FAKE_ROW(1), &signal, 1);
    ADMIN(HistoryTaskV2Attributes) *batch = task->history_task_v2_attributes;
    batch->workflow_execution =
        script_describe(script, 1, "w")->workflow_execution_info->workflow_execution;
    ADMIN(VersionHistoryItem) *last = batch->version_history_items[0];
    batch->version_history_items = arena_zalloc(arena, 2, sizeof(void *));
    batch->version_history_items[0] = ADMIN_NEW(
        arena, version_history_item, .event_id = before->event_id, .version = before->version);
    batch->version_history_items[1] = last;
    batch->n_version_history_items = 2;
    return task;
}

/* A child has ended and told its parent, and its id is another workflow's. Then the history of the
 * parent that says so loses: the parent itself has to find out. */
SCRIPT_TEST(liar_script, a_parent_hears_of_its_child_whose_id_is_another_workflows,
            script_play(2, 0, body))
{
    script_failover(script, 1);
    play_child(script);
    const char *other;
    API(StartWorkflowExecutionRequest) *start = script_start_request(script, "child");
    start->workflow_id_reuse_policy = REUSE(ALLOW_DUPLICATE);
    EXPECT_OK(script_try_start(script, 1, start, &other));
    script_failover(script, 0);
    script_sleep(script, 5 * NS_PER_S);
    struct fake_peer fake_peer = {0};
    API(DescribeDomainResponse) *moved =
        SCRIPT_OK(script, 1, describe_domain,
                  .describe_by_case = API_VALUE(DESCRIBE_DOMAIN_REQUEST__DESCRIBE_BY_NAME),
                  .name = SCRIPT_DOMAIN);
    EXPECT_TEXT(moved->domain->active_cluster_name, "cluster0");
    fake_peer.tasks[fake_peer.count++] = fake_fork(script, moved->domain->failover_version);
    fake_peer_begin(script, &fake_peer);
    fake_peer_await(script, &fake_peer, FAKE_ROW(1), WITHIN);
    API(History) *parent = script_history(script, 1, "w", "");
    EXPECT_EQ(script_count_events(parent, EVENT(CHILD_WORKFLOW_EXECUTION_COMPLETED)), 0);
    script_failover(script, 1);
    parent = script_await(script, 1, "w", parent->n_events + 1);
    EXPECT_EQ(script_count_events(parent, EVENT(CHILD_WORKFLOW_EXECUTION_COMPLETED)), 1);
    EXPECT_TEXT(
        script_describe(script, 1, "child")->workflow_execution_info->workflow_execution->run_id,
        other);
}
