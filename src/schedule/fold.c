/* fold.c - a schedule from the events of its run. See schedule.h. */
#include "schedule/inside.h"

#define FORMAT    1
#define COUNT_MAX (INT64_C(1) << 60) /* more was never counted */

/* --- beginning ---- */

/* Where a window counts and none is given, it is a year. */
static void
set_default_window(STORED(ScheduleDefinition) *definition, struct arena *arena)
{
    API(SchedulePolicies) *policies = definition->policies;
    bool has_use =
        policies->catch_up_policy == CATCH_UP(ONE) || policies->catch_up_policy == CATCH_UP(ALL);
    if (has_use && duration_of(policies->catch_up_window) <= 0)
        policies->catch_up_window = presence_make_duration(arena, SCHEDULE_WINDOW);
}

struct slice
schedule_first_input(const API(CreateScheduleRequest) *request, struct arena *arena)
{
    STORED(ScheduleInput) *input = message_new(arena, STORED_TYPE(schedule_input));
    input->definition = message_new(arena, STORED_TYPE(schedule_definition));
    input->progress = message_new(arena, STORED_TYPE(schedule_progress));
    input->progress->format = FORMAT;
    input->definition->schedule_id = request->schedule_id;
    input->definition->spec = request->spec;
    input->definition->action = request->action;
    input->definition->policies = request->policies == NULL
                                      ? message_new(arena, API_TYPE(schedule_policies))
                                      : message_copy(arena, &request->policies->base);
    input->definition->memo = request->memo;
    input->definition->search_attributes = request->search_attributes;
    set_default_window(input->definition, arena);
    if (request->state != NULL && request->state->paused) {
        input->progress->is_paused = true;
        if (request->state->pause_info != NULL) {
            input->progress->pause_reason = request->state->pause_info->reason;
            input->progress->paused_by = request->state->pause_info->paused_by;
        }
    }
    return message_encode(arena, &input->base);
}

static void
begin_first(STORED(ScheduleProgress) *progress, int64_t now)
{
    progress->create_time = progress->update_time = now;
    progress->watermark = seconds_down(now);
    if (progress->is_paused)
        progress->paused_at = now;
}

/* The server writes inputs and markers, but a domain's users could write their own: nothing in them
 * may lead out of the range of times. */
static void
clean_fires(STORED(ScheduleFire) **fires, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fires[i]->nominal = seconds_clamped(fires[i]->nominal);
}

static void
clean_ranges(STORED(ScheduleRange) **ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ranges[i]->after = seconds_clamped(ranges[i]->after);
        ranges[i]->until = seconds_clamped(ranges[i]->until);
    }
}

static STORED(ScheduleProgress) *
clean(STORED(ScheduleProgress) *progress)
{
    int64_t *const clocks[] = {&progress->create_time,   &progress->update_time,
                               &progress->paused_at,     &progress->look_time,
                               &progress->waiting_since, &progress->timer_time};
    int64_t *const counts[] = {&progress->total_runs, &progress->missed_runs,
                               &progress->skipped_runs, &progress->timer_number};
    for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++)
        if (seconds_clamped(seconds_down(*clocks[i])) != seconds_down(*clocks[i]))
            *clocks[i] = 0;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (*counts[i] < 0 || *counts[i] > COUNT_MAX)
            *counts[i] = 0;
    progress->watermark = seconds_clamped(progress->watermark);
    progress->last_run_time = seconds_clamped(progress->last_run_time);
    clean_fires(progress->ready, progress->n_ready);
    clean_fires(progress->buffered, progress->n_buffered);
    clean_fires(progress->firing, progress->n_firing);
    clean_ranges(progress->missed, progress->n_missed);
    clean_ranges(progress->backfills, progress->n_backfills);
    return progress;
}

static void
keep_shown(struct schedule *schedule, const API(SearchAttributes) *attributes)
{
    schedule->shown =
        attributes == NULL ? (struct slice){0} : message_encode(schedule->arena, &attributes->base);
}

static void
begin(struct schedule *schedule, const API(HistoryEvent) *event)
{
    const API(WorkflowExecutionStartedEventAttributes) *started =
        event->workflow_execution_started_event_attributes;
    STORED(ScheduleInput) *input = NULL;
    struct error *err = message_decode_as(schedule->arena, ERR_CORRUPT, STORED_TYPE(schedule_input),
                                          presence_read_payload(started->input).bytes, &input);
    const STORED(ScheduleDefinition) *definition = err == NULL ? input->definition : NULL;
    if (definition == NULL || input->progress == NULL || definition->spec == NULL ||
        definition->action == NULL || definition->action->start_workflow == NULL)
        return; /* a user started it by hand */
    schedule->definition = input->definition;
    schedule->progress = clean(input->progress);
    schedule->run_start = timestamp_of(event->event_time);
    if (schedule->progress->create_time == 0)
        begin_first(schedule->progress, schedule->run_start);
    keep_shown(schedule, started->search_attributes);
    schedule_read_cron(schedule);
}

