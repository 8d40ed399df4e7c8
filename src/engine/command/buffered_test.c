/* Events that come while a decision is made wait for it. */
#include "base/check.h"
#include "engine/command/test/fixture.h"
#include "engine/run/apply.h"

#define FIRST_THREE "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted"

static size_t
count_events(const struct fixture *fixture, API(HistoryEvent__AttributesCase) kind)
{
    size_t count = 0;
    for (int64_t id = 1; id < fixture_run(fixture)->core->next_event_id; id++)
        count += fixture_event(fixture, id)->attributes_case == kind;
    return count;
}

COMMAND_TEST_IN(buffered, they_get_ids_behind_the_completion_and_its_own_events,
                fixture_new_deciding(), "A-084")
{
    EXPECT_OK(fixture_signal(fixture, "buffered", ""));
    EXPECT_HISTORY(fixture, FIRST_THREE);
    EXPECT(run_has_buffered(fixture_run(fixture)));
    EXPECT_OK(fixture_complete(fixture, fixture_marker(fixture, "own")));
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskCompleted MarkerRecorded "
                                        "WorkflowExecutionSignaled DecisionTaskScheduled");
    EXPECT(!run_has_buffered(fixture_run(fixture)));
}

COMMAND_TEST_IN(buffered, a_request_to_cancel_waits_too_a_termination_does_not,
                fixture_new_deciding(), "A-085")
{
    EXPECT_OK(fixture_request_cancel(fixture, "c1"));
    EXPECT_HISTORY(fixture, FIRST_THREE);
    EXPECT_OK(fixture_request_cancel(fixture, "c1")); /* a repeat of a buffered one */
    EXPECT_KIND(fixture_request_cancel(fixture, "c2"), ERR_CANCELLATION_ALREADY_REQUESTED);
    EXPECT_OK(fixture_terminate(fixture));
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskFailed WorkflowExecutionCancelRequested "
                                        "WorkflowExecutionTerminated");
}

COMMAND_TEST_IN(buffered, too_many_fail_the_decision_and_none_is_lost, fixture_new_deciding(),
                "A-087")
{
    for (int i = 0; i < 100; i++)
        EXPECT_OK(fixture_signal(fixture, "go", fixture_request_id(fixture)));
    EXPECT_HISTORY(fixture, FIRST_THREE);
    EXPECT_OK(fixture_signal(fixture, "one too many", ""));
    EXPECT_EQ(count_events(fixture, EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED)), 101);
    const API(HistoryEvent) *failed = fixture_event(fixture, 4);
    EXPECT_EQ(failed->attributes_case, EVENT_KIND(DECISION_TASK_FAILED));
    EXPECT_EQ(
        failed->decision_task_failed_event_attributes->cause,
        API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_FORCE_CLOSE_DECISION));
    EXPECT_EQ(fixture_event(fixture, 106)->attributes_case, EVENT_KIND(DECISION_TASK_SCHEDULED));
    EXPECT_KIND(fixture_complete(fixture), ERR_ENTITY_NOT_EXISTS);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 0);
    EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture)));
}

COMMAND_TEST(buffered, the_limit_holds_for_a_transient_decision_too, "A-087")
{
    fixture_configure(fixture, "history.maximumBufferedEventsBatch: [{value: 2}]\n");
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_fail_decision(fixture));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 1);
    for (int i = 0; i < 3; i++)
        EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskFailed WorkflowExecutionSignaled "
                                        "WorkflowExecutionSignaled WorkflowExecutionSignaled "
                                        "DecisionTaskScheduled");
}

/* A timer fires while the decision is made that cancels it. */
COMMAND_TEST_IN(buffered, cancelling_a_timer_takes_its_buffered_event_back, fixture_new_deciding(),
                "A-088")
{
    API(RespondDecisionTaskCompletedRequest) *request = fixture_completion(fixture);
    API(Decision) *decisions[] = {fixture_timer(fixture, "t", 2)};
    request->decisions = decisions;
    request->n_decisions = 1;
    request->force_create_new_decision_task = true;
    EXPECT_OK(fixture_respond(fixture, request));
    EXPECT(fixture_poll_decision(fixture));
    fixture_advance(fixture, 3);
    EXPECT(run_has_buffered(fixture_run(fixture)));
    API(Decision) *cancel = API_DECISION(fixture->arena, cancel_timer, .timer_id = "t");
    /* Nothing is left that the worker has not seen: it may close. */
    EXPECT_OK(fixture_complete(fixture, cancel, fixture_complete_run(fixture)));
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskCompleted TimerStarted "
                                        "DecisionTaskScheduled DecisionTaskStarted "
                                        "DecisionTaskCompleted TimerCanceled "
                                        "WorkflowExecutionCompleted");
}

COMMAND_TEST_IN(buffered, nothing_is_written_behind_the_close_event, fixture_new_deciding(),
                "A-089")
{
    EXPECT_OK(fixture_signal(fixture, "buffered", ""));
    fixture_advance(fixture, 5);
    EXPECT_OK(fixture_terminate(fixture));
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskFailed WorkflowExecutionSignaled "
                                        "WorkflowExecutionTerminated");
    EXPECT(!run_has_buffered(fixture_run(fixture)));
    fixture_advance(fixture, 1000); /* nor later */
    EXPECT_EQ(fixture_run(fixture)->core->next_event_id, 7);
}

COMMAND_TEST_IN(buffered, a_timed_out_decision_lets_them_through, fixture_new_deciding())
{
    EXPECT_OK(fixture_signal(fixture, "buffered", ""));
    fixture_advance(fixture, 10);
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskTimedOut WorkflowExecutionSignaled "
                                        "DecisionTaskScheduled");
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 0);
}
