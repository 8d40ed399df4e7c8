/* nemesis.c - see nemesis.h. */
#include "sim/world/nemesis.h"

#include "base/check.h"
#include "fiber/clock.h"

#define STARTING_MAX  (100 * NS_PER_US) /* a start takes hardly longer: the store is in memory */
#define RELENT_ROUNDS 120               /* of a second each */
/* Crashes at a commit: so many points from now, and waiting so long for them. */
#define POINTS_AHEAD_MAX 40
#define POINT_WAIT_MAX   (2 * NS_PER_S)
#define SLOW_MAX         ((uint64_t)(3 * NS_PER_S)) /* one way */

static struct sim_host *
any_host(struct sim *sim)
{
    return &sim->hosts[random_below(world_random(sim->world), sim->count)];
}

static void
crash_one(struct sim *sim)
{
    struct sim_host *host = any_host(sim);
    if (!host_is_running(host->host))
        return;
    world_probe(sim->world, host->is_serving ? "crash_while_serving" : "crash_while_not_serving");
    sim_host_crash(host);
}

static void
start_one(struct sim *sim)
{
    struct sim_host *host = any_host(sim);
    if (host_is_running(host->host))
        return;
    world_probe(sim->world, "start");
    sim_host_start(host);
}

/* In the middle of a start: reading the store, opening the port. */
static void
crash_while_starting(struct sim *sim)
{
    struct sim_host *host = any_host(sim);
    if (host_is_running(host->host))
        sim_host_crash(host);
    sim_host_start(host);
    world_run_for(sim->world, (int64_t)random_below(world_random(sim->world), STARTING_MAX));
    if (!host_is_running(host->host) || host->is_serving)
        return;
    world_probe(sim->world, "crash_while_starting");
    sim_host_crash(host);
}

static void
stop_one(struct sim *sim)
{
    struct sim_host *host = any_host(sim);
    if (!host_is_running(host->host))
        return;
    world_probe(sim->world, "clean_stop");
    host_stop(host->host);
}

/* A way from → to: between the clients and a host, in a group as often between two clusters. */
struct way {
    struct host *from, *to;
    bool is_between_clusters;
};

static struct way
any_way(struct sim *sim)
{
    struct random *random = world_random(sim->world);
    unsigned one = (unsigned)random_below(random, sim->count);
    struct host *host = sim->hosts[one].host;
    struct way way = {.from = sim->client, .to = host};
    if (sim->is_group && sim->count > 1 && random_below(random, 2) == 0) {
        unsigned step = 1 + (unsigned)random_below(random, sim->count - 1);
        way.from = sim->hosts[(one + step) % sim->count].host;
        way.is_between_clusters = true;
    } else if (random_below(random, 2) == 0) {
        way = (struct way){.from = host, .to = sim->client};
    }
    return way;
}

static void
cut_one(struct sim *sim)
{
    struct way way = any_way(sim);
    if (way.is_between_clusters)
        world_probe(sim->world, "cut_between_clusters");
    else
        world_probe(sim->world, way.from == sim->client ? "cut_inbound" : "cut_outbound");
    world_cut(sim->world, way.from, way.to);
}

/* Both directions at once, for as long as nobody heals: two sides that know nothing of each other.
 */
static void
part_one(struct sim *sim)
{
    struct way way = any_way(sim);
    if (!way.is_between_clusters)
        return;
    world_probe(sim->world, "clusters_parted");
    world_cut(sim->world, way.from, way.to);
    world_cut(sim->world, way.to, way.from);
}

static void
heal_one(struct sim *sim)
{
    struct way way = any_way(sim);
    world_heal(sim->world, way.from, way.to);
    world_heal(sim->world, way.to, way.from);
}

static void
break_one(struct sim *sim)
{
    struct way way = any_way(sim);
    world_probe(sim->world, way.is_between_clusters ? "break_between_clusters" : "break");
    world_break(sim->world, way.from, way.to);
}

/* The disk has come so far that a crash makes a difference. */
struct commit_point {
    const struct memory_base *base;
    uint64_t point;
};

static bool
point_is_reached(void *context)
{
    const struct commit_point *wanted = context;
    return memory_base_points(wanted->base) >= wanted->point;
}

/* Any point counts: a commit came, its group was written, its group is durable. */
static void
crash_at_commit(struct sim *sim)
{
    struct sim_host *host = any_host(sim);
    struct commit_point wanted = {.base = host->base};
    wanted.point = memory_base_points(wanted.base) + 1 +
                   random_below(world_random(sim->world), POINTS_AHEAD_MAX);
    if (!host_is_running(host->host))
        sim_host_start(host);
    bool is_there = world_run_until(sim->world, point_is_reached, &wanted, POINT_WAIT_MAX);
    if (!is_there || !host_is_running(host->host))
        return;
    world_probe(sim->world, "crash_at_commit");
    sim_host_crash(host);
}

/* Answers come late, one after the other, and calls may time out though they were heard. */
static void
slow_one(struct sim *sim)
{
    struct way way = any_way(sim);
    bool is_slow = random_below(world_random(sim->world), 2) == 0;
    int64_t delay = (int64_t)random_below(world_random(sim->world), SLOW_MAX);
    if (is_slow)
        world_probe(sim->world, way.is_between_clusters ? "slow_between_clusters" : "slow");
    world_slow(sim->world, way.from, way.to, is_slow ? delay : 0);
}

