/* active_cross_tasks_script_test.c - workflows of an active-active domain that ask something of
 * workflows in other clusters, and starts that are done later. */
#include "sim/active/active_script.h"

/* --- workflows that are active elsewhere ---- */

SCRIPT_TEST(active, workflows_of_two_clusters_signal_and_cancel_each_other, active_play(2, body))
{
    active_start(script, 1, "there", "region1");
    script_decide(script, 1, NULL, 0);
    script_await(script, 0, "there", 4);
    active_start(script, 0, "here", "region0");
    API(Decision) *both[] = {script_ask_other(script, "there", "hello"),
                             script_cancel_other(script, "there")};
    script_decide(script, 0, both, 2);
    API(PollForDecisionTaskResponse) *task = script_poll(script, 1, WITHIN);
    EXPECT(task != NULL);
    EXPECT_OK(script_complete(script, 1, task, NULL, 0));
    task = script_poll(script, 0, WITHIN);
    EXPECT(task != NULL);
    EXPECT_OK(script_complete(script, 0, task, NULL, 0));
    script_sleep(script, 2 * NS_PER_S);
    script_expect_same(script, "there");
    script_expect_same(script, "here");
    API(History) *there = script_history(script, 0, "there", "");
    API(History) *here = script_history(script, 1, "here", "");
    EXPECT(script_count_events(there, EVENT(WORKFLOW_EXECUTION_SIGNALED)) > 0);
    EXPECT(script_count_events(there, EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED)) > 0);
    EXPECT(script_count_events(here, EVENT(EXTERNAL_WORKFLOW_EXECUTION_SIGNALED)) > 0);
    EXPECT(script_count_events(here, EVENT(EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED)) > 0);
    active_expect_written(there, 0, 1);
    active_expect_written(here, 0, 0);
}

/* Workflows that have much to say to another cluster do so over connections that stay: one for each
 * of the two loops; and find it again when it was away. */
SCRIPT_TEST(active, workflows_of_two_clusters_speak_over_connections_that_stay,
            active_play(2, body))
{
    enum { MESSAGES = 12 };
    const struct world *world = script->sim->world;
    active_start(script, 1, "there", "region1");
    script_decide(script, 1, NULL, 0);
    script_await(script, 0, "there", 4);
    for (int i = 0; i < MESSAGES; i++) {
        active_start(script, 0, arena_format(script->arena, "here-%d", i), "region0");
        API(Decision) *decision = script_ask_other(script, "there", "hello");
        if (i == MESSAGES / 2)
            script_part(script);
        script_decide(script, 0, &decision, 1);
        if (i == MESSAGES / 2) {
            script_sleep(script, 20 * NS_PER_S);
            script_heal(script);
        }
    }
    int received = 0;
    for (int64_t limit = clock_monotonic() + 2 * WITHIN;
         received < MESSAGES && clock_monotonic() < limit; script_sleep(script, NS_PER_S)) {
        API(History) *history = script_history(script, 1, "there", "");
        received = 0;
        for (size_t i = 0; i < history->n_events; i++)
            received += history->events[i]->attributes_case == EVENT(WORKFLOW_EXECUTION_SIGNALED);
    }
    EXPECT_EQ(received, MESSAGES);
    EXPECT(world_probe_count(world, "cross_task_remote") >= MESSAGES);
    EXPECT(world_probe_count(world, "peer_client_kept") <= 2);
}

/* The parent is of region 0, its child says region 1. */
static void
begin_child_elsewhere(struct script *script)
{
    active_start(script, 0, "parent", "region0");
    API(Decision) *child =
        active_start_child(script, "child", active_policy(script, "region", "region1"));
    script_decide(script, 0, &child, 1);
    script_decide(script, 0, NULL, 0); /* it hears that its child began */
}

static void
play_child_elsewhere(struct script *script)
{
    begin_child_elsewhere(script);
    active_end(script, 1, "child");
    active_end(script, 0, "parent");
    for (unsigned i = 0; i < 2; i++) {
        active_expect_closed(script, i, "child", NULL, CLOSE(COMPLETED));
        active_expect_closed(script, i, "parent", NULL, CLOSE(COMPLETED));
    }
    API(History) *child = script_history(script, 0, "child", "");
    API(History) *parent = script_history(script, 1, "parent", "");
    EXPECT_TEXT(active_region(child), "region1");
    active_expect_written(child, 0, 1);
    active_expect_written(parent, 0, 0);
    EXPECT(script_count_events(parent, EVENT(CHILD_WORKFLOW_EXECUTION_COMPLETED)) > 0);
}

static void
play_child_ended(struct script *script)
{
    begin_child_elsewhere(script);
    script_await(script, 0, "child", 2);
    EXPECT_OK(script_signal(script, 0, "parent", "end"));
    active_end(script, 0, "parent");
    active_expect_closed(script, 0, "child", NULL, CLOSE(TERMINATED));
    script_expect_same(script, "child");
    active_expect_written(script_history(script, 0, "child", ""), 0, 1);
}

/* Its cluster is away for a while: the start waits for it. */
static void
play_child_later(struct script *script)
{
    active_start(script, 0, "parent", "region0");
    script_await(script, 1, "parent", 2);
    script_part(script);
    API(Decision) *child =
        active_start_child(script, "child", active_policy(script, "region", "region1"));
    script_decide(script, 0, &child, 1);
    script_sleep(script, 20 * NS_PER_S);
    script_heal(script);
    script_decide(script, 0, NULL, 0);
    active_end(script, 1, "child");
    active_end(script, 0, "parent");
    script_expect_same(script, "child");
    script_expect_same(script, "parent");
}

TEST(active, a_child_that_says_so_runs_in_another_cluster_than_its_parent)
{
    active_play(2, play_child_elsewhere);
    active_play(2, play_child_ended);
    active_play(2, play_child_later);
}

/* --- requests that are done later ---- */

static void
enable_queue(struct script *script)
{
    ADMIN(UpdateDomainAsyncWorkflowConfiguratonRequest) *request = ADMIN_NEW(
        script->arena, update_domain_async_workflow_configuraton_request, .domain = SCRIPT_DOMAIN,
        .configuration = API_NEW(script->arena, async_workflow_configuration, .enabled = true,
                                 .predefined_queue_name = "queue"));
    EXPECT_OK(script_call(script, 0, request, NULL));
    script_sleep(script, 2 * NS_PER_S);
}

static struct error *
start_later(struct script *script, unsigned cluster, const char *id, const char *region)
{
    return SCRIPT_CALL(script, cluster, NULL, start_workflow_execution_async,
                       .request = active_start_request(script, id, region));
}

/* Accepted where the caller is, done where the workflow is. */
SCRIPT_TEST(active, a_start_that_is_done_later_is_done_where_it_belongs,
            active_play_regions(2, body), "G-064")
{
    enable_queue(script);
    EXPECT_OK(start_later(script, 1, "said", "region0"));
    active_expect_written(script_await(script, 1, "said", 2), 0, 0);
    EXPECT_OK(start_later(script, 1, "sticky", NULL));
    API(History) *history = script_await(script, 0, "sticky", 2);
    active_expect_written(history, 0, 1);
    EXPECT_TEXT(active_region(history), "region1");
    struct error *err = start_later(script, 1, "nowhere", "nowhere");
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT_TEXT(err->message, UNKNOWN);
}
