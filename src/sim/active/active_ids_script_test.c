/* active_ids_script_test.c - one workflow id in several clusters of an active-active domain: which
 * run has it, and what the others are told. */
#include <string.h>

#include "fiber/fiber.h"
#include "sim/active/active_script.h"
#include "wire/errors.h"

/* --- two runs that did not know of each other ---- */

static const API(WorkflowExecutionTerminatedEventAttributes) *
terminated(const API(History) *history)
{
    const API(HistoryEvent) *last = history->events[history->n_events - 1];
    EXPECT_EQ(last->attributes_case, EVENT(WORKFLOW_EXECUTION_TERMINATED));
    return last->workflow_execution_terminated_event_attributes;
}

/* The run of cluster 0 lost: every cluster says to which run, and nobody writes to it any more. */
static void
expect_lost(struct script *script, const char *id, const char *lost, const char *won)
{
    for (unsigned i = 0; i < 2; i++) {
        active_expect_closed(script, i, id, lost, CLOSE(TERMINATED));
        API(History) *history = script_history(script, i, id, lost);
        active_expect_written(history, 0, 0);
        EXPECT_TEXT(terminated(history)->reason, "Terminate Workflow Due To Version Conflict.");
        const char *details =
            arena_format(script->arena,
                         "Run %s of the same workflow ID, active in cluster cluster1, was "
                         "started later.",
                         won);
        EXPECT(slice_equal(presence_read_payload(terminated(history)->details).bytes,
                           slice_text(details)));
    }
}

SCRIPT_TEST(active_ids, of_two_runs_that_did_not_know_of_each_other_the_later_one_goes_on,
            active_play(2, body), "G-021")
{
    script_part(script);
    const char *first = active_start(script, 0, "wf1", "region0");
    script_decide(script, 0, NULL, 0);
    script_sleep(script, 2 * NS_PER_S);
    const char *second = active_start(script, 1, "wf1", "region1");
    script_heal(script);
    expect_lost(script, "wf1", first, second);
    active_end(script, 1, "wf1");
    for (unsigned i = 0; i < 2; i++) {
        active_expect_closed(script, i, "wf1", NULL, CLOSE(COMPLETED));
        active_expect_written(script_history(script, i, "wf1", second), 0, 1);
    }
    script_expect_same(script, "wf1");
}

/* The later one in the cluster with the higher version, and the other way round: versions of two
 * regions say nothing about each other. */
SCRIPT_TEST(active_ids, versions_of_different_regions_are_not_compared, active_play(2, body),
            "G-021")
{
    active_move(script, "region1", 0);
    active_await_move(script, 1, "region1", 0);
    active_move(script, "region1", 1); /* its version is 20, that of region0 is 1 */
    active_await_move(script, 0, "region1", 1);
    script_part(script);
    const char *first = active_start(script, 1, "wf1", "region1");
    script_sleep(script, 2 * NS_PER_S);
    const char *second = active_start(script, 0, "wf1", "region0");
    script_heal(script);
    for (unsigned i = 0; i < 2; i++)
        active_expect_closed(script, i, "wf1", first, CLOSE(TERMINATED));
    active_end(script, 0, "wf1");
    script_expect_same(script, "wf1");
    active_expect_written(script_history(script, 1, "wf1", second), 0, 0);
}

/* --- with signals, and asked in between ---- */

struct asked {
    struct script *script;
    unsigned cluster;
    struct error *err;
    API(QueryWorkflowResponse) *response;
    bool is_over;
};

static void
ask(void *argument)
{
    struct asked *asked = argument;
    struct script *script = asked->script;
    asked->err = SCRIPT_CALL(
        script, asked->cluster, &asked->response, query_workflow, .domain = SCRIPT_DOMAIN,
        .workflow_execution = script_execution(script, "wf", ""),
        .query = API_NEW(script->arena, workflow_query, .query_type = "signals"));
    asked->is_over = true;
}

