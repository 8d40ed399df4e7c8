/* query_test.c - queries that go to a worker directly, as callers and workers see them. */
#include "api/test/query_calls.h"

SERVER_TEST(query, a_worker_gets_the_query_and_its_answer_reaches_the_caller, "A-211")
{
    struct query_call query_call;
    query_call_start_run(fixture, "wf");
    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    API(PollForDecisionTaskResponse) *task = poll_query(fixture, "work");
    EXPECT_TEXT(task->workflow_execution->workflow_id, "wf");
    EXPECT_TEXT(task->workflow_type->name, "order");
    EXPECT_TEXT(task->workflow_execution_task_list->name, "work");
    EXPECT_EQ(task->query->query_args->data.len, 4);
    EXPECT_EQ(task->previous_started_event_id->value, 3);
    EXPECT_EQ(task->attempt, 0);
    EXPECT(!query_call_is_over(&query_call));
    EXPECT_OK(respond_query(fixture, task->task_token, query_call_result(fixture, "fine")));
    query_call_expect(&query_call, "fine");
    EXPECT_KIND(respond_query(fixture, task->task_token, query_call_result(fixture, "again")),
                ERR_ENTITY_NOT_EXISTS);

    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    task = poll_query(fixture, "work");
    API(WorkflowQueryResult) *failure = query_call_result(fixture, "");
    failure->result_type = API_VALUE(QUERY_RESULT_TYPE__QUERY_RESULT_TYPE_FAILED);
    failure->error_message = "unknown queryType state";
    EXPECT_OK(respond_query(fixture, task->task_token, failure));
    query_call_expect_error(&query_call, ERR_QUERY_FAILED, "unknown queryType state");
    EXPECT_EQ(read_history(fixture, fixture_history(fixture, "wf"))->history->n_events, 5);
}

SERVER_TEST(query, queries_wait_for_a_worker_in_their_order_and_before_tasks)
{
    struct query_call first, second;
    query_call_start_run(fixture, "wf");
    run_start(fixture, "other"); /* a task that waits: queries go before it */
    query_call_begin(&first, fixture, query_call_request(fixture, "wf"));
    query_call_begin(&second, fixture, query_call_request(fixture, "wf"));
    API(PollForDecisionTaskResponse) *one = poll_query(fixture, "work");
    API(PollForDecisionTaskResponse) *two = poll_query(fixture, "work");
    EXPECT(poll_decision(fixture, "work")->query == NULL);
    EXPECT_OK(respond_query(fixture, two->task_token, query_call_result(fixture, "two")));
    EXPECT_OK(respond_query(fixture, one->task_token, query_call_result(fixture, "one")));
    query_call_expect(&first, "one");
    query_call_expect(&second, "two");
}

/* --- closed runs ---------------------------------------------------------------------------------
 */

static void
expect_rejected(struct fixture *fixture, const char *id, API(QueryRejectCondition) condition,
                API(WorkflowExecutionCloseStatus) status)
{
    struct query_call query_call;
    API(QueryWorkflowRequest) *request = query_call_request(fixture, id);
    request->query_reject_condition = condition;
    query_call_begin(&query_call, fixture, request);
    query_call_wait(&query_call);
    EXPECT_OK(query_call.err);
    EXPECT(query_call.response->query_rejected != NULL &&
           query_call.response->query_result == NULL);
    EXPECT_EQ(query_call.response->query_rejected->close_status, status);
}

static void
expect_answered(struct fixture *fixture, const char *id, const char *type,
                API(QueryRejectCondition) condition)
{
    struct query_call query_call;
    API(QueryWorkflowRequest) *request = query_call_request(fixture, id);
    request->query_reject_condition = condition;
    request->query->query_type = (char *)type;
    query_call_begin(&query_call, fixture, request);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT(task->query != NULL && task->history->n_events > 3);
    EXPECT_TEXT(task->query->query_type, type);
    EXPECT_OK(respond_query(fixture, task->task_token, query_call_result(fixture, "state")));
    query_call_expect(&query_call, "state");
}

#define REJECT(name) API_VALUE(QUERY_REJECT_CONDITION__QUERY_REJECT_CONDITION_##name)
#define CLOSED(name)                                                                               \
    API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_##name)

static void
closed(struct fixture *fixture)
{
    query_call_start_run(fixture, "wf");
    expect_answered(fixture, "wf", "state", REJECT(NOT_OPEN));
    run_signal(fixture, "wf", "go");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_end(fixture)));
    expect_answered(fixture, "wf", "state", REJECT(INVALID));
    expect_answered(fixture, "wf", "state", REJECT(NOT_COMPLETED_CLEANLY));
    expect_rejected(fixture, "wf", REJECT(NOT_OPEN), CLOSED(COMPLETED));

    query_call_start_run(fixture, "other");
    terminate_run(fixture, "other");
    expect_answered(fixture, "other", "state", REJECT(INVALID));
    expect_rejected(fixture, "other", REJECT(NOT_OPEN), CLOSED(TERMINATED));
    expect_rejected(fixture, "other", REJECT(NOT_COMPLETED_CLEANLY), CLOSED(TERMINATED));
}

