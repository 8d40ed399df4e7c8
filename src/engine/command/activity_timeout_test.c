/* What the clock does to activities and to the run. */
#include "engine/command/inside.h"
#include "engine/command/test/activity_calls.h"
#include "wire/message.h"

static const API(ActivityTaskTimedOutEventAttributes) *
timed_out(const struct fixture *fixture)
{
    return calls_find_event(fixture, EVENT_KIND(ACTIVITY_TASK_TIMED_OUT))
        ->activity_task_timed_out_event_attributes;
}

#define TYPE(name) API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_##name)

/* The type of the timeout that ended this activity, and when it fired, in seconds from `begin`. */
static void
expect_timed_out(const struct fixture *fixture, int64_t schedule_id, API(TimeoutType) type,
                 int64_t begin, int64_t seconds)
{
    for (int64_t id = fixture_run(fixture)->core->next_event_id - 1; id > 0; id--) {
        const API(HistoryEvent) *event = fixture_event(fixture, id);
        if (event->attributes_case != EVENT_KIND(ACTIVITY_TASK_TIMED_OUT) ||
            event->activity_task_timed_out_event_attributes->scheduled_event_id != schedule_id)
            continue;
        EXPECT_EQ(event->activity_task_timed_out_event_attributes->timeout_type, type);
        EXPECT_EQ(fixture_event_time(event), begin + seconds * FIXTURE_SECOND);
        return;
    }
    TEST_FAIL("activity %lld did not time out", (long long)schedule_id);
}

/* A is never polled, B is started and silent, C is retried until its policy has expired, D beats
 * twice and stops. */
COMMAND_TEST(activity_timeout, each_type_is_due_at_its_time, "A-105", "A-106")
{
    API(Decision) *retried = activity_decision(
        fixture, "c", (struct activity_timeouts){.schedule_to_start = 5, .start_to_close = 5});
    activity_attributes(retried)->retry_policy =
        activity_attributes(retried_activity_decision(fixture, "x", 0, 6))->retry_policy;
    calls_begin(fixture, activity_decision(fixture, "b", (struct activity_timeouts){7, 50, 50, 0}),
                retried, activity_decision(fixture, "d", (struct activity_timeouts){50, 50, 50, 3}),
                activity_decision(fixture, "a", (struct activity_timeouts){50, 3, 50, 0}));
    int64_t begin = fixture->context.now;
    calls_poll_activity(fixture);
    calls_poll_activity(fixture);
    struct task_name beating = calls_poll_activity(fixture);
    bool is_cancel_requested;
    for (int i = 0; i < 2; i++) {
        fixture_advance(fixture, 1);
        EXPECT_OK(
            calls_heartbeat(fixture, beating, i == 0 ? "first" : "last", &is_cancel_requested));
    }
    fixture_advance(fixture, 20);
    EXPECT_EQ(map64_count(fixture_run(fixture)->activities), 0);
    EXPECT_KIND(calls_complete(fixture, beating), ERR_ENTITY_NOT_EXISTS);
    expect_timed_out(fixture, 8, TYPE(SCHEDULE_TO_START), begin, 3);
    expect_timed_out(fixture, 5, TYPE(SCHEDULE_TO_CLOSE), begin, 7);
    expect_timed_out(fixture, 6, TYPE(START_TO_CLOSE), begin, 5); /* 5 s + 2 s is too late */
    expect_timed_out(fixture, 7, TYPE(HEARTBEAT), begin, 5);
}

COMMAND_TEST(activity_timeout, a_heartbeat_moves_the_timeout_and_its_details_are_kept, "A-106",
             "A-107")
{
    calls_begin(fixture,
                activity_decision(fixture, "a", (struct activity_timeouts){60, 60, 60, 3}));
    struct task_name task = calls_poll_activity(fixture);
    static const char *const beats[] = {"1", "2", "3", "4"};
    bool is_cancel_requested;
    for (int i = 0; i < 4; i++) {
        fixture_advance(fixture, 2);
        EXPECT_OK(calls_heartbeat(fixture, task, beats[i], &is_cancel_requested));
    }
    fixture_advance(fixture, 2);
    EXPECT(calls_activity(fixture, "a") != NULL);
    fixture_advance(fixture, 1);
    EXPECT_EQ(timed_out(fixture)->timeout_type, TYPE(HEARTBEAT));
    EXPECT_TEXT(fixture_payload_text(fixture, timed_out(fixture)->details), "4");
    EXPECT_KIND(calls_heartbeat(fixture, task, "5", &is_cancel_requested), ERR_ENTITY_NOT_EXISTS);
    EXPECT(run_has_pending_decision(fixture_run(fixture)));
}

COMMAND_TEST(activity_timeout, without_a_heartbeat_timeout_silence_is_no_fault, "A-107")
{
    calls_begin(fixture,
                activity_decision(fixture, "a", (struct activity_timeouts){60, 60, 60, 0}));
    calls_poll_activity(fixture);
    fixture_advance(fixture, 59);
    EXPECT(calls_activity(fixture, "a") != NULL);
    fixture_advance(fixture, 1);
    EXPECT_EQ(timed_out(fixture)->timeout_type, TYPE(START_TO_CLOSE)); /* before its equal */
}

