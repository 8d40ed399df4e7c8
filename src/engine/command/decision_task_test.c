/* The life of decision tasks: start and completion. */
#include "base/check.h"
#include "engine/command/test/fixture.h"
#include "wire/message.h"
#include "wire/presence.h"

#define FIRST_TWO   "WorkflowExecutionStarted DecisionTaskScheduled"
#define FIRST_THREE FIRST_TWO " DecisionTaskStarted"

/* A run whose first decision is started. */
static API(RespondDecisionTaskCompletedRequest) *
relay_request(struct fixture *fixture)
{
    API(RespondDecisionTaskCompletedRequest) *request = fixture_completion(fixture);
    request->return_new_decision_task = true;
    request->force_create_new_decision_task = true;
    return request;
}

/* ---- start and complete ---- */

COMMAND_TEST_IN(decision_task, a_poller_gets_what_it_needs, fixture_new_deciding())
{
    EXPECT_HISTORY(fixture, FIRST_THREE);
    const struct decision_start *start = &fixture->decision;
    EXPECT_EQ(start->schedule_id, 2);
    EXPECT_EQ(start->started_id, 3);
    EXPECT_EQ(start->previous_started_id, 0);
    EXPECT_EQ(start->next_event_id, 4);
    EXPECT_EQ(start->first_event_id, 1);
    EXPECT_EQ(start->attempt, 0);
    EXPECT(!start->is_sticky && start->transient_scheduled == NULL);
    EXPECT_TEXT(start->workflow_type->name, "type");
    EXPECT_TEXT(start->task_list->name, "list");
    EXPECT_EQ(fixture->tasks.count, 0); /* recorded: the row is not needed any more */
}

COMMAND_TEST(decision_task, the_same_poll_again_is_the_same_start_another_one_is_refused)
{
    fixture_begin(fixture);
    struct task_name task = {.schedule_id = 2, .activity_id = ""};
    EXPECT_OK(fixture_start_decision(fixture, &task, "poll"));
    EXPECT_OK(fixture_start_decision(fixture, &task, "poll"));
    EXPECT_EQ(fixture->decision.started_id, 3);
    EXPECT_KIND(fixture_start_decision(fixture, &task, "other"), ERR_EVENT_ALREADY_STARTED);
    EXPECT_HISTORY(fixture, FIRST_THREE);
    EXPECT_OK(fixture_complete(fixture));
    EXPECT_KIND(fixture_start_decision(fixture, &task, "other"), ERR_ENTITY_NOT_EXISTS);
    EXPECT_OK(fixture_terminate(fixture));
    EXPECT_KIND(fixture_start_decision(fixture, &task, "other"), ERR_ENTITY_NOT_EXISTS);
}

COMMAND_TEST_IN(decision_task, completion_is_written_first_then_an_event_for_each_decision_in_order,
                fixture_new_deciding(), "A-057")
{
    API(Decision) *decisions[] = {fixture_marker(fixture, "one"), fixture_timer(fixture, "t", 5),
                                  fixture_marker(fixture, "two")};
    API(RespondDecisionTaskCompletedRequest) *request = fixture_completion(fixture);
    request->decisions = decisions;
    request->n_decisions = array_length(decisions);
    request->binary_checksum = (char *)"binary";
    request->execution_context = presence_make_bytes(slice_text("context"));
    EXPECT_OK(fixture_respond(fixture, request));
    EXPECT_HISTORY(fixture,
                   FIRST_THREE " DecisionTaskCompleted MarkerRecorded TimerStarted MarkerRecorded");
    const API(DecisionTaskCompletedEventAttributes) *completed =
        fixture_event(fixture, 4)->decision_task_completed_event_attributes;
    EXPECT_EQ(completed->scheduled_event_id, 2);
    EXPECT_EQ(completed->started_event_id, 3);
    EXPECT_TEXT(completed->identity, "worker");
    EXPECT_TEXT(completed->binary_checksum, "binary");
    EXPECT(slice_equal(presence_read_bytes(completed->execution_context), slice_text("context")));
    EXPECT_TEXT(fixture_event(fixture, 5)->marker_recorded_event_attributes->marker_name, "one");
    EXPECT_TEXT(fixture_event(fixture, 7)->marker_recorded_event_attributes->marker_name, "two");
}

