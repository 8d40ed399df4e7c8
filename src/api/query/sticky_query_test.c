/* sticky_query_test.c - queries and the worker that has the run in its memory: when it is asked,
 * and which worker is asked instead. */
#include "api/test/query_calls.h"

SERVER_TEST(query, a_sticky_query_has_no_history_and_another_has_all_of_it, "A-212")
{
    struct query_call query_call;
    query_call_as(fixture, "uber-go", "1.7.0");
    run_start(fixture, "wf");
    EXPECT_EQ(poll_sticky(fixture, "host:1", 2500 * NS_PER_MS)->task_token.len, 0);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    API(RespondDecisionTaskCompletedRequest) *completion =
        fixture_complete(fixture, task->task_token, decide_marker(fixture));
    query_call_make_sticky(fixture, completion, "host:1");
    run_complete(fixture, completion);

    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    task = poll_sticky(fixture, "host:1", 10 * NS_PER_S);
    EXPECT(task->query != NULL && task->history != NULL);
    EXPECT_EQ(task->history->n_events, 0);
    EXPECT_EQ(task->next_event_id, 6);
    EXPECT_OK(respond_query(fixture, task->task_token, query_call_result(fixture, "cached")));
    query_call_expect(&query_call, "cached");

    fixture_set(fixture, "system.enableStickyQuery: [{value: false}]");
    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    task = poll_query(fixture, "work");
    EXPECT_EQ(task->history->n_events, 5);
    EXPECT_EQ(task->history->events[0]->event_id, 1);
    EXPECT_OK(respond_query(fixture, task->task_token, query_call_result(fixture, "replayed")));
    query_call_expect(&query_call, "replayed");
}

/* A run whose worker polled its sticky list now and has answered a decision. */
static void
start_sticky(struct fixture *fixture, const char *workflow_id, const char *name,
             const char *feature_version)
{
    query_call_as(fixture, name, feature_version);
    run_start(fixture, workflow_id);
    API(PollForDecisionTaskResponse) *task = poll_decision(fixture, "work");
    API(RespondDecisionTaskCompletedRequest) *completion =
        fixture_complete(fixture, task->task_token, decide_marker(fixture));
    query_call_make_sticky(fixture, completion, "host:1");
    run_complete(fixture, completion);
}

static void
sticky_is_silent(struct fixture *fixture)
{
    struct query_call query_call;
    start_sticky(fixture, "wf", "uber-go", "1.7.0");
    EXPECT_EQ(poll_sticky(fixture, "host:1", 2500 * NS_PER_MS)->task_token.len, 0);
    fixture->timeout = 20 * NS_PER_S;
    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    int64_t began = clock_monotonic();
    API(PollForDecisionTaskResponse) *task = poll_query(fixture, "work");
    int64_t took = clock_monotonic() - began;
    EXPECT(took > 4500 * NS_PER_MS && took < 5500 * NS_PER_MS);
    EXPECT_EQ(task->history->n_events, 5);
    EXPECT_OK(respond_query(fixture, task->task_token, query_call_result(fixture, "normal")));
    query_call_expect(&query_call, "normal");

    run_signal(fixture, "wf", "go"); /* the sticky list was polled just now, and is forgotten */
    EXPECT_EQ(poll_decision(fixture, "work")->history->events[0]->event_id, 1);
}

static void
sticky_is_gone(struct fixture *fixture)
{
    struct query_call query_call;
    start_sticky(fixture, "wf", "uber-go", "1.7.0"); /* nobody polls the sticky list */
    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    int64_t began = clock_monotonic();
    API(PollForDecisionTaskResponse) *task = poll_query(fixture, "work");
    EXPECT(clock_monotonic() - began < NS_PER_S);
    EXPECT_OK(respond_query(fixture, task->task_token, query_call_result(fixture, "normal")));
    query_call_expect(&query_call, "normal");
    run_signal(fixture, "wf", "go");
    EXPECT_EQ(poll_decision(fixture, "work")->history->events[0]->event_id, 1);
}

TEST(query, a_silent_sticky_worker_is_forgotten_and_the_normal_list_asked_in_the_same_call, "A-213")
{
    fixture_run(sticky_is_silent);
    fixture_run(sticky_is_gone);
}