/* What a worker that has this history would answer. */
static API(Payload) *
signals_of(struct script *script, const API(History) *history)
{
    const char *text = "";
    for (size_t i = 0; i < history->n_events; i++)
        if (history->events[i]->attributes_case == EVENT(WORKFLOW_EXECUTION_SIGNALED))
            text = arena_format(
                script->arena, "%s%s;", text,
                history->events[i]->workflow_execution_signaled_event_attributes->signal_name);
    return presence_make_payload(script->arena,
                                 (struct maybe_bytes){.is_set = true, .bytes = slice_text(text)});
}

static void
expect_query(struct script *script, unsigned cluster, const char *signals)
{
    struct asked asked = {.script = script, .cluster = cluster};
    fiber_start("asker", ask, &asked);
    API(PollForDecisionTaskResponse) *task = script_poll(script, cluster, WITHIN);
    EXPECT(task != NULL && task->query != NULL);
    API(RespondQueryTaskCompletedRequest) *answer = API_NEW(
        script->arena, respond_query_task_completed_request, .task_token = task->task_token,
        .result = API_NEW(script->arena, workflow_query_result,
                          .result_type = API_VALUE(QUERY_RESULT_TYPE__QUERY_RESULT_TYPE_ANSWERED),
                          .answer = signals_of(script, task->history)));
    EXPECT_OK(script_call(script, cluster, answer, NULL));
    while (!asked.is_over)
        script_sleep(script, NS_PER_MS);
    EXPECT_OK(asked.err);
    EXPECT(slice_equal(presence_read_payload(asked.response->query_result).bytes,
                       slice_text(signals)));
}

SCRIPT_TEST(active_ids, signals_with_start_in_two_clusters_leave_one_run_that_has_both,
            active_play(2, body), "G-022")
{
    const char *first, *second;
    script_part(script);
    EXPECT_OK(active_signal_with_start(script, 0, active_start_request(script, "wf", "region0"),
                                       "cluster0", &first));
    EXPECT_OK(active_signal_with_start(script, 1, active_start_request(script, "wf", "region1"),
                                       "cluster1", &second));
    script_decide(script, 0, NULL, 0);
    script_decide(script, 1, NULL, 0);
    expect_query(script, 0, "cluster0;");
    expect_query(script, 1, "cluster1;");
    script_heal(script);
    expect_lost(script, "wf", first, second);
    active_expect_closed(script, 0, "wf", second, 0); /* it is open, and cluster 0 shows both */
    /* What the first run was told is not lost: the second one gets it too. */
    API(PollForDecisionTaskResponse) *task = script_poll(script, 1, WITHIN);
    EXPECT(task != NULL);
    EXPECT(slice_equal(presence_read_payload(signals_of(script, task->history)).bytes,
                       slice_text("cluster1;cluster0;")));
    API(Decision) *end = script_complete_workflow(script);
    EXPECT_OK(script_complete(script, 1, task, &end, 1));
    for (unsigned i = 0; i < 2; i++)
        active_expect_closed(script, i, "wf", second, CLOSE(COMPLETED));
    script_expect_same(script, "wf");
    active_expect_written(script_history(script, 0, "wf", second), 0, 1);
}

/* The second one comes when the first is known: it goes to where that run is. */
SCRIPT_TEST(active_ids, a_signal_with_start_goes_to_the_run_that_is_open, active_play(2, body),
            "G-023", "G-050")
{
    const char *first, *second;
    EXPECT_OK(active_signal_with_start(script, 0, active_start_request(script, "wf", "region0"),
                                       "cluster0", &first));
    script_await(script, 1, "wf", 3);
    script_decide(script, 0, NULL, 0);
    script_sleep(script, 20 * NS_PER_S);
    EXPECT_OK(active_signal_with_start(script, 1, active_start_request(script, "wf", "region1"),
                                       "cluster1", &second));
    EXPECT_TEXT(second, first);
    API(PollForDecisionTaskResponse) *task = script_poll(script, 0, WITHIN);
    EXPECT(task != NULL);
    EXPECT(slice_equal(presence_read_payload(signals_of(script, task->history)).bytes,
                       slice_text("cluster0;cluster1;")));
    API(Decision) *end = script_complete_workflow(script);
    EXPECT_OK(script_complete(script, 0, task, &end, 1));
    script_expect_same(script, "wf");
    active_expect_written(script_history(script, 1, "wf", ""), 0, 0);
}

