/* asking.c - see asking.h. */
#include "api/asking.h"

#define MOMENT (50 * NS_PER_MS)

API(QueryWorkflowRequest) *
asking_request(struct fixture *fixture, const char *workflow_id)
{
    API(QueryWorkflowRequest) *request =
        message_new(fixture->arena, API_TYPE(query_workflow_request));
    request->domain = "orders";
    request->workflow_execution = fixture_execution(fixture, workflow_id);
    request->query = message_new(fixture->arena, API_TYPE(workflow_query));
    request->query->query_type = "state";
    request->query->query_args = fixture_payload(fixture, "args");
    return request;
}

void
asking_sleep(struct fixture *fixture, int64_t nanoseconds)
{
    EXPECT_OK(fiber_sleep(nanoseconds, fixture->arena));
}

static void
asking_main(void *argument)
{
    struct asking *asking = argument;
    int64_t began = clock_monotonic();
    asking->err =
        fixture_call(asking->fixture, WORKFLOW_API "QueryWorkflow", &asking->request->base,
                     API_TYPE(query_workflow_response), &asking->response);
    asking->took = clock_monotonic() - began;
    latch_done(&asking->open);
}

void
asking_begin(struct asking *asking, struct fixture *fixture, API(QueryWorkflowRequest) *request)
{
    *asking = (struct asking){.fixture = fixture, .request = request};
    latch_init(&asking->open, 1);
    asking->fiber = fiber_start("asking", asking_main, asking);
    asking_sleep(fixture, MOMENT);
}

bool
asking_is_over(const struct asking *asking)
{
    return asking->open.open == 0;
}

void
asking_wait(struct asking *asking)
{
    latch_wait(&asking->open);
}

void
asking_expect(struct asking *asking, const char *answer)
{
    asking_wait(asking);
    EXPECT_OK(asking->err);
    EXPECT(asking->response->query_rejected == NULL);
    EXPECT(asking->response->query_result != NULL);
    struct slice bytes = presence_read_bytes(asking->response->query_result->data);
    EXPECT_TEXT(arena_text_of(asking->fixture->arena, bytes), answer);
}

void
asking_expect_error(struct asking *asking, enum error_kind kind, const char *message)
{
    asking_wait(asking);
    EXPECT_KIND(asking->err, kind);
    EXPECT(strstr(asking->err->message, message) != NULL);
}

API(PollForDecisionTaskResponse) *
poll_query(struct fixture *fixture, const char *list)
{
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, list);
    EXPECT(task->task_token.len > 0);
    EXPECT(task->query != NULL && task->n_queries == 0);
    EXPECT_TEXT(task->query->query_type, "state");
    EXPECT_EQ(task->started_event_id, 0);
    return task;
}

struct error *
respond_query(struct fixture *fixture, ProtobufCBinaryData token, API(WorkflowQueryResult) *result)
{
    API(RespondQueryTaskCompletedRequest) *request =
        message_new(fixture->arena, API_TYPE(respond_query_task_completed_request));
    API(RespondQueryTaskCompletedResponse) *response;
    request->task_token = token;
    request->result = result;
    return fixture_call(fixture, WORKER_API "RespondQueryTaskCompleted", &request->base,
                        API_TYPE(respond_query_task_completed_response), &response);
}

API(WorkflowQueryResult) *
asking_result(struct fixture *fixture, const char *answer)
{
    API(WorkflowQueryResult) *result = message_new(fixture->arena, API_TYPE(workflow_query_result));
    result->result_type = API_VALUE(QUERY_RESULT_TYPE__QUERY_RESULT_TYPE_ANSWERED);
    result->answer = fixture_payload(fixture, answer);
    return result;
}

API(RespondDecisionTaskCompletedRequest) *
asking_complete(struct fixture *fixture, const API(PollForDecisionTaskResponse) *task,
                API(Decision) *decision, const char *answer)
{
    API(RespondDecisionTaskCompletedRequest) *request =
        fixture_complete(fixture, task->task_token, decision);
    request->n_query_results = task->n_queries;
    request->query_results =
        arena_zalloc(fixture->arena, task->n_queries + 1, sizeof *request->query_results);
    for (size_t i = 0; i < task->n_queries; i++) {
        EXPECT_TEXT(task->queries[i]->value->query_type, "state");
        request->query_results[i] = message_new(
            fixture->arena, API_TYPE(respond_decision_task_completed_request__query_results_entry));
        request->query_results[i]->key = task->queries[i]->key;
        request->query_results[i]->value = asking_result(fixture, answer);
    }
    return request;
}

void
asking_start_run(struct fixture *fixture, const char *workflow_id)
{
    run_start(fixture, workflow_id);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_marker(fixture)));
}

API(PollForDecisionTaskResponse) *
poll_sticky(struct fixture *fixture, const char *list, int64_t timeout)
{
    API(PollForDecisionTaskRequest) *request = fixture_poll(fixture, list);
    API(PollForDecisionTaskResponse) *response;
    int64_t before = fixture->timeout;
    request->task_list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY);
    request->task_list->base_name = "work";
    fixture->timeout = timeout;
    EXPECT_OK(poll_send(fixture, request, &response));
    fixture->timeout = before;
    return response;
}

void
asking_make_sticky(struct fixture *fixture, API(RespondDecisionTaskCompletedRequest) *request,
                   const char *list)
{
    request->sticky_attributes = message_new(fixture->arena, API_TYPE(sticky_execution_attributes));
    request->sticky_attributes->worker_task_list = fixture_list(fixture, list);
    request->sticky_attributes->worker_task_list->kind =
        API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY);
    request->sticky_attributes->schedule_to_start_timeout =
        presence_make_duration(fixture->arena, 5);
}

void
asking_as(struct fixture *fixture, const char *name, const char *feature_version)
{
    struct grpc_header *headers = arena_zalloc(fixture->arena, 2, sizeof *headers);
    headers[0].name = slice_text("cadence-client-name");
    headers[0].value = slice_text(name);
    headers[1].name = slice_text("cadence-client-feature-version");
    headers[1].value = slice_text(feature_version);
    fixture->headers = headers;
    fixture->header_count = 2;
}
