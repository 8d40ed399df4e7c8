/* Activities with a retry policy: attempts that leave no trace but the last. */
#include "engine/command/inside.h"
#include "engine/command/test/activity_calls.h"
#include "wire/message.h"

#define ACTIVITY_TASK CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_ACTIVITY

COMMAND_TEST(activity_retry, a_failure_with_attempts_left_writes_nothing_and_waits, "A-108",
             "A-112", "A-119")
{
    calls_begin(fixture, retried_activity_decision(fixture, "a", 3, 60));
    struct task_name first = calls_poll_activity(fixture);
    fixture_advance(fixture, 1);
    bool is_cancel_requested;
    EXPECT_OK(calls_heartbeat(fixture, first, "half", &is_cancel_requested));
    fixture_advance(fixture, 1);
    EXPECT_OK(calls_fail(fixture, first, "boom"));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted ActivityTaskScheduled");
    EXPECT(!run_has_pending_decision(fixture_run(fixture)));
    const STORED(PendingActivity) *activity = calls_activity(fixture, "a");
    EXPECT_EQ(activity->started_id, EVENT_NONE);
    EXPECT_EQ(activity->attempt, 1);
    EXPECT_EQ(activity->scheduled_time, fixture->context.now + 2 * FIXTURE_SECOND);
    EXPECT_EQ(activity->started_time, 0);
    EXPECT_TEXT(activity->last_failure->reason, "boom");
    EXPECT_EQ(activity->last_failure->options->next_retry_interval->seconds, 7);
    EXPECT_TEXT(activity->last_worker_identity, "worker");
    EXPECT(activity->heartbeat_time < activity->scheduled_time);
    EXPECT(activity->scheduled_time < activity->expiration_time);
    EXPECT_TEXT(fixture_payload_text(fixture, activity->heartbeat_details), "half");

    EXPECT(fixture_task(fixture, ACTIVITY_TASK) == NULL); /* not before its time */
    fixture_advance(fixture, 1);
    EXPECT(fixture_task(fixture, ACTIVITY_TASK) == NULL);
    fixture_advance(fixture, 1);
    EXPECT_EQ(fixture_task(fixture, ACTIVITY_TASK)->attempt, 1);
    struct activity_start start;
    EXPECT(fixture_poll_activity(fixture, &start));
    EXPECT_EQ(start.activity->attempt, 1);
    EXPECT_TEXT(fixture_payload_text(fixture, start.activity->heartbeat_details), "half");
}

COMMAND_TEST(activity_retry, the_last_attempt_is_told_with_the_end, "A-102", "A-108", "A-119")
{
    calls_begin(fixture, retried_activity_decision(fixture, "a", 3, 0));
    EXPECT_OK(calls_fail(fixture, calls_poll_activity(fixture), "boom"));
    fixture_advance(fixture, 2);
    EXPECT_OK(calls_fail(fixture, calls_poll_activity(fixture), "bang"));
    fixture_advance(fixture, 3);
    EXPECT(fixture_task(fixture, ACTIVITY_TASK) == NULL); /* 2 × 2^1 */
    fixture_advance(fixture, 1);
    struct task_name last = calls_poll_activity(fixture);
    int64_t started_time = fixture->context.now;
    EXPECT_EQ(last.attempt, 2);
    fixture_advance(fixture, 1);
    EXPECT_OK(calls_fail(fixture, last, "crash"));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted ActivityTaskScheduled ActivityTaskStarted "
                            "ActivityTaskFailed DecisionTaskScheduled");
    const API(ActivityTaskStartedEventAttributes) *started =
        fixture_event(fixture, 6)->activity_task_started_event_attributes;
    EXPECT_EQ(started->attempt, 2);
    EXPECT_TEXT(started->last_failure->reason, "bang");
    EXPECT_EQ(started->last_failure->options->failure_category,
              API_VALUE(FAILURE_CATEGORY__FAILURE_CATEGORY_FATAL));
    EXPECT_EQ(fixture_event_time(fixture_event(fixture, 6)), started_time);
    EXPECT_EQ(fixture_event(fixture, 7)->activity_task_failed_event_attributes->started_event_id,
              6);
    EXPECT_TEXT(fixture_event(fixture, 7)->activity_task_failed_event_attributes->failure->reason,
                "crash");
}

