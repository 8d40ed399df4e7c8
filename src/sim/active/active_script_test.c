/* active_script_test.c - workflows of a domain that is active in several clusters at once: what
 * they belong to when they start, and that they keep it. */
#include <string.h>

#include "sim/active/active_script.h"

/* --- each in its own cluster ---- */

SCRIPT_TEST(active, each_workflow_is_worked_on_where_its_region_is_active, active_play(2, body),
            "G-010", "G-016", "G-009")
{
    active_start(script, 0, "wf1", "region0");
    active_start(script, 1, "wf2", "region1");
    script_await(script, 1, "wf1", 2);
    script_await(script, 0, "wf2", 2);
    active_end(script, 0, "wf1");
    active_end(script, 1, "wf2");
    EXPECT(script_poll(script, 0, NS_PER_S) == NULL);
    EXPECT(script_poll(script, 1, NS_PER_S) == NULL);
    script_expect_same(script, "wf1");
    script_expect_same(script, "wf2");
    API(History) *first = script_history(script, 1, "wf1", "");
    API(History) *second = script_history(script, 0, "wf2", "");
    active_expect_written(first, 0, 0);
    active_expect_written(second, 0, 1);
    EXPECT_EQ(first->n_events, 5);
    EXPECT_EQ(second->n_events, 5);
    EXPECT_EQ(first->events[0]->version, 1); /* the initial versions of the two clusters */
    EXPECT_EQ(second->events[0]->version, 0);
    EXPECT_TEXT(second->events[3]->decision_task_completed_event_attributes->identity, "decider1");
}

/* A task is given out in one cluster; the other one has it and keeps it. */
SCRIPT_TEST(active, no_other_cluster_gives_out_tasks_of_a_workflow, active_play(2, body), "G-054",
            "G-055")
{
    active_start(script, 0, "wf1", "region0");
    script_await(script, 1, "wf1", 2);
    EXPECT(script_poll(script, 1, 3 * NS_PER_S) == NULL);
    EXPECT_EQ(script_history(script, 1, "wf1", "")->n_events, 2);
    active_end(script, 0, "wf1");
}

SCRIPT_TEST(active, a_start_that_says_nothing_is_where_the_domain_is, active_play(2, body), "G-011")
{
    active_start(script, 1, "w", NULL); /* goes on to cluster 0 */
    script_await(script, 1, "w", 2);
    active_end(script, 0, "w");
    script_expect_same(script, "w");
    API(History) *history = script_history(script, 1, "w", "");
    active_expect_written(history, 0, 0);
    EXPECT_TEXT(active_region(history), "");
}

/* --- regions that the group knows ---- */

SCRIPT_TEST(active, where_there_are_regions_a_start_sticks_to_the_one_that_took_it,
            active_play_regions(3, body), "G-064")
{
    active_start(script, 1, "w", NULL);
    API(History) *history = script_await(script, 0, "w", 2);
    EXPECT_TEXT(active_region(history), "region1");
    active_expect_written(history, 0, 1);
    active_end(script, 1, "w");
    const char *run_id;
    EXPECT_OK(active_signal_with_start(script, 1, active_start_request(script, "s", NULL), "go",
                                       &run_id));
    history = script_await(script, 0, "s", 3);
    EXPECT_TEXT(active_region(history), "region1");
    active_expect_written(history, 0, 1);
    /* The default cluster of the domain is only for clusters whose region the domain has not. */
    active_start(script, 2, "d", NULL);
    history = script_await(script, 0, "d", 2);
    EXPECT_TEXT(active_region(history), "");
    active_expect_written(history, 0, 0);
    /* What is said counts. */
    active_start(script, 1, "e", "region0");
    EXPECT_TEXT(active_region(script_await(script, 0, "e", 2)), "region0");
}

/* Cluster 1's region is active in cluster 0 now: what cluster 1 takes is carried out there, and
 * stays of region 1. */
SCRIPT_TEST(active, who_takes_a_start_chooses_and_who_carries_it_out_does_not,
            active_play_regions(2, body), "G-064")
{
    active_move(script, "region1", 0);
    active_await_move(script, 1, "region1", 0);
    active_start(script, 1, "w", NULL);
    API(History) *history = script_await(script, 0, "w", 2);
    EXPECT_TEXT(active_region(history), "region1");
    active_expect_written(history, 0, 0);
    active_move(script, "region1", 1);
    active_end(script, 1, "w");
    script_expect_same(script, "w");
    active_expect_written(script_history(script, 0, "w", ""), 2, 1);
}

/* --- what the domain has not ---- */

SCRIPT_TEST(active, an_attribute_that_the_domain_has_not_starts_nothing, active_play(2, body),
            "G-012")
{
    const char *run_id;
    for (unsigned cluster = 0; cluster < 2; cluster++) {
        struct error *err = script_try_start(script, cluster,
                                             active_start_request(script, "w", "nowhere"), &run_id);
        EXPECT_KIND(err, ERR_BAD_REQUEST);
        EXPECT_TEXT(err->message, UNKNOWN);
        API(StartWorkflowExecutionRequest) *request = active_start_request(script, "w", NULL);
        request->active_cluster_selection_policy = active_policy(script, "city", "region0");
        err = active_signal_with_start(script, cluster, request, "go", &run_id);
        EXPECT_KIND(err, ERR_BAD_REQUEST);
        EXPECT_TEXT(err->message, UNKNOWN);
    }
    EXPECT(script_history(script, 0, "w", "") == NULL);
    EXPECT(script_history(script, 1, "w", "") == NULL);
}

