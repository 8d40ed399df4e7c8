/* fixture_steps.c - steps of a run: most must succeed. See fixture.h. */
#include "api/test/fixture.h"
#include "wire/names.h"

#define CAUSE(name) API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_##name)

const char *
run_start(struct fixture *fixture, const char *workflow_id)
{
    return run_start_by(fixture, fixture_start(fixture, workflow_id));
}

const char *
run_start_by(struct fixture *fixture, const API(StartWorkflowExecutionRequest) *request)
{
    API(StartWorkflowExecutionResponse) *response = fixture_ok(fixture, request);
    return response->run_id;
}

void
run_signal(struct fixture *fixture, const char *workflow_id, const char *name)
{
    EXPECT_OK(API_CALL(fixture, NULL, signal_workflow_execution, .domain = "orders",
                       .workflow_execution = fixture_execution(fixture, workflow_id),
                       .signal_name = (char *)name, .request_id = fixture_uuid(fixture)));
}

void
terminate_run(struct fixture *fixture, const char *workflow_id)
{
    EXPECT_OK(API_CALL(fixture, NULL, terminate_workflow_execution, .domain = "orders",
                       .workflow_execution = fixture_execution(fixture, workflow_id)));
}

struct error *
run_try_describe(struct fixture *fixture, const char *workflow_id, const char *run_id)
{
    return fixture_call(fixture, fixture_describe(fixture, workflow_id, run_id), NULL);
}

API(DescribeWorkflowExecutionResponse) *
run_describe(struct fixture *fixture, const char *workflow_id, const char *run_id)
{
    return fixture_ok(fixture, fixture_describe(fixture, workflow_id, run_id));
}

API(PollForDecisionTaskResponse) *
poll_decision(struct fixture *fixture, const char *list)
{
    return fixture_ok(fixture, fixture_poll(fixture, list));
}

API(PollForActivityTaskResponse) *
poll_activity(struct fixture *fixture, const char *list)
{
    return API_OK(fixture, poll_for_activity_task, .domain = "orders",
                  .task_list = fixture_list(fixture, list), .identity = "worker");
}

void
run_fail_decision(struct fixture *fixture, ProtobufCBinaryData token)
{
    EXPECT_OK(API_CALL(fixture, NULL, respond_decision_task_failed, .task_token = token,
                       .cause = CAUSE(WORKFLOW_WORKER_UNHANDLED_FAILURE)));
}

API(RespondDecisionTaskCompletedResponse) *
run_complete(struct fixture *fixture, const API(RespondDecisionTaskCompletedRequest) *request)
{
    return fixture_ok(fixture, request);
}

API(Decision) *
decide_activity(struct fixture *fixture, const char *activity_id)
{
    return API_DECISION(fixture->arena, schedule_activity_task, .activity_id = (char *)activity_id,
                        .activity_type = API_NEW(fixture->arena, activity_type, .name = "charge"),
                        .task_list = fixture_list(fixture, "work"),
                        .input = fixture_payload(fixture, "input"),
                        .schedule_to_close_timeout = presence_make_duration(fixture->arena, 100),
                        .schedule_to_start_timeout = presence_make_duration(fixture->arena, 50),
                        .start_to_close_timeout = presence_make_duration(fixture->arena, 60),
                        .heartbeat_timeout = presence_make_duration(fixture->arena, 30));
}

API(Decision) *
decide_end(struct fixture *fixture)
{
    return API_DECISION(fixture->arena, complete_workflow_execution,
                        .result = fixture_payload(fixture, "done"));
}

API(Decision) *
decide_marker(struct fixture *fixture)
{
    return API_DECISION(fixture->arena, record_marker, .marker_name = "here");
}

API(GetWorkflowExecutionHistoryResponse) *
read_history(struct fixture *fixture, const API(GetWorkflowExecutionHistoryRequest) *request)
{
    API(GetWorkflowExecutionHistoryResponse) *response = fixture_ok(fixture, request);
    EXPECT(response->history != NULL);
    return response;
}
