/* cluster.h - a whole cluster in one process: hosts that run the real server on a simulated ground.
 *
 * Several hosts share one store (store/memory), so that guards and hand-over are put to the test;
 * clients are a host of their own. A host that crashes loses its memory and what it had in flight;
 * started again it reads the store. The caller is a test: it drives the world (fiber/sim/world.h)
 * and lets the nemesis do harm. */
#ifndef CADENZA_SIM_CLUSTER_H
#define CADENZA_SIM_CLUSTER_H

#include "fiber/sim/world.h"
#include "store/memory/memory.h"

#define SIM_HOSTS_MAX 8
#define SIM_PORT      "7833"

struct sim_cluster;

struct sim_host {
    struct sim_cluster *cluster;
    struct host *host;
    uint64_t store_handle; /* of the store it has open; meaningless when has_store is false */
    bool has_store;
    bool is_serving; /* answers calls */
    unsigned starts; /* how often it was started */
    bool is_stopping;
    struct fiber *first;
};

struct sim_cluster {
    struct world *world;
    struct memory_base *base;
    unsigned count;
    struct sim_host hosts[SIM_HOSTS_MAX];
    struct host *client; /* where a test's clients run; never crashes */
};

/* A world with `count` server hosts of `loops` loops each, all on one store, and a client host.
 * Nothing runs yet. */
void sim_cluster_open(struct sim_cluster *cluster, const struct world_options *options,
                      unsigned count, unsigned loops);
void sim_cluster_close(struct sim_cluster *cluster);
/* Starts a server host that is not running. */
void sim_host_start(struct sim_host *host);
/* Pulls its plug; what it had in flight at the store is decided. */
void sim_host_crash(struct sim_host *host);
/* Address of a host's gRPC door, as clients write it. */
const char *sim_host_address(const struct sim_host *host, char *room, size_t size);

#endif
