/* graceful_sim_test.c - two or three clusters run the workflows of one domain, which is failed over
 * gracefully while clusters crash and cannot hear each other.
 *
 * What is at stake: a planned failover loses nothing, forks nothing, and keeps causes before their
 * effects, unless its time runs out; then it says so, and what holds after a failover by force
 * holds. Method: the load of clusters_sim_test.c with a mover that asks for graceful failovers at
 * any cluster at any moment, and witnesses (ndc_load.h). */
#include <stdio.h>

#include "base/test.h"
#include "fiber/clock.h"
#include "sim/ndc_load.h"
#include "sim/nemesis.h"

/* What the storms must have come to together, or they have proven little. */
static const char *const graceful_marks[] = {
    "drain_begun",         "drain_complete",  "source_shard_ready",     "marker_due",
    "held_row_woken",      "run_settled",     "cause_came_with_effect", "graceful_failover_refused",
    "crash_while_serving", "clusters_parted", "cut_between_clusters",   "buffered_handed_over",
};
static const char *const hasty_marks[] = {
    "drain_begun",
    "drain_complete",
    "drain_timed_out",
    "drain_forced",
    "drain_superseded",
    "crash_while_serving",
    /* Rare ones. */
    "marker_unwanted",
};
#define MARKS_MAX 32

/* What never happens as long as every drain ends in time, in no cluster, however late it hears. */
static const char *const forks[] = {"history_switched", "conflict_terminated", "divergence_noted",
                                    "run_becomes_zombie"};

struct storm {
    uint64_t seed;
    unsigned clusters;
    int64_t duration, pause_max;
    int64_t sync_max; /* of the disks, ns; 0: as usual */
    int64_t grace_seconds_max;
    bool is_at_commits, has_force;
    bool parts; /* of three clusters one hears late of another, and soon of the third */
    const char *const *marks;
    size_t mark_count, rare_count; /* the rare ones come last */
};
struct outcome {
    uint64_t workflows, signals, failovers, decisions, completed, timed_out;
    uint64_t testimonies, causes_seen, causes_nowhere;
    uint64_t marks[MARKS_MAX];
};

/* What holds only if nothing ran out of time and nothing was by force. */
static void
check_promises(const struct storm *storm, const struct sim *sim, const struct ndc_load *load)
{
    bool is_promised = !storm->has_force && load->timed_out == 0 &&
                       world_mark_count(sim->world, "drain_timed_out") == 0;
    if (!is_promised)
        return;
    size_t count = array_length(forks);
    for (size_t i = 0; i < count; i++) {
        if (world_mark_count(sim->world, forks[i]) > 0)
            TEST_FAIL("seed %llu: %s, though every failover was graceful and in time",
                      (unsigned long long)storm->seed, forks[i]);
    }
    if (load->broken[0] != '\0')
        TEST_FAIL("seed %llu: %s", (unsigned long long)storm->seed, load->broken);
}

static struct outcome
run_storm(const struct storm *storm)
{
    struct sim sim;
    sim_open_group(&sim, &(struct world_options){.seed = storm->seed}, storm->clusters, 2);
    for (unsigned i = 0; i < sim.count; i++) {
        if (storm->sync_max > 0 && i == storm->seed / 2 % sim.count) /* one is slow */
            memory_base_set_delays(sim.hosts[i].base, storm->sync_max, storm->sync_max, NS_PER_MS);
        sim_host_start(&sim.hosts[i]);
    }
    struct ndc_load *load =
        ndc_load_start(&sim, &(struct ndc_options){.clients = 3,
                                                   .workers = 2,
                                                   .workflows_max = 60,
                                                   .think_max = 600 * NS_PER_MS,
                                                   .move_pause_max = NS_PER_S,
                                                   .grace_seconds_max = storm->grace_seconds_max,
                                                   .has_force = storm->has_force,
                                                   .has_no_rivals = !storm->has_force,
                                                   .witnesses = 2});
    struct nemesis nemesis = {.sim = &sim,
                              .pause_max = storm->pause_max,
                              .is_at_commits = storm->is_at_commits,
                              .parts = storm->parts};
    nemesis_run(&nemesis, storm->duration);
    EXPECT(nemesis_relent(&nemesis));
    const char *violation = ndc_load_verify(load);
    if (violation != NULL)
        TEST_FAIL("seed %llu: %s", (unsigned long long)storm->seed, violation);
    check_promises(storm, &sim, load);
    struct outcome outcome = {.workflows = load->entry_count,
                              .signals = load->signals,
                              .failovers = load->failovers,
                              .decisions = load->decisions,
                              .completed = load->completed,
                              .timed_out = load->timed_out,
                              .testimonies = load->testimonies,
                              .causes_seen = load->causes_seen,
                              .causes_nowhere = load->causes_nowhere};
    for (size_t i = 0; i < storm->mark_count; i++)
        outcome.marks[i] = world_mark_count(sim.world, storm->marks[i]);
    ndc_load_free(load);
    sim_close(&sim);
    return outcome;
}

