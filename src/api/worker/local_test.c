/* local_test.c - activities that come with the answer to a decision. */
#include "api/call/tokens.h"
#include "api/test/fixture.h"
#include "wire/names.h"

static API(RespondDecisionTaskCompletedResponse) *
dispatched(struct fixture *fixture, bool returns_decision)
{
    run_start(fixture, "wf");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    API(Decision) *decision = decide_activity(fixture, "7");
    decision->schedule_activity_task_decision_attributes->request_local_dispatch = true;
    API(RespondDecisionTaskCompletedRequest) *request =
        fixture_complete(fixture, task->task_token, decision);
    request->return_new_decision_task = returns_decision;
    request->force_create_new_decision_task = returns_decision;
    return run_complete(fixture, request);
}

SERVER_TEST(local_dispatch, the_answer_has_a_token_that_is_ready_and_no_poll_gets_the_activity,
            "A-120")
{
    API(RespondDecisionTaskCompletedResponse) *answer = dispatched(fixture, false);
    EXPECT(answer->decision_task == NULL);
    EXPECT_EQ(answer->n_activities_to_dispatch_locally, 1);
    EXPECT_TEXT(answer->activities_to_dispatch_locally[0]->key, "7");
    const API(ActivityLocalDispatchInfo) *info = answer->activities_to_dispatch_locally[0]->value;
    EXPECT_TEXT(info->activity_id, "7");
    EXPECT(info->scheduled_time != NULL && info->started_time != NULL);
    EXPECT(info->scheduled_time_of_this_attempt != NULL);
    struct task_token token;
    EXPECT_OK(task_token_read(presence_read_bytes(info->task_token), fixture->arena, &token));
    EXPECT_TEXT(token.workflow_id, "wf");
    EXPECT_TEXT(token.workflow_type, "order");
    EXPECT_TEXT(token.activity_id, "7");
    EXPECT_TEXT(token.activity_type, "charge");
    EXPECT_EQ(token.schedule_attempt, 0);

    API(GetWorkflowExecutionHistoryResponse) *history =
        read_history(fixture, fixture_history(fixture, "wf"));
    const API(HistoryEvent) *last = history->history->events[history->history->n_events - 1];
    EXPECT_EQ(last->attributes_case,
              API_VALUE(HISTORY_EVENT__ATTRIBUTES_ACTIVITY_TASK_STARTED_EVENT_ATTRIBUTES));
    fixture->timeout = 3 * NS_PER_S;
    EXPECT_EQ(poll_activity(fixture, "work")->task_token.len, 0); /* nobody else gets it */

    EXPECT_OK(
        API_CALL(fixture, NULL, respond_activity_task_completed, .task_token = info->task_token));
    EXPECT(poll_decision(fixture, "work")->task_token.len > 0);
}

/* The decision was the task of this second: the activity goes by its list, and waits its turn. */
SERVER_TEST(local_dispatch, an_id_above_its_limit_gets_its_tasks_by_their_lists, "H-010")
{
    fixture_set(fixture, "history.workflowIDInternalRPS: [{value: 1}]\n");
    API(RespondDecisionTaskCompletedResponse) *answer = dispatched(fixture, true);
    EXPECT_EQ(answer->n_activities_to_dispatch_locally, 0);
    EXPECT(answer->decision_task == NULL);
    EXPECT_EQ(poll_activity(fixture, "work")->attempt, 0);
    EXPECT(poll_decision(fixture, "work")->task_token.len > 0);
}

SERVER_TEST(local_dispatch, it_comes_beside_the_next_decision)
{
    API(RespondDecisionTaskCompletedResponse) *answer = dispatched(fixture, true);
    EXPECT_EQ(answer->n_activities_to_dispatch_locally, 1);
    EXPECT(answer->decision_task != NULL && answer->decision_task->history->n_events > 0);
}