/* --- starts that end the open run ---- */

#define NOT_TOGETHER                                                                               \
    "Cannot terminate the existing workflow and start a new workflow because it is active in a "   \
    "different cluster with a different active cluster selection policy."

/* How the two kinds of starts are made. */
typedef struct error *start_function(struct script *script, unsigned cluster,
                                     API(StartWorkflowExecutionRequest) *request,
                                     const char **run_id);

static struct error *
with_signal(struct script *script, unsigned cluster, API(StartWorkflowExecutionRequest) *request,
            const char **run_id)
{
    return active_signal_with_start(script, cluster, request, "go", run_id);
}

static API(StartWorkflowExecutionRequest) *
ending_request(struct script *script, const char *region)
{
    API(StartWorkflowExecutionRequest) *request = active_start_request(script, "wf1", region);
    request->workflow_id_reuse_policy = REUSE(TERMINATE_IF_RUNNING);
    return request;
}

static void
play_terminate(struct script *script, start_function *start)
{
    const char *first, *second, *third;
    EXPECT_OK(start(script, 0, ending_request(script, NULL), &first));
    script_decide(script, 0, NULL, 0);
    EXPECT_OK(start(script, 0, ending_request(script, "region0"), &second));
    EXPECT(strcmp(first, second) != 0);
    active_expect_closed(script, 1, "wf1", first, CLOSE(TERMINATED));
    EXPECT_TEXT(terminated(script_history(script, 0, "wf1", first))->reason,
                "TerminateIfRunning Policy");
    script_expect_same(script, "wf1");
    for (unsigned i = 0; i < 2; i++) {
        struct error *err = start(script, i, ending_request(script, "region1"), &third);
        EXPECT_KIND(err, ERR_BAD_REQUEST);
        EXPECT_TEXT(err->message, NOT_TOGETHER);
    }
    active_end(script, 0, "wf1");
    active_expect_closed(script, 1, "wf1", second, CLOSE(COMPLETED));
    script_expect_same(script, "wf1");
    active_expect_written(script_history(script, 1, "wf1", second), 0, 0);
    /* Nothing is in the way of another region now. */
    EXPECT_OK(start(script, 0, ending_request(script, "region1"), &third));
    active_end(script, 1, "wf1");
    script_expect_same(script, "wf1");
    active_expect_written(script_history(script, 0, "wf1", third), 0, 1);
}

SCRIPT_TEST(active_ids, a_start_ends_the_open_run_if_both_are_active_in_one_cluster,
            active_play(2, body), "G-024")
{
    play_terminate(script, script_try_start);
}

SCRIPT_TEST(active_ids, a_signal_with_start_ends_the_open_run_in_one_cluster_too,
            active_play(2, body), "G-025")
{
    play_terminate(script, with_signal);
}

/* --- what other clusters are told ---- */

/* Without forwarding, to see who says what. */
SCRIPT_TEST(active_ids, a_start_of_the_same_policy_is_sent_to_where_it_is_active,
            active_play_unforwarded(2, body), "G-026", "G-053")
{
    const char *run_id;
    active_start(script, 0, "wf1", "region0");
    script_await(script, 1, "wf1", 2);
    API(DomainNotActiveError) *detail;
    struct error *err =
        script_try_start(script, 1, active_start_request(script, "wf1", "region0"), &run_id);
    EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE);
    EXPECT_TEXT(err->message, "Domain: flows is active in cluster(s): [cluster0 cluster1], while "
                              "current cluster cluster1 is a standby cluster. Operation active "
                              "cluster: cluster0");
    EXPECT_OK(errors_read(script->arena, err, &detail));
    EXPECT_TEXT(detail->active_cluster, "cluster0");
    EXPECT_EQ(detail->n_active_clusters, 2);
    EXPECT_TEXT(detail->active_clusters[0], "cluster0");
    EXPECT_TEXT(detail->active_clusters[1], "cluster1");
    err = script_try_start(script, 1, ending_request(script, "region0"), &run_id);
    EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE);
    err = active_signal_with_start(script, 1, active_start_request(script, "wf1", "region1"), "go",
                                   &run_id);
    EXPECT_KIND(err, ERR_DOMAIN_NOT_ACTIVE); /* the open run is elsewhere */
    /* Another policy that is active here is told of the run. */
    err = script_try_start(script, 1, active_start_request(script, "wf1", "region1"), &run_id);
    EXPECT_KIND(err, ERR_ALREADY_STARTED);
}

