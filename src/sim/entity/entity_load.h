/* entity_load.h - clients of a group that move everything an entity's home depends on: rows of the
 * entity table, regions of domains; at all clusters, also at the same time.
 *
 * What is checked while the load runs, of what every cluster shows of every entity: neither the
 * version of its row nor that of its home in a domain goes back; whenever the home is another
 * cluster its version has risen; the version belongs to the cluster that is shown; and no version
 * of one entity in one domain is ever shown with two clusters, in whatever place. One domain gets
 * its last region while the load runs; before that no home is shown for entities that are there. At
 * the end: all clusters show the same rows and homes, and rows are at least as new as what was
 * acknowledged. The ledger is the test's, outside of every host. */
#ifndef CADENZA_SIM_ENTITY_ENTITY_LOAD_H
#define CADENZA_SIM_ENTITY_ENTITY_LOAD_H

#include "sim/world/client_pool.h"

#define ENTITY_DOMAINS  2
#define ENTITY_GAINING  1 /* the domain that does not have the last region at first */
#define ENTITY_KEYS     5
#define ENTITY_REGIONS  3
#define ENTITY_SEEN_MAX 4096 /* homes of one entity in one domain */

/* What one cluster has shown of an entity, newest of each. */
struct entity_observation {
    int64_t row_version;
    int64_t home_version[ENTITY_DOMAINS];
    int home[ENTITY_DOMAINS]; /* cluster; -1: none yet */
};

struct entity_home_seen {
    int64_t version;
    int cluster;
};

struct entity_ledger {
    char key[16];
    struct entity_observation observed[SIM_GROUP_MAX];
    int64_t acknowledged; /* the newest row that a client was told of */
    unsigned seen_count[ENTITY_DOMAINS];
    struct entity_home_seen seen[ENTITY_DOMAINS][ENTITY_SEEN_MAX];
};

struct entity_load {
    struct sim *sim;
    struct client_pool client_pool;
    bool is_ready; /* the domains are there */
    uint64_t calls, acknowledged, failed, moves, region_moves, home_changes;
    struct verdict verdict;
    struct entity_ledger entities[ENTITY_KEYS];
};

/* `workers` workers on the client host, which starts now. Free with memory_free. */
struct entity_load *entity_load_start(struct sim *sim, unsigned workers, int64_t think_max);
/* Lets the workers end, lets the group settle, then compares all clusters. Runs the world. */
void entity_load_verify(struct entity_load *load);

#endif