COMMAND_TEST(activity_retry, a_success_after_retries_is_told_with_its_attempt, "A-102")
{
    calls_begin(fixture, retried_activity_decision(fixture, "a", 9, 0));
    EXPECT_OK(calls_fail(fixture, calls_poll_activity(fixture), "boom"));
    fixture_advance(fixture, 2);
    EXPECT_OK(calls_complete(fixture, calls_poll_activity(fixture)));
    const API(ActivityTaskStartedEventAttributes) *started =
        calls_find_event(fixture, EVENT_KIND(ACTIVITY_TASK_STARTED))
            ->activity_task_started_event_attributes;
    EXPECT_EQ(started->attempt, 1);
    EXPECT_TEXT(started->last_failure->reason, "boom");
}

COMMAND_TEST(activity_retry, a_token_of_another_attempt_is_not_found, "A-104")
{
    calls_begin(fixture, retried_activity_decision(fixture, "a", 9, 0));
    struct task_name first = calls_poll_activity(fixture);
    EXPECT_OK(calls_fail(fixture, first, "boom"));
    EXPECT_KIND(calls_complete(fixture, first), ERR_ENTITY_NOT_EXISTS);
    struct activity_start start; /* an old task that matching still had */
    EXPECT_KIND(calls_start_activity(fixture, &first, "late", &start), ERR_ENTITY_NOT_EXISTS);
    fixture_advance(fixture, 2);
    struct task_name second = calls_poll_activity(fixture);
    EXPECT_KIND(calls_complete(fixture, first), ERR_ENTITY_NOT_EXISTS);
    EXPECT_OK(calls_complete(fixture, second));
}

COMMAND_TEST(activity_retry, it_ends_when_the_next_attempt_would_be_too_late, "A-109")
{
    calls_begin(fixture, retried_activity_decision(fixture, "a", 0, 5));
    EXPECT_OK(calls_fail(fixture, calls_poll_activity(fixture), "boom"));
    fixture_advance(fixture, 2);
    EXPECT_OK(calls_fail(fixture, calls_poll_activity(fixture), "boom")); /* 2 s + 4 s > 5 s */
    EXPECT(calls_activity(fixture, "a") == NULL);
    EXPECT_EQ(calls_find_event(fixture, EVENT_KIND(ACTIVITY_TASK_STARTED))
                  ->activity_task_started_event_attributes->attempt,
              1);
}

TEST(activity_retry, a_final_reason_and_a_size_that_does_not_shrink_end_it, "A-109", "A-110")
{
    static const char *const reasons[] = {"final", "COMPLETE_RESULT_EXCEEDS_LIMIT",
                                          "HEARTBEAT_EXCEEDS_LIMIT", "other"};
    for (size_t i = 0; i < 4; i++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        API(Decision) *decision = retried_activity_decision(fixture, "a", 9, 0);
        char *final = (char *)"final";
        activity_attributes(decision)->retry_policy->non_retryable_error_reasons = &final;
        activity_attributes(decision)->retry_policy->n_non_retryable_error_reasons = 1;
        calls_begin(fixture, decision);
        EXPECT_OK(calls_fail(fixture, calls_poll_activity(fixture), reasons[i]));
        EXPECT_EQ(calls_activity(fixture, "a") != NULL, i == 3);
    }
}

COMMAND_TEST(activity_retry, once_its_cancellation_was_asked_for_there_is_no_other_attempt, "A-114")
{
    calls_begin(fixture, retried_activity_decision(fixture, "a", 9, 0));
    struct task_name task = calls_poll_activity(fixture);
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, cancel_activity_decision(fixture, "a")));
    EXPECT_OK(calls_fail(fixture, task, "boom"));
    EXPECT(calls_activity(fixture, "a") == NULL);
    EXPECT_EQ(calls_find_event(fixture, EVENT_KIND(ACTIVITY_TASK_FAILED))
                  ->activity_task_failed_event_attributes->started_event_id,
              calls_find_event(fixture, EVENT_KIND(ACTIVITY_TASK_STARTED))->event_id);
}

COMMAND_TEST(activity_retry, one_that_waits_for_its_next_attempt_is_cancelled_at_once, "A-116")
{
    calls_begin(fixture, retried_activity_decision(fixture, "a", 9, 0));
    EXPECT_OK(calls_fail(fixture, calls_poll_activity(fixture), "boom"));
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, cancel_activity_decision(fixture, "a")));
    EXPECT(calls_activity(fixture, "a") == NULL);
    fixture_advance(fixture, 9); /* and no attempt comes later */
    EXPECT(fixture_task(fixture, ACTIVITY_TASK) == NULL);
}
