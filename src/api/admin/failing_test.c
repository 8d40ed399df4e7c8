/* A workflow whose worker fails every decision: it pauses, it is told, and it goes on. */
#include "api/test/fixture.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "fiber/clock.h"
#include "wire/names.h"

#define SECOND 1000000000LL

static const STORE_API(ListFailingDecisionsResponse) *
list_failing(struct fixture *fixture)
{
    return fixture_ok(fixture, STORE_API_NEW(fixture->arena, list_failing_decisions_request));
}

/* Fails as soon as there is something to fail; when the last attempt began, after the first. */
static int64_t
fail_times(struct fixture *fixture, int count)
{
    int64_t begun = 0, last = 0;
    for (int i = 0; i < count; i++) {
        API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
        while (task->task_token.len == 0) /* a pause may outlast a poll */
            task = poll_decision(fixture, "work");
        EXPECT_EQ(task->attempt, i);
        last = clock_wall();
        begun = begun == 0 ? last : begun;
        run_fail_decision(fixture, task->task_token);
    }
    return last - begun;
}

static const API(PendingDecisionInfo) *
describe_decision(struct fixture *fixture)
{
    API(DescribeWorkflowExecutionResponse) *response =
        fixture_ok(fixture, fixture_describe(fixture, "broken", ""));
    return response->pending_decision;
}

static void
pauses(struct fixture *fixture)
{
    run_start(fixture, "broken");
    EXPECT_EQ(list_failing(fixture)->total, 0);
    EXPECT(fail_times(fixture, 4) < SECOND / 2); /* the clock stands still while somebody works */
    const STORE_API(ListFailingDecisionsResponse) *failing = list_failing(fixture);
    EXPECT_EQ(failing->total, 1);
    EXPECT_TEXT(failing->decisions[0]->domain, "orders");
    EXPECT_TEXT(failing->decisions[0]->workflow_execution->workflow_id, "broken");
    EXPECT_TEXT(failing->decisions[0]->task_list, "work");
    EXPECT_TEXT(failing->decisions[0]->reason, "WORKFLOW_WORKER_UNHANDLED_FAILURE");
    EXPECT_EQ(failing->decisions[0]->attempt, 4);
    const API(PendingDecisionInfo) *waiting = describe_decision(fixture);
    EXPECT(waiting != NULL && waiting->attempt == 4);
    EXPECT_EQ(waiting->state, API_VALUE(PENDING_DECISION_STATE__PENDING_DECISION_STATE_SCHEDULED));
    EXPECT(waiting->scheduled_time->seconds * SECOND + waiting->scheduled_time->nanos >
           clock_wall());

    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work"); /* a second later */
    EXPECT_EQ(task->attempt, 4);
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_end(fixture)));
    EXPECT_EQ(list_failing(fixture)->total, 0);
}

TEST(failing, a_workflow_whose_worker_fails_pauses_is_reported_and_goes_on_once_it_is_repaired)
{
    fixture_run(pauses);
}

SERVER_TEST(failing, the_number_of_attempts_is_bounded_and_a_signal_does_not_wait)
{
    run_start(fixture, "broken");
    int64_t lasted = fail_times(fixture, 10); /* 1 + 2 + 4 + 8 + 16 + 32 s */
    EXPECT(lasted >= 63 * SECOND && lasted < 70 * SECOND);
    run_signal(fixture, "broken", "news");
    int64_t now = clock_wall();
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT(clock_wall() - now < SECOND && task->attempt == 0);
    EXPECT_EQ(list_failing(fixture)->total, 0);
}
