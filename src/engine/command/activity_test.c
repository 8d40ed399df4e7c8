/* The life of an activity without retries: started, alive, over; cancelled. */
#include "engine/command/inside.h"
#include "engine/command/test/activity_calls.h"
#include "wire/message.h"

#define LONG ((struct activity_timeouts){.schedule_to_close = 60})

COMMAND_TEST(activity, a_start_is_written_at_once_and_the_end_points_to_it, "A-102")
{
    calls_begin(fixture, activity_decision(fixture, "a", LONG));
    struct task_name task = calls_poll_activity(fixture);
    const API(ActivityTaskStartedEventAttributes) *started =
        calls_last_event(fixture)->activity_task_started_event_attributes;
    EXPECT_EQ(started->scheduled_event_id, 5);
    EXPECT_EQ(started->attempt, 0);
    EXPECT_TEXT(started->identity, "worker");
    EXPECT(started->request_id[0] != '\0');
    EXPECT(started->last_failure == NULL);
    EXPECT(fixture_task(fixture, CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_ACTIVITY) ==
           NULL);

    EXPECT_OK(calls_complete(fixture, task));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted ActivityTaskScheduled ActivityTaskStarted "
                            "ActivityTaskCompleted DecisionTaskScheduled");
    const API(ActivityTaskCompletedEventAttributes) *completed =
        fixture_event(fixture, 7)->activity_task_completed_event_attributes;
    EXPECT_EQ(completed->scheduled_event_id, 5);
    EXPECT_EQ(completed->started_event_id, 6);
    EXPECT_TEXT(completed->identity, "worker");
    EXPECT_TEXT(fixture_payload_text(fixture, completed->result), "result");
}

COMMAND_TEST(activity, a_poll_that_asks_again_has_the_same_start_and_another_one_is_refused)
{
    calls_begin(fixture, activity_decision(fixture, "a", LONG),
                retried_activity_decision(fixture, "b", 3, 0));
    for (int64_t schedule_id = 5; schedule_id <= 6; schedule_id++) {
        struct task_name task = {.schedule_id = schedule_id, .activity_id = ""};
        struct activity_start first, again, other;
        EXPECT_OK(calls_start_activity(fixture, &task, "one", &first));
        int64_t next_event_id = fixture_run(fixture)->core->next_event_id;
        fixture_advance(fixture, 1);
        EXPECT_OK(calls_start_activity(fixture, &task, "one", &again));
        EXPECT_EQ(again.activity->started_time, first.activity->started_time);
        struct error *refusal = calls_start_activity(fixture, &task, "two", &other);
        EXPECT_KIND(refusal, ERR_EVENT_ALREADY_STARTED);
        EXPECT_EQ(fixture_run(fixture)->core->next_event_id, next_event_id);
    }
}

COMMAND_TEST(activity, the_task_of_a_closed_run_is_void)
{
    calls_begin(fixture, activity_decision(fixture, "a", LONG));
    struct task_name task = {.schedule_id = 5, .activity_id = ""};
    EXPECT_OK(fixture_terminate(fixture));
    struct activity_start start;
    struct error *refusal = calls_start_activity(fixture, &task, "one", &start);
    EXPECT_KIND(refusal, ERR_ENTITY_NOT_EXISTS);
}

/* By token and by id, each verb once. */
TEST(activity, an_end_and_a_heartbeat_may_name_the_token_or_the_id, "A-103")
{
    for (int by_id = 0; by_id <= 1; by_id++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        calls_begin(fixture, activity_decision(fixture, "a", LONG),
                    activity_decision(fixture, "b", LONG), activity_decision(fixture, "c", LONG));
        static const char *const ids[] = {"a", "b", "c"};
        struct task_name tasks[3];
        for (int i = 0; i < 3; i++) {
            struct task_name token = calls_poll_activity(fixture);
            tasks[i] = by_id ? calls_by_id(ids[i]) : token;
        }
        bool is_cancel_requested;
        EXPECT_OK(calls_heartbeat(fixture, tasks[0], "1", &is_cancel_requested));
        EXPECT(!is_cancel_requested);
        EXPECT_TEXT(fixture_payload_text(fixture, calls_activity(fixture, "a")->heartbeat_details),
                    "1");
        EXPECT_OK(calls_complete(fixture, tasks[0]));
        EXPECT_OK(calls_fail(fixture, tasks[1], "boom"));
        EXPECT(fixture_poll_decision(fixture));
        EXPECT_OK(fixture_complete(fixture, cancel_activity_decision(fixture, "c")));
        EXPECT_OK(calls_cancel(fixture, tasks[2]));
        EXPECT_EQ(map64_count(fixture_run(fixture)->activities), 0);
    }
}

