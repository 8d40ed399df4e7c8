/* failover_script_test.c - workflows whose domain moves to another cluster by force, step by step.
 */
#include "sim/scripts/script.h"

#include <string.h>

#include "uber/cadence/api/v1/service_visibility.pb-c.h"

static void
expect_last(const API(History) *history, int kind)
{
    EXPECT(history->n_events > 0);
    EXPECT_EQ(history->events[history->n_events - 1]->attributes_case, kind);
}

/* --- a workflow begins in one cluster and ends in the other ---- */

SCRIPT_TEST(failover_script, a_workflow_that_began_in_one_cluster_ends_in_the_next,
            script_play(2, 0, body), "E-026", "E-029", "E-032")
{
    script_start(script, 0, "w");
    script_decide(script, 0, NULL, 0);
    script_await(script, 1, "w", 4);
    script_failover(script, 1);
    EXPECT_OK(script_signal(script, 1, "w", "go"));
    API(Decision) *end = script_complete_workflow(script);
    script_decide(script, 1, &end, 1);
    API(History) *history = script_await(script, 0, "w", 9);
    expect_last(history, EVENT(WORKFLOW_EXECUTION_COMPLETED));
    EXPECT_TEXT(history->events[3]->decision_task_completed_event_attributes->identity, "decider0");
    EXPECT_TEXT(history->events[7]->decision_task_completed_event_attributes->identity, "decider1");
    script_expect_same(script, "w");
}

/* --- signals before and after ---- */

SCRIPT_TEST(failover_script, signals_before_and_after_a_failover_are_in_both_clusters,
            script_play(2, 0, body), "E-034")
{
    script_start(script, 0, "w");
    script_decide(script, 0, NULL, 0);
    EXPECT_OK(script_signal(script, 0, "w", "before"));
    API(History) *history = script_await(script, 1, "w", 6);
    EXPECT_EQ(history->events[4]->attributes_case, EVENT(WORKFLOW_EXECUTION_SIGNALED));
    script_decide(script, 0, NULL, 0);
    size_t before = script_await(script, 1, "w", 8)->n_events;
    script_failover(script, 1);
    EXPECT_OK(script_signal(script, 1, "w", "after"));
    script_decide(script, 1, NULL, 0);
    history = script_await(script, 0, "w", before + 4);
    EXPECT_EQ(history->events[before]->attributes_case, EVENT(WORKFLOW_EXECUTION_SIGNALED));
    EXPECT(history->events[before]->version > history->events[before - 1]->version);
    script_expect_same(script, "w");
}

/* --- the end replicates back ---- */

SCRIPT_TEST(failover_script, a_termination_in_the_new_cluster_comes_back_with_all_it_says,
            script_play(2, 0, body), "E-036")
{
    script_start(script, 0, "w");
    script_await(script, 1, "w", 2);
    script_failover(script, 1);
    API(TerminateWorkflowExecutionRequest) *request = API_NEW(
        script->arena, terminate_workflow_execution_request, .domain = SCRIPT_DOMAIN,
        .workflow_execution = script_execution(script, "w", ""), .reason = "because",
        .details = presence_make_payload(
            script->arena, (struct maybe_bytes){.is_set = true, .bytes = SLICE_LITERAL("details")}),
        .identity = "somebody");
    EXPECT_OK(script_call(script, 1, request, NULL));
    script_expect_same(script, "w");
    API(History) *history = script_history(script, 0, "w", "");
    expect_last(history, EVENT(WORKFLOW_EXECUTION_TERMINATED));
    const API(WorkflowExecutionTerminatedEventAttributes) *end =
        history->events[history->n_events - 1]->workflow_execution_terminated_event_attributes;
    EXPECT_TEXT(end->reason, "because");
    EXPECT_TEXT(end->identity, "somebody");
    EXPECT(slice_equal(presence_read_payload(end->details).bytes, slice_text("details")));
}

/* --- ids that were used are known ---- */

SCRIPT_TEST(failover_script, the_new_cluster_knows_which_ids_were_used, script_play(2, 0, body),
            "E-035")
{
    script_start(script, 0, "w");
    API(Decision) *end = script_complete_workflow(script);
    script_decide(script, 0, &end, 1);
    script_await(script, 1, "w", 5);
    script_failover(script, 1);
    const char *run_id;
    API(StartWorkflowExecutionRequest) *request = script_start_request(script, "w");
    request->workflow_id_reuse_policy =
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE);
    EXPECT_KIND(script_try_start(script, 1, request, &run_id), ERR_ALREADY_STARTED);
    request = script_start_request(script, "w");
    request->workflow_id_reuse_policy =
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY);
    EXPECT_KIND(script_try_start(script, 1, request, &run_id), ERR_ALREADY_STARTED);
    request = script_start_request(script, "w");
    request->workflow_id_reuse_policy =
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE);
    EXPECT_OK(script_try_start(script, 1, request, &run_id));
}

