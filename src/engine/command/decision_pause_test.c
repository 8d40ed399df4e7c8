/* Decisions that their worker fails again and again: tried at once a few times, then after pauses.
 *
 * What is at stake: a worker that knows nothing of a workflow's type answers in a millisecond;
 * tried again at once, one such workflow keeps a worker and a shard busy for ever. */
#include "engine/command/inside.h"
#include "engine/command/test/fixture.h"
#include "wire/message.h"
#include "wire/presence.h"

/* A run that may live for days. */
static struct fixture *
patient_run(void)
{
    struct fixture *fixture = fixture_new();
    API(StartWorkflowExecutionRequest) *request = fixture_start_request(fixture);
    request->execution_start_to_close_timeout = fixture_duration(fixture, 1000000);
    EXPECT_OK(fixture_start(fixture, request));
    return fixture;
}

/* As often as the next attempt comes at once; how often. */
static int
fail_at_once(struct fixture *fixture)
{
    int count = 0;
    for (; fixture_poll_decision(fixture); count++)
        EXPECT_OK(fixture_fail_decision(fixture));
    return count;
}

/* How long the pause lasts, seconds. */
static int64_t
wait_out(struct fixture *fixture)
{
    int64_t seconds = 0;
    EXPECT(!run_has_pending_decision(fixture_run(fixture)));
    for (; !run_has_pending_decision(fixture_run(fixture)); seconds++)
        fixture_advance(fixture, 1);
    return seconds;
}

TEST(decision_pause, after_three_attempts_at_once_the_pauses_double_up_to_five_minutes)
{
    static const int64_t wanted[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300};
    scoped(fixture_drop) struct fixture *fixture = patient_run();
    EXPECT_EQ(fail_at_once(fixture), 4); /* the first one, and three more */
    for (size_t i = 0; i < array_length(wanted); i++) {
        EXPECT_EQ(wait_out(fixture), wanted[i]);
        EXPECT(fixture_poll_decision(fixture));
        EXPECT_EQ(fixture->decision.attempt, (int64_t)i + 4);
        EXPECT_OK(fixture_fail_decision(fixture));
    }
    EXPECT_TEXT(fixture_run(fixture)->core->decision_failure,
                "WORKFLOW_WORKER_UNHANDLED_FAILURE: broken");
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskFailed");
}

COMMAND_TEST_IN(decision_pause, a_list_that_is_refused_pauses_as_well, patient_run())
{
    API(RespondDecisionTaskCompletedRequest) *request = fixture_completion(fixture);
    API(Decision) *bad = fixture_timer(fixture, "", 1);
    request->decisions = &bad;
    request->n_decisions = 1;
    request->return_new_decision_task = true;
    EXPECT(fixture_poll_decision(fixture));
    for (int i = 0; i < 3; i++) { /* the worker gets the next attempt with the answer */
        EXPECT_OK(fixture_respond(fixture, request));
        EXPECT(fixture->completed.has_started_decision);
    }
    EXPECT_OK(fixture_respond(fixture, request));
    EXPECT(!fixture->completed.has_started_decision);
    EXPECT_EQ(wait_out(fixture), 1);
    EXPECT_TEXT(fixture_run(fixture)->core->decision_failure,
                "BAD_START_TIMER_ATTRIBUTES: TimerId is not set on decision.");
    const API(DecisionTaskFailedEventAttributes) *failed =
        fixture_event(fixture, 4)->decision_task_failed_event_attributes;
    EXPECT_EQ(failed->cause, FAILED_CAUSE(BAD_START_TIMER_ATTRIBUTES));
    EXPECT(slice_equal(presence_read_bytes(failed->failure->details),
                       slice_text("TimerId is not set on decision.")));
}

COMMAND_TEST_IN(decision_pause, news_do_not_wait_and_are_a_first_attempt, patient_run())
{
    EXPECT_EQ(fail_at_once(fixture), 4);
    EXPECT_OK(fixture_signal(fixture, "news", ""));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 0);
    EXPECT_EQ(fixture_run(fixture)->core->decision_retry_time, 0);
    EXPECT_OK(fixture_fail_decision(fixture));
    EXPECT_EQ(fail_at_once(fixture), 3); /* it is counted from the beginning */
    EXPECT_OK(fixture_request_cancel(fixture, "enough"));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 0);
}

COMMAND_TEST_IN(decision_pause, news_that_came_while_it_was_decided_do_not_wait_either,
                patient_run())
{
    for (int i = 0; i < 3; i++) {
        EXPECT(fixture_poll_decision(fixture));
        EXPECT_OK(fixture_fail_decision(fixture));
    }
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_signal(fixture, "meanwhile", ""));
    EXPECT_OK(fixture_fail_decision(fixture));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 0);
}

COMMAND_TEST_IN(decision_pause, a_completed_decision_ends_it, patient_run())
{
    EXPECT_EQ(fail_at_once(fixture), 4);
    EXPECT_EQ(wait_out(fixture), 1);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_marker(fixture, "m")));
    EXPECT_TEXT(fixture_run(fixture)->core->decision_failure, "");
    EXPECT_OK(fixture_signal(fixture, "news", ""));
    EXPECT_EQ(fail_at_once(fixture), 4);
    EXPECT_OK(fixture_terminate(fixture)); /* in a pause */
    EXPECT_EQ(fixture_run(fixture)->core->decision_retry_time, 0);
}

static struct error *
decide_take_over(void *context, struct step *step)
{
    EXPECT(context == NULL);
    struct mutation *mutation;
    struct error *err = step_open_run(step, &mutation);
    if (err == NULL)
        command_take_over(step, false);
    return err;
}

COMMAND_TEST_IN(decision_pause, a_run_that_moves_to_another_cluster_begins_again, patient_run())
{
    EXPECT_EQ(fail_at_once(fixture), 4);
    fixture->context.event_version = 11;
    EXPECT(take_over_is_needed(fixture_run(fixture)));
    EXPECT_OK(fixture_step(fixture, decide_take_over, NULL));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 0);
}
