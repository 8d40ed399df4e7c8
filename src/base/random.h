/* random.h - a seeded generator (xoshiro256**): fast, not for secrets, the same numbers for the
 * same seed. */
#ifndef CADENZA_BASE_RANDOM_H
#define CADENZA_BASE_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state[4];
};

/* Any seed is good, 0 too (it is stretched by splitmix64). */
void random_seed(struct random *random, uint64_t seed);
uint64_t random_next(struct random *random);
/* Uniform in 0 .. bound - 1; bound > 0. */
uint64_t random_below(struct random *random, uint64_t bound);

#endif
