/* strong_query_test.c - queries that must see all that was acknowledged before them. */
#include "api/test/query_calls.h"

#define STRONG "history.decisionHeartbeatTimeout: [{value: 1h}]\n" /* what is on by default */

static void
prepare(struct fixture *fixture)
{
    fixture_set(fixture, STRONG);
    query_call_as(fixture, "uber-go", "1.7.0");
    query_call_start_run(fixture, "wf");
}

static void
ask_strongly(struct query_call *query_call, struct fixture *fixture)
{
    API(QueryWorkflowRequest) *request = query_call_request(fixture, "wf");
    request->query_consistency_level =
        API_VALUE(QUERY_CONSISTENCY_LEVEL__QUERY_CONSISTENCY_LEVEL_STRONG);
    query_call_begin(query_call, fixture, request);
}

static bool
has_signal(const API(PollForDecisionTaskResponse) *task)
{
    for (size_t i = 0; i < task->history->n_events; i++)
        if (task->history->events[i]->attributes_case ==
            API_VALUE(HISTORY_EVENT__ATTRIBUTES_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES))
            return true;
    return false;
}

SERVER_TEST(strong_query, it_rides_on_the_decision_that_brings_the_signal, "A-216")
{
    struct query_call query_call;
    prepare(fixture);
    run_signal(fixture, "wf", "go");
    ask_strongly(&query_call, fixture);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT(task->query == NULL && task->n_queries == 1 && has_signal(task));
    EXPECT_TEXT(task->queries[0]->value->query_type, "state");
    EXPECT_EQ(task->queries[0]->value->query_args->data.len, 4);
    EXPECT(!query_call_is_over(&query_call));
    run_complete(fixture, query_call_complete(fixture, task, decide_marker(fixture), "signalled"));
    query_call_expect(&query_call, "signalled");

    /* Nothing waits for a decision now: it goes alone, and sees the signal too. */
    ask_strongly(&query_call, fixture);
    task = poll_query(fixture, "work");
    EXPECT(has_signal(task));
    EXPECT_OK(respond_query(fixture, task->task_token, query_call_result(fixture, "still")));
    query_call_expect(&query_call, "still");
}

SERVER_TEST(strong_query, a_failure_that_comes_with_a_decision_is_told)
{
    struct query_call query_call;
    prepare(fixture);
    run_signal(fixture, "wf", "go");
    ask_strongly(&query_call, fixture);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    API(RespondDecisionTaskCompletedRequest) *completion =
        query_call_complete(fixture, task, decide_end(fixture), "");
    completion->query_results[0]->value->result_type =
        API_VALUE(QUERY_RESULT_TYPE__QUERY_RESULT_TYPE_FAILED);
    completion->query_results[0]->value->error_message = "cannot tell";
    run_complete(fixture, completion);
    query_call_expect_error(&query_call, ERR_QUERY_FAILED, "cannot tell");
}

SERVER_TEST(strong_query, behind_a_started_decision_it_waits_and_goes_alone_afterwards, "A-217")
{
    struct query_call query_call;
    prepare(fixture);
    run_signal(fixture, "wf", "go");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT_EQ(task->n_queries, 0);
    ask_strongly(&query_call, fixture);
    query_call_sleep(fixture, NS_PER_S);
    EXPECT(!query_call_is_over(&query_call));
    run_complete(fixture, query_call_complete(fixture, task, decide_marker(fixture), ""));
    task = poll_query(fixture, "work");
    EXPECT(has_signal(task));
    EXPECT_OK(respond_query(fixture, task->task_token, query_call_result(fixture, "after")));
    query_call_expect(&query_call, "after");
}

static void
on_the_next(struct fixture *fixture)
{
    struct query_call query_call;
    prepare(fixture);
    run_signal(fixture, "wf", "one");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_signal(fixture, "wf", "two"); /* buffered */
    ask_strongly(&query_call, fixture);
    run_complete(fixture, query_call_complete(fixture, task, decide_marker(fixture), "too early"));
    EXPECT(!query_call_is_over(&query_call));
    task = poll_decision(fixture, "work");
    EXPECT(task->query == NULL && task->n_queries == 1);
    run_complete(fixture, query_call_complete(fixture, task, decide_marker(fixture), "two"));
    query_call_expect(&query_call, "two");
}