static void
print_sum(const struct outcome *sum)
{
    printf("    %llu workflows, %llu signals acknowledged, %llu decisions, %llu testimonies\n",
           (unsigned long long)sum->workflows, (unsigned long long)sum->signals,
           (unsigned long long)sum->decisions, (unsigned long long)sum->testimonies);
    printf("    %llu causes came with their effects, %llu were nowhere\n",
           (unsigned long long)sum->causes_seen, (unsigned long long)sum->causes_nowhere);
    printf("    %llu failovers began, %llu graceful ones complete, %llu timed out\n",
           (unsigned long long)sum->failovers, (unsigned long long)sum->completed,
           (unsigned long long)sum->timed_out);
}

static void run_storms(struct storm (*make)(uint64_t seed))
{
    struct storm storm = make(test_seed(0));
    struct outcome sum = {0};
    for (int i = 0; i < test_seed_count(); i++) {
        storm = make(test_seed(i));
        struct outcome outcome = run_storm(&storm);
        sum.workflows += outcome.workflows;
        sum.signals += outcome.signals;
        sum.failovers += outcome.failovers;
        sum.decisions += outcome.decisions;
        sum.completed += outcome.completed;
        sum.timed_out += outcome.timed_out;
        sum.testimonies += outcome.testimonies;
        sum.causes_seen += outcome.causes_seen;
        sum.causes_nowhere += outcome.causes_nowhere;
        for (size_t m = 0; m < storm.mark_count; m++)
            sum.marks[m] += outcome.marks[m];
    }
    print_sum(&sum);
    /* A witness who cannot tell proves nothing: at most one in two hundred, and none of few. */
    EXPECT(sum.causes_nowhere <= sum.causes_seen / 200);
    for (size_t m = 0; m < storm.mark_count; m++) {
        printf("    %-28s %llu\n", storm.marks[m], (unsigned long long)sum.marks[m]);
        bool is_rare = m + storm.rare_count >= storm.mark_count;
        if (test_seed_count() > (is_rare ? 99 : 9)) /* few seeds need not come to everything */
            EXPECT(sum.marks[m] > 0);
    }
}

/* Nobody is in a hurry: every drain waits until what is cut is healed. */
static struct storm
graceful_storm(uint64_t seed)
{
    return (struct storm){.seed = seed,
                          .clusters = 2 + seed % 2,
                          .duration = 60 * NS_PER_S,
                          .pause_max = 4 * NS_PER_S,
                          .sync_max = seed % 3 == 0 || seed % 2 == 1 ? 200 * NS_PER_MS : 0,
                          .grace_seconds_max = 300,
                          .is_at_commits = seed % 2 == 0,
                          .parts = seed % 2 == 1,
                          .marks = graceful_marks,
                          .mark_count = array_length(graceful_marks)};
}

TEST(graceful_sim, nothing_forks_and_causes_come_with_their_effects, "F-040", "F-019", "F-023")
{
    run_storms(graceful_storm);
}

/* Times run out, and operators lose patience. */
static struct storm
hasty_storm(uint64_t seed)
{
    struct storm storm = graceful_storm(seed);
    storm.grace_seconds_max = 3;
    storm.has_force = true;
    storm.marks = hasty_marks;
    storm.mark_count = array_length(hasty_marks);
    storm.rare_count = 1;
    return storm;
}

TEST(graceful_sim, what_runs_out_of_time_says_so_and_clusters_agree_all_the_same, "F-027", "F-037")
{
    run_storms(hasty_storm);
}
