/* probes.c - see probes.h. All are printed before the first one that is missing fails the test; of
 * seeds that were chosen tools/soak reads them and adds them up. */
#include "sim/world/probes.h"

#include <stdio.h>

#include "base/test.h"
#include "fiber/sim/world.h"

#define FEW_FOR_RARE 99

static size_t
count_names(const char *const names[PROBES_MAX])
{
    size_t count = 0;
    while (count < PROBES_MAX && names[count] != NULL)
        count++;
    return count;
}

static void
add(const char *const names[PROBES_MAX], uint64_t seen[PROBES_MAX], const struct world *world)
{
    for (size_t i = 0; i < count_names(names); i++)
        seen[i] += world_probe_count(world, names[i]);
}

void
probes_add(struct probes *probes, const struct world *world)
{
    if (probes == NULL)
        return;
    add(probes->usual, probes->usual_seen, world);
    add(probes->rare, probes->rare_seen, world);
}

static void
print(const char *const names[PROBES_MAX], const uint64_t seen[PROBES_MAX], const char *kind)
{
    for (size_t i = 0; i < count_names(names); i++)
        printf("    %-30s %llu %s\n", names[i], (unsigned long long)seen[i], kind);
}

static void
expect(const char *const names[PROBES_MAX], const uint64_t seen[PROBES_MAX], int few)
{
    for (size_t i = 0; test_seeds_suffice(few) && i < count_names(names); i++) {
        if (seen[i] == 0)
            TEST_FAIL("%s: not in %d seeds", names[i], test_seed_count());
    }
}

void
probes_expect(const struct probes *probes, int few)
{
    print(probes->usual, probes->usual_seen, "usual");
    print(probes->rare, probes->rare_seen, "rare");
    expect(probes->usual, probes->usual_seen, few);
    expect(probes->rare, probes->rare_seen, FEW_FOR_RARE);
}