SERVER_TEST(query, a_late_answer_of_the_sticky_worker_counts_and_nobody_else_is_bothered)
{
    struct query_call query_call;
    start_sticky(fixture, "wf", "uber-go", "1.7.0");
    EXPECT_EQ(poll_sticky(fixture, "host:1", 2500 * NS_PER_MS)->task_token.len, 0);
    fixture->timeout = 20 * NS_PER_S;
    query_call_begin(&query_call, fixture, query_call_request(fixture, "wf"));
    API(PollForDecisionTaskResponse) *slow = poll_sticky(fixture, "host:1", 10 * NS_PER_S);
    EXPECT(slow->query != NULL);
    query_call_sleep(fixture, 6 * NS_PER_S);
    EXPECT_OK(respond_query(fixture, slow->task_token, query_call_result(fixture, "late")));
    query_call_expect(&query_call, "late");
    fixture->timeout = 3 * NS_PER_S;
    EXPECT_EQ(poll_decision(fixture, "work")->task_token.len, 0); /* nobody asks any more */
}

SERVER_TEST(query, only_workers_that_know_sticky_queries_get_them)
{
    static const struct {
        const char *name, *feature_version;
        bool is_sticky;
    } cases[] = {
        {"uber-go", "1.0.0", true}, {"uber-java", "1.0.0", true}, {"uber-go", "0.9.9", false},
        {"", "1.0.0", true},        {"", "0.9.0", false},         {"", "", false},
        {"cli", "1.7.0", false},    {"another", "9.0.0", false},
    };
    for (size_t i = 0; i < array_length(cases); i++) {
        struct query_call query_call;
        const char *id = arena_format(fixture->arena, "wf-%zu", i);
        start_sticky(fixture, id, cases[i].name, cases[i].feature_version);
        EXPECT_EQ(poll_sticky(fixture, "host:1", 2500 * NS_PER_MS)->task_token.len, 0);
        query_call_begin(&query_call, fixture, query_call_request(fixture, id));
        API(PollForDecisionTaskResponse) *task = cases[i].is_sticky
                                                     ? poll_sticky(fixture, "host:1", 3 * NS_PER_S)
                                                     : poll_query(fixture, "work");
        EXPECT(task->query != NULL);
        EXPECT_OK(respond_query(fixture, task->task_token, query_call_result(fixture, "fine")));
        query_call_expect(&query_call, "fine");
        run_signal(fixture, id, "go");
        task = poll_sticky(fixture, "host:1", 3 * NS_PER_S);
        run_complete(fixture, fixture_complete(fixture, task->task_token, decide_end(fixture)));
    }
}

static void
fail_over(struct fixture *fixture)
{
    EXPECT_OK(API_CALL(fixture, NULL, failover_domain, .domain_name = "orders",
                       .domain_active_cluster_name = "cluster1"));
}

/* The run has a sticky worker, and a decision that nobody can start here any more. */
SERVER_TEST_IN(query, on_standby_the_normal_list_answers_and_never_the_sticky_one,
               fixture_run_in_group(body), "A-226")
{
    struct query_call query_call;
    fixture_set(fixture, "history.EnableConsistentQueryByDomain: [{value: true}]");
    start_sticky(fixture, "wf", "uber-go", "1.7.0");
    EXPECT_EQ(poll_sticky(fixture, "host:1", 2500 * NS_PER_MS)->task_token.len, 0);
    run_signal(fixture, "wf", "go");
    fail_over(fixture);
    for (int i = 0; i < 2; i++) {
        API(QueryWorkflowRequest) *request = query_call_request(fixture, "wf");
        if (i == 1)
            request->query_consistency_level =
                API_VALUE(QUERY_CONSISTENCY_LEVEL__QUERY_CONSISTENCY_LEVEL_STRONG);
        int64_t began = clock_monotonic();
        query_call_begin(&query_call, fixture, request);
        API(PollForDecisionTaskResponse) *task = poll_query(fixture, "work");
        EXPECT(clock_monotonic() - began < NS_PER_S);
        EXPECT_EQ(task->history->n_events, task->next_event_id - 1);
        EXPECT_OK(respond_query(fixture, task->task_token, query_call_result(fixture, "local")));
        query_call_expect(&query_call, "local");
    }
}
