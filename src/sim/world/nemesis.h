/* nemesis.h - does harm to hosts, by seed: crashes, restarts, cuts, broken connections, wall clocks
 * that are set.
 *
 * Ways between clients and hosts are cut; in a group also those between clusters.
 *
 * One step now and then, between steps of the world. What it did is counted as probes, so that a
 * scenario shows that it was really hurt. nemesis_relent repairs everything: what is wrong after
 * that stays wrong. */
#ifndef CADENZA_SIM_WORLD_NEMESIS_H
#define CADENZA_SIM_WORLD_NEMESIS_H

#include "sim/world/sim.h"

struct nemesis {
    struct sim *sim;
    int64_t pause_max;  /* between two harms, ns */
    bool is_at_commits; /* one harm in three is a crash at a commit that is on its way */
    bool slows;         /* one in four makes a way slow, or as fast as usual again */
    bool parts;         /* one in three parts two clusters, or heals those that it parted last */
    struct host *parted[2]; /* NULL: none */
    /* One in five sets the wall clock of a host, or all to the same time, ahead or back by up to
     * this; 0: none. nemesis_relent leaves them as they are. */
    int64_t clock_step_max;
    int64_t clocks[SIM_HOSTS_MAX]; /* how far ahead each was set */
    int64_t clock_ahead_max;       /* how far one ever was */
};

/* Runs the world for `duration` ns, doing harm at seeded moments. */
void nemesis_run(struct nemesis *nemesis, int64_t duration);
/* Sets the wall clocks of all hosts to the same time, `ahead` ns from where they began. */
void nemesis_set_clocks(struct nemesis *nemesis, int64_t ahead);
/* Heals every cut, starts every host that is down, and runs the world until all serve. False: one
 * does not come up. */
must_use bool nemesis_relent(struct nemesis *nemesis);

#endif
