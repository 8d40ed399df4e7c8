/* fixture_steps.c - steps of a run: most must succeed. See fixture.h. */
#include "api/test/fixture.h"
#include "wire/names.h"

const char *
run_start(struct fixture *fixture, const char *workflow_id)
{
    return run_start_by(fixture, fixture_start(fixture, workflow_id));
}

const char *
run_start_by(struct fixture *fixture, const API(StartWorkflowExecutionRequest) *request)
{
    API(StartWorkflowExecutionResponse) *response;
    EXPECT_OK(fixture_call(fixture, WORKFLOW_API "StartWorkflowExecution", &request->base,
                           API_TYPE(start_workflow_execution_response), &response));
    return response->run_id;
}

void
run_signal(struct fixture *fixture, const char *workflow_id, const char *name)
{
    API(SignalWorkflowExecutionRequest) *request =
        message_new(fixture->arena, API_TYPE(signal_workflow_execution_request));
    API(SignalWorkflowExecutionResponse) *response;
    request->domain = "orders";
    request->workflow_execution = fixture_execution(fixture, workflow_id);
    request->signal_name = (char *)name;
    request->request_id = fixture_uuid(fixture);
    EXPECT_OK(fixture_call(fixture, WORKFLOW_API "SignalWorkflowExecution", &request->base,
                           API_TYPE(signal_workflow_execution_response), &response));
}

void
terminate_run(struct fixture *fixture, const char *workflow_id)
{
    API(TerminateWorkflowExecutionRequest) *request =
        message_new(fixture->arena, API_TYPE(terminate_workflow_execution_request));
    API(TerminateWorkflowExecutionResponse) *response;
    request->domain = "orders";
    request->workflow_execution = fixture_execution(fixture, workflow_id);
    EXPECT_OK(fixture_call(fixture, WORKFLOW_API "TerminateWorkflowExecution", &request->base,
                           API_TYPE(terminate_workflow_execution_response), &response));
}

struct error *
describe_send(struct fixture *fixture, const API(DescribeWorkflowExecutionRequest) *request,
              API(DescribeWorkflowExecutionResponse) **response)
{
    return fixture_call(fixture, WORKFLOW_API "DescribeWorkflowExecution", &request->base,
                        API_TYPE(describe_workflow_execution_response), response);
}

struct error *
run_try_describe(struct fixture *fixture, const char *workflow_id, const char *run_id)
{
    API(DescribeWorkflowExecutionResponse) *response;
    return describe_send(fixture, fixture_describe(fixture, workflow_id, run_id), &response);
}

API(DescribeWorkflowExecutionResponse) *
run_describe(struct fixture *fixture, const char *workflow_id, const char *run_id)
{
    API(DescribeWorkflowExecutionResponse) *response;
    EXPECT_OK(describe_send(fixture, fixture_describe(fixture, workflow_id, run_id), &response));
    return response;
}

struct error *
poll_send(struct fixture *fixture, const API(PollForDecisionTaskRequest) *request,
          API(PollForDecisionTaskResponse) **response)
{
    return fixture_call(fixture, WORKER_API "PollForDecisionTask", &request->base,
                        API_TYPE(poll_for_decision_task_response), response);
}

API(PollForDecisionTaskResponse) *
poll_decision(struct fixture *fixture, const char *list)
{
    API(PollForDecisionTaskResponse) *response;
    EXPECT_OK(poll_send(fixture, fixture_poll(fixture, list), &response));
    return response;
}

API(PollForActivityTaskResponse) *
poll_activity(struct fixture *fixture, const char *list)
{
    API(PollForActivityTaskRequest) *request =
        message_new(fixture->arena, API_TYPE(poll_for_activity_task_request));
    API(PollForActivityTaskResponse) *response;
    request->domain = "orders";
    request->task_list = fixture_list(fixture, list);
    request->identity = "worker";
    EXPECT_OK(fixture_call(fixture, WORKER_API "PollForActivityTask", &request->base,
                           API_TYPE(poll_for_activity_task_response), &response));
    return response;
}

