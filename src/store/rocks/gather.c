/* gather.c - when the committer waits for the callers it has just answered.
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
#define ANSWERED_MIN 2  /* a single one does not wait */

bool
gather_begin(struct group_wait *group_wait, size_t answered, int64_t taken)
{
    check(taken >= 0);
    int64_t usual = group_wait->usual;
    int64_t time = taken < usual ? taken : usual; /* it may have stood still */
    group_wait->usual += (taken - usual) / 8;
    if (answered < ANSWERED_MIN || time < GROUP_SLOW)
        return false;
    if (group_wait->rest > 0) {
        group_wait->rest--;
        return false;
    }
    group_wait->awaited = answered;
    group_wait->came = 0;
    group_wait->step = time / STEPS;
    group_wait->steps = 0;
    return true;
}

int64_t
gather_next(struct group_wait *group_wait, size_t came)
{
    check(came >= group_wait->came);
    check(group_wait->step > 0 && group_wait->steps <= STEPS_MAX);
    bool is_in_vain = came < group_wait->awaited / 2;
    bool is_over = came >= group_wait->awaited || group_wait->steps == STEPS_MAX ||
                   (group_wait->steps >= STEPS_LEAST && (is_in_vain || came == group_wait->came));
    group_wait->came = came;
    if (!is_over) {
        group_wait->steps++;
        return group_wait->step;
    }
    if (is_in_vain)
        group_wait->rest = REST;
    return 0;
}