static API(Decision) *
continue_as_new(struct script *script, API(ActiveClusterSelectionPolicy) *policy)
{
    API(Decision) *decision = API_DECISION(script->arena, continue_as_new_workflow_execution);
    decision->continue_as_new_workflow_execution_decision_attributes
        ->active_cluster_selection_policy = policy;
    return decision;
}

/* The decision fails, and the next one is told why. */
static void
expect_refused(struct script *script, API(Decision) *decision, const char *why)
{
    script_decide(script, 0, &decision, 1);
    API(History) *history = script_await(script, 0, "w", 4);
    const API(HistoryEvent) *failed = NULL;
    for (size_t i = 0; i < history->n_events; i++)
        if (history->events[i]->attributes_case == EVENT(DECISION_TASK_FAILED))
            failed = history->events[i];
    EXPECT(failed != NULL);
    const ProtobufCBinaryData *details =
        &failed->decision_task_failed_event_attributes->failure->details;
    if (!slice_equal(slice_of(details->data, details->len), slice_text(why)))
        TEST_FAIL("%.*s", (int)details->len, details->data);
}

static void
play_unknown_child(struct script *script)
{
    active_start(script, 0, "w", "region0");
    expect_refused(script,
                   active_start_child(script, "c", active_policy(script, "region", "nowhere")),
                   UNKNOWN);
}

static void
play_unknown_continued(struct script *script)
{
    active_start(script, 0, "w", "region0");
    expect_refused(script, continue_as_new(script, active_policy(script, "region", "nowhere")),
                   UNKNOWN);
}

/* The new run would be left to a cluster whose version is below that of its first event. */
static void
play_continued_elsewhere(struct script *script)
{
    active_start(script, 0, "w", "region0");
    expect_refused(script, continue_as_new(script, active_policy(script, "region", "region1")),
                   "Cannot continue as new with a cluster attribute that is active in a different "
                   "cluster.");
}

/* The new run would have the version of region0, and an earlier one of region1 a higher one: that
 * would be the newest of region1, in every cluster that hears of both. */
static void
play_continued_behind(struct script *script)
{
    active_move(script, "region1", 0);
    active_await_move(script, 1, "region1", 0);
    active_move(script, "region1", 1);
    active_await_move(script, 0, "region1", 1);
    active_move(script, "region1", 0); /* its version is higher than that of region0 */
    active_start(script, 0, "w", "region1");
    active_end(script, 0, "w");
    API(StartWorkflowExecutionRequest) *again = active_start_request(script, "w", "region0");
    again->workflow_id_reuse_policy = REUSE(ALLOW_DUPLICATE);
    const char *run_id;
    EXPECT_OK(script_try_start(script, 0, again, &run_id));
    expect_refused(script, continue_as_new(script, active_policy(script, "region", "region1")),
                   "Cannot continue as new with a cluster attribute of which the workflow ID has a "
                   "run with a higher failover version.");
}

TEST(active, children_and_next_runs_are_of_what_the_domain_has, "G-012")
{
    active_play(2, play_unknown_child);
    active_play(2, play_unknown_continued);
    active_play(2, play_continued_elsewhere);
    active_play(2, play_continued_behind);
}

/* --- it is stored, seen, and kept ---- */

static void
expect_seen(struct script *script, unsigned cluster, const char *id, const char *region)
{
    const API(WorkflowExecutionInfo) *info =
        script_describe(script, cluster, id)->workflow_execution_info;
    EXPECT_TEXT(info->active_cluster_selection_policy->cluster_attribute->name, region);
    EXPECT_TEXT(info->active_cluster_selection_policy->cluster_attribute->scope, "region");
    EXPECT_TEXT(active_region(script_history(script, cluster, id, "")), region);
}

SCRIPT_TEST(active, what_a_run_belongs_to_is_stored_once_and_seen_everywhere, active_play(2, body),
            "G-014")
{
    active_start(script, 1, "w", "region1");
    script_await(script, 0, "w", 2);
    expect_seen(script, 0, "w", "region1");
    expect_seen(script, 1, "w", "region1");
    active_move(script, "region1", 0); /* what it belongs to does not change with that */
    active_end(script, 0, "w");
    script_expect_same(script, "w");
    expect_seen(script, 0, "w", "region1");
    expect_seen(script, 1, "w", "region1");
}

