/* A worker dropped the run from its memory: the next decision comes with everything. */
#include "engine/command/test/fixture.h"
#include "wire/message.h"

#define FIRST_FOUR                                                                                 \
    "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted DecisionTaskCompleted"

/* A run whose next decisions go to list "sticky", within 5 s. */
static struct fixture *
sticky_run(void)
{
    struct fixture *fixture = fixture_new();
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    API(RespondDecisionTaskCompletedRequest) *request = fixture_completion(fixture);
    request->sticky_attributes =
        API_NEW(fixture->arena, sticky_execution_attributes,
                .worker_task_list = API_NEW(fixture->arena, task_list, .name = "sticky"),
                .schedule_to_start_timeout = fixture_duration(fixture, 5));
    EXPECT_OK(fixture_respond(fixture, request));
    EXPECT(fixture_run(fixture)->core->sticky_task_list != NULL);
    return fixture;
}

static struct error *
decide_reset(void *context, struct step *step)
{
    return command_reset_sticky(step);
}

COMMAND_TEST_IN(reset_sticky, the_next_decision_has_the_whole_history, sticky_run(), "A-093")
{
    EXPECT_OK(fixture_step(fixture, decide_reset, NULL));
    EXPECT(fixture_run(fixture)->core->sticky_task_list == NULL);
    EXPECT_TEXT(fixture_run(fixture)->core->client_name, "");
    EXPECT_HISTORY(fixture, FIRST_FOUR); /* it is not an event */
    EXPECT_OK(fixture_step(fixture, decide_reset, NULL));
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT_TEXT(fixture_task(fixture, CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_DECISION)
                    ->task_list->name,
                "list");
    EXPECT(fixture_poll_decision(fixture));
    EXPECT(!fixture->decision.is_sticky);
    EXPECT_EQ(fixture->decision.first_event_id, 1);
}

COMMAND_TEST_IN(reset_sticky, a_decision_that_waits_on_the_sticky_list_comes_with_the_whole_history,
                sticky_run(), "A-093")
{
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT_OK(fixture_step(fixture, decide_reset, NULL));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.first_event_id, 1);
    fixture_advance(fixture, 9); /* it was taken in time */
    EXPECT(run_has_started_decision(fixture_run(fixture)));
}

/* Without the reset the new decision would be a first attempt. */
COMMAND_TEST_IN(reset_sticky, the_timeout_of_the_sticky_list_still_comes_and_raises_the_attempt,
                sticky_run(), "A-092")
{
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT_OK(fixture_step(fixture, decide_reset, NULL));
    fixture_advance(fixture, 4);
    EXPECT_HISTORY(fixture, FIRST_FOUR " WorkflowExecutionSignaled DecisionTaskScheduled");
    fixture_advance(fixture, 1);
    EXPECT_HISTORY(fixture, FIRST_FOUR " WorkflowExecutionSignaled DecisionTaskScheduled "
                                       "DecisionTaskTimedOut");
    EXPECT_EQ(fixture_event(fixture, 7)->decision_task_timed_out_event_attributes->timeout_type,
              API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_START));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_EQ(fixture->decision.attempt, 1);
    EXPECT(fixture->decision.transient_started != NULL);
}

COMMAND_TEST(reset_sticky, a_closed_run_and_one_that_is_not_there_refuse_it, "A-093")
{
    EXPECT_KIND(fixture_step(fixture, decide_reset, NULL), ERR_ENTITY_NOT_EXISTS);
    fixture_begin(fixture);
    EXPECT_OK(fixture_terminate(fixture));
    EXPECT_KIND(fixture_step(fixture, decide_reset, NULL), ERR_ALREADY_COMPLETED);
}
