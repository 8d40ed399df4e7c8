/* advance.c - what is due, and what was missed. See schedule.h.
 *
 * Each nominal time is looked at once: the watermark moves over it, and it goes to those that are
 * ready, into a range of missed ones that is caught up with, or is counted as missed. The one that
 * was waited for is ready however late it is; if more of them passed meanwhile (no decision was
 * taken), those that are not late are ready too, and the catch-up policy has the rest. */
#include "schedule/inside.h"

#define READY_MAX ((size_t)1000) /* what is more waits behind the watermark */
#define COUNT_MAX (INT64_C(1) << 40)

STORED(ScheduleFire) *
schedule_new_fire(struct arena *arena, int64_t nominal)
{
    STORED(ScheduleFire) *fire = message_new(arena, STORED_TYPE(schedule_fire));
    fire->nominal = nominal;
    return fire;
}

API(ScheduleOverlapPolicy)
schedule_overlap(const API(SchedulePolicies) *policies, const STORED(ScheduleFire) *fire)
{
    if (fire != NULL && fire->overlap_policy != OVERLAP(INVALID))
        return fire->overlap_policy;
    if (policies != NULL && policies->overlap_policy != OVERLAP(INVALID))
        return policies->overlap_policy;
    return OVERLAP(SKIP_NEW);
}

static void
make_ready(struct schedule *schedule, int64_t nominal)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    array_push(schedule->arena, progress->ready, progress->n_ready,
               schedule_new_fire(schedule->arena, nominal));
    if (nominal > progress->watermark)
        progress->watermark = nominal;
}

static void
push_missed(struct schedule *schedule, int64_t after, int64_t until)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    STORED(ScheduleRange) *range = message_new(schedule->arena, STORED_TYPE(schedule_range));
    range->after = after;
    range->until = until;
    array_push(schedule->arena, progress->missed, progress->n_missed, range);
}

static API(ScheduleCatchUpPolicy)
own_policy(const struct schedule *schedule)
{
    const API(SchedulePolicies) *policies = schedule->definition->policies;
    return policies == NULL ? CATCH_UP(SKIP) : policies->catch_up_policy;
}

/* The oldest nominal time that is still worth it. */
static int64_t
window_begins(const struct schedule *schedule, int64_t now)
{
    const API(SchedulePolicies) *policies = schedule->definition->policies;
    int64_t window = policies == NULL ? 0 : duration_of(policies->catch_up_window);
    if (window <= 0)
        window = SCHEDULE_WINDOW * NANOSECONDS;
    return seconds_up(now - window);
}

/* The times behind the watermark up to one were missed. */
static void
miss(struct schedule *schedule, int64_t until, API(ScheduleCatchUpPolicy) policy, int64_t now)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    int64_t after = progress->watermark;
    int64_t last = schedule_last(schedule, after, until);
    if (last == CRON_NEVER)
        return;
    check(last > after); /* the watermark only rises: each time is looked at once */
    int64_t oldest = schedule_seek(schedule, after, window_begins(schedule, now));
    int64_t fresh = schedule_count(schedule, oldest, last, COUNT_MAX);
    int64_t lost = schedule_count(schedule, after, last, COUNT_MAX);
    progress->watermark = last;
    if (policy == CATCH_UP(ALL) && fresh > 0) {
        push_missed(schedule, oldest, last);
        lost -= fresh;
    } else if (policy == CATCH_UP(ONE) && fresh > 0) {
        make_ready(schedule, last);
        lost--;
    }
    progress->missed_runs += lost;
}

void
schedule_catch_up(struct schedule *schedule, API(ScheduleCatchUpPolicy) policy, int64_t now)
{
    int64_t jitter = schedule_jitter(schedule);
    int64_t until = seconds_down(now - jitter), next = until;
    for (size_t i = 0; jitter > 0 && i < READY_MAX; i++) { /* those whose delay is over already */
        next = schedule_next(schedule,
                             schedule_seek(schedule, schedule->progress->watermark, until + 1));
        if (next == CRON_NEVER || schedule_due(schedule, next) > now)
            break;
        until = next;
    }
    miss(schedule, until, policy == CATCH_UP(INVALID) ? own_policy(schedule) : policy, now);
}

static bool
is_due(const struct schedule *schedule, int64_t now, int64_t *nominal)
{
    *nominal = schedule_next(schedule, schedule->progress->watermark);
    return *nominal != CRON_NEVER && schedule_due(schedule, *nominal) <= now &&
           schedule->progress->n_ready < READY_MAX;
}

void
schedule_advance(struct schedule *schedule, int64_t now)
{
    const STORED(ScheduleProgress) *progress = schedule->progress;
    int64_t nominal;
    if (progress->is_paused || progress->is_deleted || !is_due(schedule, now, &nominal))
        return;
    make_ready(schedule, nominal);
    int64_t jitter = schedule_jitter(schedule);
    miss(schedule, seconds_down(now - jitter) - SCHEDULE_LATE, own_policy(schedule), now);
    while (is_due(schedule, now, &nominal))
        make_ready(schedule, nominal);
}
