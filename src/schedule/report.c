/* report.c - what came of fires. See schedule.h.
 *
 * Fires wait where they came from until their outcome is known, and are found there again by their
 * times: a signal may have changed everything meanwhile. */
#include "schedule/inside.h"

#define CHECK_FIRST  (1 * NANOSECONDS) /* how soon a workflow that is waited for is looked at */
#define CHECK_LAST   (30 * NANOSECONDS)
#define CHECK_SHARE  10  /* ... or a tenth of how long it has taken so far */
#define FINISHED_MAX 100 /* ids of backfills that are remembered */

/* --- where fires wait ---- */

static bool
drop_from_queue(STORED(ScheduleFire) ***queue, size_t *count, const STORED(ScheduleFire) *fire)
{
    if (*count == 0 || (*queue)[0]->nominal != fire->nominal)
        return false;
    array_drop_first(*queue, *count, 1);
    return true;
}

static void
finish_backfill(struct schedule *schedule)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    check(progress->n_backfills > 0);
    char *id = progress->backfills[0]->backfill_id;
    if (progress->n_finished_backfills >= FINISHED_MAX)
        array_drop_first(progress->finished_backfills, progress->n_finished_backfills, 1);
    array_push(schedule->arena, progress->finished_backfills, progress->n_finished_backfills, id);
    array_drop_first(progress->backfills, progress->n_backfills, 1);
}

static void
drop_from_range(struct schedule *schedule, STORED(ScheduleRange) ***ranges, size_t *count,
                const STORED(ScheduleFire) *fire)
{
    if (*count == 0 || strcmp((*ranges)[0]->backfill_id, fire->backfill_id) != 0)
        return;
    STORED(ScheduleRange) *range = message_copy(schedule->arena, &(*ranges)[0]->base);
    STORED(ScheduleRange) **changed = array_grown(schedule->arena, *ranges, *count);
    range->after = fire->nominal;
    range->runs_completed++;
    changed[0] = range;
    *ranges = changed;
}

/* The fire has its outcome. */
static void
drop_fire(struct schedule *schedule, const STORED(ScheduleFire) *fire)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    if (progress->firing_origin == ORIGIN(READY))
        drop_from_queue(&progress->ready, &progress->n_ready, fire);
    else if (progress->firing_origin == ORIGIN(BUFFERED))
        drop_from_queue(&progress->buffered, &progress->n_buffered, fire);
    else if (progress->firing_origin == ORIGIN(MISSED))
        drop_from_range(schedule, &progress->missed, &progress->n_missed, fire);
    else if (progress->firing_origin == ORIGIN(BACKFILL))
        drop_from_range(schedule, &progress->backfills, &progress->n_backfills, fire);
}

static bool
is_over(const struct schedule *schedule, const STORED(ScheduleRange) *range)
{
    return schedule_count(schedule, range->after, range->until, 1) == 0;
}

void
schedule_drop_empty(struct schedule *schedule)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    while (progress->n_missed > 0 && is_over(schedule, progress->missed[0]))
        array_drop_first(progress->missed, progress->n_missed, 1);
    while (progress->n_backfills > 0 && is_over(schedule, progress->backfills[0]))
        finish_backfill(schedule);
}

/* --- the buffer ---- */

void
schedule_buffer(struct schedule *schedule, STORED(ScheduleFire) *const *fires, size_t count)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    const API(SchedulePolicies) *policies = schedule->definition->policies;
    int32_t wanted = policies == NULL ? 0 : policies->buffer_limit;
    size_t limit =
        wanted <= 0 || wanted > SCHEDULE_BUFFER_MAX ? SCHEDULE_BUFFER_MAX : (size_t)wanted;
    for (size_t i = 0; i < count; i++) {
        if (fires[i]->nominal > progress->last_run_time)
            progress->last_run_time = fires[i]->nominal;
        if (progress->n_buffered >= limit)
            progress->skipped_runs++;
        else
            array_push(schedule->arena, progress->buffered, progress->n_buffered,
                       (STORED(ScheduleFire) *)fires[i]);
    }
}

/* Those that were ready and must wait. */
static void
buffer_rest(struct schedule *schedule, size_t done)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    if (progress->firing_origin != ORIGIN(READY))
        return;
    for (size_t i = done; i < progress->n_firing; i++)
        if (drop_from_queue(&progress->ready, &progress->n_ready, progress->firing[i]))
            schedule_buffer(schedule, &progress->firing[i], 1);
}

