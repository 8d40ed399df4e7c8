/* sim.c - see sim.h. */
#include "sim/world/sim.h"

#include <stdio.h>

#include "base/check.h"
#include "config/config.h"
#include "fiber/clock.h"
#include "fiber/platform.h"
#include "server/server.h"
#include "sim/world/domain_log.h"
#include "sim/world/histories.h"

#define START_RETRY      (500 * NS_PER_MS)
#define REFRESH_INTERVAL NS_PER_S
#define STOP_GRACE       (2 * NS_PER_S)
#define REGION_VERSION   5 /* of the first region; those of clusters are below */

/* Not in order, as in the samples that people start from. */
/* Users are made by starts, cities are not. */
#define ENTITY_TYPES                                                                               \
    "entities:\n"                                                                                  \
    "  types:\n"                                                                                   \
    "    user: {source: custom.user-location-provider, unknownKeys: create}\n"                     \
    "    city: {}\n"

static const int initial_versions[SIM_GROUP_MAX] = {1, 0, 2};

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

static struct config *
host_config(const struct sim_host *host, struct arena *arena)
{
    struct config *config = NULL;
    if (host->config == NULL)
        return config_default();
    struct error *err =
        config_parse(slice_text(host->config), host_name(host->host), NULL, arena, &config);
    check(err == NULL);
    return config;
}

static struct dynamic *
host_dynamic(const struct sim_host *host, struct arena *arena)
{
    struct dynamic *dynamic = dynamic_new(NULL);
    if (host->sim->dynamic == NULL)
        return dynamic;
    struct error *err = dynamic_load(dynamic, slice_text(host->sim->dynamic), "dynamic", arena);
    check(err == NULL);
    return dynamic;
}

static struct error *
life_begin(struct life *life, struct sim_host *host)
{
    life->arena = arena_new(0);
    life->config = host_config(host, life->arena);
    life->dynamic = host_dynamic(host, life->arena);
    life->metrics = host->metrics = metrics_new();
    life->store = memory_open(host->base);
    host->store_handle = memory_handle(life->store);
    host->has_store = true;
    bool is_alone = host->sim->is_group || host->sim->count == 1; /* on its store */
    if (!is_alone)
        memory_base_share(host->base);
    struct server_options options = {
        .config = life->config,
        .dynamic = life->dynamic,
        .store = life->store,
        .visibility = sim_visibility_door(host->sim_visibility),
        .grpc_address = "0.0.0.0:" SIM_PORT,
        .host = host_name(host->host),
        .shard_count = host->shards == 0 ? SIM_SHARDS : host->shards,
        .metrics = life->metrics,
        .phase = &life->phase,
        .domain_refresh_interval = is_alone ? 0 : REFRESH_INTERVAL,
        .has_system_domains = host->sim->has_system_domains,
        .transfers_max = host->sim->transfers_max,
        .wakeups_max = host->sim->wakeups_max,
        .skips_time = host->sim->skips_time,
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
    host->metrics = NULL;
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
    platform_on_stop(on_stop, host);
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
    platform_on_stop(NULL, NULL);
}

#define VISIBILITY_LOST_EVERY 3 /* crashes */

/* The visibility of a host that is alone is on its machine. */
static void
crash_visibility(struct sim_host *host)
{
    if (host->sim->count > 1 && !host->sim->is_group)
        return;
    if (sim_visibility_crash(host->sim_visibility) > 0)
        world_probe(host->sim->world, "crash_with_lost_visibility");
    if (host->starts % VISIBILITY_LOST_EVERY != 0)
        return;
    sim_visibility_lose(host->sim_visibility);
    world_probe(host->sim->world, "visibility_deleted");
}

/* After a crash: the disk decides what of the writes in flight had reached it. */
static void
host_crashed(void *context)
{
    struct sim_host *host = context;
    uint64_t landed = memory_base_landed(host->base), lost = memory_base_lost(host->base);
    if (host->has_store)
        memory_crash(host->base, host->store_handle);
    if (memory_base_landed(host->base) > landed)
        world_probe(host->sim->world, "crash_with_landed_writes");
    if (memory_base_lost(host->base) > lost)
        world_probe(host->sim->world, "crash_with_lost_writes");
    host->has_store = false;
    host->is_serving = false;
    host->metrics = NULL;
    crash_visibility(host);
}

/* The world, its hosts without a store, and the clients. */
static void
open_hosts(struct sim *sim, const struct world_options *options, unsigned count, unsigned loops)
{
    check(count >= 1 && count <= SIM_HOSTS_MAX);
    *sim = (struct sim){.world = world_create(options), .arena = arena_new(0), .count = count};
    for (unsigned i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "host%u", i);
        struct sim_host *host = &sim->hosts[i];
        host->sim = sim;
        host->host = world_add_host(sim->world, name, loops);
        host_on_crash(host->host, host_crashed, host);
    }
    sim->client = world_add_host(sim->world, "client", 1);
}

