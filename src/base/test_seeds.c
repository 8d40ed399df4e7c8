/* test_seeds.c - hands out the seeds of a test program. See test.h.
 *
 * In a file of its own: the linker takes it into those programs alone whose tests sample by seed.
 * So tools/soak knows them, by the symbol test_seed, whatever they are called. */
#include "base/test_seeds.h"

#include "base/check.h"
#include "base/test.h"

static uint64_t
seed_at(int index)
{
    check(index >= 0 && index < test_seeds.count);
    int fixed = (test_seeds.count + 1) / 2;
    uint64_t seed = (uint64_t)index + 1;
    if (test_seeds.has_first)
        seed = test_seeds.first + (uint64_t)index;
    else if (index >= fixed)
        seed = test_seeds.base + (uint64_t)(index - fixed);
    test_seeds.has_drawn = true;
    test_seeds.drawn = seed;
    return seed;
}

int
test_seed_count(void)
{
    test_seeds.is_counted = true;
    return test_seeds.count;
}

uint64_t
test_seed(int index)
{
    return seed_at(index + test_seeds.round);
}

bool
test_seeds_suffice(int few)
{
    int count = test_seed_count();
    return few == 0 || (!test_seeds.has_first && count > few);
}

uint64_t
test_one_seed(void)
{
    test_seeds.is_counted = true;
    return seed_at(0);
}
