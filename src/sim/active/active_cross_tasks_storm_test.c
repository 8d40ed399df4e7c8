/* active_cross_tasks_storm_test.c - parents, children and targets of signals that live in different
 * clusters, while regions move, clusters crash and do not hear each other.
 *
 * Each parent starts a child of the other region and signals a workflow of it, and ends when it has
 * heard of both. At the end, healed: all parents and children have ended, in all clusters alike,
 * and each signal came; if no region moved, the children have ended well and each signal came once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "sim/active/active_script.h"

#define PARENTS  8
#define ROUNDS   60 /* of one poll in each cluster */
#define PATIENCE 400

struct storm {
    struct script *script;
    struct random random;
    bool has_moves; /* regions move */
    bool moves_default;
    bool is_down[2], is_parted;
    size_t moves, crashes, cuts;
};

/* --- what workers decide ---- */

/* "parent3" belongs to region1; its child and its target to region0. */
static size_t
decide_parent(struct script *script, const char *id, const API(History) *history,
              API(Decision) **decisions)
{
    long number = strtol(id + strlen("parent"), NULL, 10);
    const char *other = number % 2 == 0 ? "region1" : "region0";
    if (script_count_events(history, EVENT(START_CHILD_WORKFLOW_EXECUTION_INITIATED)) == 0) {
        decisions[0] = active_start_child(script, arena_format(script->arena, "child%ld", number),
                                          active_policy(script, "region", other));
        decisions[1] = script_ask_other(script, number % 2 == 0 ? "target1" : "target0", "hello");
        return 2;
    }
    /* Of two runs that a child has because its region moved, one is terminated; one that a history
     * of the parent started which lost has the id. */
    bool has_outcome =
        script_count_events(history, EVENT(CHILD_WORKFLOW_EXECUTION_COMPLETED)) > 0 ||
        script_count_events(history, EVENT(CHILD_WORKFLOW_EXECUTION_TERMINATED)) > 0 ||
        script_count_events(history, EVENT(START_CHILD_WORKFLOW_EXECUTION_FAILED)) > 0;
    if (!has_outcome ||
        script_count_events(history, EVENT(EXTERNAL_WORKFLOW_EXECUTION_SIGNALED)) == 0)
        return 0;
    decisions[0] = script_complete_workflow(script);
    return 1;
}

static bool
work(struct storm *storm, unsigned cluster)
{
    struct script *script = storm->script;
    API(PollForDecisionTaskResponse) *task = script_poll(script, cluster, 200 * NS_PER_MS);
    if (task == NULL)
        return false;
    const char *id = task->workflow_execution->workflow_id;
    API(Decision) *decisions[2];
    size_t count = 0;
    if (strncmp(id, "parent", 6) == 0)
        count = decide_parent(script, id, task->history, decisions);
    else if (strncmp(id, "child", 5) == 0)
        decisions[count++] = script_complete_workflow(script);
    (void)!script_complete(script, cluster, task, decisions, count); /* it may be too late */
    return true;
}

/* --- what goes wrong ---- */

/* The domain itself goes there, if it can. */
static void
try_default(struct script *script, unsigned cluster)
{
    struct load_call call = {.clients = script->clients, .host = cluster, .arena = script->arena};
    struct load_failover failover = {.name = SCRIPT_DOMAIN,
                                     .cluster = arena_format(script->arena, "cluster%u", cluster)};
    API(Domain) *domain = NULL;
    fiber_set_deadline(clock_monotonic() + WITHIN);
    (void)!load_failover(&call, &failover, &domain);
    fiber_set_deadline(NEVER);
}

