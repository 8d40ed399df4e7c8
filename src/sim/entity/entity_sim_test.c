/* entity_sim_test.c - entities, regions of domains and clusters in a storm: all clusters end with
 * the same table and the same homes, and no version of a home ever goes back or belongs to two
 * clusters.
 *
 * What is at stake: the version that events of a run get follows from a row that the primary
 * writes and a region that every cluster may move, and each cluster hears of the two in its own
 * order. Method: workers move both at all clusters while the nemesis crashes hosts, the primary
 * among them, and cuts the ways; entity_load.h says what is checked. */
#include <stdio.h>

#include "base/memory.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "sim/entity/entity_load.h"
#include "sim/world/nemesis.h"
#include "sim/world/probes.h"

#define STORM     (30 * NS_PER_S)
#define WORKERS   4
#define THINK_MAX (200 * NS_PER_MS)
#define PAUSE_MAX (2 * NS_PER_S)

static const struct probes wanted = {
    .usual = {"crash_while_serving", "clean_stop", "cut_between_clusters", "clusters_parted",
              "break_between_clusters", "domain_peer_failed", "entities_applied",
              "entity_asked_of_primary", "shard_handled_entities", "domains_read_all",
              "entity_in_unknown_region"},
};

/* Of all storms of a test together, except the trace. */
struct outcome {
    uint64_t trace, calls, acknowledged, failed, moves, region_moves, home_changes;
    struct probes probes;
};

static void
storm(uint64_t seed, struct outcome *sum)
{
    struct sim sim;
    sim_open_group(&sim, &(struct world_options){.seed = seed}, 3, 2);
    sim_give_regions(&sim);
    for (unsigned i = 0; i < sim.count; i++)
        sim_host_start(&sim.hosts[i]);
    struct entity_load *load = entity_load_start(&sim, WORKERS, THINK_MAX);
    struct nemesis nemesis = {.sim = &sim, .pause_max = PAUSE_MAX};
    nemesis_run(&nemesis, STORM);
    bool is_up = nemesis_relent(&nemesis);
    entity_load_verify(load);
    sum->trace = world_trace_hash(sim.world);
    sum->calls += load->calls;
    sum->acknowledged += load->acknowledged;
    sum->failed += load->failed;
    sum->moves += load->moves;
    sum->region_moves += load->region_moves;
    sum->home_changes += load->home_changes;
    probes_add(&sum->probes, sim.world);
    struct verdict verdict = load->verdict;
    memory_free(load);
    sim_close(&sim);
    EXPECT(is_up);
    if (verdict.violation != NULL)
        TEST_FAIL("seed %llu: %s", (unsigned long long)seed, verdict.room);
}

TEST(entity_sim, all_clusters_end_with_the_same_table_and_homes_and_versions_only_rise, "G-041",
     "G-061")
{
    struct outcome sum = {.probes = wanted};
    for (int i = 0; i < test_seed_count(); i++)
        storm(test_seed(i), &sum);
    printf("    %llu calls: %llu acknowledged (%llu rows, %llu regions), %llu failed; %llu homes "
           "were seen to change\n",
           (unsigned long long)sum.calls, (unsigned long long)sum.acknowledged,
           (unsigned long long)sum.moves, (unsigned long long)sum.region_moves,
           (unsigned long long)sum.failed, (unsigned long long)sum.home_changes);
    if (test_seeds_suffice(1)) /* one storm need not come to everything */
        EXPECT(sum.moves > 0 && sum.region_moves > 0 && sum.home_changes > 0);
    probes_expect(&sum.probes, 1);
}

TEST(entity_sim, the_same_seed_gives_the_same_trace)
{
    struct outcome first = {0}, second = {0};
    storm(test_one_seed(), &first);
    storm(test_one_seed(), &second);
    EXPECT_EQ(first.trace, second.trace);
}
