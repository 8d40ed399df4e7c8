/* describe.c - a schedule as its users see it. See schedule.h. */
#include "schedule/inside.h"

static API(ScheduleState) *
make_state(const STORED(ScheduleProgress) *progress, struct arena *arena)
{
    API(ScheduleState) *state = message_new(arena, API_TYPE(schedule_state));
    state->paused = progress->is_paused;
    if (!progress->is_paused)
        return state;
    state->pause_info = message_new(arena, API_TYPE(schedule_pause_info));
    state->pause_info->reason = progress->pause_reason;
    state->pause_info->paused_by = progress->paused_by;
    state->pause_info->paused_at = presence_make_timestamp(arena, progress->paused_at);
    return state;
}

static int32_t
at_most_int32(int64_t number)
{
    return number > INT32_MAX ? INT32_MAX : (int32_t)number;
}

static API(BackfillInfo) *
make_backfill(const STORED(ScheduleRange) *range, struct arena *arena)
{
    API(BackfillInfo) *info = message_new(arena, API_TYPE(backfill_info));
    info->backfill_id = range->backfill_id;
    info->start_time = presence_make_timestamp(arena, range->start_time);
    info->end_time = presence_make_timestamp(arena, range->end_time);
    info->runs_completed = at_most_int32(range->runs_completed);
    info->runs_total = at_most_int32(range->runs_total);
    return info;
}

/* The next time that is still to come, or that is being looked at. */
static int64_t
next_run(const struct schedule *schedule, int64_t now)
{
    int64_t from = schedule_seek(schedule, schedule->progress->watermark, seconds_down(now) + 1);
    return schedule->progress->is_paused ? CRON_NEVER : schedule_next(schedule, from);
}

static API(ScheduleInfo) *
make_info(const struct schedule *schedule, int64_t now, struct arena *arena)
{
    const STORED(ScheduleProgress) *progress = schedule->progress;
    API(ScheduleInfo) *info = message_new(arena, API_TYPE(schedule_info));
    int64_t next = next_run(schedule, now);
    if (progress->last_run_time != 0)
        info->last_run_time = presence_make_timestamp(arena, progress->last_run_time * NANOSECONDS);
    if (next != CRON_NEVER)
        info->next_run_time = presence_make_timestamp(arena, next * NANOSECONDS);
    info->total_runs = progress->total_runs;
    info->missed_runs = progress->missed_runs;
    info->skipped_runs = progress->skipped_runs;
    info->buffered_fire_count = (int64_t)progress->n_buffered;
    info->running_workflow_count = (int64_t)progress->n_running;
    info->create_time = presence_make_timestamp(arena, progress->create_time);
    info->last_update_time = presence_make_timestamp(arena, progress->update_time);
    info->n_ongoing_backfills = progress->n_backfills;
    info->ongoing_backfills =
        arena_zalloc(arena, progress->n_backfills + 1, sizeof *info->ongoing_backfills);
    for (size_t i = 0; i < progress->n_backfills; i++)
        info->ongoing_backfills[i] = make_backfill(progress->backfills[i], arena);
    return info;
}

void
schedule_describe(const struct schedule *schedule, int64_t now, struct arena *arena,
                  API(DescribeScheduleResponse) *response)
{
    check(schedule->definition != NULL);
    response->spec = schedule->definition->spec;
    response->action = schedule->definition->action;
    response->policies = schedule->definition->policies;
    response->memo = schedule->definition->memo;
    response->search_attributes = schedule->definition->search_attributes;
    response->state = make_state(schedule->progress, arena);
    response->info = make_info(schedule, now, arena);
}
