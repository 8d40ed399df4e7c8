/* plan.c - what a schedule's run does next. See schedule.h.
 *
 * One activity at a time. What waits is taken in the order in which it came: those in the buffer,
 * those that were missed, those that are ready, at last backfills. Under BUFFER the first one of
 * them that must wait holds up all behind it but backfills of another policy. */
#include "schedule/inside.h"

#define EVENTS_MIN 30           /* of a run, however large what it starts may be */
#define BATCH_MAX  ((size_t)50) /* fires of one activity */

/* --- which fires ---- */

struct pick {
    STORED(ScheduleOrigin) origin;
    STORED(ScheduleFire) **fires;
    size_t count;
};

static void
pick_queue(STORED(ScheduleFire) **queue, size_t count, STORED(ScheduleOrigin) origin,
           struct pick *pick)
{
    pick->origin = origin;
    pick->fires = queue;
    pick->count = count < BATCH_MAX ? count : BATCH_MAX;
}

static void
pick_range(const struct schedule *schedule, const STORED(ScheduleRange) *range,
           STORED(ScheduleOrigin) origin, struct pick *pick)
{
    int64_t nominal = range->after;
    pick->origin = origin;
    pick->fires = arena_zalloc(schedule->arena, BATCH_MAX, sizeof *pick->fires);
    while (pick->count < BATCH_MAX) {
        nominal = schedule_next(schedule, nominal);
        if (nominal == CRON_NEVER || nominal > range->until)
            break;
        STORED(ScheduleFire) *fire = schedule_new_fire(schedule->arena, nominal);
        fire->backfill_id = range->backfill_id;
        fire->overlap_policy = range->overlap_policy;
        pick->fires[pick->count++] = fire;
    }
}

static bool
buffers(const struct schedule *schedule, const STORED(ScheduleRange) *range)
{
    STORED(ScheduleFire) fire;
    cadenza__storage__v1__schedule_fire__init(&fire);
    fire.overlap_policy = range == NULL ? OVERLAP(INVALID) : range->overlap_policy;
    return schedule_overlap(schedule->definition->policies, &fire) == OVERLAP(BUFFER);
}

static bool
pauses_on_failure(const struct schedule *schedule)
{
    return schedule->definition->policies != NULL &&
           schedule->definition->policies->pause_on_failure;
}

/* Is there a run that may still be open, and is it too early to look again? */
static bool
waits(const struct schedule *schedule, int64_t now)
{
    return schedule->progress->n_running > 0 && schedule->progress->look_time > now;
}

static bool
pick_fires(const struct schedule *schedule, int64_t now, struct pick *pick)
{
    const STORED(ScheduleProgress) *progress = schedule->progress;
    bool is_held = buffers(schedule, NULL) && waits(schedule, now);
    if (progress->n_buffered > 0 && !is_held)
        pick_queue(progress->buffered, progress->n_buffered, ORIGIN(BUFFERED), pick);
    else if (progress->n_buffered == 0 && progress->n_missed > 0 && !is_held)
        pick_range(schedule, progress->missed[0], ORIGIN(MISSED), pick);
    else if (progress->n_buffered == 0 && progress->n_missed == 0 && progress->n_ready > 0)
        pick_queue(progress->ready, progress->n_ready, ORIGIN(READY), pick);
    else if (progress->n_backfills > 0 &&
             !(buffers(schedule, progress->backfills[0]) && waits(schedule, now)))
        pick_range(schedule, progress->backfills[0], ORIGIN(BACKFILL), pick);
    if (pick->count > 0)
        return true;
    return pauses_on_failure(schedule) && progress->n_running > 0 && !waits(schedule, now);
}

static void
fire(struct schedule *schedule, const struct pick *pick, struct schedule_plan *plan)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    check(!progress->is_firing && !progress->is_paused && pick->count <= BATCH_MAX);
    STORED(ScheduleTask) *task = message_new(schedule->arena, STORED_TYPE(schedule_task));
    task->schedule_id = schedule->definition->schedule_id;
    task->create_time = progress->create_time;
    task->action = schedule->definition->action;
    task->policies = schedule->definition->policies;
    task->fires = pick->fires;
    task->n_fires = pick->count;
    task->running = progress->running;
    task->n_running = progress->n_running;
    progress->is_firing = true;
    progress->firing_origin = pick->origin;
    progress->firing = pick->fires;
    progress->n_firing = pick->count;
    plan->fires = true;
    plan->fire_task = message_encode(schedule->arena, &task->base);
}

