/* standby_test.c - tasks of a domain that is active in another cluster for a while. */
#include "api/fixture.h"
#include "domain/samples.h"

static void
move_domain(struct fixture *fixture, const char *cluster)
{
    API(FailoverDomainRequest) *request = sample_failover(cluster, NULL, fixture->arena);
    API(FailoverDomainResponse) *response;
    request->domain_name = "moving";
    EXPECT_OK(fixture_call(fixture, DOMAIN_API "FailoverDomain", &request->base,
                           API_TYPE(failover_domain_response), &response));
}

static void
domain_goes_and_comes_back(struct fixture *fixture)
{
    API(RegisterDomainResponse) *registered;
    API(RegisterDomainRequest) *request = sample_register(EAST, NULL, fixture->arena);
    API(StartWorkflowExecutionRequest) *start = fixture_start(fixture, "wf");
    API(StartWorkflowExecutionResponse) *started;
    request->name = start->domain = "moving";
    EXPECT_OK(fixture_call(fixture, DOMAIN_API "RegisterDomain", &request->base,
                           API_TYPE(register_domain_response), &registered));
    EXPECT_OK(fixture_call(fixture, WORKFLOW_API "StartWorkflowExecution", &start->base,
                           API_TYPE(start_workflow_execution_response), &started));

    API(PollForDecisionTaskRequest) *poll =
        message_new(fixture->arena, API_TYPE(poll_for_decision_task_request));
    API(PollForDecisionTaskResponse) *task;
    poll->domain = "moving";
    poll->task_list = fixture_list(fixture, "work");
    move_domain(fixture, "west");
    EXPECT_OK(fixture_call(fixture, WORKER_API "PollForDecisionTask", &poll->base,
                           API_TYPE(poll_for_decision_task_response), &task));
    EXPECT_EQ(task->task_token.len, 0);
    move_domain(fixture, "east");
    EXPECT_OK(fixture_call(fixture, WORKER_API "PollForDecisionTask", &poll->base,
                           API_TYPE(poll_for_decision_task_response), &task));
    EXPECT(task->task_token.len > 0);
}

TEST(standby, a_task_that_was_polled_while_its_domain_was_active_elsewhere_is_not_lost)
{
    fixture_run_in(sample_group(EAST), domain_goes_and_comes_back);
}
