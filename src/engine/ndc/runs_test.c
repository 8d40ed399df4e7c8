/* runs_test.c - which run of a workflow id is the current one. */
#include "engine/ndc/runs.h"

#include "base/test.h"
#include "engine/ndc/sample.h"
#include "wire/message.h"

#define CREATED   CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_CREATED
#define RUNNING   CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_RUNNING
#define COMPLETED CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_COMPLETED

static STORED(RunRecord) *
new_run(const char *id, int64_t version, int64_t task_id, int64_t start_time, struct arena *arena)
{
    STORED(RunRecord) *run = message_new(arena, STORED_TYPE(run_record));
    run->run_id = arena_text(arena, id);
    run->state = RUNNING;
    run->versions = versions_store(VERSIONS({5, version}), arena);
    run->n_versions = 1;
    run->last_event_task_id = task_id;
    run->start_time = start_time;
    return run;
}

static void
set_region(STORED(RunRecord) *run, const char *name, struct arena *arena)
{
    API(ActiveClusterSelectionPolicy) *policy =
        message_new(arena, API_TYPE(active_cluster_selection_policy));
    policy->cluster_attribute = message_new(arena, API_TYPE(cluster_attribute));
    policy->cluster_attribute->scope = arena_text(arena, "region");
    policy->cluster_attribute->name = arena_text(arena, name);
    run->active_cluster_selection_policy = policy;
}

static void
expect_newer(const STORED(RunRecord) *newer, const STORED(RunRecord) *older)
{
    EXPECT(run_is_newer(newer, older));
    EXPECT(!run_is_newer(older, newer));
    EXPECT(!run_is_newer(newer, newer));
}

TEST(ndc_runs, of_two_runs_with_one_home_the_higher_version_then_the_later_event_is_newer)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    STORED(RunRecord) *low = new_run("b", 1, 900, 50, arena);
    STORED(RunRecord) *high = new_run("a", 2, 100, 10, arena);
    expect_newer(high, low);
    expect_newer(new_run("a", 1, 901, 10, arena), low);
    set_region(low, "eu", arena);
    set_region(high, "eu", arena);
    expect_newer(high, low);
}

TEST(ndc_runs, of_two_runs_with_different_homes_the_later_start_then_the_larger_id_is_newer)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    STORED(RunRecord) *early = new_run("b", 2, 900, 10, arena);
    STORED(RunRecord) *late = new_run("a", 1, 100, 50, arena);
    set_region(late, "eu", arena);
    expect_newer(late, early); /* a region against none */
    set_region(early, "us", arena);
    expect_newer(late, early);
    late->start_time = early->start_time;
    expect_newer(early, late);
}

struct contest_case {
    bool has_current, is_same, is_newer, is_ours;
    STORED(RunState) state; /* of the current run */
    bool is_current;
    enum run_fate fate;
};

TEST(ndc_runs, one_run_has_the_workflow_id)
{
    static const struct contest_case cases[] = {
        {false, false, false, false, RUNNING, true, RUN_STAYS},
        {true, true, false, true, RUNNING, true, RUN_STAYS},
        {true, false, true, true, COMPLETED, true, RUN_STAYS},
        {true, false, true, true, RUNNING, true, RUN_IS_TERMINATED},
        {true, false, true, true, CREATED, true, RUN_IS_TERMINATED},
        {true, false, true, false, RUNNING, true, RUN_BECOMES_ZOMBIE},
        {true, false, true, false, CREATED, true, RUN_BECOMES_ZOMBIE},
        {true, false, false, true, RUNNING, false, RUN_STAYS},
        {true, false, false, false, COMPLETED, false, RUN_STAYS},
    };
    for (size_t i = 0; i < array_length(cases); i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        const struct contest_case *it = &cases[i];
        STORED(RunRecord) *current = new_run("current", 2, 10, 10, arena);
        STORED(RunRecord) *target =
            new_run(it->is_same ? "current" : "target", it->is_newer ? 3 : 1, 10, 10, arena);
        current->state = it->state;
        struct run_contest contest =
            run_decide_current(target, it->has_current ? current : NULL, it->is_ours);
        EXPECT_EQ(contest.is_current, it->is_current);
        EXPECT_EQ(contest.fate, it->fate);
    }
}

/* Two clusters started a run each, and hear of the other's: the same one is left in both. */
TEST(ndc_runs, two_clusters_give_the_id_to_the_same_run)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    STORED(RunRecord) *of_a = new_run("a", 1, 10, 10, arena);
    STORED(RunRecord) *of_b = new_run("b", 2, 10, 20, arena);
    struct run_contest in_a = run_decide_current(of_b, of_a, true);
    EXPECT(in_a.is_current && in_a.fate == RUN_IS_TERMINATED);
    struct run_contest in_b = run_decide_current(of_a, of_b, true);
    EXPECT(!in_b.is_current && in_b.fate == RUN_STAYS);
    struct run_contest in_c = run_decide_current(of_b, of_a, false); /* heard of A's first */
    EXPECT(in_c.is_current && in_c.fate == RUN_BECOMES_ZOMBIE);
}