/* The worker has the run in its memory, and asks for the next decision with its answer. */
static void
on_the_next_sticky(struct fixture *fixture)
{
    struct query_call query_call;
    prepare(fixture);
    run_signal(fixture, "wf", "one");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_signal(fixture, "wf", "two");
    ask_strongly(&query_call, fixture);
    API(RespondDecisionTaskCompletedRequest) *completion =
        fixture_complete(fixture, task->task_token, decide_marker(fixture));
    query_call_make_sticky(fixture, completion, "host:1");
    completion->return_new_decision_task = true;
    API(RespondDecisionTaskCompletedResponse) *answer = run_complete(fixture, completion);
    EXPECT(answer->decision_task != NULL);
    EXPECT_EQ(answer->decision_task->n_queries, 1);
    EXPECT(has_signal(answer->decision_task));
    completion = query_call_complete(fixture, answer->decision_task, decide_marker(fixture), "two");
    run_complete(fixture, completion);
    query_call_expect(&query_call, "two");
}

TEST(strong_query, buffered_events_take_it_along_on_the_next_decision, "A-218")
{
    fixture_run(on_the_next);
    fixture_run(on_the_next_sticky);
}

SERVER_TEST(strong_query, it_ends_with_its_deadline, "A-219")
{
    struct query_call query_call;
    prepare(fixture);
    run_signal(fixture, "wf", "go");
    fixture->timeout = 3 * NS_PER_S;
    ask_strongly(&query_call, fixture);
    query_call_expect_error(&query_call, ERR_DEADLINE, "");
    EXPECT(query_call.took > 2900 * NS_PER_MS && query_call.took < 3500 * NS_PER_MS);
    fixture->timeout = 10 * NS_PER_S;
    query_call_sleep(fixture,
                     NS_PER_S / 10); /* the server's clock strikes when the caller's does */
    EXPECT_EQ(poll_decision(fixture, "work")->n_queries, 0); /* nobody waits for it any more */
}

/* A decision waits, and nobody who could complete it has polled for six minutes. */
SERVER_TEST(strong_query, it_is_refused_at_once_where_nobody_polls_the_list)
{
    struct query_call query_call;
    prepare(fixture);
    run_signal(fixture, "wf", "go");
    query_call_sleep(fixture, 360 * NS_PER_S);
    fixture->timeout = 50 * NS_PER_S;
    ask_strongly(&query_call, fixture);
    query_call_wait(&query_call);
    EXPECT_KIND(query_call.err, ERR_QUERY_FAILED);
    EXPECT(query_call.took < 3 * NS_PER_S);
    ask_strongly(&query_call, fixture);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT_EQ(task->n_queries, 1);
    query_call_sleep(fixture, 5 * NS_PER_S); /* it has the decision, with the query */
    run_complete(fixture, query_call_complete(fixture, task, decide_marker(fixture), "late"));
    query_call_expect(&query_call, "late");
}

SERVER_TEST(strong_query, it_can_be_switched_off_for_a_domain_and_for_all, "A-220")
{
    static const char *const settings[] = {
        "history.EnableConsistentQueryByDomain: [{value: false}]\n",
        "history.EnableConsistentQuery: [{value: false}]\n",
    };
    query_call_start_run(fixture, "wf");
    for (size_t i = 0; i < array_length(settings); i++) {
        struct query_call query_call;
        fixture_set(fixture, settings[i]);
        ask_strongly(&query_call, fixture);
        query_call_expect_error(&query_call, ERR_BAD_REQUEST,
                                "cluster or domain does not enable strongly consistent query but "
                                "strongly consistent query was requested");
    }
}

static void
full(struct fixture *fixture)
{
    struct query_call first, second, third;
    prepare(fixture);
    run_signal(fixture, "wf", "go");
    ask_strongly(&first, fixture);
    ask_strongly(&second, fixture);
    query_call_expect_error(
        &second, ERR_UNCATEGORISED,
        "consistent query buffer is full, cannot accept new consistent queries");
    fixture_set(fixture, STRONG "history.MaxBufferedQueryCount: [{value: 2}]");
    ask_strongly(&third, fixture);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT_EQ(task->n_queries, 2);
    run_complete(fixture, query_call_complete(fixture, task, decide_marker(fixture), "both"));
    query_call_expect(&first, "both");
    query_call_expect(&third, "both");
}

TEST(strong_query, only_so_many_wait_for_a_run, "A-221")
{
    fixture_run(full);
}

