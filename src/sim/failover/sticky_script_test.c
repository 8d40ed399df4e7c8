/* sticky_script_test.c - a worker keeps a workflow in its memory, and the workflow moves to another
 * cluster.
 *
 * What is at stake: the event of a decision that is scheduled for such a worker names the worker's
 * own list, which no worker of another cluster polls. Method: a worker of one cluster completes a
 * decision and asks for the next ones on its sticky list; a signal schedules one there; the
 * workflow moves, in every way that there is; a worker of the next cluster must get the decision by
 * the workflow's own list, at once, with the whole history. */
#include <string.h>

#include "sim/entity/entity_script.h"
#include "sim/scripts/script_drain.h"

#define AT_ONCE_HERE (3 * NS_PER_S) /* no timeout of a sticky list is that short */

static void
complete_sticky(struct script *script, unsigned cluster, int64_t timeout)
{
    API(PollForDecisionTaskResponse) *task = script_poll(script, cluster, WITHIN);
    EXPECT(task != NULL);
    API(RespondDecisionTaskCompletedRequest) *request = API_NEW(
        script->arena, respond_decision_task_completed_request, .task_token = task->task_token,
        .sticky_attributes = API_NEW(
            script->arena, sticky_execution_attributes,
            .worker_task_list = API_NEW(script->arena, task_list,
                                        .name = arena_format(script->arena, "sticky%u", cluster)),
            .schedule_to_start_timeout = presence_make_duration(script->arena, timeout)));
    EXPECT_OK(script_call(script, cluster, request, NULL));
}

/* A decision waits on the sticky list of the cluster's worker, and every cluster has it. */
static void
schedule_sticky(struct script *script, unsigned cluster, int64_t timeout)
{
    complete_sticky(script, cluster, timeout);
    EXPECT_OK(script_signal(script, cluster, "w", "go"));
    script_expect_same(script, "w");
    API(History) *history = script_history(script, cluster, "w", "");
    const API(HistoryEvent) *last = history->events[history->n_events - 1];
    EXPECT_EQ(last->attributes_case, EVENT(DECISION_TASK_SCHEDULED));
    EXPECT_TEXT(last->decision_task_scheduled_event_attributes->task_list->name,
                arena_format(script->arena, "sticky%u", cluster));
}

/* A worker of the cluster gets it, and ends the workflow. */
static void
expect_decided(struct script *script, unsigned cluster)
{
    API(PollForDecisionTaskResponse) *task = script_poll(script, cluster, AT_ONCE_HERE);
    EXPECT(task != NULL);
    EXPECT_TEXT(task->workflow_execution->workflow_id, "w");
    EXPECT_EQ(task->history->events[0]->event_id, 1);
    EXPECT_EQ(task->attempt, 0);
    API(Decision) *end = script_complete_workflow(script);
    EXPECT_OK(script_complete(script, cluster, task, &end, 1));
    script_expect_same(script, "w");
    API(History) *history = script_history(script, 0, "w", "");
    EXPECT_EQ(history->events[history->n_events - 1]->attributes_case,
              EVENT(WORKFLOW_EXECUTION_COMPLETED));
    EXPECT_EQ(script_count_events(history, EVENT(DECISION_TASK_TIMED_OUT)), 0);
}

/* --- a decision comes after the move ---- */

/* Nobody polls the sticky list of a cluster that the workflow left: decisions come by the normal
 * list, at once. */
SCRIPT_TEST(sticky_script, a_worker_that_kept_the_workflow_is_forgotten_with_a_failover,
            script_play(2, 0, body), "E-033")
{
    script_start(script, 0, "w");
    complete_sticky(script, 0, 60);
    script_expect_same(script, "w");
    script_failover(script, 1);
    EXPECT_OK(script_signal(script, 1, "w", "one"));
    complete_sticky(script, 1, 60);
    script_expect_same(script, "w");
    script_failover(script, 0);
    EXPECT_OK(script_signal(script, 0, "w", "two"));
    expect_decided(script, 0);
}

