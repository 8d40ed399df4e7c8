/* marks.c - see marks.h. All are printed before the first one that is missing fails the test; of
 * seeds that were chosen tools/soak reads them and adds them up. */
#include "sim/marks.h"

#include <stdio.h>

#include "base/test.h"
#include "fiber/sim/world.h"

#define FEW_FOR_RARE 99

static size_t
count_names(const char *const names[MARKS_MAX])
{
    size_t count = 0;
    while (count < MARKS_MAX && names[count] != NULL)
        count++;
    return count;
}

static void
add(const char *const names[MARKS_MAX], uint64_t seen[MARKS_MAX], const struct world *world)
{
    for (size_t i = 0; i < count_names(names); i++)
        seen[i] += world_mark_count(world, names[i]);
}

void
marks_add(struct marks *marks, const struct world *world)
{
    if (marks == NULL)
        return;
    add(marks->usual, marks->usual_seen, world);
    add(marks->rare, marks->rare_seen, world);
}

static void
print(const char *const names[MARKS_MAX], const uint64_t seen[MARKS_MAX], const char *kind)
{
    for (size_t i = 0; i < count_names(names); i++)
        printf("    %-30s %llu %s\n", names[i], (unsigned long long)seen[i], kind);
}

static void
expect(const char *const names[MARKS_MAX], const uint64_t seen[MARKS_MAX], int few)
{
    for (size_t i = 0; test_seeds_suffice(few) && i < count_names(names); i++) {
        if (seen[i] == 0)
            TEST_FAIL("%s: not in %d seeds", names[i], test_seed_count());
    }
}

void
marks_expect(const struct marks *marks, int few)
{
    print(marks->usual, marks->usual_seen, "usual");
    print(marks->rare, marks->rare_seen, "rare");
    expect(marks->usual, marks->usual_seen, few);
    expect(marks->rare, marks->rare_seen, FEW_FOR_RARE);
}
