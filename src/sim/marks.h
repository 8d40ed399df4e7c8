/* marks.h - what the storms of a test must have come to together, or they have proven little.
 *
 * A test says which marks (fiber/sim/world.h) it wants, adds those of each world, and in the end
 * expects that none is missing. One seed need not come to everything: a test says how many are too
 * few to ask, and rare marks are asked for only when there are very many. */
#ifndef CADENZA_SIM_MARKS_H
#define CADENZA_SIM_MARKS_H

#include <stdint.h>

struct world;

#define MARKS_MAX 64

struct marks {
    const char *usual[MARKS_MAX], *rare[MARKS_MAX]; /* names; NULL behind the last one */
    uint64_t usual_seen[MARKS_MAX], rare_seen[MARKS_MAX];
};

/* Adds what was marked in the world. NULL: nobody wants to know. */
void marks_add(struct marks *marks, const struct world *world);
/* Prints all; the test fails if one was never seen though there were more than `few` seeds. */
void marks_expect(const struct marks *marks, int few);

#endif