void
run_fail_decision(struct fixture *fixture, ProtobufCBinaryData token)
{
    API(RespondDecisionTaskFailedRequest) *request =
        message_new(fixture->arena, API_TYPE(respond_decision_task_failed_request));
    API(RespondDecisionTaskFailedResponse) *response;
    request->task_token = token;
    request->cause = API_VALUE(
        DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE);
    EXPECT_OK(fixture_call(fixture, WORKER_API "RespondDecisionTaskFailed", &request->base,
                           API_TYPE(respond_decision_task_failed_response), &response));
}

API(RespondDecisionTaskCompletedResponse) *
run_complete(struct fixture *fixture, const API(RespondDecisionTaskCompletedRequest) *request)
{
    API(RespondDecisionTaskCompletedResponse) *response;
    EXPECT_OK(fixture_call(fixture, WORKER_API "RespondDecisionTaskCompleted", &request->base,
                           API_TYPE(respond_decision_task_completed_response), &response));
    return response;
}

API(Decision) *
decide_activity(struct fixture *fixture, const char *activity_id)
{
    API(Decision) *decision = message_new(fixture->arena, API_TYPE(decision));
    API(ScheduleActivityTaskDecisionAttributes) *attributes =
        message_new(fixture->arena, API_TYPE(schedule_activity_task_decision_attributes));
    attributes->activity_id = (char *)activity_id;
    attributes->activity_type = message_new(fixture->arena, API_TYPE(activity_type));
    attributes->activity_type->name = "charge";
    attributes->task_list = fixture_list(fixture, "work");
    attributes->input = fixture_payload(fixture, "input");
    attributes->schedule_to_close_timeout = presence_make_duration(fixture->arena, 100);
    attributes->schedule_to_start_timeout = presence_make_duration(fixture->arena, 50);
    attributes->start_to_close_timeout = presence_make_duration(fixture->arena, 60);
    attributes->heartbeat_timeout = presence_make_duration(fixture->arena, 30);
    decision->attributes_case =
        API_VALUE(DECISION__ATTRIBUTES_SCHEDULE_ACTIVITY_TASK_DECISION_ATTRIBUTES);
    decision->schedule_activity_task_decision_attributes = attributes;
    return decision;
}

API(Decision) *
decide_end(struct fixture *fixture)
{
    API(Decision) *decision = message_new(fixture->arena, API_TYPE(decision));
    decision->attributes_case =
        API_VALUE(DECISION__ATTRIBUTES_COMPLETE_WORKFLOW_EXECUTION_DECISION_ATTRIBUTES);
    decision->complete_workflow_execution_decision_attributes =
        message_new(fixture->arena, API_TYPE(complete_workflow_execution_decision_attributes));
    decision->complete_workflow_execution_decision_attributes->result =
        fixture_payload(fixture, "done");
    return decision;
}

API(Decision) *
decide_marker(struct fixture *fixture)
{
    API(Decision) *decision = message_new(fixture->arena, API_TYPE(decision));
    decision->attributes_case = API_VALUE(DECISION__ATTRIBUTES_RECORD_MARKER_DECISION_ATTRIBUTES);
    decision->record_marker_decision_attributes =
        message_new(fixture->arena, API_TYPE(record_marker_decision_attributes));
    decision->record_marker_decision_attributes->marker_name = "here";
    return decision;
}

API(GetWorkflowExecutionHistoryResponse) *
read_history(struct fixture *fixture, const API(GetWorkflowExecutionHistoryRequest) *request)
{
    API(GetWorkflowExecutionHistoryResponse) *response;
    EXPECT_OK(fixture_call(fixture, WORKFLOW_API "GetWorkflowExecutionHistory", &request->base,
                           API_TYPE(get_workflow_execution_history_response), &response));
    EXPECT(response->history != NULL);
    return response;
}

struct error *
fixture_update_domain(struct fixture *fixture, const API(UpdateDomainRequest) *request)
{
    API(UpdateDomainResponse) *response;
    return fixture_call(fixture, DOMAIN_API "UpdateDomain", &request->base,
                        API_TYPE(update_domain_response), &response);
}
