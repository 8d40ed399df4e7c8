/* domain_sim_test.c - three hosts of one cluster, clients, crashes and cuts: nothing acknowledged
 * is lost.
 *
 * What is at stake: the guard keeps hosts apart, an answer leaves only when it is durable, and a
 * host that comes back knows what it acknowledged. Method: workers register and update domains at
 * all hosts while the nemesis crashes, stops, cuts and breaks; then everything is healed and every
 * host must show the same, and all of it. */
#include <stdio.h>

#include "base/test.h"
#include "fiber/clock.h"
#include "sim/group/domain_load.h"
#include "sim/world/nemesis.h"
#include "sim/world/probes.h"

static const struct probes wanted = {
    .usual = {"crash_while_serving", "crash_while_starting", "clean_stop", "cut_inbound",
              "cut_outbound", "break", "domains_reloaded", "domain_change_fenced"},
};

struct outcome {
    uint64_t trace, steps, calls, acknowledged, failed, reads;
};

static struct outcome
storm(uint64_t seed, int64_t duration, unsigned workers, int64_t think_max, int64_t pause_max,
      struct probes *probes)
{
    struct sim sim;
    sim_open_cluster(&sim, &(struct world_options){.seed = seed}, 3, 2);
    for (unsigned i = 0; i < sim.count; i++)
        sim_host_start(&sim.hosts[i]);
    struct domain_load *load = domain_load_start(&sim, workers, think_max);
    struct nemesis nemesis = {.sim = &sim, .pause_max = pause_max};
    nemesis_run(&nemesis, duration);
    EXPECT(nemesis_relent(&nemesis));
    world_run_for(sim.world, 60 * NS_PER_S); /* dead connections are noticed, hosts are up */
    const char *violation = domain_load_verify(load);
    struct outcome outcome = {
        .trace = world_trace_hash(sim.world),
        .steps = world_steps(sim.world),
        .calls = load->calls,
        .acknowledged = load->acknowledged,
        .failed = load->failed,
        .reads = load->stale_reads_checked,
    };
    if (violation != NULL)
        TEST_FAIL("seed %llu: %s", (unsigned long long)seed, violation);
    probes_add(probes, sim.world);
    domain_load_free(load);
    sim_close(&sim);
    return outcome;
}

TEST(domain_sim, nothing_acknowledged_is_lost_whatever_crashes_or_is_cut)
{
    struct probes probes = wanted;
    for (int i = 0; i < test_seed_count(); i++) {
        struct outcome outcome =
            storm(test_seed(i), 60 * NS_PER_S, 6, 400 * NS_PER_MS, 2 * NS_PER_S, &probes);
        EXPECT(outcome.acknowledged > 50 && outcome.failed > 0 && outcome.reads > 0);
    }
    probes_expect(&probes, 1);
}

static struct outcome
half_a_minute(uint64_t seed)
{
    return storm(seed, 30 * NS_PER_S, 4, 300 * NS_PER_MS, 4 * NS_PER_S, NULL);
}

TEST(domain_sim, the_same_seed_gives_the_same_trace)
{
    struct outcome first = half_a_minute(test_one_seed()), second = half_a_minute(test_one_seed());
    EXPECT_EQ(first.trace, second.trace);
    EXPECT_EQ(first.steps, second.steps);
    struct outcome third = half_a_minute(test_one_seed() + 1);
    EXPECT(third.trace != first.trace);
}

/* An hour: a thousand calls, a hundred crashes. Chance may cut all hosts off for half of it. */
TEST(domain_sim, an_hour_passes_and_nothing_is_lost)
{
    struct outcome outcome =
        storm(test_one_seed(), 3600 * NS_PER_S, 3, 12 * NS_PER_S, 60 * NS_PER_S, NULL);
    EXPECT(outcome.acknowledged > 50);
    printf("    an hour: %llu steps, %llu calls\n", (unsigned long long)outcome.steps,
           (unsigned long long)outcome.calls);
}