/* --- the passive cluster ---- */

SCRIPT_TEST(failover_script, a_passive_cluster_refuses_writes_and_hands_out_nothing,
            script_play_unforwarded(2, body), "E-039", "E-040")
{
    script_start(script, 0, "w");
    script_await(script, 1, "w", 2);
    EXPECT(script_poll(script, 1, 5 * NS_PER_S) == NULL);
    const char *run_id;
    struct error *err = script_try_start(script, 1, script_start_request(script, "other"), &run_id);
    EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE);
    EXPECT_TEXT(err->message, "Domain: flows is active in cluster: cluster0, while current cluster "
                              "cluster1 is a standby cluster.");
    EXPECT_KIND(script_signal(script, 1, "w", "no"), ERR_DOMAIN_NOT_ACTIVE);
    EXPECT(script_poll(script, 0, WITHIN) != NULL);
}

/* --- continue as new, timers, schedules, retries ---- */

SCRIPT_TEST(failover_script, a_timer_that_began_in_one_cluster_fires_in_the_next,
            script_play(2, 0, body), "E-037")
{
    script_start(script, 0, "w");
    API(Decision) *timer = script_start_timer(script, 60);
    script_decide(script, 0, &timer, 1);
    script_await(script, 1, "w", 5);
    script_sleep(script, 30 * NS_PER_S);
    script_failover(script, 1);
    API(PollForDecisionTaskResponse) *task = script_poll(script, 1, 60 * NS_PER_S);
    EXPECT(task != NULL);
    EXPECT_EQ(task->history->events[5]->attributes_case, EVENT(TIMER_FIRED));
    API(Decision) *end = script_complete_workflow(script);
    EXPECT_OK(script_complete(script, 1, task, &end, 1));
    script_expect_same(script, "w");
}

SCRIPT_TEST(failover_script, a_run_that_was_continued_in_one_cluster_goes_on_in_the_next,
            script_play(2, 0, body), "E-037")
{
    script_start(script, 0, "w");
    script_await(script, 1, "w", 2);
    script_failover(script, 1);
    API(Decision) *decision = API_DECISION(script->arena, continue_as_new_workflow_execution);
    script_decide(script, 1, &decision, 1);
    script_expect_same(script, "w");
    script_failover(script, 0);
    API(Decision) *end = script_complete_workflow(script);
    script_decide(script, 0, &end, 1);
    script_expect_same(script, "w");
    API(History) *history = script_history(script, 1, "w", "");
    expect_last(history, EVENT(WORKFLOW_EXECUTION_COMPLETED));
    EXPECT(history->events[0]
               ->workflow_execution_started_event_attributes->continued_execution_run_id[0] !=
           '\0');
}

SCRIPT_TEST(failover_script, a_schedule_goes_on_in_the_next_cluster, script_play(2, 0, body),
            "E-037")
{
    const char *run_id;
    API(StartWorkflowExecutionRequest) *request = script_start_request(script, "w");
    request->cron_schedule = "@every 20s";
    EXPECT_OK(script_try_start(script, 0, request, &run_id));
    script_await(script, 1, "w", 1);
    script_failover(script, 1);
    API(Decision) *end = script_complete_workflow(script);
    for (int fire = 0; fire < 2; fire++) {
        API(PollForDecisionTaskResponse) *task = script_poll(script, 1, 40 * NS_PER_S);
        EXPECT(task != NULL);
        EXPECT_OK(script_complete(script, 1, task, &end, 1));
    }
    script_expect_same(script, "w");
    EXPECT(
        strcmp(script_describe(script, 0, "w")->workflow_execution_info->workflow_execution->run_id,
               run_id) != 0);
}

