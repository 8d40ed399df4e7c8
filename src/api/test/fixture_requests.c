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
    API(Payload) *payload = message_new(fixture->arena, API_TYPE(payload));
    payload->data = presence_make_bytes(slice_text(text));
    return payload;
}

API(WorkflowExecution) *
fixture_execution(struct fixture *fixture, const char *workflow_id)
{
    API(WorkflowExecution) *execution = message_new(fixture->arena, API_TYPE(workflow_execution));
    execution->workflow_id = (char *)workflow_id;
    return execution;
}

API(TaskList) *
fixture_list(struct fixture *fixture, const char *name)
{
    API(TaskList) *list = message_new(fixture->arena, API_TYPE(task_list));
    list->name = (char *)name;
    list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL);
    return list;
}

API(StartWorkflowExecutionRequest) *
fixture_start(struct fixture *fixture, const char *workflow_id)
{
    API(StartWorkflowExecutionRequest) *request =
        message_new(fixture->arena, API_TYPE(start_workflow_execution_request));
    request->domain = "orders";
    request->workflow_id = (char *)workflow_id;
    request->workflow_type = message_new(fixture->arena, API_TYPE(workflow_type));
    request->workflow_type->name = "order";
    request->task_list = fixture_list(fixture, "work");
    request->execution_start_to_close_timeout = presence_make_duration(fixture->arena, 600);
    request->task_start_to_close_timeout = presence_make_duration(fixture->arena, 10);
    request->request_id = fixture_uuid(fixture);
    request->input = fixture_payload(fixture, "{}");
    return request;
}

API(RespondDecisionTaskCompletedRequest) *
fixture_complete(struct fixture *fixture, ProtobufCBinaryData token, API(Decision) *decision)
{
    API(RespondDecisionTaskCompletedRequest) *request =
        message_new(fixture->arena, API_TYPE(respond_decision_task_completed_request));
    request->task_token = token;
    request->identity = "worker";
    request->n_decisions = decision == NULL ? 0 : 1;
    request->decisions = arena_zalloc(fixture->arena, 1, sizeof *request->decisions);
    request->decisions[0] = decision;
    return request;
}

API(DescribeWorkflowExecutionRequest) *
fixture_describe(struct fixture *fixture, const char *workflow_id, const char *run_id)
{
    API(DescribeWorkflowExecutionRequest) *request =
        message_new(fixture->arena, API_TYPE(describe_workflow_execution_request));
    request->domain = "orders";
    request->workflow_execution = fixture_execution(fixture, workflow_id);
    request->workflow_execution->run_id = (char *)run_id;
    return request;
}

API(PollForDecisionTaskRequest) *
fixture_poll(struct fixture *fixture, const char *list)
{
    API(PollForDecisionTaskRequest) *request =
        message_new(fixture->arena, API_TYPE(poll_for_decision_task_request));
    request->domain = "orders";
    request->task_list = fixture_list(fixture, list);
    request->identity = "worker";
    return request;
}

API(GetWorkflowExecutionHistoryRequest) *
fixture_history(struct fixture *fixture, const char *workflow_id)
{
    API(GetWorkflowExecutionHistoryRequest) *request =
        message_new(fixture->arena, API_TYPE(get_workflow_execution_history_request));
    request->domain = "orders";
    request->workflow_execution = fixture_execution(fixture, workflow_id);
    return request;
}
