/* gather.c - when the committer waits for those whom it has just answered.
 *
 * A workflow is a chain of commits: who is answered comes back with the next one soon. If the next
 * group begins at once, with those who came while the last one was synced, he misses it by a moment
 * and waits for its sync and then for his own. So on a slow disk the workflows under way fall into
 * two halves that take turns, and each commit takes two syncs. Waiting for a part of a sync makes
 * them one group again: little more than one sync each, and half as many syncs.
 *
 * It pays where a sync is long beside the way from an answer to the next commit, and where those
 * who come are those who were answered. So it waits only where groups take long, until as many came
 * as were answered. After a third of a sync half of them must be there, which is more than come by
 * chance; else it begins, and the next groups do not wait. Then it waits on while they come. */
#include "base/check.h"
#include "fiber/clock.h"
#include "store/rocks/inside.h"

#define GROUP_SLOW   NS_PER_MS /* what groups take on fast disks is mostly CPU */
#define STEPS        16        /* in the time of one group */
#define STEPS_LEAST  5
#define STEPS_MAX    12
#define REST         15 /* groups */
#define ANSWERED_MIN 2  /* one alone waits for nobody */

bool
gather_begin(struct gathering *gathering, size_t answered, int64_t taken)
{
    check(taken >= 0);
    int64_t usual = gathering->usual;
    int64_t time = taken < usual ? taken : usual; /* it may have stood still */
    gathering->usual += (taken - usual) / 8;
    if (answered < ANSWERED_MIN || time < GROUP_SLOW)
        return false;
    if (gathering->rest > 0) {
        gathering->rest--;
        return false;
    }
    gathering->awaited = answered;
    gathering->came = 0;
    gathering->step = time / STEPS;
    gathering->steps = 0;
    return true;
}

int64_t
gather_next(struct gathering *gathering, size_t came)
{
    check(came >= gathering->came);
    bool is_in_vain = came < gathering->awaited / 2;
    bool is_over = came >= gathering->awaited || gathering->steps == STEPS_MAX ||
                   (gathering->steps >= STEPS_LEAST && (is_in_vain || came == gathering->came));
    gathering->came = came;
    if (!is_over) {
        gathering->steps++;
        return gathering->step;
    }
    if (is_in_vain)
        gathering->rest = REST;
    return 0;
}
