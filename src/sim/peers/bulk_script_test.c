/* bulk_script_test.c - batch jobs that send runs to another cluster.
 *
 * What is at stake: a cluster that is added to a domain hears only of what happens from then on.
 * A batch of type replicate sends it the runs that were there before and wait or are closed. */
#include "engine/run/mutation.h"
#include "sim/scripts/script.h"
#include "system/bulk.h"
#include "uber/cadence/api/v1/service_domain.pb-c.h"

#define RUNS 12

/* --- batches ---- */

static void
start_batch(struct script *script, unsigned cluster, const char *id, const char *domain,
            const char *source, const char *target)
{
    API(StartWorkflowExecutionRequest) *start = script_start_request(script, id);
    const char *run_id;
    const char *input = arena_format(
        script->arena,
        "{\"DomainName\":\"%s\",\"Query\":\"WorkflowType = 'scripted'\",\"Reason\":\"new\","
        "\"BatchType\":\"replicate\",\"PageSize\":5,"
        "\"ReplicateParams\":{\"SourceCluster\":\"%s\",\"TargetCluster\":\"%s\"}}",
        domain, source, target);
    start->domain = BULK_DOMAIN;
    start->workflow_type->name = BULK_TYPE_V2;
    start->task_list->name = BULK_LIST;
    start->input = presence_make_payload(
        script->arena, (struct maybe_bytes){.is_set = true, .bytes = slice_text(input)});
    EXPECT_OK(script_try_start(script, cluster, start, &run_id));
}

static const API(HistoryEvent) *
wait_closed(struct script *script, unsigned cluster, const char *id)
{
    API(GetWorkflowExecutionHistoryRequest) *request = API_NEW(
        script->arena, get_workflow_execution_history_request, .domain = BULK_DOMAIN,
        .workflow_execution = script_execution(script, id, ""),
        .history_event_filter_type = API_VALUE(EVENT_FILTER_TYPE__EVENT_FILTER_TYPE_CLOSE_EVENT));
    for (int try = 0; try < 600; try++) {
        API(GetWorkflowExecutionHistoryResponse) *response = script_ok(script, cluster, request);
        const API(History) *history = response->history;
        size_t count = history == NULL ? 0 : history->n_events;
        const API(HistoryEvent) *last = count == 0 ? NULL : history->events[count - 1];
        if (last != NULL && (last->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED) ||
                             last->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_FAILED)))
            return last;
        script_sleep(script, NS_PER_S);
    }
    TEST_FAIL("batch %s does not end", id);
    return NULL;
}

static struct bulk_progress
wait_done(struct script *script, unsigned cluster, const char *id)
{
    const API(HistoryEvent) *last = wait_closed(script, cluster, id);
    struct bulk_progress progress;
    EXPECT_EQ(last->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED));
    EXPECT(bulk_read_progress(
        presence_read_payload(last->workflow_execution_completed_event_attributes->result).bytes,
        script->arena, &progress));
    return progress;
}

static const char *
wait_refused(struct script *script, unsigned cluster, const char *id)
{
    const API(HistoryEvent) *last = wait_closed(script, cluster, id);
    EXPECT_EQ(last->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_FAILED));
    const API(Failure) *failure = last->workflow_execution_failed_event_attributes->failure;
    EXPECT_TEXT(failure->reason, BULK_FINAL);
    return arena_text_of(script->arena, presence_read_bytes(failure->details));
}

/* --- the domain gets one more cluster ---- */

static void
add_cluster(struct script *script, unsigned count)
{
    struct arena *arena = script->arena;
    API(UpdateDomainRequest) *request =
        API_NEW(arena, update_domain_request, .name = SCRIPT_DOMAIN,
                .update_mask =
                    GOOGLE_NEW(arena, field_mask, .paths = arena_zalloc(arena, 1, sizeof(char *))));
    request->update_mask->paths[request->update_mask->n_paths++] = "clusters";
    request->clusters = arena_zalloc(arena, count, sizeof request->clusters[0]);
    for (unsigned i = 0; i < count; i++) {
        request->clusters[i] = API_NEW(arena, cluster_replication_configuration,
                                       .cluster_name = arena_format(arena, "cluster%u", i));
    }
    request->n_clusters = count;
    EXPECT_OK(script_call(script, 0, request, NULL));
    script->domain_clusters = count;
}