/* It comes to where the run is, and is told there that it runs. */
SCRIPT_TEST(active_ids, a_start_of_the_same_policy_is_refused_where_the_run_is,
            active_play(2, body), "G-026")
{
    const char *run_id;
    active_start(script, 0, "wf1", "region0");
    struct error *err =
        script_try_start(script, 1, active_start_request(script, "wf1", "region0"), &run_id);
    EXPECT_KIND(err, ERR_ALREADY_STARTED);
}

/* --- after a failover ---- */

static void
play_after_failover(struct script *script, unsigned cluster, const char *region)
{
    const char *first = active_start(script, 1, "wf1", "region1"), *run_id;
    script_decide(script, 1, NULL, 0);
    script_await(script, 0, "wf1", 4);
    active_move(script, "region1", 0);
    active_await_move(script, 1, "region1", 0);
    struct error *err =
        script_try_start(script, cluster, active_start_request(script, "wf1", region), &run_id);
    EXPECT_KIND(err, ERR_ALREADY_STARTED);
    EXPECT(strstr(err->message, "Workflow execution is already running") != NULL);
    EXPECT_OK(script_signal(script, cluster, "wf1", "go"));
    active_end(script, 0, "wf1");
    for (unsigned i = 0; i < 2; i++)
        active_expect_closed(script, i, "wf1", first, CLOSE(COMPLETED));
    script_expect_same(script, "wf1");
    API(History) *history = script_history(script, 1, "wf1", first);
    EXPECT_EQ(sim_group_of_version(history->events[0]->version), 1);
    active_expect_written(history, 4, 0);
}

static void
play_after_failover_same(struct script *script)
{
    play_after_failover(script, 1, "region1");
}

static void
play_after_failover_other(struct script *script)
{
    play_after_failover(script, 0, "region0");
}

static void
play_after_failover_here(struct script *script)
{
    play_after_failover(script, 0, "region1");
}

static void
play_after_failover_there(struct script *script)
{
    play_after_failover(script, 1, "region0");
}

TEST(active_ids, an_open_run_keeps_its_id_when_its_region_moves, "G-027")
{
    active_play(2, play_after_failover_same);
    active_play(2, play_after_failover_other);
    active_play(2, play_after_failover_here);
    active_play(2, play_after_failover_there);
}

/* --- an id goes from region to region ---- */

/* A closed run of a region with a high version is followed by one with a low one, and the other way
 * round: all clusters agree on who has the id. */
SCRIPT_TEST(active_ids, an_id_goes_from_region_to_region_whatever_their_versions,
            active_play(2, body))
{
    static const char *const regions[] = {"region1", "region0", "region1", NULL, "region0"};
    static const unsigned homes[] = {1, 0, 1, 0, 0};
    active_move(script, "region1", 0);
    active_await_move(script, 1, "region1", 0);
    active_move(script, "region1", 1);
    active_await_move(script, 0, "region1", 1);
    for (size_t i = 0; i < array_length(regions); i++) {
        API(StartWorkflowExecutionRequest) *request =
            active_start_request(script, "wf1", regions[i]);
        request->workflow_id_reuse_policy = REUSE(ALLOW_DUPLICATE);
        const char *run_id;
        EXPECT_OK(script_try_start(script, (unsigned)i % 2, request, &run_id));
        active_end(script, homes[i], "wf1");
        for (unsigned cluster = 0; cluster < 2; cluster++)
            active_expect_closed(script, cluster, "wf1", run_id, CLOSE(COMPLETED));
        script_expect_same(script, "wf1");
        active_expect_written(script_history(script, 0, "wf1", run_id), 0, homes[i]);
        EXPECT_TEXT(
            script_describe(script, 1, "wf1")->workflow_execution_info->workflow_execution->run_id,
            run_id);
    }
}
