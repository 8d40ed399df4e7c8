/* runs_test.c - which run of a workflow id is the current one. */
#include "engine/branches/runs.h"

#include "base/random.h"
#include "base/test.h"
#include "engine/test/history_sample.h"
#include "wire/message.h"

#define RUNNING CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_RUNNING

static STORED(RunRecord) *
new_run(const char *id, int64_t version, int64_t task_id, int64_t start_time, struct arena *arena)
{
    return STORED_NEW(arena, run_record, .run_id = arena_text(arena, id), .state = RUNNING,
                      .versions = versions_store(VERSIONS({5, version}), arena), .n_versions = 1,
                      .last_event_task_id = task_id, .start_time = start_time);
}

static void
set_region(STORED(RunRecord) *run, const char *name, struct arena *arena)
{
    run->active_cluster_selection_policy = API_NEW(
        arena, active_cluster_selection_policy,
        .cluster_attribute = API_NEW(arena, cluster_attribute, .scope = arena_text(arena, "region"),
                                     .name = arena_text(arena, name)));
}

/* Who has the id, whatever is heard first, and how often. */
static const char *
leader_of(STORED(RunRecord) *const *runs, size_t count, struct arena *arena)
{
    const char *first = NULL;
    size_t orders = 1;
    for (size_t i = 2; i <= count; i++)
        orders *= i;
    for (size_t order = 0; order < orders; order++) {
        struct candidates candidates = {0};
        bool is_taken[8] = {false};
        for (size_t left = count, code = order; left > 0; code /= left--) {
            size_t pick = 0;
            for (size_t skip = code % left; is_taken[pick] || skip > 0; pick++)
                skip -= !is_taken[pick];
            is_taken[pick] = true;
            candidates_add(&candidates, runs[pick], arena);
            candidates_add(&candidates, runs[pick], arena);
        }
        const char *leader = candidates_leader(&candidates);
        if (first != NULL)
            EXPECT_TEXT(leader, first);
        first = leader;
    }
    return first;
}

static void
expect_newer(STORED(RunRecord) *newer, STORED(RunRecord) *older, struct arena *arena)
{
    STORED(RunRecord) *both[] = {newer, older};
    EXPECT_TEXT(leader_of(both, 2, arena), newer->run_id);
}

ARENA_TEST(ndc_runs, of_two_runs_with_one_home_the_higher_version_then_the_later_event_is_newer,
           "E-045")
{
    STORED(RunRecord) *low = new_run("b", 1, 900, 50, arena);
    STORED(RunRecord) *high = new_run("a", 2, 100, 10, arena);
    expect_newer(high, low, arena);
    expect_newer(new_run("a", 1, 901, 10, arena), low, arena);
    set_region(low, "eu", arena);
    set_region(high, "eu", arena);
    expect_newer(high, low, arena);
}

ARENA_TEST(ndc_runs, of_two_runs_with_different_homes_the_later_start_then_the_larger_id_is_newer,
           "E-045")
{
    STORED(RunRecord) *early = new_run("b", 2, 900, 10, arena);
    STORED(RunRecord) *late = new_run("a", 1, 100, 50, arena);
    set_region(late, "eu", arena);
    expect_newer(late, early, arena); /* a region against none */
    set_region(early, "us", arena);
    expect_newer(late, early, arena);
    late->start_time = early->start_time;
    expect_newer(early, late, arena);
}

/* Each of three is newer than the next, in a circle: "eu" leads, for its run "c" began last, and
 * "a" is the newest of "eu". */
ARENA_TEST(ndc_runs, of_three_runs_of_two_homes_one_has_the_id_whatever_is_heard_first)
{
    STORED(RunRecord) *a = new_run("a", 30, 100, 17, arena);
    STORED(RunRecord) *b = new_run("b", 1, 100, 19, arena);
    STORED(RunRecord) *c = new_run("c", 11, 100, 25, arena);
    STORED(RunRecord) *all[] = {a, b, c};
    set_region(a, "eu", arena);
    set_region(b, "us", arena);
    set_region(c, "eu", arena);
    expect_newer(a, c, arena);
    expect_newer(c, b, arena);
    expect_newer(b, a, arena);
    EXPECT_TEXT(leader_of(all, 3, arena), "a");
}

#define SOME 6

/* Runs of few homes, versions and times, so that much is equal; no two of one home have the same
 * last event. */
TEST(ndc_runs, who_has_the_id_does_not_depend_on_the_order_of_the_runs)
{
    for (int i = 0; i < 200; i++) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct random random;
        random_seed(&random, test_seed(0) + (uint64_t)i);
        STORED(RunRecord) *runs[SOME];
        for (size_t r = 0; r < SOME; r++) {
            char id[2] = {(char)('a' + r), '\0'};
            runs[r] = new_run(id, (int64_t)random_below(&random, 3), (int64_t)(r * 7 % SOME),
                              (int64_t)random_below(&random, 4), arena);
            unsigned region = (unsigned)random_below(&random, 3);
            if (region > 0)
                set_region(runs[r], region == 1 ? "eu" : "us", arena);
        }
        (void)leader_of(runs, SOME, arena);
    }
}

/* A run of the group that leads by another one's start: the record has to say so. */
ARENA_TEST(ndc_runs, the_current_run_record_keeps_all_that_decides)
{
    STORED(RunRecord) *newest = new_run("a", 30, 100, 17, arena);
    STORED(RunRecord) *latest = new_run("c", 11, 100, 25, arena);
    STORED(RunRecord) *other = new_run("b", 1, 100, 19, arena);
    set_region(other, "us", arena);
    STORED(CurrentRecord) record;
    cadenza__storage__v1__current_record__init(&record);
    record.run_id = newest->run_id;
    record.last_write_version = 30;
    record.last_event_task_id = 100;
    record.start_time = 17;
    struct candidates candidates = candidates_read(&record, arena);
    EXPECT_EQ(candidates.count, 1);
    candidates_store(&candidates, &record);
    EXPECT_EQ(record.n_contenders, 0); /* it says all by itself */
    candidates_add(&candidates, latest, arena);
    candidates_store(&candidates, &record);
    EXPECT_EQ(record.n_contenders, 1);
    candidates = candidates_read(&record, arena);
    EXPECT_EQ(candidates_latest_start(&candidates), 25);
    candidates_add(&candidates, other, arena);
    EXPECT_TEXT(candidates_leader(&candidates), "a");
    EXPECT_EQ(candidates_find(&candidates, NULL)->last_write_version, 30);
    candidates_store(&candidates, &record);
    EXPECT_EQ(record.n_contenders, 2);
    candidates_drop(&candidates, "b");
    EXPECT_EQ(candidates.count, 1);
}
