/* fixture_requests.c - requests that succeed, ready to be changed and sent. See fixture.h. */
#include "api/test/fixture.h"

char *
fixture_uuid(struct fixture *fixture)
{
    struct uuid uuid = uuid_new_v4();
    char *text = arena_alloc(fixture->arena, UUID_TEXT_LENGTH + 1);
    uuid_format(&uuid, text);
    return text;
}

API(Payload) *
fixture_payload(struct fixture *fixture, const char *text)
{
    API(Payload) *payload =
        API_NEW(fixture->arena, payload, .data = presence_make_bytes(slice_text(text)));
    return payload;
}

API(WorkflowExecution) *
fixture_execution(struct fixture *fixture, const char *workflow_id)
{
    return fixture_execution_of(fixture, workflow_id, "");
}

API(WorkflowExecution) *
fixture_execution_of(struct fixture *fixture, const char *workflow_id, const char *run_id)
{
    return API_NEW(fixture->arena, workflow_execution, .workflow_id = (char *)workflow_id,
                   .run_id = (char *)run_id);
}

API(TaskList) *
fixture_list(struct fixture *fixture, const char *name)
{
    return API_NEW(fixture->arena, task_list, .name = (char *)name,
                   .kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL));
}

API(StartWorkflowExecutionRequest) *
fixture_start(struct fixture *fixture, const char *workflow_id)
{
    return API_NEW(fixture->arena, start_workflow_execution_request, .domain = "orders",
                   .workflow_id = (char *)workflow_id,
                   .workflow_type = API_NEW(fixture->arena, workflow_type, .name = "order"),
                   .task_list = fixture_list(fixture, "work"),
                   .execution_start_to_close_timeout = presence_make_duration(fixture->arena, 600),
                   .task_start_to_close_timeout = presence_make_duration(fixture->arena, 10),
                   .request_id = fixture_uuid(fixture), .input = fixture_payload(fixture, "{}"));
}

API(RespondDecisionTaskCompletedRequest) *
fixture_complete(struct fixture *fixture, ProtobufCBinaryData token, API(Decision) *decision)
{
    API(RespondDecisionTaskCompletedRequest) *request =
        API_NEW(fixture->arena, respond_decision_task_completed_request, .task_token = token,
                .identity = "worker", .n_decisions = decision == NULL ? 0 : 1);
    request->decisions = arena_zalloc(fixture->arena, 1, sizeof *request->decisions);
    request->decisions[0] = decision;
    return request;
}

API(DescribeWorkflowExecutionRequest) *
fixture_describe(struct fixture *fixture, const char *workflow_id, const char *run_id)
{
    return API_NEW(fixture->arena, describe_workflow_execution_request, .domain = "orders",
                   .workflow_execution = fixture_execution_of(fixture, workflow_id, run_id));
}

API(PollForDecisionTaskRequest) *
fixture_poll(struct fixture *fixture, const char *list)
{
    return API_NEW(fixture->arena, poll_for_decision_task_request, .domain = "orders",
                   .task_list = fixture_list(fixture, list), .identity = "worker");
}

API(GetWorkflowExecutionHistoryRequest) *
fixture_history(struct fixture *fixture, const char *workflow_id)
{
    return API_NEW(fixture->arena, get_workflow_execution_history_request, .domain = "orders",
                   .workflow_execution = fixture_execution(fixture, workflow_id));
}
