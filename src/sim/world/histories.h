/* histories.h - every event that ever reached a disk of a group: of one run, id and version there
 * is only one, whatever crashes, forks or is restored.
 *
 * Watches the stores of all clusters as they become durable, all branches of all runs. What a
 * restore takes from a cluster is forgotten if no other disk has had it: that event was lost, and
 * another one may take its place. */
#ifndef CADENZA_SIM_WORLD_HISTORIES_H
#define CADENZA_SIM_WORLD_HISTORIES_H

#include "sim/world/sim.h"

/* From now on, until freed: sim_close does it. Before hosts start. */
struct sim_histories *sim_histories_watch(struct sim *sim);
void sim_histories_free(struct sim_histories *histories);
/* A backup of the cluster was made; it is set back to that (sim.c calls both). */
void sim_histories_keep(struct sim_histories *histories, unsigned cluster);
void sim_histories_restore(struct sim_histories *histories, unsigned cluster);
/* The first event that had two contents; NULL: none. */
const char *sim_histories_violation(const struct sim_histories *histories);
/* An event that one cluster has and another one does not; NULL: all have all. */
const char *sim_histories_missing(struct sim_histories *histories);
/* Different events so far. */
size_t sim_histories_count(const struct sim_histories *histories);

#endif
