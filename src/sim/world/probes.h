/* probes.h - what the storms of a test must have reached together, or they have proven little.
 *
 * A test says which probes (fiber/sim/world.h) it wants, adds those of each world, and in the end
 * expects that none is missing. One seed need not reach everything: a test says below how many
 * seeds it does not ask, and it asks for rare probes only when there are very many. */
#ifndef CADENZA_SIM_WORLD_PROBES_H
#define CADENZA_SIM_WORLD_PROBES_H

#include <stdint.h>

struct world;

#define PROBES_MAX 64

struct probes {
    const char *usual[PROBES_MAX], *rare[PROBES_MAX]; /* names; NULL behind the last one */
    uint64_t usual_seen[PROBES_MAX], rare_seen[PROBES_MAX];
};

/* Adds what was reached in the world. NULL: nobody wants to know. */
void probes_add(struct probes *probes, const struct world *world);
/* Prints all; the test fails if one was never seen though there were more than `few` seeds. */
void probes_expect(const struct probes *probes, int few);

#endif