static void
harm(struct storm *storm)
{
    struct script *script = storm->script;
    unsigned cluster = (unsigned)random_below(&storm->random, 2);
    switch (random_below(&storm->random, 8)) {
    case 0:
        (storm->is_parted ? script_heal : script_part)(script);
        storm->is_parted = !storm->is_parted;
        storm->cuts++;
        break;
    case 1:
        if (storm->is_down[1 - cluster])
            break;
        (storm->is_down[cluster] ? script_restart : script_crash)(script, cluster);
        storm->is_down[cluster] = !storm->is_down[cluster];
        storm->crashes++;
        break;
    case 2:
    case 3:
        if (storm->is_down[cluster] || !storm->has_moves)
            break;
        (void)!active_try_move(script, random_below(&storm->random, 2) == 0 ? "region0" : "region1",
                               cluster);
        storm->moves++;
        break;
    case 4: /* while the other cluster may move a region, and not hear of it */
        if (!storm->is_down[cluster] && storm->moves_default)
            try_default(script, cluster);
        break;
    default:
        break;
    }
}

static void
make_peace(struct storm *storm)
{
    if (storm->is_parted)
        script_heal(storm->script);
    for (unsigned i = 0; i < 2; i++)
        if (storm->is_down[i])
            script_restart(storm->script, i);
    script_sleep(storm->script, 10 * NS_PER_S);
    (void)!active_try_move(storm->script, "region0", 0);
    (void)!active_try_move(storm->script, "region1", 1);
    for (unsigned i = 0; i < 2; i++) {
        active_await_move(storm->script, i, "region0", 0);
        active_await_move(storm->script, i, "region1", 1);
    }
}

/* --- what must be at the end ---- */

static bool
is_closed(struct script *script, const char *id)
{
    API(DescribeWorkflowExecutionResponse) *seen = script_describe(script, 0, id);
    return seen != NULL && seen->workflow_execution_info->close_status == CLOSE(COMPLETED);
}

/* In whatever way: one of two runs of a child is terminated. */
static bool
has_ended(struct script *script, const char *id)
{
    API(DescribeWorkflowExecutionResponse) *seen = script_describe(script, 0, id);
    return seen != NULL && seen->workflow_execution_info->close_status != 0;
}

static bool
are_all_closed(struct script *script)
{
    for (int i = 0; i < PARENTS; i++)
        if (!is_closed(script, arena_format(script->arena, "parent%d", i)) ||
            !has_ended(script, arena_format(script->arena, "child%d", i)))
            return false;
    return true;
}

/* One of each parent. Where regions move by force, what was done to a history that lost is done
 * again on the one that won, and the parent may have asked there, too. */
static void
expect_signals(struct script *script, const char *id, bool has_moves)
{
    script_expect_same(script, id);
    API(History) *history = script_history(script, 0, id, "");
    size_t signals = 0;
    for (size_t i = 0; i < history->n_events; i++)
        signals += history->events[i]->attributes_case == EVENT(WORKFLOW_EXECUTION_SIGNALED);
    EXPECT(signals >= PARENTS / 2);
    EXPECT(has_moves || signals == PARENTS / 2);
}

/* What a cluster has of a workflow, to look into a failure. */
static void
print_history(struct script *script, unsigned cluster, const char *id)
{
    API(History) *history = script_history(script, cluster, id, "");
    API(DescribeWorkflowExecutionResponse) *seen = script_describe(script, cluster, id);
    printf("cluster%u %s:", cluster, id);
    for (size_t i = 0; history != NULL && i < history->n_events; i++)
        printf(" %d@%lld", (int)history->events[i]->attributes_case,
               (long long)history->events[i]->version);
    if (seen != NULL)
        printf(" (%zu children, decision %s)", seen->n_pending_children,
               seen->pending_decision == NULL ? "none" : "pending");
    printf("\n");
}

static void
note_default(void *context, const API(ClusterFailover) *failover)
{
    int64_t *newest = context;
    if (failover->cluster_attribute == NULL && failover->to_cluster->failover_version > *newest)
        *newest = failover->to_cluster->failover_version;
}