/* Behind those that wait already there is no need to ask. */
static void
fill_buffer(struct schedule *schedule)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    if (progress->n_buffered == 0 || progress->n_missed > 0)
        return;
    schedule_buffer(schedule, progress->ready, progress->n_ready);
    progress->n_ready = 0;
}

/* --- when next ---- */

char *
schedule_timer_id(int64_t number, struct arena *arena)
{
    return arena_format(arena, "timer-%lld", (long long)number);
}

static bool
needs_check(const struct schedule *schedule)
{
    const STORED(ScheduleProgress) *progress = schedule->progress;
    return progress->n_running > 0 && !progress->is_firing &&
           (progress->n_buffered + progress->n_missed + progress->n_backfills > 0 ||
            pauses_on_failure(schedule));
}

/* NEVER is 0. */
static int64_t
next_time(const struct schedule *schedule, int64_t now)
{
    const STORED(ScheduleProgress) *progress = schedule->progress;
    int64_t nominal = schedule_next(schedule, progress->watermark), time = 0;
    if (progress->is_paused)
        return 0;
    if (nominal != CRON_NEVER)
        time = schedule_due(schedule, nominal);
    if (needs_check(schedule) && (time == 0 || progress->look_time < time))
        time = progress->look_time;
    return time > now ? time : 0; /* what is late waits for an activity to end */
}

static void
set_timer(struct schedule *schedule, int64_t now, struct schedule_plan *plan)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    int64_t time = next_time(schedule, now);
    if (time == 0 || (progress->timer_time != 0 && progress->timer_time <= time))
        return;
    if (progress->timer_time != 0)
        plan->cancels_timer = schedule_timer_id(progress->timer_number, schedule->arena);
    check(time > now);
    progress->timer_time = time;
    progress->timer_number++;
    plan->has_timer = true;
    plan->timer_id = schedule_timer_id(progress->timer_number, schedule->arena);
    plan->timer_seconds = seconds_up(time - now);
    check(plan->timer_seconds > 0);
}

/* --- ends ---- */

/* Nothing is left to do, for ever? */
static bool
is_over(const struct schedule *schedule)
{
    const STORED(ScheduleProgress) *progress = schedule->progress;
    if (progress->is_deleted)
        return true;
    size_t waiting =
        progress->n_ready + progress->n_buffered + progress->n_missed + progress->n_backfills;
    return !progress->is_paused && !progress->is_firing && waiting == 0 &&
           schedule_next(schedule, progress->watermark) == CRON_NEVER &&
           !(pauses_on_failure(schedule) && progress->n_running > 0);
}

static void
continue_as_new(struct schedule *schedule, struct schedule_plan *plan)
{
    check(!schedule->progress->is_firing);
    STORED(ScheduleInput) *input = message_new(schedule->arena, STORED_TYPE(schedule_input));
    schedule->progress->timer_time = 0;
    input->definition = schedule->definition;
    input->progress = schedule->progress;
    plan->continues = true;
    plan->input = message_encode(schedule->arena, &input->base);
}

static bool
is_long(const struct schedule *schedule, const struct schedule_now *now)
{
    bool is_large = now->bytes >= now->limits.bytes && now->events >= EVENTS_MIN;
    return now->events >= now->limits.events || is_large ||
           now->time - schedule->run_start >= now->limits.age;
}

void
schedule_plan(struct schedule *schedule, const struct schedule_now *now, struct schedule_plan *plan)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    struct pick pick = {.origin = ORIGIN(NONE)};
    check(schedule->definition != NULL && schedule->arena != NULL);
    struct slice before = message_encode(schedule->arena, &progress->base);
    schedule_advance(schedule, now->time);
    if (!progress->is_paused && !progress->is_firing)
        schedule_drop_empty(schedule);
    plan->is_over = is_over(schedule);
    if (plan->is_over)
        return;
    if (!progress->is_firing && is_long(schedule, now)) {
        continue_as_new(schedule, plan);
        return;
    }
    fill_buffer(schedule);
    if (!progress->is_paused && !progress->is_firing && pick_fires(schedule, now->time, &pick))
        fire(schedule, &pick, plan);
    set_timer(schedule, now->time, plan);
    plan->marker = message_encode(schedule->arena, &progress->base);
    plan->has_marker = !slice_equal(before, plan->marker);
    check(plan->has_marker || !(plan->fires || plan->has_timer)); /* both change the progress */
    API(SearchAttributes) *attributes =
        schedule_attributes(schedule->definition, progress->is_paused, schedule->arena);
    if (!slice_equal(message_encode(schedule->arena, &attributes->base), schedule->shown))
        plan->upsert = attributes;
}