SCRIPT_TEST(failover_script, a_run_is_tried_again_in_the_next_cluster, script_play(2, 0, body),
            "E-037")
{
    const char *run_id;
    API(StartWorkflowExecutionRequest) *request = script_start_request(script, "w");
    request->retry_policy = API_NEW(script->arena, retry_policy,
                                    .initial_interval = presence_make_duration(script->arena, 1),
                                    .backoff_coefficient = 1, .maximum_attempts = 3);
    EXPECT_OK(script_try_start(script, 0, request, &run_id));
    script_await(script, 1, "w", 2);
    script_failover(script, 1);
    API(Decision) *fail =
        API_DECISION(script->arena, fail_workflow_execution,
                     .failure = API_NEW(script->arena, failure, .reason = "not today"));
    script_decide(script, 1, &fail, 1);
    script_expect_same(script, "w");
    API(Decision) *end = script_complete_workflow(script);
    script_decide(script, 1, &end, 1);
    script_expect_same(script, "w");
    API(History) *history = script_history(script, 0, "w", "");
    EXPECT_EQ(history->events[0]->workflow_execution_started_event_attributes->attempt, 1);
}

/* --- activities ---- */

/* Attempt 0 fails with 45 s to wait; the domain moves; the new cluster knows that attempt 1 waits,
 * and sends it in time. */
SCRIPT_TEST(failover_script, an_attempt_that_waits_is_sent_by_the_next_cluster,
            script_play(2, 0, body), "E-030", "E-059")
{
    script_start(script, 0, "w");
    API(Decision) *activity = script_schedule_activity(script, true);
    script_decide(script, 0, &activity, 1);
    API(PollForActivityTaskResponse) *task = script_poll_activity(script, 0, WITHIN);
    EXPECT(task != NULL);
    API(RespondActivityTaskFailedRequest) *failed = API_NEW(
        script->arena, respond_activity_task_failed_request, .task_token = task->task_token,
        .failure = API_NEW(script->arena, failure, .reason = "not today"), .identity = "worker0");
    EXPECT_OK(script_call(script, 0, failed, NULL));
    int64_t failed_time = clock_monotonic();
    script_sleep(script, 10 * NS_PER_S);
    script_failover(script, 1);
    script_sleep(script, 15 * NS_PER_S);
    API(DescribeWorkflowExecutionResponse) *seen = script_describe(script, 1, "w");
    EXPECT_EQ(seen->n_pending_activities, 1);
    EXPECT_EQ(seen->pending_activities[0]->state,
              API_VALUE(PENDING_ACTIVITY_STATE__PENDING_ACTIVITY_STATE_SCHEDULED));
    EXPECT_EQ(seen->pending_activities[0]->attempt, 1);
    EXPECT_TEXT(seen->pending_activities[0]->last_failure->reason, "not today");
    task = script_poll_activity(script, 1, 60 * NS_PER_S);
    EXPECT(task != NULL);
    EXPECT_EQ(task->attempt, 1);
    EXPECT(clock_monotonic() - failed_time >= 44 * NS_PER_S);
    EXPECT_OK(SCRIPT_CALL(script, 1, NULL, respond_activity_task_completed,
                          .task_token = task->task_token));
    API(Decision) *end = script_complete_workflow(script);
    script_decide(script, 1, &end, 1);
    script_expect_same(script, "w");
}

/* An activity sends heartbeats in one cluster; then its worker is silent, the domain has moved, and
 * it is tried again there, with what the last heartbeat said. */
SCRIPT_TEST(failover_script, what_an_activity_said_last_reaches_the_next_cluster,
            script_play(2, 0, body), "E-038", "E-059")
{
    script_start(script, 0, "w");
    API(Decision) *activity = script_schedule_activity(script, true);
    activity->schedule_activity_task_decision_attributes->heartbeat_timeout =
        presence_make_duration(script->arena, 5);
    activity->schedule_activity_task_decision_attributes->retry_policy->initial_interval =
        presence_make_duration(script->arena, 1);
    script_decide(script, 0, &activity, 1);
    API(PollForActivityTaskResponse) *task = script_poll_activity(script, 0, WITHIN);
    EXPECT(task != NULL);
    API(RecordActivityTaskHeartbeatRequest) *beat = API_NEW(
        script->arena, record_activity_task_heartbeat_request, .task_token = task->task_token,
        .details = presence_make_payload(
            script->arena, (struct maybe_bytes){.is_set = true, .bytes = SLICE_LITERAL("half")}));
    EXPECT_OK(script_call(script, 0, beat, NULL));
    script_sleep(script, NS_PER_S);
    API(DescribeWorkflowExecutionResponse) *seen = script_describe(script, 1, "w");
    EXPECT_EQ(seen->pending_activities[0]->state,
              API_VALUE(PENDING_ACTIVITY_STATE__PENDING_ACTIVITY_STATE_STARTED));
    script_failover(script, 1);
    task = script_poll_activity(script, 1, 60 * NS_PER_S);
    EXPECT(task != NULL);
    EXPECT(task->attempt > 0);
    EXPECT(slice_equal(presence_read_payload(task->heartbeat_details).bytes, slice_text("half")));
}