/* The domain is where the newest move of it put it, in both clusters. */
static void
expect_default(struct script *script)
{
    struct load_call call = {.clients = script->clients, .arena = script->arena};
    int64_t newest = -1;
    fiber_set_deadline(clock_monotonic() + WITHIN);
    EXPECT_OK(load_list_failovers(&call, script->domain_id, note_default, &newest));
    int place = newest < 0 ? 0 : sim_group_of_version(newest);
    for (; call.host < 2; call.host++) {
        API(Domain) *domain = NULL;
        EXPECT_OK(load_describe(&call, SCRIPT_DOMAIN, &domain));
        EXPECT_TEXT(domain->active_cluster_name, arena_format(script->arena, "cluster%d", place));
        EXPECT(domain->failover_version >= newest);
    }
    fiber_set_deadline(NEVER);
}

static void
play_storm(struct script *script, bool has_moves, bool moves_default)
{
    struct storm storm = {.script = script, .has_moves = has_moves, .moves_default = moves_default};
    uint64_t seed;
    entropy_bytes(&seed, sizeof seed);
    random_seed(&storm.random, seed);
    active_start(script, 0, "target0", "region0");
    active_start(script, 1, "target1", "region1");
    for (int i = 0; i < PARENTS; i++)
        active_start(script, i % 2, arena_format(script->arena, "parent%d", i),
                     i % 2 == 0 ? "region0" : "region1");
    script_sleep(script, 2 * NS_PER_S); /* what is not known elsewhere cannot go there */
    for (int i = 0; i < ROUNDS; i++) {
        harm(&storm);
        for (unsigned cluster = 0; cluster < 2; cluster++)
            if (!storm.is_down[cluster])
                work(&storm, cluster);
    }
    make_peace(&storm);
    for (int i = 0; i < PATIENCE && !are_all_closed(script); i++)
        for (unsigned cluster = 0; cluster < 2; cluster++)
            while (work(&storm, cluster))
                continue;
    for (int i = 0; i < PARENTS; i++) {
        const char *parent = arena_format(script->arena, "parent%d", i);
        const char *child = arena_format(script->arena, "child%d", i);
        for (unsigned j = 0; j < 2 && !is_closed(script, parent); j++) {
            print_history(script, j, parent);
            print_history(script, j, child);
        }
        if (!is_closed(script, parent))
            TEST_FAIL("%s is not closed: %zu moves, %zu crashes, %zu cuts", parent, storm.moves,
                      storm.crashes, storm.cuts);
        script_expect_same(script, parent);
        script_expect_same(script, child);
        const API(WorkflowExecutionInfo) *info =
            script_describe(script, 0, child)->workflow_execution_info;
        EXPECT(info->close_status != 0);
        EXPECT(has_moves || info->close_status == CLOSE(COMPLETED));
        EXPECT_TEXT(active_region(script_history(script, 1, child, "")),
                    i % 2 == 0 ? "region1" : "region0");
    }
    expect_signals(script, "target0", has_moves);
    expect_signals(script, "target1", has_moves);
    if (moves_default)
        expect_default(script);
}

static void
play_moves(struct script *script)
{
    play_storm(script, true, false);
}

static void
play_crashes(struct script *script)
{
    play_storm(script, false, false);
}

static void
play_defaults(struct script *script)
{
    play_storm(script, true, true);
}

TEST(active_storm, each_workflow_is_asked_once_whatever_crashes)
{
    for (int i = 0; i < test_seed_count(); i++)
        active_play_seed(2, i, play_crashes);
}

TEST(active_storm, nobody_waits_in_vain_for_a_workflow_of_another_cluster)
{
    for (int i = 0; i < test_seed_count(); i++)
        active_play_seed(2, i, play_moves);
}

TEST(active_storm, the_default_is_where_it_was_moved_whatever_regions_did_meanwhile)
{
    for (int i = 0; i < test_seed_count(); i++)
        active_play_seed(2, i, play_defaults);
}
