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
#include "sim/clusters/ndc_load.h"
#include "sim/world/nemesis.h"
#include "sim/world/probes.h"

static const struct probes graceful_probes = {
    .usual = {"drain_begun", "drain_complete", "source_shard_ready", "marker_due", "held_row_woken",
              "run_taken_over", "cause_came_with_effect", "graceful_failover_refused",
              "crash_while_serving", "clusters_parted", "cut_between_clusters",
              "buffered_handed_over", "decision_of_unknown_sticky_list"},
};
static const struct probes hasty_probes = {
    .usual = {"drain_begun", "drain_complete", "drain_timed_out", "drain_forced",
              "drain_superseded", "crash_while_serving"},
    .rare = {"marker_unwanted"},
};

/* What never happens as long as every drain ends in time, in no cluster, however late it hears. */
static const char *const forks[] = {"history_switched", "conflict_terminated",
                                    "run_becomes_zombie"};

struct storm {
    uint64_t seed;
    unsigned clusters;
    int64_t duration, pause_max;
    int64_t sync_max; /* of the disks, ns; 0: as usual */
    int64_t grace_seconds_max;
    bool is_at_commits, has_force;
    bool parts; /* of three clusters one hears late of another, and soon of the third */
};
/* Of all storms of a test together. */
struct outcome {
    int64_t wait_max; /* of decisions for a worker, once all was calm */
    uint64_t workflows, signals, failovers, decisions, completed, timed_out;
    uint64_t testimonies, causes_seen, causes_nowhere;
    struct probes probes;
};

/* What holds only if nothing ran out of time and nothing was by force. */
static void
check_promises(const struct storm *storm, const struct sim *sim, const struct ndc_load *load)
{
    bool is_promised = !storm->has_force && load->timed_out == 0 &&
                       world_probe_count(sim->world, "drain_timed_out") == 0;
    if (!is_promised)
        return;
    size_t count = array_length(forks);
    for (size_t i = 0; i < count; i++) {
        if (world_probe_count(sim->world, forks[i]) > 0)
            TEST_FAIL("seed %llu: %s, though every failover was graceful and in time",
                      (unsigned long long)storm->seed, forks[i]);
    }
    if (load->divergences > 0)
        TEST_FAIL("seed %llu: %llu histories are reported as lost, though every failover was "
                  "graceful and in time",
                  (unsigned long long)storm->seed, (unsigned long long)load->divergences);
    if (load->broken[0] != '\0')
        TEST_FAIL("seed %llu: %s", (unsigned long long)storm->seed, load->broken);
}

static void
run_storm(const struct storm *storm, struct outcome *sum)
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
                                                   .has_no_competing_starts = !storm->has_force,
                                                   .has_sticky = true,
                                                   .witnesses = 2});
    struct nemesis nemesis = {.sim = &sim,
                              .pause_max = storm->pause_max,
                              .is_at_commits = storm->is_at_commits,
                              .parts = storm->parts};
    EXPECT(ndc_load_harm(load, &nemesis, storm->duration));
    const char *violation = ndc_load_verify(load);
    if (violation != NULL)
        TEST_FAIL("seed %llu: %s", (unsigned long long)storm->seed, violation);
    check_promises(storm, &sim, load);
    sum->workflows += load->entry_count;
    sum->signals += load->signals;
    sum->failovers += load->failovers;
    sum->decisions += load->decisions;
    sum->completed += load->completed;
    sum->timed_out += load->timed_out;
    sum->testimonies += load->testimonies;
    sum->causes_seen += load->causes_seen;
    sum->causes_nowhere += load->causes_nowhere;
    sum->wait_max = load->wait_max > sum->wait_max ? load->wait_max : sum->wait_max;
    probes_add(&sum->probes, sim.world);
    ndc_load_free(load);
    sim_close(&sim);
}

static void
print_sum(const struct outcome *sum)
{
    printf("    %llu workflows, %llu signals acknowledged, %llu decisions, %llu testimonies\n",
           (unsigned long long)sum->workflows, (unsigned long long)sum->signals,
           (unsigned long long)sum->decisions, (unsigned long long)sum->testimonies);
    printf("    %llu causes came with their effects, %llu were nowhere\n",
           (unsigned long long)sum->causes_seen, (unsigned long long)sum->causes_nowhere);
    printf("    once all was calm no decision waited longer than %lld ms for a worker\n",
           (long long)(sum->wait_max / NS_PER_MS));
    printf("    %llu failovers began, %llu graceful ones complete, %llu timed out\n",
           (unsigned long long)sum->failovers, (unsigned long long)sum->completed,
           (unsigned long long)sum->timed_out);
}

static void
run_storms(struct storm (*make)(uint64_t seed), const struct probes *wanted)
{
    struct outcome sum = {.probes = *wanted};
    for (int i = 0; i < test_seed_count(); i++) {
        struct storm storm = make(test_seed(i));
        run_storm(&storm, &sum);
    }
    print_sum(&sum);
    EXPECT(sum.causes_nowhere == 0); /* acknowledged, in no history, and nobody says so */
    probes_expect(&sum.probes, 9);
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
                          .parts = seed % 2 == 1};
}

TEST(graceful_sim, nothing_forks_and_causes_come_with_their_effects, "F-040", "F-019", "F-023")
{
    run_storms(graceful_storm, &graceful_probes);
}

/* Times run out, and operators lose patience. */
static struct storm
hasty_storm(uint64_t seed)
{
    struct storm storm = graceful_storm(seed);
    storm.grace_seconds_max = 3;
    storm.has_force = true;
    return storm;
}

TEST(graceful_sim, what_runs_out_of_time_says_so_and_clusters_agree_all_the_same, "F-027", "F-037")
{
    run_storms(hasty_storm, &hasty_probes);
}