void
sim_open_cluster(struct sim *sim, const struct world_options *options, unsigned count,
                 unsigned loops)
{
    open_hosts(sim, options, count, loops);
    struct memory_base *base = memory_base_new(options->seed);
    struct sim_visibility *sim_visibility = sim_visibility_new();
    for (unsigned i = 0; i < count; i++) {
        sim->hosts[i].base = base;
        sim->hosts[i].sim_visibility = sim_visibility;
    }
}

/* What an operator writes for cluster `current` of a group; cluster i is at host "<host>i". */
static const char *
group_config(struct arena *arena, unsigned current, unsigned count, const char *host,
             bool has_regions)
{
    const char *regions = "";
    for (unsigned i = 0; has_regions && i < count; i++)
        regions = arena_format(arena, "%s    region%u: {initialFailoverVersion: %u}\n", regions, i,
                               REGION_VERSION + i);
    if (has_regions)
        regions =
            arena_format(arena, "%s    " SIM_REGION_OF_NONE ": {initialFailoverVersion: %u}\n",
                         regions, REGION_VERSION + count);
    const char *text =
        arena_format(arena,
                     "clusterGroupMetadata:\n"
                     "  failoverVersionIncrement: %d\n"
                     "  primaryClusterName: cluster0\n"
                     "  currentClusterName: cluster%u\n"
                     "%s%s"
                     "  clusterGroup:\n",
                     SIM_GROUP_INCREMENT, current, has_regions ? "  regions:\n" : "", regions);
    if (has_regions)
        text = arena_format(arena, "%s%s", ENTITY_TYPES, text);
    for (unsigned i = 0; i < count; i++)
        text = arena_format(arena,
                            "%s    cluster%u: {enabled: true, initialFailoverVersion: %d, "
                            "rpcName: cadence-frontend, rpcAddress: '%s%u:" SIM_PORT
                            "', rpcTransport: grpc%s}\n",
                            text, i, initial_versions[i], host, i,
                            has_regions ? arena_format(arena, ", region: region%u", i) : "");
    return text;
}

void
sim_open_group(struct sim *sim, const struct world_options *options, unsigned count, unsigned loops)
{
    check(count <= SIM_GROUP_MAX);
    open_hosts(sim, options, count, loops);
    sim->is_group = true;
    for (unsigned i = 0; i < count; i++) {
        sim->hosts[i].base = memory_base_new(options->seed + i);
        sim->hosts[i].sim_visibility = sim_visibility_new();
        sim->hosts[i].config = group_config(sim->arena, i, count, "host", false);
    }
}

void
sim_give_regions(struct sim *sim)
{
    check(sim->is_group);
    for (unsigned i = 0; i < sim->count; i++)
        sim->hosts[i].config = group_config(sim->arena, i, sim->count, "host", true);
}

void
sim_be_one_of_two(struct sim *sim)
{
    check(!sim->is_group);
    for (unsigned i = 0; i < sim->count; i++)
        sim->hosts[i].config = group_config(sim->arena, 0, 2, "nowhere", false);
}

void
sim_close(struct sim *sim)
{
    world_free(sim->world);
    for (unsigned i = 0; i < sim->count; i++)
        memory_base_free(sim->hosts[i].backup);
    for (unsigned i = 0; i < (sim->is_group ? sim->count : 1); i++) {
        memory_base_free(sim->hosts[i].base);
        sim_visibility_free(sim->hosts[i].sim_visibility);
    }
    arena_free(sim->arena);
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

void
sim_host_keep(struct sim_host *host)
{
    memory_base_free(host->backup);
    host->backup = memory_base_copy(host->base);
    if (host->sim->histories != NULL)
        sim_histories_keep(host->sim->histories, (unsigned)(host - host->sim->hosts));
}

void
sim_host_restore(struct sim_host *host)
{
    check(!host_is_running(host->host) && host->backup != NULL);
    memory_base_restore(host->base, host->backup);
    sim_visibility_lose(host->sim_visibility);
    if (host->sim->histories != NULL)
        sim_histories_restore(host->sim->histories, (unsigned)(host - host->sim->hosts));
    world_probe(host->sim->world, "host_restored");
}

struct slice
sim_host_metrics(const struct sim_host *host, struct arena *arena)
{
    return host->metrics == NULL ? slice_text("") : metrics_render(host->metrics, arena);
}

const char *
sim_host_address(const struct sim_host *host, char *room, size_t size)
{
    snprintf(room, size, "%s:" SIM_PORT, host_name(host->host));
    return room;
}

int
sim_group_of_version(int64_t failover_version)
{
    for (int i = 0; i < SIM_GROUP_MAX; i++) {
        if (failover_version >= 0 && failover_version % SIM_GROUP_INCREMENT == initial_versions[i])
            return i;
    }
    return -1;
}

struct error *
sim_host_check_log(const struct sim_host *host, struct arena *arena)
{
    struct store *store = memory_open(host->base);
    struct error *err = domain_log_check(store, arena);
    store_close(store);
    return err;
}