/* Two clusters do not hear each other for a while, and then have much to tell: where that is the
 * only harm between them, the third one is ahead of both. */
static void
part_or_heal(struct nemesis *nemesis)
{
    struct sim *sim = nemesis->sim;
    struct host **parted = nemesis->parted;
    if (parted[0] != NULL) {
        world_heal(sim->world, parted[0], parted[1]);
        world_heal(sim->world, parted[1], parted[0]);
        parted[0] = parted[1] = NULL;
        return;
    }
    check(sim->is_group && sim->count > 1);
    unsigned one = (unsigned)random_below(world_random(sim->world), sim->count);
    unsigned step = 1 + (unsigned)random_below(world_random(sim->world), sim->count - 1);
    parted[0] = sim->hosts[one].host;
    parted[1] = sim->hosts[(one + step) % sim->count].host;
    world_probe(sim->world, "clusters_parted");
    world_cut(sim->world, parted[0], parted[1]);
    world_cut(sim->world, parted[1], parted[0]);
}

static void
set_clock(struct nemesis *nemesis, unsigned number, int64_t ahead)
{
    host_set_clock(nemesis->sim->hosts[number].host, ahead - nemesis->clocks[number]);
    nemesis->clocks[number] = ahead;
    if (ahead > nemesis->clock_ahead_max)
        nemesis->clock_ahead_max = ahead;
}

void
nemesis_set_clocks(struct nemesis *nemesis, int64_t ahead)
{
    for (unsigned i = 0; i < nemesis->sim->count; i++)
        set_clock(nemesis, i, ahead);
}

/* Sets one clock by up to the step from where it is now, or all of them to the same time.
 */
static void
set_clocks(struct nemesis *nemesis)
{
    struct sim *sim = nemesis->sim;
    struct random *random = world_random(sim->world);
    bool is_back = random_below(random, 2) == 0, is_one = random_below(random, 3) == 0;
    int64_t step = (int64_t)random_below(random, (uint64_t)nemesis->clock_step_max);
    unsigned first = is_one ? (unsigned)random_below(random, sim->count) : 0;
    int64_t ahead = nemesis->clocks[first] + (is_back ? -step : step);
    world_probe(sim->world, is_back ? "clock_set_back" : "clock_set_ahead");
    if (is_one)
        set_clock(nemesis, first, ahead);
    else
        nemesis_set_clocks(nemesis, ahead);
}

/* Repairs stand more than once: harm must leave time to work in between. */
static const struct {
    void (*apply)(struct sim *sim);
} harms[] = {
    {crash_one}, {crash_while_starting},
    {start_one}, {start_one},
    {start_one}, {stop_one},
    {cut_one},   {heal_one},
    {heal_one},  {break_one},
    {part_one},
};

void
nemesis_run(struct nemesis *nemesis, int64_t duration)
{
    struct sim *sim = nemesis->sim;
    int64_t end = world_now(sim->world) + duration;
    while (world_now(sim->world) < end) {
        int64_t pause =
            (int64_t)random_below(world_random(sim->world), (uint64_t)nemesis->pause_max);
        int64_t left = end - world_now(sim->world);
        world_run_for(sim->world, pause < left ? pause : left);
        if (nemesis->is_at_commits && random_below(world_random(sim->world), 3) == 0)
            crash_at_commit(sim);
        else if (nemesis->parts && random_below(world_random(sim->world), 3) == 0)
            part_or_heal(nemesis);
        else if (nemesis->clock_step_max > 0 && random_below(world_random(sim->world), 5) == 0)
            set_clocks(nemesis);
        else if (nemesis->slows && random_below(world_random(sim->world), 4) == 0)
            slow_one(sim);
        else
            harms[random_below(world_random(sim->world), array_length(harms))].apply(sim);
    }
}

/* A host that was told to stop may still be on its way down: it is started when it is gone. */
static bool
all_serve(struct sim *sim)
{
    bool is_up = true;
    for (unsigned i = 0; i < sim->count; i++) {
        struct sim_host *host = &sim->hosts[i];
        if (!host_is_running(host->host))
            sim_host_start(host);
        is_up = is_up && host->is_serving && !host->is_stopping;
    }
    return is_up;
}

static void
heal_all_of(struct sim *sim, unsigned number)
{
    struct host *host = sim->hosts[number].host;
    world_heal(sim->world, sim->client, host);
    world_heal(sim->world, host, sim->client);
    world_slow(sim->world, sim->client, host, 0);
    world_slow(sim->world, host, sim->client, 0);
    for (unsigned i = 0; i < sim->count; i++) {
        if (i == number)
            continue;
        world_heal(sim->world, host, sim->hosts[i].host);
        world_slow(sim->world, host, sim->hosts[i].host, 0);
    }
}

bool
nemesis_relent(struct nemesis *nemesis)
{
    struct sim *sim = nemesis->sim;
    world_relent(sim->world);
    for (unsigned i = 0; i < sim->count; i++)
        heal_all_of(sim, i);
    bool is_up = false;
    for (int round = 0; round < RELENT_ROUNDS && !is_up; round++) {
        world_run_for(sim->world, NS_PER_S); /* first: a host may have been told to stop just now */
        is_up = all_serve(sim);
    }
    return is_up;
}
