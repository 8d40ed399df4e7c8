/* drain_pair.h - the two clusters of cluster_pair.h in a simulation, where time is virtual, each
 * with its coordinator of graceful failovers. */
#ifndef CADENZA_FAILOVER_TEST_DRAIN_PAIR_H
#define CADENZA_FAILOVER_TEST_DRAIN_PAIR_H

#include "domain/test/cluster_pair.h"
#include "failover/drains.h"

/* Runs a test on two fresh clusters. */
void drain_pair_simulate(void (*test)(struct cluster_pair *cluster_pair));
/* The same, and the host crashes right after west wrote a row for which is_last() holds, whatever
 * else is under way: `before` never returns. It starts again on what its stores have, for `after`.
 */
void drain_pair_simulate_crash(void (*before)(struct cluster_pair *cluster_pair),
                               bool (*is_last)(enum row_kind kind, struct slice value,
                                               struct arena *arena),
                               void (*after)(struct cluster_pair *cluster_pair));
/* The coordinator of one. */
struct drains *drain_pair_drains(struct cluster_pair *cluster_pair, int side);
/* Closes one and opens it again on what its store has. */
void drain_pair_reopen(struct cluster_pair *cluster_pair, int side);
/* The parts of that, for a test in which nobody runs meanwhile. */
void drain_pair_stop(struct cluster_pair *cluster_pair, int side);
void drain_pair_start(struct cluster_pair *cluster_pair, int side);
/* A coordinator for another host of a cluster (cluster_pair_open_twin). */
struct drains *drain_pair_open_twin(struct cluster_pair *cluster_pair, int side,
                                    struct domains *domains, struct store *store);

#endif
