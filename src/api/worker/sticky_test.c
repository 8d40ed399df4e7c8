/* sticky_test.c - a worker says that it has forgotten a run. */
#include "api/test/fixture.h"
#include "wire/names.h"

static struct error *
reset(struct fixture *fixture, const char *domain, const char *workflow_id)
{
    return API_CALL(fixture, NULL, reset_sticky_task_list, .domain = (char *)domain,
                    .workflow_execution = fixture_execution(fixture, workflow_id));
}

/* A run that is bound to list "mine". */
static void
start_sticky(struct fixture *fixture)
{
    run_start(fixture, "wf");
    API(RespondDecisionTaskCompletedRequest) *request =
        fixture_complete(fixture, poll_decision(fixture, "work")->task_token, NULL);
    request->sticky_attributes =
        API_NEW(fixture->arena, sticky_execution_attributes,
                .worker_task_list = fixture_list(fixture, "mine"),
                .schedule_to_start_timeout = presence_make_duration(fixture->arena, 5));
    run_complete(fixture, request);
}

SERVER_TEST(sticky, after_a_reset_the_next_decision_comes_with_the_whole_history, "A-093")
{
    start_sticky(fixture);
    EXPECT_OK(reset(fixture, "orders", "wf"));
    run_signal(fixture, "wf", "go");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT(task->history->n_events > 0);
    EXPECT_EQ(task->history->events[0]->event_id, 1);

    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_end(fixture)));
    struct error *err = reset(fixture, "orders", "wf");
    EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);
    EXPECT_TEXT(err->message, "Workflow execution already completed.");
    EXPECT_KIND(reset(fixture, "orders", "nobody"), ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(reset(fixture, "nowhere", "wf"), ERR_ENTITY_NOT_EXISTS);
    EXPECT_KIND(reset(fixture, "", "wf"), ERR_BAD_REQUEST);
    EXPECT_KIND(reset(fixture, "orders", ""), ERR_BAD_REQUEST);
}