SERVER_TEST(strong_query, a_decision_that_asks_for_more_time_answers_nothing, "A-222")
{
    struct query_call query_call;
    prepare(fixture);
    run_signal(fixture, "wf", "go");
    fixture->timeout = 60 * NS_PER_S;
    ask_strongly(&query_call, fixture);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(task->n_queries, 1);
        API(RespondDecisionTaskCompletedRequest) *beat =
            query_call_complete(fixture, task, NULL, "half");
        beat->force_create_new_decision_task = beat->return_new_decision_task = true;
        task = run_complete(fixture, beat)->decision_task;
        EXPECT(task != NULL);
        query_call_sleep(fixture, 5 * NS_PER_S);
        EXPECT(!query_call_is_over(&query_call));
    }
    run_complete(fixture, query_call_complete(fixture, task, decide_marker(fixture), "whole"));
    query_call_expect(&query_call, "whole");
}

SERVER_TEST(strong_query, a_decision_that_fails_takes_it_along_to_the_next_attempt)
{
    struct query_call query_call;
    prepare(fixture);
    run_signal(fixture, "wf", "go");
    fixture->timeout = 60 * NS_PER_S;
    ask_strongly(&query_call, fixture);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    EXPECT_EQ(task->n_queries, 1);
    run_fail_decision(fixture, task->task_token);
    task = poll_decision(fixture, "work");
    EXPECT(task->attempt == 1 && task->n_queries == 1);
    task = poll_decision(fixture, "work"); /* the worker was lost, the decision timed out */
    EXPECT(task->attempt == 2 && task->n_queries == 1);
    run_complete(fixture, query_call_complete(fixture, task, decide_marker(fixture), "at last"));
    query_call_expect(&query_call, "at last");
}

SERVER_TEST(strong_query, when_the_run_closes_it_goes_to_a_worker_alone)
{
    struct query_call query_call;
    prepare(fixture);
    run_signal(fixture, "wf", "go");
    ask_strongly(&query_call, fixture);
    terminate_run(fixture, "wf");
    run_start(fixture, "wf"); /* another run of the id is not asked */
    API(PollForDecisionTaskResponse) *task = poll_query(fixture, "work");
    EXPECT(has_signal(task));
    EXPECT_OK(respond_query(fixture, task->task_token, query_call_result(fixture, "closed")));
    query_call_expect(&query_call, "closed");
}

SERVER_TEST(strong_query, a_worker_that_is_too_old_is_not_believed)
{
    struct query_call query_call;
    prepare(fixture);
    run_signal(fixture, "wf", "go");
    ask_strongly(&query_call, fixture);
    query_call_as(fixture, "uber-go", "1.4.0");
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_complete(fixture, query_call_complete(fixture, task, decide_marker(fixture), "wrong"));
    query_call_expect_error(&query_call, ERR_BAD_REQUEST, "client version not supported");

    ask_strongly(&query_call, fixture);
    task = poll_query(fixture, "work");
    EXPECT_OK(respond_query(fixture, task->task_token, query_call_result(fixture, "wrong")));
    query_call_expect_error(&query_call, ERR_CLIENT_VERSION_NOT_SUPPORTED, "");
    query_call_as(fixture, "uber-java", "1.5.0");
    ask_strongly(&query_call, fixture);
    task = poll_query(fixture, "work");
    EXPECT_OK(respond_query(fixture, task->task_token, query_call_result(fixture, "right")));
    query_call_expect(&query_call, "right");

    run_signal(fixture, "wf", "go");
    ask_strongly(&query_call, fixture);
    fixture->header_count = 0; /* who does not say who it is is believed */
    task = poll_decision(fixture, "work");
    run_complete(fixture, query_call_complete(fixture, task, decide_marker(fixture), "right"));
    query_call_expect(&query_call, "right");
}

SERVER_TEST(strong_query, an_answer_that_is_too_large_is_a_failure, "A-223")
{
    struct query_call query_call;
    prepare(fixture);
    run_signal(fixture, "wf", "go");
    fixture_set(fixture, STRONG "limit.blobSize.error: [{value: 10}]");
    ask_strongly(&query_call, fixture);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    run_complete(fixture,
                 query_call_complete(fixture, task, decide_marker(fixture), "eleven char"));
    query_call_expect_error(&query_call, ERR_QUERY_FAILED, "Blob data size exceeds limit.");
}