/* --- going on ---- */

static void
take_marker(struct schedule *schedule, const API(MarkerRecordedEventAttributes) *marker)
{
    STORED(ScheduleProgress) *progress = NULL;
    if (strcmp(marker->marker_name, SCHEDULE_MARKER) != 0)
        return;
    struct error *err =
        message_decode_as(schedule->arena, ERR_CORRUPT, STORED_TYPE(schedule_progress),
                          presence_read_payload(marker->details).bytes, &progress);
    if (err == NULL)
        schedule->progress = clean(progress);
}

static void
take_result(struct schedule *schedule, const API(ActivityTaskCompletedEventAttributes) *completed,
            int64_t now)
{
    STORED(ScheduleReport) *report = NULL;
    struct error *err =
        message_decode_as(schedule->arena, ERR_CORRUPT, STORED_TYPE(schedule_report),
                          presence_read_payload(completed->result).bytes, &report);
    if (err == NULL)
        schedule_report(schedule, report, now);
    else
        schedule_forget_firing(schedule);
}

static void
take_activity(struct schedule *schedule, const API(HistoryEvent) *event, int64_t now)
{
    const STORED(ScheduleProgress) *progress = schedule->progress;
    int64_t id = 0;
    if (event->attributes_case == EVENT(ACTIVITY_TASK_COMPLETED))
        id = event->activity_task_completed_event_attributes->scheduled_event_id;
    else if (event->attributes_case == EVENT(ACTIVITY_TASK_FAILED))
        id = event->activity_task_failed_event_attributes->scheduled_event_id;
    else if (event->attributes_case == EVENT(ACTIVITY_TASK_TIMED_OUT))
        id = event->activity_task_timed_out_event_attributes->scheduled_event_id;
    else if (event->attributes_case == EVENT(ACTIVITY_TASK_CANCELED))
        id = event->activity_task_canceled_event_attributes->scheduled_event_id;
    if (!progress->is_firing || id != progress->firing_event_id)
        return;
    if (event->attributes_case == EVENT(ACTIVITY_TASK_COMPLETED))
        take_result(schedule, event->activity_task_completed_event_attributes, now);
    else
        schedule_forget_firing(schedule); /* and it is asked for again */
}

static void
take_timer(struct schedule *schedule, const API(TimerFiredEventAttributes) *fired)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    if (strcmp(fired->timer_id, schedule_timer_id(progress->timer_number, arena)) == 0)
        progress->timer_time = 0;
}

static void
take_signal(struct schedule *schedule, const API(HistoryEvent) *event, int64_t now)
{
    const API(WorkflowExecutionSignaledEventAttributes) *signaled =
        event->workflow_execution_signaled_event_attributes;
    schedule_signal(schedule, signaled->signal_name, presence_read_payload(signaled->input).bytes,
                    event->event_id, now);
}

void
schedule_fold(struct schedule *schedule, const API(HistoryEvent) *event, struct arena *arena)
{
    schedule->arena = arena;
    if (event->attributes_case == EVENT(WORKFLOW_EXECUTION_STARTED))
        begin(schedule, event);
    if (schedule->definition == NULL)
        return;
    int64_t now = timestamp_of(event->event_time);
    switch ((int)event->attributes_case) {
    case EVENT(MARKER_RECORDED):
        take_marker(schedule, event->marker_recorded_event_attributes);
        break;
    case EVENT(WORKFLOW_EXECUTION_SIGNALED):
        take_signal(schedule, event, now);
        break;
    case EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED):
        schedule->progress->is_deleted = true;
        break;
    case EVENT(TIMER_FIRED):
        take_timer(schedule, event->timer_fired_event_attributes);
        break;
    case EVENT(ACTIVITY_TASK_SCHEDULED):
        schedule->progress->firing_event_id = event->event_id;
        break;
    case EVENT(UPSERT_WORKFLOW_SEARCH_ATTRIBUTES):
        keep_shown(schedule,
                   event->upsert_workflow_search_attributes_event_attributes->search_attributes);
        break;
    default:
        take_activity(schedule, event, now);
    }
}