/* One is closed, the others wait for their first decision. */
static void
start_runs(struct script *script)
{
    script_start(script, 0, "run-0");
    API(Decision) *end = script_complete_workflow(script);
    script_decide(script, 0, &end, 1);
    for (int i = 1; i < RUNS; i++)
        script_start(script, 0, arena_format(script->arena, "run-%d", i));
    script_sleep(script, 60 * NS_PER_S); /* domains are not changed so often */
}

static void
expect_all_same(struct script *script)
{
    for (int i = 0; i < RUNS; i++)
        script_expect_same(script, arena_format(script->arena, "run-%d", i));
}

SCRIPT_TEST(bulk_script, runs_of_before_reach_a_cluster_that_was_added,
            script_play_with_system(3, 2, body), "A-263")
{
    start_runs(script);
    add_cluster(script, 3);
    script_sleep(script, 5 * NS_PER_S);
    EXPECT(script_history(script, 2, "run-0", "") == NULL);
    EXPECT(script_history(script, 2, "run-1", "") == NULL);
    start_batch(script, 0, "job", SCRIPT_DOMAIN, "cluster0", "cluster2");
    struct bulk_progress done = wait_done(script, 0, "job");
    EXPECT_EQ(done.success, RUNS);
    EXPECT_EQ(done.error, 0);
    expect_all_same(script);
    /* What is there already stays as it is, and they go on there. */
    start_batch(script, 0, "again", SCRIPT_DOMAIN, "cluster0", "cluster2");
    EXPECT_EQ(wait_done(script, 0, "again").success, RUNS);
    expect_all_same(script);
    EXPECT_OK(script_signal(script, 0, "run-3", "s"));
    script_expect_same(script, "run-3");
}

/* The cluster that shall get them comes back only later: nothing is given up before. */
SCRIPT_TEST(bulk_script, a_batch_waits_for_a_cluster_that_is_away,
            script_play_with_system(3, 2, body), "A-263")
{
    start_runs(script);
    add_cluster(script, 3);
    script_crash(script, 2);
    start_batch(script, 0, "job", SCRIPT_DOMAIN, "cluster0", "cluster2");
    script_sleep(script, 20 * NS_PER_S);
    script_restart(script, 2);
    struct bulk_progress done = wait_done(script, 0, "job");
    EXPECT_EQ(done.success, RUNS);
    expect_all_same(script);
}

SCRIPT_TEST(bulk_script, runs_are_sent_only_where_their_domain_is,
            script_play_with_system(3, 2, body), "A-263")
{
    script_start(script, 0, "w");
    start_batch(script, 1, "elsewhere", SCRIPT_DOMAIN, "cluster0", "cluster1");
    EXPECT_TEXT(wait_refused(script, 1, "elsewhere"),
                "the activity must run in the source cluster, current cluster is cluster1");
    start_batch(script, 0, "unknown", SCRIPT_DOMAIN, "cluster0", "nowhere");
    EXPECT_TEXT(wait_refused(script, 0, "unknown"),
                "the target cluster must be another cluster of the group, nowhere is not one");
    start_batch(script, 0, "self", SCRIPT_DOMAIN, "cluster0", "cluster0");
    EXPECT_TEXT(wait_refused(script, 0, "self"),
                "the target cluster must be another cluster of the group, cluster0 is not one");
    start_batch(script, 0, "outside", SCRIPT_DOMAIN, "cluster0", "cluster2");
    EXPECT_TEXT(wait_refused(script, 0, "outside"),
                "domain " SCRIPT_DOMAIN
                " is not in cluster cluster2; add it to the clusters of the domain");
    start_batch(script, 0, "local", BULK_DOMAIN, "cluster0", "cluster1");
    EXPECT_TEXT(wait_refused(script, 0, "local"),
                "domain " BULK_DOMAIN " is local: its runs live in this cluster only");
    EXPECT(script_history(script, 2, "w", "") == NULL);
}
