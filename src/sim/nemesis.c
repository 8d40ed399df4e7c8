/* nemesis.c - see nemesis.h. */
#include "sim/nemesis.h"

#include "base/check.h"
#include "fiber/clock.h"

#define STARTING_MAX  (100 * NS_PER_US) /* a start takes little more: the store is in memory */
#define RELENT_ROUNDS 120               /* of a second each */

static struct sim_host *
any_host(struct sim_cluster *cluster)
{
    return &cluster->hosts[random_below(world_random(cluster->world), cluster->count)];
}

static void
crash_one(struct sim_cluster *cluster)
{
    struct sim_host *host = any_host(cluster);
    if (!host_is_running(host->host))
        return;
    world_mark(cluster->world,
               host->is_serving ? "crash_while_serving" : "crash_while_not_serving");
    sim_host_crash(host);
}

static void
start_one(struct sim_cluster *cluster)
{
    struct sim_host *host = any_host(cluster);
    if (host_is_running(host->host))
        return;
    world_mark(cluster->world, "start");
    sim_host_start(host);
}

/* In the middle of coming up: reading the store, opening the door. */
static void
crash_while_starting(struct sim_cluster *cluster)
{
    struct sim_host *host = any_host(cluster);
    if (host_is_running(host->host))
        sim_host_crash(host);
    sim_host_start(host);
    world_run_for(cluster->world,
                  (int64_t)random_below(world_random(cluster->world), STARTING_MAX));
    if (!host_is_running(host->host) || host->is_serving)
        return;
    world_mark(cluster->world, "crash_while_starting");
    sim_host_crash(host);
}

static void
stop_one(struct sim_cluster *cluster)
{
    struct sim_host *host = any_host(cluster);
    if (!host_is_running(host->host))
        return;
    world_mark(cluster->world, "clean_stop");
    host_stop(host->host);
}

static void
cut_one(struct sim_cluster *cluster)
{
    struct sim_host *host = any_host(cluster);
    bool is_inbound = random_below(world_random(cluster->world), 2) == 0;
    world_mark(cluster->world, is_inbound ? "cut_inbound" : "cut_outbound");
    if (is_inbound)
        world_cut(cluster->world, cluster->client, host->host);
    else
        world_cut(cluster->world, host->host, cluster->client);
}

static void
heal_one(struct sim_cluster *cluster)
{
    struct sim_host *host = any_host(cluster);
    world_heal(cluster->world, cluster->client, host->host);
    world_heal(cluster->world, host->host, cluster->client);
}

static void
break_one(struct sim_cluster *cluster)
{
    world_mark(cluster->world, "break");
    world_break(cluster->world, cluster->client, any_host(cluster)->host);
}

/* Repairs stand more than once: harm must leave time to work in between. */
static const struct {
    void (*apply)(struct sim_cluster *cluster);
} harms[] = {
    {crash_one}, {crash_while_starting},
    {start_one}, {start_one},
    {start_one}, {stop_one},
    {cut_one},   {heal_one},
    {heal_one},  {break_one},
};

void
nemesis_run(struct nemesis *nemesis, int64_t duration)
{
    struct sim_cluster *cluster = nemesis->cluster;
    int64_t end = world_now(cluster->world) + duration;
    while (world_now(cluster->world) < end) {
        int64_t pause =
            (int64_t)random_below(world_random(cluster->world), (uint64_t)nemesis->pause_max);
        int64_t left = end - world_now(cluster->world);
        world_run_for(cluster->world, pause < left ? pause : left);
        harms[random_below(world_random(cluster->world), array_length(harms))].apply(cluster);
    }
}

/* A host that was told to stop may still be on its way down: it is started when it is gone. */
static bool
all_serve(struct sim_cluster *cluster)
{
    bool is_up = true;
    for (unsigned i = 0; i < cluster->count; i++) {
        struct sim_host *host = &cluster->hosts[i];
        if (!host_is_running(host->host))
            sim_host_start(host);
        is_up = is_up && host->is_serving && !host->is_stopping;
    }
    return is_up;
}

bool
nemesis_relent(struct nemesis *nemesis)
{
    struct sim_cluster *cluster = nemesis->cluster;
    for (unsigned i = 0; i < cluster->count; i++) {
        world_heal(cluster->world, cluster->client, cluster->hosts[i].host);
        world_heal(cluster->world, cluster->hosts[i].host, cluster->client);
    }
    bool is_up = false;
    for (int round = 0; round < RELENT_ROUNDS && !is_up; round++) {
        world_run_for(cluster->world,
                      NS_PER_S); /* first: a host may have been told to stop just now */
        is_up = all_serve(cluster);
    }
    return is_up;
}
