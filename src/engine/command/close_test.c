/* How runs end: by decision, by force, by time. */
#include "base/check.h"
#include "engine/command/test/fixture.h"

#define FIRST_TWO   "WorkflowExecutionStarted DecisionTaskScheduled"
#define FIRST_THREE FIRST_TWO " DecisionTaskStarted"
#define STATUS(name)                                                                               \
    API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_##name)

COMMAND_TEST(close, each_closing_decision_leaves_its_event_and_status)
{
    API(Decision) *decisions[] = {fixture_complete_run(fixture), fixture_fail_run(fixture, "why"),
                                  fixture_cancel_run(fixture)};
    static const char *const events[] = {"WorkflowExecutionCompleted", "WorkflowExecutionFailed",
                                         "WorkflowExecutionCanceled"};
    static const int statuses[] = {STATUS(COMPLETED), STATUS(FAILED), STATUS(CANCELED)};
    for (size_t i = 0; i < array_length(decisions); i++) {
        fixture_begin(fixture);
        EXPECT(fixture_poll_decision(fixture));
        EXPECT_OK(fixture_complete(fixture, decisions[i]));
        EXPECT_HISTORY(fixture, arena_format(fixture->arena, "%s DecisionTaskCompleted %s",
                                             FIRST_THREE, events[i]));
        EXPECT_EQ(fixture_run(fixture)->core->close_status, statuses[i]);
        EXPECT_EQ(fixture->current->close_status, statuses[i]);
        EXPECT(!fixture_poll_decision(fixture));
    }
    EXPECT_TEXT(
        fixture_payload_text(
            fixture,
            fixture_event_of(fixture, 0, 5)->workflow_execution_completed_event_attributes->result),
        "result");
    EXPECT_TEXT(fixture_event_of(fixture, 1, 5)
                    ->workflow_execution_failed_event_attributes->failure->reason,
                "why");
}

TEST(close, cancellation_is_sticky, "A-079")
{
    for (int is_failure = 0; is_failure < 2; is_failure++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        fixture_begin(fixture);
        EXPECT_OK(fixture_request_cancel(fixture, "c1"));
        EXPECT(fixture_poll_decision(fixture));
        EXPECT_OK(fixture_complete(fixture, is_failure ? fixture_fail_run(fixture, "why")
                                                       : fixture_continue_as_new(fixture)));
        EXPECT_HISTORY(fixture, FIRST_TWO " WorkflowExecutionCancelRequested "
                                          "DecisionTaskStarted DecisionTaskCompleted "
                                          "WorkflowExecutionCanceled");
        EXPECT_EQ(fixture->run_count, 1);
        EXPECT_EQ(fixture_run(fixture)->core->close_status, STATUS(CANCELED));
        EXPECT_TEXT(
            fixture_payload_text(
                fixture,
                fixture_event(fixture, 6)->workflow_execution_canceled_event_attributes->details),
            is_failure ? "details" : "(none)");
    }
}

COMMAND_TEST(close, a_cancelled_run_may_still_complete)
{
    fixture_begin(fixture);
    EXPECT_OK(fixture_request_cancel(fixture, "c1"));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture)));
    EXPECT_EQ(fixture_run(fixture)->core->close_status, STATUS(COMPLETED));
}

COMMAND_TEST(close, terminating_writes_why_and_frees_the_id, "A-196")
{
    fixture_begin(fixture);
    EXPECT_OK(fixture_terminate(fixture));
    EXPECT_HISTORY(fixture, FIRST_TWO " WorkflowExecutionTerminated");
    const API(WorkflowExecutionTerminatedEventAttributes) *terminated =
        fixture_event(fixture, 3)->workflow_execution_terminated_event_attributes;
    EXPECT_TEXT(terminated->reason, "reason");
    EXPECT_TEXT(fixture_payload_text(fixture, terminated->details), "details");
    EXPECT_TEXT(terminated->identity, "client");
    EXPECT_KIND(fixture_terminate(fixture), ERR_ALREADY_COMPLETED);
    fixture_begin(fixture);
    EXPECT_EQ(fixture->run_count, 2);
}

COMMAND_TEST(close, without_a_run_there_is_nothing_to_terminate)
{
    EXPECT_KIND(fixture_terminate(fixture), ERR_ENTITY_NOT_EXISTS);
}

COMMAND_TEST_IN(close, a_decision_in_flight_is_failed_first_a_scheduled_one_is_not,
                fixture_new_deciding(), "A-080")
{
    EXPECT_OK(fixture_signal(fixture, "buffered", ""));
    EXPECT_OK(fixture_terminate(fixture));
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskFailed WorkflowExecutionSignaled "
                                        "WorkflowExecutionTerminated");
    const API(DecisionTaskFailedEventAttributes) *failed =
        fixture_event(fixture, 4)->decision_task_failed_event_attributes;
    EXPECT_EQ(
        failed->cause,
        API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_FORCE_CLOSE_DECISION));
    EXPECT_TEXT(failed->identity, "history-service");
    EXPECT_EQ(failed->scheduled_event_id, 2);
    EXPECT_EQ(failed->started_event_id, 3);

    fixture_begin(fixture);
    EXPECT_OK(fixture_signal(fixture, "not buffered", ""));
    EXPECT_OK(fixture_terminate(fixture));
    EXPECT_HISTORY(fixture, FIRST_TWO " WorkflowExecutionSignaled WorkflowExecutionTerminated");
}

/* Three failures, then a signal before, between or after the start of the next attempt. */
TEST(close, a_termination_amid_transient_attempts_is_the_last_event, "A-080")
{
    for (int is_started = 0; is_started < 2; is_started++) {
        for (int signal_first = 0; signal_first < 2; signal_first++) {
            scoped(fixture_drop) struct fixture *fixture = fixture_new();
            fixture_begin(fixture);
            for (int i = 0; i < 3; i++) {
                EXPECT(fixture_poll_decision(fixture));
                EXPECT_OK(fixture_fail_decision(fixture));
            }
            if (signal_first)
                EXPECT_OK(fixture_signal(fixture, "news", ""));
            if (is_started)
                EXPECT(fixture_poll_decision(fixture));
            if (!signal_first)
                EXPECT_OK(fixture_signal(fixture, "news", ""));
            EXPECT_OK(fixture_terminate(fixture));
            bool is_ordinary = is_started && signal_first;
            EXPECT_HISTORY(fixture, is_ordinary ? FIRST_THREE
                                        " DecisionTaskFailed "
                                        "WorkflowExecutionSignaled "
                                        "DecisionTaskScheduled DecisionTaskStarted "
                                        "DecisionTaskFailed "
                                        "WorkflowExecutionTerminated"
                                                : FIRST_THREE " DecisionTaskFailed "
                                                              "WorkflowExecutionSignaled "
                                                              "WorkflowExecutionTerminated");
        }
    }
}

COMMAND_TEST_IN(close, a_run_that_takes_too_long_times_out, fixture_new_deciding(), "A-198")
{
    EXPECT_OK(fixture_complete(fixture));
    fixture_advance(fixture, 99);
    EXPECT(run_is_open(fixture_run(fixture)));
    fixture_advance(fixture, 1);
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskCompleted WorkflowExecutionTimedOut");
    EXPECT_EQ(
        fixture_event(fixture, 5)->workflow_execution_timed_out_event_attributes->timeout_type,
        API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE));
    EXPECT_EQ(fixture_run(fixture)->core->close_status, STATUS(TIMED_OUT));
}