COMMAND_TEST(activity, what_is_unknown_not_started_or_over_is_not_found, "A-104")
{
    calls_begin(fixture, activity_decision(fixture, "a", LONG));
    struct task_name unstarted = {.schedule_id = 5, .activity_id = ""};
    struct error *refusal = calls_complete(fixture, unstarted);
    EXPECT_KIND(refusal, ERR_ENTITY_NOT_EXISTS);
    EXPECT_TEXT(refusal->message, "activity task not found");

    struct task_name task = calls_poll_activity(fixture);
    struct task_name other = {.schedule_id = 5, .attempt = 1, .activity_id = ""};
    EXPECT_KIND(calls_complete(fixture, other), ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(calls_complete(fixture, calls_by_id("b")), ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(calls_fail(fixture, calls_by_id("b"), "boom"), ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(calls_complete(fixture, calls_by_id("")), ERR_BAD_REQUEST);
    EXPECT_OK(calls_complete(fixture, task));
    bool is_cancel_requested;
    EXPECT_KIND(calls_complete(fixture, task), ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(calls_heartbeat(fixture, task, "1", &is_cancel_requested), ERR_ENTITY_NOT_EXISTS);
    EXPECT_OK(fixture_terminate(fixture));
    EXPECT_KIND(calls_complete(fixture, task), ERR_ALREADY_COMPLETED);
}

COMMAND_TEST(activity, a_failure_is_written_with_its_options, "A-119")
{
    calls_begin(fixture, activity_decision(fixture, "a", LONG));
    EXPECT_OK(calls_fail(fixture, calls_poll_activity(fixture), "boom"));
    const API(ActivityTaskFailedEventAttributes) *failed =
        calls_find_event(fixture, EVENT_KIND(ACTIVITY_TASK_FAILED))
            ->activity_task_failed_event_attributes;
    EXPECT_TEXT(failed->failure->reason, "boom");
    EXPECT_EQ(failed->failure->options->failure_category,
              API_VALUE(FAILURE_CATEGORY__FAILURE_CATEGORY_FATAL));
    EXPECT_EQ(failed->failure->options->next_retry_interval->seconds, 7);
    EXPECT_EQ(failed->started_event_id, 6);
}

/* Both arrive while the worker of the run decides: the start must be written before the end. */
COMMAND_TEST(activity, a_start_and_an_end_behind_a_decision_get_ids_in_order, "A-086", "A-084")
{
    calls_begin(fixture, activity_decision(fixture, "a", LONG),
                activity_decision(fixture, "b", LONG));
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT(fixture_poll_decision(fixture));
    struct task_name first = calls_poll_activity(fixture);
    EXPECT_OK(calls_complete(fixture, first));
    struct task_name second = calls_poll_activity(fixture);
    EXPECT_OK(calls_fail(fixture, second, "boom"));
    EXPECT_OK(fixture_complete(fixture));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted ActivityTaskScheduled ActivityTaskScheduled "
                            "WorkflowExecutionSignaled DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted ActivityTaskStarted ActivityTaskStarted "
                            "ActivityTaskCompleted ActivityTaskFailed DecisionTaskScheduled");
    EXPECT_EQ(
        fixture_event(fixture, 13)->activity_task_completed_event_attributes->started_event_id, 11);
    EXPECT_EQ(fixture_event(fixture, 14)->activity_task_failed_event_attributes->started_event_id,
              12);
}

COMMAND_TEST(activity, each_end_schedules_one_decision_and_no_second_while_one_is_pending, "A-083")
{
    calls_begin(fixture, activity_decision(fixture, "a", LONG),
                activity_decision(fixture, "b", LONG));
    EXPECT_OK(calls_complete(fixture, calls_poll_activity(fixture)));
    EXPECT_OK(calls_complete(fixture, calls_poll_activity(fixture)));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted ActivityTaskScheduled ActivityTaskScheduled "
                            "ActivityTaskStarted ActivityTaskCompleted DecisionTaskScheduled "
                            "ActivityTaskStarted ActivityTaskCompleted");
}

/* ---- cancellation ---- */

COMMAND_TEST(activity, a_running_one_learns_of_its_cancellation_by_a_heartbeat, "A-115")
{
    calls_begin(fixture, activity_decision(fixture, "a", LONG));
    struct task_name task = calls_poll_activity(fixture);
    struct error *early = calls_cancel(fixture, task); /* nobody asked */
    EXPECT_KIND(early, ERR_INTERNAL);
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, cancel_activity_decision(fixture, "a")));
    EXPECT_EQ(calls_last_event(fixture)->attributes_case,
              EVENT_KIND(ACTIVITY_TASK_CANCEL_REQUESTED));
    int64_t requested_id = calls_last_event(fixture)->event_id;
    EXPECT(!run_has_pending_decision(fixture_run(fixture)));

    bool is_cancel_requested = false;
    EXPECT_OK(calls_heartbeat(fixture, task, "1", &is_cancel_requested));
    EXPECT(is_cancel_requested);
    EXPECT_OK(calls_cancel(fixture, task));
    const API(ActivityTaskCanceledEventAttributes) *canceled =
        calls_find_event(fixture, EVENT_KIND(ACTIVITY_TASK_CANCELED))
            ->activity_task_canceled_event_attributes;
    EXPECT_EQ(canceled->latest_cancel_requested_event_id, requested_id);
    EXPECT_EQ(canceled->scheduled_event_id, 5);
    EXPECT_EQ(canceled->started_event_id, 6);
    EXPECT_TEXT(fixture_payload_text(fixture, canceled->details), "stopped");
    EXPECT(run_has_pending_decision(fixture_run(fixture)));
}

