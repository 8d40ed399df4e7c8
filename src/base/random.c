/* random.c - xoshiro256** by Blackman and Vigna, seeded through splitmix64. */
#include "base/random.h"

#include "base/check.h"

static uint64_t
splitmix(uint64_t *state)
{
    uint64_t mixed = *state += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

static uint64_t
rotate_left(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

void
random_seed(struct random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        random->state[i] = splitmix(&seed);
}

uint64_t
random_next(struct random *random)
{
    uint64_t *state = random->state;
    uint64_t result = rotate_left(state[1] * 5, 7) * 9;
    uint64_t carried = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= carried;
    state[3] = rotate_left(state[3], 45);
    return result;
}

/* The high half of a 128-bit product (Lemire); the few values that would favour small results are
 * drawn again. */
uint64_t
random_below(struct random *random, uint64_t bound)
{
    check(bound > 0);
    uint64_t unfair = -bound % bound;
    unsigned __int128 product;
    do
        product = (unsigned __int128)random_next(random) * bound;
    while ((uint64_t)product < unfair);
    return (uint64_t)(product >> 64);
}