/* The current run is another one than this; both clusters have it, of region 1. */
static const char *
expect_successor(struct script *script, const char *id, const char *before)
{
    int64_t limit = clock_monotonic() + WITHIN;
    for (;;) {
        API(DescribeWorkflowExecutionResponse) *seen = script_describe(script, 0, id);
        const char *run_id =
            seen == NULL ? before : seen->workflow_execution_info->workflow_execution->run_id;
        if (strcmp(run_id, before) != 0) {
            script_expect_same(script, id);
            expect_seen(script, 0, id, "region1");
            active_expect_written(script_history(script, 0, id, ""), 0, 1);
            return run_id;
        }
        EXPECT(clock_monotonic() < limit);
        script_sleep(script, 50 * NS_PER_MS);
    }
}

static void
play_continued(struct script *script)
{
    const char *run_id = active_start(script, 1, "w", "region1");
    API(Decision) *next = continue_as_new(script, NULL);
    script_decide(script, 1, &next, 1);
    expect_successor(script, "w", run_id);
    active_end(script, 1, "w");
}

static void
play_cron(struct script *script)
{
    API(StartWorkflowExecutionRequest) *request = active_start_request(script, "w", "region1");
    request->cron_schedule = "@every 10s";
    const char *run_id;
    EXPECT_OK(script_try_start(script, 1, request, &run_id));
    active_end(script, 1, "w");
    run_id = expect_successor(script, "w", run_id);
    active_end(script, 1, "w");
    expect_successor(script, "w", run_id);
}

static API(Decision) *
fail_workflow(struct script *script)
{
    return API_DECISION(script->arena, fail_workflow_execution,
                        .failure = API_NEW(script->arena, failure, .reason = "again"));
}

static void
play_retry(struct script *script)
{
    API(StartWorkflowExecutionRequest) *request = active_start_request(script, "w", "region1");
    request->retry_policy = API_NEW(script->arena, retry_policy,
                                    .initial_interval = presence_make_duration(script->arena, 1),
                                    .backoff_coefficient = 1, .maximum_attempts = 3);
    const char *run_id;
    EXPECT_OK(script_try_start(script, 1, request, &run_id));
    API(Decision) *failure = fail_workflow(script);
    script_decide(script, 1, &failure, 1);
    expect_successor(script, "w", run_id);
    active_end(script, 1, "w");
}

static void
play_reset(struct script *script)
{
    const char *run_id = active_start(script, 1, "w", "region1");
    active_end(script, 1, "w");
    script_await(script, 0, "w", 5);
    EXPECT_OK(SCRIPT_CALL(script, 0, NULL, reset_workflow_execution, .domain = SCRIPT_DOMAIN,
                          .workflow_execution = script_execution(script, "w", run_id),
                          .reason = "again", .decision_finish_event_id = 4,
                          .request_id = script_start_request(script, "w")->request_id));
    expect_successor(script, "w", run_id);
    active_end(script, 1, "w");
}

static void
play_restart(struct script *script)
{
    const char *run_id = active_start(script, 1, "w", "region1");
    EXPECT_OK(SCRIPT_CALL(script, 1, NULL, restart_workflow_execution, .domain = SCRIPT_DOMAIN,
                          .workflow_execution = script_execution(script, "w", run_id)));
    expect_successor(script, "w", run_id);
    active_end(script, 1, "w");
}

TEST(active, runs_that_follow_a_run_belong_to_the_same, "G-015")
{
    active_play(2, play_continued);
    active_play(2, play_cron);
    active_play(2, play_retry);
    active_play(2, play_reset);
    active_play(2, play_restart);
}

/* --- children ---- */

static void
play_child_in(struct script *script, unsigned cluster, const char *region)
{
    active_start(script, cluster, region, region);
    const char *child_id = arena_format(script->arena, "child-of-%s", region);
    API(Decision) *child = active_start_child(script, child_id, NULL);
    script_decide(script, cluster, &child, 1);
    API(Decision) *end = script_complete_workflow(script);
    bool has_child_ended = false;
    for (int i = 0; i < 5 && !has_child_ended; i++) { /* the parent hears that it began */
        API(PollForDecisionTaskResponse) *task = script_poll(script, cluster, WITHIN);
        EXPECT(task != NULL);
        has_child_ended = strcmp(task->workflow_execution->workflow_id, child_id) == 0;
        EXPECT_OK(script_complete(script, cluster, task, &end, has_child_ended));
    }
    EXPECT(has_child_ended);
    API(PollForDecisionTaskResponse) *task = script_poll(script, cluster, WITHIN);
    EXPECT(task != NULL);
    EXPECT_TEXT(task->workflow_execution->workflow_id, region);
    EXPECT_OK(script_complete(script, cluster, task, &end, 1));
    for (unsigned i = 0; i < 2; i++) {
        active_expect_closed(script, i, child_id, NULL, CLOSE(COMPLETED));
        active_expect_closed(script, i, region, NULL, CLOSE(COMPLETED));
        active_expect_written(script_history(script, i, child_id, ""), 0, cluster);
        active_expect_written(script_history(script, i, region, ""), 0, cluster);
        EXPECT_TEXT(active_region(script_history(script, i, child_id, "")), region);
    }
}

SCRIPT_TEST(active, parent_and_child_run_in_the_cluster_of_the_parent, active_play(2, body),
            "G-017", "G-015")
{
    play_child_in(script, 0, "region0");
    play_child_in(script, 1, "region1");
}