/* --- runs ---- */

static void
forget_run(struct schedule *schedule, const STORED(ScheduleRun) *run)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    STORED(ScheduleRun) **left = array_grown(schedule->arena, NULL, 0);
    size_t count = 0;
    if (progress->n_running > 0)
        left = array_grown(schedule->arena, progress->running, progress->n_running);
    for (size_t i = 0; i < progress->n_running; i++)
        if (strcmp(progress->running[i]->run_id, run->run_id) != 0)
            left[count++] = progress->running[i];
    progress->running = left;
    progress->n_running = count;
}

/* Only the last run matters, unless each does. */
static void
trim_runs(struct schedule *schedule)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    const API(SchedulePolicies) *policies = schedule->definition->policies;
    bool needs_all =
        policies != NULL &&
        (policies->pause_on_failure ||
         (policies->concurrency_limit > 0 && policies->overlap_policy == OVERLAP(CONCURRENT)));
    size_t most = needs_all ? SCHEDULE_RUNNING_MAX : 1;
    if (progress->n_running > most)
        array_drop_first(progress->running, progress->n_running, progress->n_running - most);
}

static bool
is_failure(API(WorkflowExecutionCloseStatus) status)
{
    return status ==
               API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_FAILED) ||
           status ==
               API_VALUE(
                   WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_TIMED_OUT);
}

static void
close_run(struct schedule *schedule, const STORED(ScheduleClosed) *closed, int64_t now)
{
    const API(SchedulePolicies) *policies = schedule->definition->policies;
    if (closed->run == NULL)
        return; /* not one of the server's own reports */
    forget_run(schedule, closed->run);
    if (policies != NULL && policies->pause_on_failure && is_failure(closed->close_status))
        schedule_pause(schedule,
                       arena_format(schedule->arena, "workflow %s (run %s) failed",
                                    closed->run->workflow_id, closed->run->run_id),
                       SCHEDULE_IDENTITY, now);
}

/* --- all of it ---- */

static void
take_outcome(struct schedule *schedule, const STORED(ScheduleFire) *fire,
             const STORED(ScheduleOutcome) *outcome)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    if (fire->nominal > progress->last_run_time)
        progress->last_run_time = fire->nominal;
    progress->total_runs += outcome->end == END(STARTED);
    progress->skipped_runs += outcome->end == END(SKIPPED);
    progress->missed_runs += outcome->end == END(REFUSED);
    if (outcome->run != NULL && outcome->run->run_id[0] != '\0') {
        forget_run(schedule, outcome->run);
        array_push(schedule->arena, progress->running, progress->n_running,
                   (STORED(ScheduleRun) *)outcome->run);
    }
    drop_fire(schedule, fire);
}

static void
set_look_time(struct schedule *schedule, bool has_started, int64_t now)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    if (progress->n_running == 0) {
        progress->waiting_since = progress->look_time = 0;
        return;
    }
    if (has_started || progress->waiting_since == 0)
        progress->waiting_since = now;
    int64_t delay = (now - progress->waiting_since) / CHECK_SHARE;
    delay = delay < CHECK_FIRST ? CHECK_FIRST : delay > CHECK_LAST ? CHECK_LAST : delay;
    progress->look_time = now + delay;
}

void
schedule_forget_firing(struct schedule *schedule)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    progress->is_firing = false;
    progress->firing_event_id = 0;
    progress->firing_origin = ORIGIN(NONE);
    progress->n_firing = 0;
    schedule_drop_empty(schedule);
}

void
schedule_report(struct schedule *schedule, const STORED(ScheduleReport) *report, int64_t now)
{
    const STORED(ScheduleProgress) *progress = schedule->progress;
    bool has_started = false;
    size_t count =
        report->n_outcomes < progress->n_firing ? report->n_outcomes : progress->n_firing;
    for (size_t i = 0; i < count; i++) {
        take_outcome(schedule, progress->firing[i], report->outcomes[i]);
        has_started |= report->outcomes[i]->end == END(STARTED);
    }
    buffer_rest(schedule, count);
    for (size_t i = 0; i < report->n_closed; i++)
        close_run(schedule, report->closed[i], now);
    trim_runs(schedule);
    set_look_time(schedule, has_started, now);
    schedule_forget_firing(schedule);
}
