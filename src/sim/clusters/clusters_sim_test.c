/* clusters_sim_test.c - two or three clusters run the workflows of one domain, which is failed over
 * by force, all of it or by its attributes, while clusters crash and cannot hear each other.
 *
 * What is at stake: nothing that was acknowledged vanishes without a trace, and in the end all
 * clusters agree. Method: clients and workers at all clusters (ndc_load.h), the nemesis
 * beside them; then everything is healed, and all clusters are compared with each other and with
 * what was acknowledged. */
#include <stdio.h>

#include "base/test.h"
#include "fiber/clock.h"
#include "sim/clusters/ndc_load.h"
#include "sim/world/histories.h"
#include "sim/world/nemesis.h"
#include "sim/world/probes.h"

static const struct probes quiet_probes = {
    .usual = {"replication_rows_trimmed", "replicated_activity_applied"},
};
static const struct probes broken_probes = {
    .usual = {"crash_while_serving", "clusters_parted", "cut_between_clusters", "runs_peer_failed",
              "replication_rows_read_back", "slow_between_clusters", "events_fetched_again",
              "decision_of_unknown_sticky_list", "sticky_worker_read_history"},
    .rare = {"replication_rows_dropped", "replication_resynced", "resync_fetched",
             "crash_with_lost_writes"},
};
static const struct probes moving_probes = {
    .usual = {"crash_while_serving", "clusters_parted", "cut_between_clusters", "runs_peer_failed",
              "replication_gap_filled", "replication_rows_read_back", "replicated_applied",
              "run_taken_over", "late_news_taken_over", "history_switched", "divergence_noted",
              "zombie_applied", "lost_events_sent", "decision_closed_by_failover",
              "activity_row_shared", "history_forked", "run_rebuilt", "slow_between_clusters",
              "events_fetched_again"},
    .rare = {"reader_begins_again", "signal_reapplied", "cancel_reapplied",
             "replicated_reset_begun", "reset_for_reapplication", "crash_with_lost_writes",
             "replication_rows_dropped", "replication_resynced", "resync_fetched",
             "conflict_terminated", "run_becomes_zombie", "zombie_revived",
             "flushed_before_replicated", "decision_moved_to_own_list"},
};
static const struct probes home_probes = {
    .usual = {"crash_while_serving", "clusters_parted", "cut_between_clusters", "region_chosen",
              "call_forwarded", "run_not_moved", "workflow_went_on_elsewhere",
              "attributes_moved_gracefully", "replicated_applied", "run_taken_over",
              "decision_of_unknown_sticky_list"},
    .rare = {"history_switched", "conflict_terminated", "divergence_noted", "run_becomes_zombie",
             "domain_version_made_by_merging"},
};

struct storm {
    uint64_t seed;
    unsigned clusters;
    int64_t duration, pause_max, move_pause_max;
    int64_t sync_max; /* of the disks, ns; 0: as usual */
    bool is_at_commits;
    bool has_no_sticky; /* as before workers had lists of their own */
    bool has_homes, has_entities, has_strangers, moves_default;
    const char *dynamic; /* settings of all; NULL: defaults */
};
/* Of all storms of a test together. */
struct outcome {
    int64_t wait_max; /* of decisions for a worker, once all was calm */
    uint64_t workflows, signals, failovers, decisions;
    struct probes probes;
};

static void
run_storm(const struct storm *storm, struct outcome *sum)
{
    struct sim sim;
    sim_open_group(&sim, &(struct world_options){.seed = storm->seed}, storm->clusters, 2);
    if (storm->has_homes)
        sim_give_regions(&sim);
    sim.dynamic = storm->dynamic;
    struct sim_histories *histories = sim_histories_watch(&sim);
    for (unsigned i = 0; i < sim.count; i++) {
        if (storm->sync_max > 0)
            memory_base_set_delays(sim.hosts[i].base, storm->sync_max, storm->sync_max, NS_PER_MS);
        sim_host_start(&sim.hosts[i]);
    }
    struct ndc_load *load =
        ndc_load_start(&sim, &(struct ndc_options){.clients = 3,
                                                   .workers = 2,
                                                   .workflows_max = 30,
                                                   .think_max = 600 * NS_PER_MS,
                                                   .move_pause_max = storm->move_pause_max,
                                                   .has_sticky = !storm->has_no_sticky,
                                                   .has_homes = storm->has_homes,
                                                   .moves_default = storm->moves_default,
                                                   .has_entities = storm->has_entities,
                                                   .has_strangers = storm->has_strangers});
    struct nemesis nemesis = {.sim = &sim,
                              .pause_max = storm->pause_max,
                              .is_at_commits = storm->is_at_commits,
                              .slows = true};
    if (storm->pause_max > 0) {
        EXPECT(ndc_load_harm(load, &nemesis, storm->duration));
    } else {
        world_run_for(sim.world, storm->duration);
    }
    const char *violation = ndc_load_verify(load);
    violation = violation != NULL ? violation : sim_histories_violation(histories);
    if (violation != NULL) {
        world_print_probes(sim.world);
        TEST_FAIL("seed %llu: %s", (unsigned long long)storm->seed, violation);
    }
    EXPECT(sim_histories_count(histories) > 0);
    sum->workflows += load->entry_count;
    sum->signals += load->signals;
    sum->failovers += load->failovers;
    sum->decisions += load->decisions;
    sum->wait_max = load->wait_max > sum->wait_max ? load->wait_max : sum->wait_max;
    probes_add(&sum->probes, sim.world);
    ndc_load_free(load);
    sim_close(&sim);
}