/* --- lists ---- */

static size_t
count_closed(struct script *script, unsigned cluster)
{
    API(ListClosedWorkflowExecutionsResponse) *response = SCRIPT_OK(
        script, cluster, list_closed_workflow_executions, .domain = SCRIPT_DOMAIN, .page_size = 10,
        .start_time_filter =
            API_NEW(script->arena, start_time_filter,
                    .earliest_time = presence_make_timestamp(script->arena, 0),
                    .latest_time = presence_make_timestamp(script->arena, clock_wall())));
    return response->n_executions;
}

/* The active cluster is gone: the other one answers lists from its own visibility. */
SCRIPT_TEST(failover_script, a_passive_cluster_lists_what_was_replicated, script_play(2, 0, body),
            "B-036")
{
    script_start(script, 0, "w");
    API(Decision) *end = script_complete_workflow(script);
    script_decide(script, 0, &end, 1);
    script_expect_same(script, "w");
    script_sleep(script, 5 * NS_PER_S);
    script_crash(script, 0);
    EXPECT_EQ(count_closed(script, 1), 1);
}

/* --- resets ---- */

static const char *
reset(struct script *script, unsigned cluster, int64_t finish_id)
{
    API(ResetWorkflowExecutionResponse) *response =
        SCRIPT_OK(script, cluster, reset_workflow_execution, .domain = SCRIPT_DOMAIN,
                  .workflow_execution =
                      script_execution(script, "w",
                                       script_describe(script, cluster, "w")
                                           ->workflow_execution_info->workflow_execution->run_id),
                  .reason = "again", .decision_finish_event_id = finish_id,
                  .request_id = script_start_request(script, "w")->request_id);
    return response->run_id;
}

/* A run times out and is reset, before and after a failover; the last one completes. */
SCRIPT_TEST(failover_script, resets_before_and_after_a_failover_end_in_the_same_run,
            script_play(2, 0, body), "E-028")
{
    const char *run_id;
    API(StartWorkflowExecutionRequest) *request = script_start_request(script, "w");
    request->execution_start_to_close_timeout = presence_make_duration(script->arena, 20);
    EXPECT_OK(script_try_start(script, 0, request, &run_id));
    script_decide(script, 0, NULL, 0);
    script_sleep(script, 25 * NS_PER_S);
    expect_last(script_history(script, 0, "w", ""), EVENT(WORKFLOW_EXECUTION_TIMED_OUT));
    script_expect_same(script, "w");
    reset(script, 0, 4);
    script_expect_same(script, "w");
    script_failover(script, 1);
    script_decide(script, 1, NULL, 0);
    script_sleep(script, 25 * NS_PER_S);
    API(History) *history = script_history(script, 1, "w", "");
    expect_last(history, EVENT(WORKFLOW_EXECUTION_TIMED_OUT));
    script_expect_same(script, "w");
    int64_t finish_id = 0;
    for (size_t i = 0; i < history->n_events; i++) {
        if (history->events[i]->attributes_case == EVENT(DECISION_TASK_COMPLETED))
            finish_id = history->events[i]->event_id;
    }
    const char *last = reset(script, 1, finish_id);
    API(Decision) *end = script_complete_workflow(script);
    script_decide(script, 1, &end, 1);
    script_expect_same(script, "w");
    for (unsigned i = 0; i < 2; i++) {
        API(DescribeWorkflowExecutionResponse) *seen = script_describe(script, i, "w");
        EXPECT_TEXT(seen->workflow_execution_info->workflow_execution->run_id, last);
        EXPECT_EQ(
            seen->workflow_execution_info->close_status,
            API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_COMPLETED));
    }
}

/* --- clusters of other sizes ---- */

static void
play_uneven(struct script *script)
{
    for (int i = 0; i < 12; i++)
        script_start(script, 0, arena_format(script->arena, "w%d", i));
    for (int i = 0; i < 12; i++)
        script_expect_same(script, arena_format(script->arena, "w%d", i));
    script_failover(script, 1);
    for (int i = 0; i < 12; i++)
        EXPECT_OK(script_signal(script, 1, arena_format(script->arena, "w%d", i), "s"));
    for (int i = 0; i < 12; i++)
        script_expect_same(script, arena_format(script->arena, "w%d", i));
}

TEST(failover_script, clusters_with_other_numbers_of_shards_follow_each_other, "E-066")
{
    script_play_uneven(SIM_SHARDS - 1, play_uneven);
    script_play_uneven(SIM_SHARDS + 3, play_uneven);
}
