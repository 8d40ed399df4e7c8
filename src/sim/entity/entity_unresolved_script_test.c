/* entity_unresolved_script_test.c - an entity moves to a region that the domain does not have: no
 * source can stop a workflow. */
#include <stdlib.h>
#include <string.h>

#include "sim/entity/entity_script.h"

#define UNKNOWN_REGION "region2" /* of the group, not of the domain */

static long
unresolved_rows(struct script *script, unsigned cluster)
{
    static const char series[] = "\nactive_cluster_unresolved_rows ";
    struct slice text = sim_host_metrics(&script->sim->hosts[cluster], script->arena);
    const char *page = arena_format(script->arena, "%.*s", (int)text.length, text.data);
    const char *line = strstr(page, series);
    return line == NULL ? -1 : strtol(line + strlen(series), NULL, 10);
}

static struct error *
terminate(struct script *script, unsigned cluster, const char *id)
{
    return SCRIPT_CALL(script, cluster, NULL, terminate_workflow_execution, .domain = SCRIPT_DOMAIN,
                       .workflow_execution = script_execution(script, id, ""));
}

static void
begin(struct script *script, const char *id)
{
    const char *run_id;
    entity_place(script, 0, "city", "seattle", "region1");
    EXPECT_OK(script_try_start(script, 0, entity_request(script, id, "city", "seattle"), &run_id));
    script_decide(script, 1, NULL, 0);
    script_await(script, 0, id, 4);
}

static bool
is_closed(struct script *script, const char *id)
{
    return script_describe(script, 1, id)->workflow_execution_info->close_status != 0;
}

/* The parent ends last, because its end would end its children; and not before it has seen what
 * a child told it. */
static void
complete_child_tree(struct script *script)
{
    int ended = 0;
    while (!is_closed(script, "w")) {
        API(PollForDecisionTaskResponse) *task = script_poll(script, 1, WITHIN);
        EXPECT(task != NULL);
        bool is_child = strcmp(task->workflow_execution->workflow_id, "w") != 0;
        API(Decision) *end = script_complete_workflow(script);
        EXPECT_OK(script_complete(script, 1, task, &end, is_child || ended == 2 ? 1 : 0));
        ended += is_child ? 1 : 0;
    }
    EXPECT_EQ(ended, 2);
}

/* Everything that a client may do, at every cluster; and children, of a parent that says nothing
 * and of one that names the entity itself. */
SCRIPT_TEST(entity_unresolved,
            workflows_stay_where_they_were_and_are_signalled_terminated_and_have_children,
            active_play_regions(3, body))
{
    const char *run_id;
    begin(script, "w");
    begin(script, "ended");
    long before = unresolved_rows(script, 1);
    entity_place(script, 0, "city", "seattle", UNKNOWN_REGION);
    script_sleep(script, 2 * NS_PER_S);
    for (unsigned i = 0; i < 3; i++)
        EXPECT_OK(script_signal(script, i, "w", "go"));
    EXPECT_OK(active_signal_with_start(script, 0, entity_request(script, "w", "city", "seattle"),
                                       "more", &run_id));
    API(DescribeWorkflowExecutionResponse) *described = script_describe(script, 0, "w");
    EXPECT(described->active_cluster != NULL);
    EXPECT_TEXT(described->active_cluster->active_cluster_name, "cluster1");
    EXPECT_OK(terminate(script, 2, "ended"));
    API(Decision) *children[] = {active_start_child(script, "plain", NULL),
                                 active_start_child(script, "named", NULL)};
    children[1]
        ->start_child_workflow_execution_decision_attributes->active_cluster_selection_policy =
        active_policy(script, "city", "seattle");
    script_decide(script, 1, children, 2);
    active_expect_written(script_await(script, 1, "plain", 2), 0, 1);
    active_expect_written(script_await(script, 1, "named", 2), 0, 1);
    EXPECT(unresolved_rows(script, 1) > before);
    active_expect_closed(script, 0, "ended", NULL, CLOSE(TERMINATED));
    struct error *err =
        script_try_start(script, 1, entity_request(script, "new", "city", "seattle"), &run_id);
    EXPECT_KIND(err, ERR_BAD_REQUEST);
    EXPECT(strstr(err->message, "it is in region 'region2', which domain flows does not have") !=
           NULL);
    script_crash(script, 1); /* what waits there is read again */
    script_restart(script, 1);
    script_sleep(script, 2 * NS_PER_S);
    complete_child_tree(script);
    active_expect_closed(script, 0, "w", NULL, CLOSE(COMPLETED));
    script_expect_same(script, "w");
    script_expect_same(script, "plain");
}

/* It comes back to a region that the domain has: the version has risen. */
SCRIPT_TEST(entity_unresolved,
            an_entity_that_comes_back_takes_its_workflows_along_with_a_higher_version,
            active_play_regions(3, body))
{
    begin(script, "w");
    entity_place(script, 0, "city", "seattle", UNKNOWN_REGION);
    EXPECT_OK(script_signal(script, 0, "w", "one"));
    script_await(script, 0, "w", 6);
    entity_place(script, 0, "city", "seattle", "region0");
    EXPECT_OK(script_signal(script, 1, "w", "two"));
    active_end(script, 0, "w");
    script_expect_same(script, "w");
    API(History) *history = script_history(script, 1, "w", "");
    for (size_t i = 1; i < history->n_events; i++)
        EXPECT(history->events[i]->version >= history->events[i - 1]->version);
    EXPECT_EQ(sim_group_of_version(history->events[4]->version), 1); /* it stayed */
    EXPECT_EQ(history->events[4]->version, history->events[3]->version);
    EXPECT_EQ(sim_group_of_version(history->events[history->n_events - 1]->version), 0);
}

/* What was written in one cluster waits in the next one when the region becomes unknown. */
SCRIPT_TEST(entity_unresolved, what_another_cluster_scheduled_is_done_where_the_workflow_stays,
            active_play_regions(3, body))
{
    begin(script, "w");
    API(Decision) *activity = script_schedule_activity(script, false);
    EXPECT_OK(script_signal(script, 1, "w", "go"));
    script_decide(script, 1, &activity, 1); /* cluster1 wrote the row */
    script_await(script, 0, "w", 8);
    entity_place(script, 0, "city", "seattle", "region0");
    EXPECT_OK(script_signal(script, 0, "w", "more")); /* cluster0 wrote last */
    script_decide(script, 0, NULL, 0);
    entity_place(script, 0, "city", "seattle", UNKNOWN_REGION);
    script_crash(script, 0);
    script_restart(script, 0);
    script_sleep(script, 2 * NS_PER_S);
    EXPECT(script_poll_activity(script, 0, WITHIN) != NULL);
    EXPECT_OK(script_signal(script, 1, "w", "last"));
    active_end(script, 0, "w");
    script_expect_same(script, "w");
}
