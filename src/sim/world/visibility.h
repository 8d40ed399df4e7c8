/* visibility.h - visibility of a simulated cluster: in memory, and lost as a database is lost.
 *
 * What was fed and not yet synced goes when the machine crashes, if the database is on that machine
 * (a host that is alone); sometimes all of it goes, as if somebody had deleted the file. Hosts that
 * share a store share it too, as a server of its own, which does not crash. */
#ifndef CADENZA_SIM_WORLD_VISIBILITY_H
#define CADENZA_SIM_WORLD_VISIBILITY_H

#include "visibility/visibility.h"

struct sim_visibility;

struct sim_visibility *sim_visibility_new(void);
void sim_visibility_free(struct sim_visibility *sim_visibility);
/* What hosts use. Theirs to use, not to close. */
struct visibility *sim_visibility_door(struct sim_visibility *sim_visibility);
/* The machine crashes: what was not synced is gone. How many changes that were. No host runs. */
size_t sim_visibility_crash(struct sim_visibility *sim_visibility);
/* All is gone. No host runs. */
void sim_visibility_lose(struct sim_visibility *sim_visibility);

#endif