TEST(query, a_closed_run_answers_unless_the_caller_rejects_it, "A-214")
{
    fixture_run(closed);
}

SERVER_TEST(query, the_stack_of_an_open_and_of_a_failed_run_can_be_asked_for, "A-227")
{
    query_call_start_run(fixture, "wf");
    expect_answered(fixture, "wf", "__stack_trace", REJECT(INVALID));
    run_signal(fixture, "wf", "go");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    API(Decision) *decision =
        API_DECISION(fixture->arena, fail_workflow_execution,
                     .failure = API_NEW(fixture->arena, failure, .reason = "broken"));
    run_complete(fixture, fixture_complete(fixture, task->task_token, decision));
    expect_answered(fixture, "wf", "__stack_trace", REJECT(INVALID));
}

/* --- waiting -------------------------------------------------------------------------------------
 */

SERVER_TEST(query, before_the_first_decision_a_query_waits_until_a_second_before_its_deadline,
            "A-215")
{
    struct query_call query_call;
    run_start(fixture, "wf");
    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    query_call_expect_error(
        &query_call, ERR_QUERY_FAILED,
        "workflow must handle at least one decision task before it can be queried");
    EXPECT(query_call.took > 8900 * NS_PER_MS && query_call.took < 9500 * NS_PER_MS);

    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    query_call_sleep(fixture, NS_PER_S);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT(task->query == NULL);
    run_complete(fixture, fixture_complete(fixture, task->task_token, decide_marker(fixture)));
    task = poll_query(fixture, "work");
    EXPECT_OK(respond_query(fixture, task->task_token, query_call_result(fixture, "now")));
    query_call_expect(&query_call, "now");

    fixture->timeout = 1500 * NS_PER_MS; /* a second at least */
    run_start(fixture, "other");
    query_call_begin(&query_call, fixture, query_call_request(fixture, "other"));
    query_call_expect_error(&query_call, ERR_QUERY_FAILED, "workflow must handle");
    EXPECT(query_call.took > 990 * NS_PER_MS && query_call.took < 1300 * NS_PER_MS);
}

SERVER_TEST(query, a_run_that_is_closed_before_its_first_decision_fails_its_queries_at_once)
{
    struct query_call query_call;
    run_start(fixture, "wf");
    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    terminate_run(fixture, "wf");
    query_call_expect_error(&query_call, ERR_QUERY_FAILED, "workflow must handle");
    EXPECT(query_call.took < NS_PER_S);
}

SERVER_TEST(query, a_query_that_nobody_answers_ends_with_its_deadline)
{
    struct query_call query_call;
    query_call_start_run(fixture, "wf");
    fixture->timeout = 3 * NS_PER_S;
    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    query_call_expect_error(&query_call, ERR_DEADLINE, "");
    fixture->timeout = 5 * NS_PER_S;
    EXPECT_EQ(poll_decision(fixture, "work")->task_token.len, 0); /* it is gone with its caller */
    query_call_begin(&query_call, fixture, query_call_request(fixture, "unknown"));
    query_call_expect_error(&query_call, ERR_ENTITY_NOT_EXISTS, "Workflow execution not found.");
}

/* The worker was last seen six minutes ago. A query waits a moment for another one, no longer; and
 * one that is being started just then answers. */
SERVER_TEST(query, a_query_is_refused_at_once_where_nobody_polls_the_list)
{
    struct query_call query_call;
    query_call_start_run(fixture, "wf");
    query_call_sleep(fixture, 360 * NS_PER_S);
    fixture->timeout = 50 * NS_PER_S;
    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    query_call_expect_error(&query_call, ERR_QUERY_FAILED,
                            "No worker has polled task list work of domain orders in cluster ");
    EXPECT(query_call.took < 3 * NS_PER_S);
    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    query_call_sleep(fixture, NS_PER_S);
    EXPECT(!query_call_is_over(&query_call));
    API(PollForDecisionTaskResponse) *task = poll_query(fixture, "work");
    query_call_sleep(fixture, 10 * NS_PER_S); /* it takes its time */
    EXPECT_OK(respond_query(fixture, task->task_token, query_call_result(fixture, "late")));
    query_call_expect(&query_call, "late");
}

SERVER_TEST(query, nobody_works_for_a_caller_that_has_gone)
{
    struct query_call query_call;
    query_call_start_run(fixture, "wf");
    fixture->timeout = 60 * NS_PER_S;
    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    fiber_cancel(query_call.fiber);
    query_call_wait(&query_call);
    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    API(PollForDecisionTaskResponse) *task = poll_query(fixture, "work"); /* the second one */
    fiber_cancel(query_call.fiber);
    query_call_wait(&query_call);
    query_call_sleep(fixture, NS_PER_S);
    struct error *err =
        respond_query(fixture, task->task_token, query_call_result(fixture, "for nobody"));
    EXPECT_KIND(err, ERR_ENTITY_NOT_EXISTS);
    EXPECT_TEXT(err->message, "query task not found, or already expired");
    fixture->timeout = 3 * NS_PER_S;
    EXPECT_EQ(poll_decision(fixture, "work")->task_token.len, 0);
}