/* --- a decision was scheduled before the move ---- */

SCRIPT_TEST(sticky_script, a_decision_on_a_sticky_list_goes_to_the_next_cluster_by_force,
            script_play(2, 0, body), "E-033")
{
    script_start(script, 0, "w");
    schedule_sticky(script, 0, 3600);
    script_failover(script, 1);
    expect_decided(script, 1);
    EXPECT(world_probe_count(script->sim->world, "decision_of_unknown_sticky_list") > 0);
}

SCRIPT_TEST(sticky_script, a_decision_on_a_sticky_list_goes_to_the_next_cluster_gracefully,
            script_play(2, 0, body), "E-033")
{
    script_start(script, 0, "w");
    schedule_sticky(script, 0, 3600);
    script_begin_drain(script, 1, 30);
    while (script_describe_domain(script, 1)->failover_info != NULL)
        script_sleep(script, 50 * NS_PER_MS);
    expect_decided(script, 1);
}

SCRIPT_TEST(sticky_script, a_decision_on_a_sticky_list_goes_with_its_attribute,
            active_play(2, body))
{
    active_start(script, 0, "w", "region0");
    schedule_sticky(script, 0, 3600);
    active_move(script, "region0", 1);
    expect_decided(script, 1);
}

SCRIPT_TEST(sticky_script, a_decision_on_a_sticky_list_goes_with_its_entity,
            active_play_regions(2, body))
{
    entity_place(script, 0, "user", "ann", "region0");
    entity_start(script, 0, "w", "ann");
    schedule_sticky(script, 0, 3600);
    entity_place(script, 0, "user", "ann", "region1");
    expect_decided(script, 1);
}

/* Without a policy a run belongs to the region of the cluster that took it. */
SCRIPT_TEST(sticky_script, a_decision_on_a_sticky_list_goes_with_the_home_of_its_workflow,
            active_play_regions(2, body))
{
    active_start(script, 0, "w", NULL);
    schedule_sticky(script, 0, 3600);
    active_move(script, "region0", 1);
    expect_decided(script, 1);
}

/* --- there and back ---- */

/* Nothing happens in the other cluster; the worker that kept the workflow is gone meanwhile. */
SCRIPT_TEST(sticky_script, a_decision_on_a_sticky_list_that_comes_back_goes_to_any_worker,
            script_play(2, 0, body))
{
    script_start(script, 0, "w");
    schedule_sticky(script, 0, 3600);
    script_failover(script, 1);
    script_sleep(script, NS_PER_S);
    script_failover(script, 0);
    expect_decided(script, 0);
}

/* The other cluster's worker keeps the workflow, too, and a decision waits for it. */
SCRIPT_TEST(sticky_script, a_decision_goes_on_wherever_the_workflow_was_kept_before,
            script_play(2, 0, body))
{
    script_start(script, 0, "w");
    schedule_sticky(script, 0, 3600);
    script_failover(script, 1);
    schedule_sticky(script, 1, 3600);
    script_failover(script, 0);
    schedule_sticky(script, 0, 3600);
    script_failover(script, 1);
    expect_decided(script, 1);
}

/* --- made again from the history ---- */

static void
rebuild(struct script *script, unsigned cluster)
{
    STORE_API(RebuildRunRequest) *request =
        message_new(script->arena, &cadenza__admin__v1__rebuild_run_request__descriptor);
    request->domain = SCRIPT_DOMAIN;
    request->workflow_execution = script_execution(script, "w", "");
    STORE_API(RebuildRunResponse) *response = script_ok(script, cluster, request);
    EXPECT_TEXT(response->old_checksum, response->new_checksum);
}

/* Also where it never moved: what the worker said of its list is in no event. */
SCRIPT_TEST(sticky_script,
            a_run_that_is_made_again_from_its_history_has_its_decision_on_its_own_list,
            script_play(2, 0, body))
{
    script_start(script, 0, "w");
    schedule_sticky(script, 0, 3600);
    rebuild(script, 1);
    rebuild(script, 0);
    expect_decided(script, 0);
}
