/* deadline.c - when something of a run is due next.
 *
 * A run has one wake-up timer, so one place must know all that could be due. Each part says its own
 * next moment (0: none), and the earliest counts. A step need not ask them all: what it did not
 * change is not due before the timer that is set (finish.c). */
#include "engine/run/inside.h"

int64_t
deadline_earlier(int64_t one, int64_t other)
{
    if (one == 0 || other == 0)
        return one + other;
    return one < other ? one : other;
}

/* A moment `seconds` after another; 0 when there is no such timeout. */
static int64_t
later_by(int64_t moment, int64_t seconds)
{
    if (seconds <= 0)
        return 0;
    int64_t sum;
    if (__builtin_mul_overflow(seconds, SECOND, &sum) || __builtin_add_overflow(sum, moment, &sum))
        return INT64_MAX;
    return sum;
}

int64_t
decision_next_due(const STORED(PendingDecision) *decision)
{
    if (decision->started_id == EVENT_NONE)
        return decision->schedule_timeout_time;
    int64_t due = later_by(decision->started_time, decision->timeout);
    return due == 0 ? decision->started_time : due;
}

int64_t
run_foreseen_deadline(const STORED(RunRecord) *core)
{
    const STORED(PendingDecision) *decision = core->decision;
    if (decision == NULL || decision->started_id != EVENT_NONE)
        return 0;
    return later_by(decision->scheduled_time, decision->timeout);
}

static int64_t
decision_deadline(const STORED(RunRecord) *core)
{
    const STORED(PendingDecision) *decision = core->decision;
#ifdef CADENZA_FAULT_orphans_wait
    if (decision == NULL && core->waits_for_parent)
        return 0;
#endif
    /* One failed often and waits for its next attempt; or it has failed in another cluster, or was
     * closed by a failover: the next one is due as soon as the run is active here. */
    if (decision == NULL && core->decision_attempt > 0)
        return core->decision_retry_time != 0 ? core->decision_retry_time : core->last_event_time;
    if (decision == NULL)
        return core->waits_for_parent ? core->ask_parent_time : core->first_decision_time;
    return decision_next_due(decision);
}

int64_t
run_core_deadline(const STORED(RunRecord) *core)
{
    int64_t deadline = deadline_earlier(core->timeout_time, decision_deadline(core));
    return deadline_earlier(deadline, core->auto_reset_time);
}

struct activity_due
activity_next_due(const STORED(PendingActivity) *activity)
{
    bool is_started = activity->started_id != EVENT_NONE;
    int64_t beat = activity->heartbeat_time > activity->started_time ? activity->heartbeat_time
                                                                     : activity->started_time;
    const struct activity_due all[] = {
        {is_started || activity->row != 0 ? 0 : activity->scheduled_time, DUE_DISPATCH},
        {is_started ? later_by(activity->started_time, activity->start_to_close) : 0,
         DUE_START_TO_CLOSE},
        {is_started ? 0 : later_by(activity->scheduled_time, activity->schedule_to_start),
         DUE_SCHEDULE_TO_START},
        {later_by(activity->scheduled_time, activity->schedule_to_close), DUE_SCHEDULE_TO_CLOSE},
        {is_started ? later_by(beat, activity->heartbeat_timeout) : 0, DUE_HEARTBEAT},
    };
    struct activity_due due = {0, DUE_NOTHING};
    for (size_t i = 0; i < array_length(all); i++)
        if (all[i].time != 0 && (due.time == 0 || all[i].time < due.time))
            due = all[i];
    return due;
}

int64_t
run_next_deadline(const struct run *run)
{
    if (!run_is_open(run))
        return run->core->delete_time;
    if (run_is_zombie(run))
        return 0;
    int64_t deadline = run_core_deadline(run->core);
    size_t cursor = 0;
    void *value;
    while (map64_next(run->activities, &cursor, NULL, &value))
        deadline = deadline_earlier(deadline, activity_next_due(value).time);
    cursor = 0;
    while (map_next(run->timers, &cursor, NULL, &value))
        deadline = deadline_earlier(deadline, ((const STORED(PendingTimer) *)value)->fire_time);
    return deadline;
}