TEST(activity_timeout, a_timeout_is_retried_by_its_reason, "A-108", "A-111")
{
    for (int is_final = 0; is_final <= 1; is_final++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        API(Decision) *decision = retried_activity_decision(fixture, "a", 9, 0);
        char *reason = (char *)"cadenceInternal:Timeout HEARTBEAT";
        API(RetryPolicy) *policy = activity_attributes(decision)->retry_policy;
        policy->non_retryable_error_reasons = &reason;
        policy->n_non_retryable_error_reasons = (size_t)is_final;
        calls_begin(fixture, decision);
        struct task_name task = calls_poll_activity(fixture);
        bool is_cancel_requested;
        EXPECT_OK(calls_heartbeat(fixture, task, "9", &is_cancel_requested));
        fixture_advance(fixture, 20);
        const STORED(PendingActivity) *activity = calls_activity(fixture, "a");
        EXPECT_EQ(activity != NULL, !is_final);
        if (activity != NULL) {
            EXPECT_TEXT(activity->last_failure->reason, reason);
            EXPECT_EQ(activity->attempt, 1);
            EXPECT_TEXT(fixture_payload_text(fixture, activity->heartbeat_details), "9");
        }
    }
}

COMMAND_TEST(activity_timeout, a_task_that_nobody_takes_is_sent_again_by_its_policy, "A-108",
             "A-111")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->execution_start_to_close_timeout = fixture_duration(fixture, 10000);
    EXPECT_OK(fixture_start(fixture, request));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, retried_activity_decision(fixture, "a", 2, 0)));
    uint64_t row = calls_activity(fixture, "a")->row;
    fixture_advance(fixture, 1800); /* the longest that it may wait */
    EXPECT_EQ(fixture->tasks.count, 0);
    const STORED(PendingActivity) *activity = calls_activity(fixture, "a");
    EXPECT_EQ(activity->attempt, 1);
    EXPECT_TEXT(activity->last_failure->reason, "cadenceInternal:Timeout SCHEDULE_TO_START");
    fixture_advance(fixture, 2);
    EXPECT(fixture->tasks.count == 1 && fixture->tasks.items[0].row != row);
    fixture_advance(fixture, 1800); /* that was the last attempt */
    EXPECT(calls_activity(fixture, "a") == NULL);
    EXPECT_EQ(timed_out(fixture)->timeout_type, TYPE(SCHEDULE_TO_START));
    EXPECT_TEXT(timed_out(fixture)->last_failure->reason,
                "cadenceInternal:Timeout SCHEDULE_TO_START");
}

COMMAND_TEST(activity_timeout, timeouts_behind_a_decision_wait_for_it, "A-084")
{
    calls_begin(fixture, activity_decision(fixture, "a", (struct activity_timeouts){3, 3, 3, 0}),
                fixture_timer(fixture, "t", 4));
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT(fixture_poll_decision(fixture));
    calls_poll_activity(fixture);
    fixture_advance(fixture, 5);
    EXPECT(calls_activity(fixture, "a") == NULL);
    EXPECT_OK(fixture_complete(fixture));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted ActivityTaskScheduled TimerStarted "
                            "WorkflowExecutionSignaled DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted ActivityTaskStarted TimerFired "
                            "ActivityTaskTimedOut DecisionTaskScheduled");
}

/* The machine was away: everything that became due meanwhile is done in the order of its time. */
COMMAND_TEST(activity_timeout, what_is_late_is_done_in_the_order_of_its_time)
{
    calls_begin(fixture, fixture_timer(fixture, "late", 8), fixture_timer(fixture, "early", 2),
                activity_decision(fixture, "a", (struct activity_timeouts){50, 5, 50, 0}));
    calls_wake_late(fixture, 20 * FIXTURE_SECOND);
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted TimerStarted TimerStarted ActivityTaskScheduled "
                            "TimerFired ActivityTaskTimedOut TimerFired DecisionTaskScheduled");
    EXPECT_TEXT(fixture_event(fixture, 8)->timer_fired_event_attributes->timer_id, "early");
}

/* ---- the run ---- */

COMMAND_TEST(run_timeout, an_open_run_times_out_as_a_whole, "A-198")
{
    calls_begin(fixture, fixture_timer(fixture, "t", 100));
    fixture_advance(fixture, 99);
    EXPECT(run_is_open(fixture_run(fixture)));
    fixture_advance(fixture, 1); /* the run goes before the timer of the same moment */
    EXPECT(!run_is_open(fixture_run(fixture)));
    EXPECT_EQ(calls_last_event(fixture)->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_TIMED_OUT));
    EXPECT_EQ(
        calls_last_event(fixture)->workflow_execution_timed_out_event_attributes->timeout_type,
        TYPE(START_TO_CLOSE));
    EXPECT_EQ(
        fixture_run(fixture)->core->close_status,
        API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_TIMED_OUT));
    EXPECT_EQ(run_next_deadline(fixture_run(fixture)), fixture_run(fixture)->core->delete_time);
    fixture_advance(fixture, 1000); /* nothing else fires now */
}

COMMAND_TEST(run_timeout, a_decision_in_flight_is_failed_and_what_waited_is_written, "A-198",
             "A-080")
{
    fixture_begin(fixture);
    fixture_advance(fixture, 95);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_signal(fixture, "late", ""));
    fixture_advance(fixture, 5);
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskFailed WorkflowExecutionSignaled "
                            "WorkflowExecutionTimedOut");
    EXPECT_EQ(fixture_event(fixture, 4)->decision_task_failed_event_attributes->cause,
              FAILED_CAUSE(FORCE_CLOSE_DECISION));
}

COMMAND_TEST(run_timeout, a_decision_that_is_not_answered_is_tried_again, "A-062")
{
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    fixture_advance(fixture, 10);
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskTimedOut");
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 1);
}

COMMAND_TEST(run_timeout, a_delayed_first_decision_comes_at_its_time_and_not_before, "A-040")
{
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->delay_start = fixture_duration(fixture, 10);
    EXPECT_OK(fixture_start(fixture, request));
    fixture_advance(fixture, 9);
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted");
    fixture_advance(fixture, 1);
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled");
}
