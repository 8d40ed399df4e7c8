/* schedule_sim_test.c - schedules through a year: every fire happens, none twice.
 *
 * What is at stake: to lose a fire silently is the worst thing that a scheduler can do, and the
 * next worst is to start the same thing twice. Method: six schedules with all overlap
 * policies in zones with summer time are paused, updated and backfilled through a year of virtual
 * time, while the host crashes, most often at the very moment of a fire, and stays away for
 * minutes. Then what was started is compared with a model that shares no code with the server
 * (schedule_model.h). */
#include <stdio.h>

#include "base/test.h"
#include "fiber/clock.h"
#include "sim/schedule/schedule_load.h"
#include "sim/world/probes.h"

#define DAY      (86400 * NS_PER_S)
#define DOWN_MAX (240 * NS_PER_S) /* less than the client keeps away from fires */
#define NEAR     (2 * NS_PER_S)   /* how near to a fire a crash comes */
#define BEHIND   (2 * NS_PER_MS)  /* how near behind a start, or a request */

static const struct probes wanted = {
    .usual = {"crash_at_a_fire", "crash_behind_a_start", "crash_at_a_request", "crash_any_time",
              "crash_twice", "schedule_start_repeated", "schedule_continued"},
};

static int64_t
chance(struct sim *sim, int64_t bound)
{
    return (int64_t)random_below(world_random(sim->world), (uint64_t)bound);
}

static void
crash(struct sim *sim, const char *probe)
{
    if (!host_is_running(sim->hosts[0].host))
        return;
    world_probe(sim->world, probe);
    sim_host_crash(&sim->hosts[0]);
    world_run_for(sim->world, chance(sim, DOWN_MAX));
    sim_host_start(&sim->hosts[0]);
}

/* Wall clock of the hosts, which have no skew here. */
static int64_t
wall_of(const struct sim *sim, int64_t offset)
{
    return world_now(sim->world) + offset;
}

struct start_count {
    const struct world *world;
    uint64_t wanted;
};

static bool
has_started(void *context)
{
    const struct start_count *count = context;
    return world_probe_count(count->world, "schedule_started") >= count->wanted;
}

/* A workflow was started, and the schedule has not heard of it yet, or just so. */
static void
crash_behind_start(struct sim *sim)
{
    struct start_count count = {sim->world, world_probe_count(sim->world, "schedule_started") + 1};
    if (!world_run_until(sim->world, has_started, &count, DAY))
        return;
    world_run_for(sim->world, chance(sim, BEHIND));
    crash(sim, "crash_behind_a_start");
}

struct try_count {
    const struct schedule_load *load;
    unsigned seen;
};

static bool
has_tried(void *context)
{
    const struct try_count *count = context;
    return count->load->tries > count->seen;
}

/* A request is on its way, or its answer is. */
static void
crash_at_request(struct sim *sim, const struct schedule_load *load)
{
    struct try_count count = {load, load->tries};
    if (!world_run_until(sim->world, has_tried, &count, DAY))
        return;
    world_run_for(sim->world, chance(sim, BEHIND));
    crash(sim, "crash_at_a_request");
}

static void
harm(struct sim *sim, const struct schedule_load *load, int64_t offset, int64_t pause_max)
{
    world_run_for(sim->world, chance(sim, pause_max));
    int64_t what = chance(sim, 5);
    if (what == 0) {
        crash(sim, "crash_any_time");
        return;
    }
    if (what == 1) {
        crash_behind_start(sim);
        return;
    }
    if (what == 2) {
        crash_at_request(sim, load);
        return;
    }
    int64_t next = schedule_load_next(load, wall_of(sim, offset) / NS_PER_S) * NS_PER_S;
    int64_t wait = next - wall_of(sim, offset) + chance(sim, NEAR) - NEAR / 20;
    world_run_for(sim->world, wait > 0 ? wait : 0);
    crash(sim, "crash_at_a_fire");
    if (chance(sim, 3) == 0) {
        world_run_for(sim->world, chance(sim, NEAR));
        crash(sim, "crash_twice");
    }
}

struct outcome {
    uint64_t trace;
    unsigned runs, failed;
};

static struct outcome
pass(uint64_t seed, int64_t duration, int64_t pause_max, struct probes *probes)
{
    struct sim sim;
    sim_open_cluster(&sim, &(struct world_options){.seed = seed}, 1, 2);
    sim.dynamic = "system.maxRetentionDays: [{value: 500}]\n";
    sim_host_start(&sim.hosts[0]);
    struct schedule_load *load = schedule_load_start(&sim, duration, pause_max * 2 / NS_PER_S);
    world_run_for(sim.world, 3600 * NS_PER_S);
    int64_t offset = load->wall_offset;
    while (world_now(sim.world) < duration)
        harm(&sim, load, offset, pause_max);
    const char *violation = schedule_load_verify(load);
    printf("    seed %llu: %u runs, %u pauses, %u updates, %u backfills, %u of %u calls failed, "
           "%llu steps\n",
           (unsigned long long)seed, load->runs, load->pauses, load->updates, load->backfills,
           load->failed, load->calls, (unsigned long long)world_steps(sim.world));
    if (violation != NULL)
        TEST_FAIL("seed %llu: %s", (unsigned long long)seed, violation);
    struct outcome outcome = {
        .trace = world_trace_hash(sim.world), .runs = load->runs, .failed = load->failed};
    probes_add(probes, sim.world);
    schedule_load_free(load);
    sim_close(&sim);
    return outcome;
}

TEST(schedule_sim, through_a_year_every_fire_is_there_and_none_twice, "A-272", "A-275")
{
    struct probes probes = wanted;
    for (int i = 0; i < test_seed_count(); i++)
        EXPECT(pass(test_seed(i), 370 * DAY, 5 * DAY, &probes).runs > 3000);
    probes_expect(&probes, 0);
}

/* The same with a crash every few hours. */
TEST(schedule_sim, in_bad_weeks_every_fire_is_there_and_none_twice, "A-272", "A-275")
{
    struct probes probes = wanted;
    for (int i = 0; i < test_seed_count(); i++)
        EXPECT(pass(test_seed(i), 8 * DAY, DAY / 5, &probes).runs > 50);
    probes_expect(&probes, 1);
}

TEST(schedule_sim, the_same_seed_gives_the_same_weeks)
{
    struct outcome first = pass(test_one_seed(), 5 * DAY, DAY, NULL),
                   second = pass(test_one_seed(), 5 * DAY, DAY, NULL);
    EXPECT_EQ(first.trace, second.trace);
    EXPECT_EQ(first.runs, second.runs);
}