COMMAND_TEST_IN(decision_task, the_context_of_the_last_completion_is_kept, fixture_new_deciding(),
                "A-078")
{
    API(RespondDecisionTaskCompletedRequest) *request = relay_request(fixture);
    request->execution_context = presence_make_bytes(slice_text("one"));
    EXPECT_OK(fixture_respond(fixture, request));
    request->execution_context = presence_make_bytes(slice_text("two"));
    EXPECT_OK(fixture_respond(fixture, request));
    EXPECT(slice_equal(presence_read_bytes(fixture_run(fixture)->core->execution_context),
                       slice_text("two")));
}

COMMAND_TEST_IN(decision_task, a_worker_may_get_the_next_one_with_its_answer,
                fixture_new_deciding(), "A-058")
{
    API(RespondDecisionTaskCompletedRequest) *request = relay_request(fixture);
    API(Decision) *decisions[] = {fixture_marker(fixture, "m")};
    request->decisions = decisions;
    request->n_decisions = 1;
    EXPECT_OK(fixture_respond(fixture, request));
    EXPECT(fixture->completed.has_started_decision);
    EXPECT_EQ(fixture->decision.previous_started_id, 3);
    EXPECT_EQ(fixture->decision.started_id, 7);
    EXPECT_EQ(fixture->decision.first_event_id, 4);
    EXPECT_EQ(fixture->decision.next_event_id, 8);
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskCompleted MarkerRecorded "
                                        "DecisionTaskScheduled DecisionTaskStarted");
    EXPECT_EQ(fixture->tasks.count, 0);
}

COMMAND_TEST_IN(decision_task, a_relayed_one_that_is_not_answered_times_out, fixture_new_deciding(),
                "A-059")
{
    API(RespondDecisionTaskCompletedRequest) *request = relay_request(fixture);
    API(Decision) *decisions[] = {fixture_marker(fixture, "m")};
    request->decisions = decisions;
    request->n_decisions = 1;
    EXPECT_OK(fixture_respond(fixture, request));
    fixture_advance(fixture, 10);
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskCompleted MarkerRecorded "
                                        "DecisionTaskScheduled DecisionTaskStarted "
                                        "DecisionTaskTimedOut");
    const API(DecisionTaskTimedOutEventAttributes) *timed_out =
        fixture_event(fixture, 8)->decision_task_timed_out_event_attributes;
    EXPECT_EQ(timed_out->timeout_type, API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_START_TO_CLOSE));
    EXPECT_EQ(timed_out->scheduled_event_id, 6);
    EXPECT_EQ(timed_out->started_event_id, 7);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 1);
}

COMMAND_TEST_IN(decision_task, a_stale_token_is_refused, fixture_new_deciding(), "A-060")
{
    struct decision_start first = fixture->decision;
    fixture_advance(fixture, 10);
    struct error *refusal = fixture_complete(fixture);
    EXPECT_KIND(refusal, ERR_ENTITY_NOT_EXISTS); /* timed out */
    EXPECT_TEXT(refusal->message, "Decision task not found.");
    EXPECT_KIND(fixture_fail_decision(fixture), ERR_ENTITY_NOT_EXISTS);
    EXPECT(fixture_poll_decision(fixture));
    struct decision_start second = fixture->decision;
    fixture->decision = first;
    EXPECT_KIND(fixture_complete(fixture), ERR_ENTITY_NOT_EXISTS); /* another attempt */
    fixture->decision = second;
    EXPECT_OK(fixture_fail_decision(fixture));
    EXPECT_KIND(fixture_complete(fixture), ERR_ENTITY_NOT_EXISTS); /* failed, not started again */
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskTimedOut");
}

COMMAND_TEST_IN(decision_task, on_a_closed_run_every_answer_is_refused, fixture_new_deciding(),
                "A-061")
{
    EXPECT_OK(fixture_terminate(fixture));
    struct error *refusal = fixture_complete(fixture);
    EXPECT_KIND(refusal, ERR_ALREADY_COMPLETED);
    EXPECT_TEXT(refusal->message, "workflow execution already completed");
    EXPECT_KIND(fixture_fail_decision(fixture), ERR_ALREADY_COMPLETED);
}

COMMAND_TEST_IN(decision_task, a_closing_completion_answers_no_new_one, fixture_new_deciding(),
                "A-082")
{
    API(RespondDecisionTaskCompletedRequest) *request = relay_request(fixture);
    API(Decision) *decisions[] = {fixture_complete_run(fixture)};
    request->decisions = decisions;
    request->n_decisions = 1;
    EXPECT_OK(fixture_respond(fixture, request));
    EXPECT(!fixture->completed.has_started_decision);
    EXPECT_HISTORY(fixture, FIRST_THREE " DecisionTaskCompleted WorkflowExecutionCompleted");
    EXPECT_EQ(fixture->tasks.count, 0);
}
