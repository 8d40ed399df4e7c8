/* query_calls.c - see query_calls.h. */
#include "api/test/query_calls.h"

#define MOMENT (50 * NS_PER_MS)

API(QueryWorkflowRequest) *
query_call_request(struct fixture *fixture, const char *workflow_id)
{
    return API_NEW(fixture->arena, query_workflow_request, .domain = "orders",
                   .workflow_execution = fixture_execution(fixture, workflow_id),
                   .query = API_NEW(fixture->arena, workflow_query, .query_type = "state",
                                    .query_args = fixture_payload(fixture, "args")));
}

void
query_call_sleep(struct fixture *fixture, int64_t nanoseconds)
{
    EXPECT_OK(fiber_sleep(nanoseconds, fixture->arena));
}

static void
query_call_main(void *argument)
{
    struct query_call *query_call = argument;
    int64_t began = clock_monotonic();
    query_call->err = fixture_call(query_call->fixture, query_call->request, &query_call->response);
    query_call->took = clock_monotonic() - began;
    latch_done(&query_call->open);
}

void
query_call_begin(struct query_call *query_call, struct fixture *fixture,
                 API(QueryWorkflowRequest) *request)
{
    *query_call = (struct query_call){.fixture = fixture, .request = request};
    latch_init(&query_call->open, 1);
    query_call->fiber = fiber_start("asking", query_call_main, query_call);
    query_call_sleep(fixture, MOMENT);
}

bool
query_call_is_over(const struct query_call *query_call)
{
    return query_call->open.open == 0;
}

void
query_call_wait(struct query_call *query_call)
{
    latch_wait(&query_call->open);
}

void
query_call_expect(struct query_call *query_call, const char *answer)
{
    query_call_wait(query_call);
    EXPECT_OK(query_call->err);
    EXPECT(query_call->response->query_rejected == NULL);
    EXPECT(query_call->response->query_result != NULL);
    struct slice bytes = presence_read_bytes(query_call->response->query_result->data);
    EXPECT_TEXT(arena_text_of(query_call->fixture->arena, bytes), answer);
}

void
query_call_expect_error(struct query_call *query_call, enum error_kind kind, const char *message)
{
    query_call_wait(query_call);
    EXPECT_KIND(query_call->err, kind);
    EXPECT(strstr(query_call->err->message, message) != NULL);
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
    return API_CALL(fixture, NULL, respond_query_task_completed, .task_token = token,
                    .result = result);
}

API(WorkflowQueryResult) *
query_call_result(struct fixture *fixture, const char *answer)
{
    return API_NEW(fixture->arena, workflow_query_result,
                   .result_type = API_VALUE(QUERY_RESULT_TYPE__QUERY_RESULT_TYPE_ANSWERED),
                   .answer = fixture_payload(fixture, answer));
}

API(RespondDecisionTaskCompletedRequest) *
query_call_complete(struct fixture *fixture, const API(PollForDecisionTaskResponse) *task,
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
        request->query_results[i]->value = query_call_result(fixture, answer);
    }
    return request;
}

void
query_call_start_run(struct fixture *fixture, const char *workflow_id)
{
    run_start(fixture, workflow_id);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_marker(fixture)));
}

API(PollForDecisionTaskResponse) *
poll_sticky(struct fixture *fixture, const char *list, int64_t timeout)
{
    API(PollForDecisionTaskRequest) *request = fixture_poll(fixture, list);
    int64_t before = fixture->timeout;
    request->task_list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY);
    request->task_list->base_name = "work";
    fixture->timeout = timeout;
    API(PollForDecisionTaskResponse) *response = fixture_ok(fixture, request);
    fixture->timeout = before;
    return response;
}

void
query_call_make_sticky(struct fixture *fixture, API(RespondDecisionTaskCompletedRequest) *request,
                       const char *list)
{
    request->sticky_attributes = API_NEW(fixture->arena, sticky_execution_attributes,
                                         .worker_task_list = fixture_list(fixture, list));
    request->sticky_attributes->worker_task_list->kind =
        API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_STICKY);
    request->sticky_attributes->schedule_to_start_timeout =
        presence_make_duration(fixture->arena, 5);
}

void
query_call_as(struct fixture *fixture, const char *name, const char *feature_version)
{
    struct call_header *headers = arena_zalloc(fixture->arena, 2, sizeof *headers);
    headers[0].name = slice_text("cadence-client-name");
    headers[0].value = slice_text(name);
    headers[1].name = slice_text("cadence-client-feature-version");
    headers[1].value = slice_text(feature_version);
    fixture->headers = headers;
    fixture->header_count = 2;
}
