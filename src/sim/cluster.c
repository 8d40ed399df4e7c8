/* cluster.c - see cluster.h. */
#include "sim/cluster.h"

#include <stdio.h>

#include "base/check.h"
#include "config/config.h"
#include "fiber/clock.h"
#include "fiber/ground.h"
#include "server/server.h"

#define START_RETRY      (500 * NS_PER_MS)
#define REFRESH_INTERVAL NS_PER_S
#define STOP_GRACE       (2 * NS_PER_S)

/* What one life of a host consists of; all of it is in the host's memory. */
struct life {
    struct arena *arena;
    struct config *config;
    struct dynamic *dynamic;
    struct metrics *metrics;
    struct store *store;
    struct server *server;
    _Atomic(enum server_phase) phase;
};

static void
on_stop(void *context)
{
    struct sim_host *host = context;
    host->is_stopping = true;
    fiber_wake(host->first);
}

static struct error *
life_begin(struct life *life, struct sim_host *host)
{
    life->arena = arena_new(0);
    life->config = config_default();
    life->dynamic = dynamic_new(NULL);
    life->metrics = metrics_new();
    life->store = memory_open(host->cluster->base);
    host->store_handle = memory_handle(life->store);
    host->has_store = true;
    struct server_options options = {
        .config = life->config,
        .dynamic = life->dynamic,
        .store = life->store,
        .grpc_address = "0.0.0.0:" SIM_PORT,
        .metrics = life->metrics,
        .phase = &life->phase,
        .domain_refresh_interval = REFRESH_INTERVAL,
    };
    return server_start(&options, life->arena, &life->server);
}

static void
life_end(struct life *life, struct sim_host *host)
{
    if (life->server != NULL)
        server_stop(life->server, STOP_GRACE);
    store_close(life->store);
    host->has_store = false;
    metrics_free(life->metrics);
    dynamic_free(life->dynamic);
    config_free(life->config);
    arena_free(life->arena);
}

/* The first fiber of a server host: lives until it is told to stop; a start that fails is tried
 * again. */
static void
host_main(void *argument)
{
    struct sim_host *host = argument;
    host->first = fiber_self();
    host->is_stopping = false;
    ground_on_stop(on_stop, host);
    while (!host->is_stopping) {
        struct life life = {0};
        host->is_serving = life_begin(&life, host) == NULL;
        int64_t until = host->is_serving ? NEVER : clock_monotonic() + START_RETRY;
        while (!host->is_stopping && clock_monotonic() < until) {
            if (fiber_wait(until) == WAKE_CANCELLED)
                host->is_stopping = true;
        }
        host->is_serving = false;
        life_end(&life, host);
    }
    ground_on_stop(NULL, NULL);
}

/* After a crash: the disk decides what of the writes in flight had reached it. */
static void
host_crashed(void *context)
{
    struct sim_host *host = context;
    if (host->has_store)
        memory_crash(host->cluster->base, host->store_handle);
    host->has_store = false;
    host->is_serving = false;
}

void
sim_cluster_open(struct sim_cluster *cluster, const struct world_options *options, unsigned count,
                 unsigned loops)
{
    check(count >= 1 && count <= SIM_HOSTS_MAX);
    *cluster = (struct sim_cluster){.world = world_create(options), .count = count};
    cluster->base = memory_base_new(options->seed);
    for (unsigned i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "host%u", i);
        struct sim_host *host = &cluster->hosts[i];
        host->cluster = cluster;
        host->host = world_add_host(cluster->world, name, loops);
        host_on_crash(host->host, host_crashed, host);
    }
    cluster->client = world_add_host(cluster->world, "client", 1);
}

void
sim_cluster_close(struct sim_cluster *cluster)
{
    world_free(cluster->world);
    memory_base_free(cluster->base);
}

void
sim_host_start(struct sim_host *host)
{
    check(!host_is_running(host->host));
    host->starts++;
    host_start(host->host, host_main, host);
}

void
sim_host_crash(struct sim_host *host)
{
    check(host_is_running(host->host));
    host_crash(host->host);
}

const char *
sim_host_address(const struct sim_host *host, char *room, size_t size)
{
    snprintf(room, size, "%s:" SIM_PORT, host_name(host->host));
    return room;
}
