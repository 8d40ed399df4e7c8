/* aboard.c - an activity that is stored in the row of its run.
 *
 * Each step writes that row anyway, and most runs have one activity at a time: stored with the run
 * it costs no rows. Only one that is small and was alone when it came is taken aboard, so that the
 * steps of a run with many, or with large ones, write what changed and little more. It stays until
 * it ends, or grows by the details of a heartbeat or the failure of an attempt: then it gets a row
 * like the others.
 *
 * In memory it is a record like all others; the run knows which one it is. */
#include "engine/run/inside.h"

/* As it is stored: a large input is not (input.c). */
static bool
is_small(const STORED(PendingActivity) *activity)
{
    return (activity->header == NULL || activity->header->n_fields == 0) &&
           activity->heartbeat_details == NULL && activity->last_failure == NULL;
}

/* Did it come with this step, so that it has no row? */
static bool
is_new(const struct mutation *mutation, int64_t schedule_id)
{
    for (size_t i = 0; i < mutation->journal.count; i++) {
        const struct run_change *change = &mutation->journal.items[i];
        if (change->kind == PENDING_ACTIVITY && (int64_t)change->number == schedule_id)
            return change->old == NULL; /* the first change tells */
    }
    return false;
}

/* The only activity of the run, if it came with this step. */
static const STORED(PendingActivity) *
find_newcomer(const struct mutation *mutation)
{
    size_t cursor = 0;
    void *value = NULL;
    if (map64_count(mutation->run->activities) != 1 ||
        !map64_next(mutation->run->activities, &cursor, NULL, &value))
        return NULL;
    const STORED(PendingActivity) *activity = value;
    return is_new(mutation, activity->schedule_id) ? activity : NULL;
}

void
aboard_choose(struct mutation *mutation)
{
    struct run *run = mutation->run;
    const STORED(PendingActivity) *activity = run_find_activity(run, run->aboard);
    if (activity == NULL)
        activity = find_newcomer(mutation);
    run->aboard = activity != NULL && is_small(activity) ? activity->schedule_id : 0;
}

STORED(PendingActivity) *
aboard_find(const struct run *run)
{
    if (run->aboard == 0)
        return NULL;
    STORED(PendingActivity) *activity = map64_get(run->activities, (uint64_t)run->aboard);
    check(activity != NULL);
    return activity;
}

bool
aboard_leave(struct run *run)
{
    STORED(PendingActivity) *activity = run->core->activity;
    if (activity == NULL)
        return true;
    if (activity->schedule_id <= 0)
        return false;
    check(run->aboard == 0);
    run->aboard = activity->schedule_id;
    records_set(run, PENDING_ACTIVITY, (uint64_t)activity->schedule_id, NULL, activity);
    run->core->activity = NULL;
    return true;
}
