/* sim.h - hosts that run the real server on the simulated platform, and clients.
 *
 * Two shapes. A cluster: several hosts share one store (store/memory), so that guards and hand-over
 * are tested. A group: each host is a cluster of its own, with its own store and its own
 * config, and they follow each other over the simulated network. Clients are a host of their own. A
 * host that crashes loses its memory and what it had in flight; started again it reads the store.
 * The caller is a test: it drives the world (fiber/sim/world.h) and lets the nemesis do harm. */
#ifndef CADENZA_SIM_WORLD_SIM_H
#define CADENZA_SIM_WORLD_SIM_H

#include "fiber/sim/world.h"
#include "sim/world/visibility.h"
#include "store/memory/memory.h"

#define SIM_HOSTS_MAX 8
#define SIM_PORT      "7833"
#define SIM_SHARDS    4

/* Groups: host i is the cluster "cluster<i>"; cluster 0 is the primary one. */
#define SIM_GROUP_MAX       3
#define SIM_GROUP_INCREMENT 10
#define SIM_REGION_OF_NONE  "region-of-none"

struct sim_host {
    struct sim *sim;
    struct host *host;
    struct memory_base *base;              /* its disk; hosts of one cluster share it */
    struct sim_visibility *sim_visibility; /* hosts of one cluster share it */
    const char *config;                    /* YAML; NULL: defaults */
    uint32_t shards;                       /* 0: SIM_SHARDS */
    uint64_t store_handle; /* of the store it has open; meaningless when has_store is false */
    bool has_store;
    bool is_serving;         /* answers calls */
    struct metrics *metrics; /* of this life; NULL: it has none */
    unsigned starts;         /* how often it was started */
    bool is_stopping;
    struct fiber *first;
    struct memory_base *backup; /* of its disk; NULL: none was made */
};

struct sim_histories; /* sim/world/histories.h */

struct sim {
    struct world *world;
    struct sim_histories *histories; /* what was ever written; NULL: nobody watches */
    struct arena *arena;             /* of the configs */
    unsigned count;
    bool is_group;       /* each host is a cluster */
    const char *dynamic; /* settings of all hosts, as YAML (config/dynamic.h); NULL: defaults */
    size_t transfers_max, wakeups_max; /* of each shard, in memory; 0: a default */
    bool has_system_domains;           /* of system workflows */
    bool skips_time; /* hosts have one loop each, and jump when everything waits for timers */
    struct sim_host hosts[SIM_HOSTS_MAX];
    struct host *client; /* where a test's clients run; never crashes */
};

/* A world with one cluster: `count` server hosts of `loops` loops each, all on one store, and a
 * client host. Nothing runs yet. */
void sim_open_cluster(struct sim *sim, const struct world_options *options, unsigned count,
                      unsigned loops);
/* A world with a group of `count` clusters of one host each. Nothing runs yet. */
void sim_open_group(struct sim *sim, const struct world_options *options, unsigned count,
                    unsigned loops);
/* Each cluster of the group lies in a region of its own: cluster i in "region<i>"; there is a
 * region in which none lies, and which domains do not have; and there are entities of the types
 * "user" and "city". Before hosts start. */
void sim_give_regions(struct sim *sim);
/* The cluster becomes cluster0 of a group of two; nobody runs the other one. Before hosts start. */
void sim_be_one_of_two(struct sim *sim);
void sim_close(struct sim *sim);
/* Starts a server host that is not running. */
void sim_host_start(struct sim_host *host);
/* Crashes it; what becomes of its commits in flight is decided. */
void sim_host_crash(struct sim_host *host);
/* Makes a backup of the host's disk as it is now, in place of the one before; it may be running. */
void sim_host_keep(struct sim_host *host);
/* The host is down, and all hosts on its disk: the disk becomes what the backup has of it, without
 * visibility, which is no part of backups. The backup stays. */
void sim_host_restore(struct sim_host *host);
/* The host's /metrics. In a fiber of any host. */
struct slice sim_host_metrics(const struct sim_host *host, struct arena *arena);
/* Address of a host's gRPC port, as clients write it. */
const char *sim_host_address(const struct sim_host *host, char *room, size_t size);
/* Looks at the domains in the host's store (domain_log.h), with a store of its own. In a fiber of
 * any host. Yields. NULL: all is well. */
must_use struct error *sim_host_check_log(const struct sim_host *host, struct arena *arena);
/* The cluster of a group that a failover version belongs to; -1: none. */
int sim_group_of_version(int64_t failover_version);

#endif
