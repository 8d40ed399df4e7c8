/* lists.h - the lists of runs of a simulated cluster: in memory, and lost as a database is lost.
 *
 * What was fed and not yet synced goes when the machine crashes, if the lists are on that machine
 * (a host that is alone); sometimes all of them go, as if somebody had deleted the file. Hosts that
 * share a store share the lists too, as a server of their own, which does not crash. */
#ifndef CADENZA_SIM_LISTS_H
#define CADENZA_SIM_LISTS_H

#include "visibility/visibility.h"

struct sim_lists;

struct sim_lists *sim_lists_new(void);
void sim_lists_free(struct sim_lists *lists);
/* What hosts use. Theirs to use, not to close. */
struct visibility *sim_lists_door(struct sim_lists *lists);
/* The machine crashes: what was not synced is gone. How many changes that were. No host runs. */
size_t sim_lists_crash(struct sim_lists *lists);
/* All is gone. No host runs. */
void sim_lists_lose(struct sim_lists *lists);

#endif