COMMAND_TEST(activity, one_that_nobody_has_is_cancelled_at_once, "A-116")
{
    calls_begin(fixture, activity_decision(fixture, "a", LONG));
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, cancel_activity_decision(fixture, "a"),
                               fixture_marker(fixture, "after")));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted ActivityTaskScheduled WorkflowExecutionSignaled "
                            "DecisionTaskScheduled DecisionTaskStarted DecisionTaskCompleted "
                            "ActivityTaskCancelRequested MarkerRecorded ActivityTaskCanceled "
                            "DecisionTaskScheduled");
    const API(ActivityTaskCanceledEventAttributes) *canceled =
        fixture_event(fixture, 12)->activity_task_canceled_event_attributes;
    EXPECT_TEXT(fixture_payload_text(fixture, canceled->details), "ACTIVITY_ID_NOT_STARTED");
    EXPECT_EQ(canceled->started_event_id, EVENT_NONE);
    EXPECT_EQ(canceled->latest_cancel_requested_event_id, 10);
    EXPECT(fixture_task(fixture, CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_ACTIVITY) ==
           NULL);
}

COMMAND_TEST(activity, a_request_to_cancel_an_unknown_one_is_answered_in_the_history, "A-117")
{
    calls_begin(fixture, cancel_activity_decision(fixture, "nobody"));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted ActivityTaskCancelRequested "
                            "RequestCancelActivityTaskFailed");
    const API(RequestCancelActivityTaskFailedEventAttributes) *failed =
        calls_last_event(fixture)->request_cancel_activity_task_failed_event_attributes;
    EXPECT_TEXT(failed->cause, "ACTIVITY_ID_UNKNOWN");
    EXPECT_TEXT(failed->activity_id, "nobody");
    EXPECT_EQ(failed->decision_task_completed_event_id, 4);
}

COMMAND_TEST(activity, a_request_to_cancel_without_an_id_fails_the_decision, "A-075")
{
    calls_begin(fixture, cancel_activity_decision(fixture, ""));
    calls_expect_refused(fixture, FAILED_CAUSE(BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES),
                         "ActivityId is not set on decision.");
}