static void
run_storms(struct storm (*make)(uint64_t seed), const struct probes *wanted)
{
    struct outcome sum = {.probes = *wanted};
    for (int i = 0; i < test_seed_count(); i++) {
        struct storm storm = make(test_seed(i));
        run_storm(&storm, &sum);
    }
    printf("    %llu workflows, %llu signals acknowledged, %llu decisions, %llu failovers\n",
           (unsigned long long)sum.workflows, (unsigned long long)sum.signals,
           (unsigned long long)sum.decisions, (unsigned long long)sum.failovers);
    printf("    once all was calm no decision waited longer than %lld ms for a worker\n",
           (long long)(sum.wait_max / NS_PER_MS));
    probes_expect(&sum.probes, 9);
}

/* Nobody moves the domain, and nothing breaks. */
static struct storm
quiet_storm(uint64_t seed)
{
    return (struct storm){.seed = seed, .clusters = 2 + seed % 2, .duration = 20 * NS_PER_S};
}

TEST(clusters_sim, every_cluster_has_the_workflows_of_the_active_one, "E-024", "E-040")
{
    run_storms(quiet_storm, &quiet_probes);
}

/* A cluster that is away for some seconds is away for too long. */
static const char few_rows[] = "history.replicationRowsMax:\n- value: 4\n";

/* Nobody moves the domain, but clusters crash and part. */
static struct storm
broken_storm(uint64_t seed)
{
    struct storm storm = quiet_storm(seed);
    storm.duration = 30 * NS_PER_S;
    storm.pause_max = 3 * NS_PER_S;
    storm.sync_max = seed % 3 == 0 ? 200 * NS_PER_MS : 0; /* much is in flight when one crashes */
    storm.is_at_commits = seed % 2 == 0;
    storm.dynamic = seed % 3 == 1 ? few_rows : NULL;
    return storm;
}

TEST(clusters_sim, clusters_catch_up_whatever_crashed_or_was_cut, "E-060")
{
    run_storms(broken_storm, &broken_probes);
}

/* It is moved all the time. */
static struct storm
moving_storm(uint64_t seed)
{
    struct storm storm = broken_storm(seed);
    storm.move_pause_max = 8 * NS_PER_S;
    return storm;
}

TEST(clusters_sim, all_clusters_agree_after_forced_failovers_and_partitions, "A-232", "E-032",
     "E-041")
{
    run_storms(moving_storm, &moving_probes);
}

/* The domain is active in all three, and its attributes are moved, one or two at a time; in half of
 * the storms the domain itself, too, by itself. */
static struct storm
home_storm(uint64_t seed)
{
    struct storm storm = moving_storm(seed);
    storm.clusters = 3;
    storm.has_homes = true;
    storm.moves_default = seed % 2 == 0;
    storm.move_pause_max = 4 * NS_PER_S;
    return storm;
}

TEST(clusters_sim, every_workflow_has_one_home_wherever_attributes_move)
{
    run_storms(home_storm, &home_probes);
}

static const struct probes entity_probes = {
    .usual = {"crash_while_serving", "clusters_parted", "entity_chosen", "entity_made_by_start",
              "shard_handled_entities", "workflow_followed_user", "user_in_unknown_region",
              "row_of_unresolved_entity", "decision_of_unknown_sticky_list"},
};

/* The same, and half of the workflows belong to users that move from region to region while the
 * regions move from cluster to cluster. */
static struct storm
entity_storm(uint64_t seed)
{
    struct storm storm = home_storm(seed);
    storm.has_entities = true;
    storm.move_pause_max = 2 * NS_PER_S;
    return storm;
}

TEST(clusters_sim, every_workflow_follows_its_user_and_all_clusters_agree, "G-061")
{
    run_storms(entity_storm, &entity_probes);
}

static const struct probes stranger_probes = {
    .usual = {"crash_while_serving", "clusters_parted", "entity_chosen", "workflow_followed_user",
              "entity_chosen_for_child", "cross_task_remote", "child_of_other_user"},
};

/* The same, and children belong to other users than their parents: they live in other clusters, and
 * move by themselves. */
static struct storm
stranger_storm(uint64_t seed)
{
    struct storm storm = entity_storm(seed);
    storm.has_strangers = true;
    return storm;
}

TEST(clusters_sim, children_of_other_users_go_their_own_ways_and_all_clusters_agree)
{
    run_storms(stranger_storm, &stranger_probes);
}

TEST(clusters_sim, what_was_found_once_stays_fixed)
{
    static const struct {
        struct storm (*make)(uint64_t seed);
        uint64_t seed;
    } kept[] = {{quiet_storm, 2},         {moving_storm, 88},    {entity_storm, 500401},
                {home_storm, 2329662025}, {home_storm, 700045},  {home_storm, 3000498},
                {home_storm, 5361},       {stranger_storm, 7777}};
    for (size_t i = 0; i < array_length(kept); i++) {
        struct storm storm = kept[i].make(kept[i].seed);
        storm.has_no_sticky = true;
        run_storm(&storm, &(struct outcome){0});
    }
}