SERVER_TEST(query, a_server_that_stops_tells_who_waits_to_try_again)
{
    struct query_call unpolled, waiting, query_task;
    query_call_start_run(fixture, "wf");
    run_start(fixture, "young");
    query_call_begin(&query_task, fixture, query_call_request(fixture, "wf"));
    API(PollForDecisionTaskResponse) *task = poll_query(fixture, "work");
    EXPECT(task->query != NULL);
    query_call_begin(&unpolled, fixture, query_call_request(fixture, "wf"));
    query_call_begin(&waiting, fixture, query_call_request(fixture, "young"));
    api_drain(fixture->api);
    query_call_expect_error(&query_task, ERR_UNAVAILABLE, "shutting down");
    query_call_expect_error(&unpolled, ERR_UNAVAILABLE, "shutting down");
    query_call_expect_error(&waiting, ERR_UNAVAILABLE, "shutting down");
    EXPECT(waiting.took < 2 * NS_PER_S);
}

/* --- refusals ------------------------------------------------------------------------------------
 */

static void
expect_bad_request(struct fixture *fixture, API(QueryWorkflowRequest) *request, const char *message)
{
    struct query_call query_call;
    query_call_begin(&query_call, fixture, request);
    query_call_wait(&query_call);
    EXPECT_KIND(query_call.err, ERR_BAD_REQUEST);
    EXPECT_TEXT(query_call.err->message, message);
}

static void
refusals(struct fixture *fixture)
{
    query_call_start_run(fixture, "wf");
    API(QueryWorkflowRequest) *request = query_call_request(fixture, "wf");
    request->query->query_type = "";
    expect_bad_request(fixture, request, "QueryType is not set on request.");
    request->query = NULL;
    expect_bad_request(fixture, request, "WorkflowQuery is not set on request.");
    request->workflow_execution = NULL;
    expect_bad_request(fixture, request, "Execution is not set on request.");
}

TEST(query, a_query_needs_a_type, "A-225")
{
    fixture_run(refusals);
}

SERVER_TEST(query, a_domain_can_be_forbidden_to_query, "A-224")
{
    fixture_set(fixture,
                "system.disallowQuery: [{value: true, constraints: {domainName: orders}}]");
    expect_bad_request(fixture, query_call_request(fixture, "wf"),
                       "Domain is not allowed to query, please contact cadence team to re-enable "
                       "queries.");
}

SERVER_TEST(query, neither_question_nor_answer_may_be_too_large, "A-223")
{
    struct query_call query_call;
    query_call_start_run(fixture, "wf");
    fixture_set(fixture, "limit.blobSize.error: [{value: 10}]");
    API(QueryWorkflowRequest) *request = query_call_request(fixture, "wf");
    request->query->query_args = fixture_payload(fixture, "eleven char");
    expect_bad_request(fixture, request, "Blob data size exceeds limit.");
    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    API(PollForDecisionTaskResponse) *task = poll_query(fixture, "work");
    EXPECT_OK(respond_query(fixture, task->task_token, query_call_result(fixture, "eleven char")));
    query_call_expect_error(&query_call, ERR_QUERY_FAILED, "Blob data size exceeds limit.");
}

SERVER_TEST(query, an_answer_needs_a_token_of_a_query_that_waits)
{
    struct error *err = respond_query(fixture, presence_make_bytes(slice_text("")), NULL);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    err = respond_query(fixture, presence_make_bytes(slice_text("{\"domainId\":\"x\"}")), NULL);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    static const char *const ids[] = {"", "1", "-1", "a-999999", "a-99999999999999999999", "a-0"};
    query_call_start_run(fixture, "wf");
    struct query_call query_call;
    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    API(PollForDecisionTaskResponse) *task = poll_query(fixture, "work");
    const char *good = arena_text_of(fixture->arena, presence_read_bytes(task->task_token));
    size_t prefix = (size_t)(strstr(good, "\"taskId\":\"") - good);
    for (size_t i = 0; i < array_length(ids); i++) {
        const char *text =
            arena_format(fixture->arena, "%.*s\"taskId\":\"%s\"}", (int)prefix, good, ids[i]);
        err = respond_query(fixture, presence_make_bytes(slice_text(text)), NULL);
        EXPECT_KIND(err, i == 0 ? ERR_BAD_REQUEST : ERR_ENTITY_NOT_EXISTS);
    }
    EXPECT_OK(respond_query(fixture, task->task_token, NULL)); /* an empty answer */
    query_call_wait(&query_call);
    EXPECT_OK(query_call.err);
    EXPECT(query_call.response->query_result == NULL);
}
