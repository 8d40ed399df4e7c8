/* signals.c - what users want of a schedule, as signals that hold their requests. See schedule.h.
 *
 * A signal counts from the moment of its event: what was due before it happens as it would have
 * without it, however late a worker takes the next decision. */
#include "schedule/inside.h"

void
schedule_read_cron(struct schedule *schedule)
{
    const char *text = schedule->definition->spec->cron_expression;
    schedule->has_cron = cron_parse(text, schedule->arena, &schedule->cron) == NULL;
}

void
schedule_pause(struct schedule *schedule, const char *reason, const char *by, int64_t now)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    if (progress->is_paused)
        return;
    schedule_advance(schedule, now);
    progress->is_paused = true;
    progress->pause_reason = arena_text(schedule->arena, reason);
    progress->paused_by = arena_text(schedule->arena, by);
    progress->paused_at = now;
}

static void
unpause(struct schedule *schedule, API(ScheduleCatchUpPolicy) policy, int64_t now)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    if (!progress->is_paused)
        return;
    schedule_catch_up(schedule, policy, now);
    progress->is_paused = false;
    progress->pause_reason = progress->paused_by = "";
    progress->paused_at = 0;
}

/* --- updates ---- */

static void
replace_spec(struct schedule *schedule, const API(ScheduleSpec) *spec, int64_t now)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    struct cron cron;
    if (cron_parse(spec->cron_expression, schedule->arena, &cron) != NULL)
        return; /* the API refuses these */
    bool is_same = strcmp(spec->cron_expression, schedule->definition->spec->cron_expression) == 0;
    if (!is_same) { /* times of another clock */
        for (size_t i = 0; i < progress->n_missed; i++)
            progress->missed_runs += schedule_count(schedule, progress->missed[i]->after,
                                                    progress->missed[i]->until, SCHEDULE_COUNT_MAX);
        progress->n_missed = progress->n_backfills = 0;
        progress->watermark = seconds_down(now);
    }
    schedule->definition->spec = message_copy(schedule->arena, &spec->base);
    schedule_read_cron(schedule);
}

static void
replace_policies(struct schedule *schedule, const API(SchedulePolicies) *policies)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    const API(SchedulePolicies) *before = schedule->definition->policies;
    API(SchedulePolicies) *after = message_copy(schedule->arena, &policies->base);
    if (duration_of(after->catch_up_window) <= 0 && before != NULL)
        after->catch_up_window = before->catch_up_window;
    if (after->overlap_policy != OVERLAP(BUFFER) && progress->n_buffered > 0) {
        progress->skipped_runs += (int64_t)progress->n_buffered;
        progress->n_buffered = 0;
    }
    schedule->definition->policies = after;
}

static void
update(struct schedule *schedule, const API(UpdateScheduleRequest) *request, int64_t now)
{
    STORED(ScheduleDefinition) *definition = schedule->definition;
    schedule_advance(schedule, now);
    if (request->spec != NULL)
        replace_spec(schedule, request->spec, now);
    if (request->action != NULL && request->action->start_workflow != NULL)
        definition->action = message_copy(schedule->arena, &request->action->base);
    if (request->policies != NULL)
        replace_policies(schedule, request->policies);
    if (request->search_attributes != NULL)
        definition->search_attributes =
            message_copy(schedule->arena, &request->search_attributes->base);
    schedule->progress->update_time = now;
}

/* --- backfills ---- */

static bool
is_known(const STORED(ScheduleProgress) *progress, const char *id)
{
    for (size_t i = 0; i < progress->n_backfills; i++)
        if (strcmp(progress->backfills[i]->backfill_id, id) == 0)
            return true;
    for (size_t i = 0; i < progress->n_finished_backfills; i++)
        if (strcmp(progress->finished_backfills[i], id) == 0)
            return true;
    return false;
}

bool
schedule_has_room(const struct schedule *schedule, const char *backfill_id)
{
    const STORED(ScheduleProgress) *progress = schedule->progress;
    return progress->n_backfills < SCHEDULE_BACKFILLS_MAX || is_known(progress, backfill_id);
}

static void
backfill(struct schedule *schedule, const API(BackfillScheduleRequest) *request, int64_t event_id)
{
    STORED(ScheduleProgress) *progress = schedule->progress;
    STORED(ScheduleRange) *range = message_new(schedule->arena, STORED_TYPE(schedule_range));
    range->start_time = timestamp_of(request->start_time);
    range->end_time = timestamp_of(request->end_time);
    range->backfill_id = request->backfill_id[0] != '\0'
                             ? request->backfill_id
                             : arena_format(schedule->arena, "%lld", (long long)event_id);
    range->overlap_policy = request->overlap_policy;
    range->after = seconds_clamped(seconds_up(range->start_time) - 1);
    range->until = seconds_clamped(seconds_down(range->end_time));
    if (range->end_time <= range->start_time || is_known(progress, range->backfill_id) ||
        progress->n_backfills >= SCHEDULE_BACKFILLS_MAX)
        return;
    range->runs_total = schedule_count(schedule, range->after, range->until, SCHEDULE_COUNT_MAX);
    array_push(schedule->arena, progress->backfills, progress->n_backfills, range);
}

/* --- all of them ---- */

static void *
decode(struct schedule *schedule, const ProtobufCMessageDescriptor *type, struct slice input)
{
    ProtobufCMessage *message = NULL;
    struct error *err = message_decode_at(schedule->arena, ERR_CORRUPT, type, input, &message);
    return err == NULL ? message : NULL; /* not a signal of the API */
}

static void
signal_pause(struct schedule *schedule, struct slice input, int64_t event_id, int64_t now)
{
    const API(PauseScheduleRequest) *request =
        decode(schedule, API_TYPE(pause_schedule_request), input);
    (void)event_id;
    if (request != NULL)
        schedule_pause(schedule, request->reason, request->identity, now);
}

static void
signal_unpause(struct schedule *schedule, struct slice input, int64_t event_id, int64_t now)
{
    const API(UnpauseScheduleRequest) *request =
        decode(schedule, API_TYPE(unpause_schedule_request), input);
    (void)event_id;
    if (request != NULL)
        unpause(schedule, request->catch_up_policy, now);
}

static void
signal_update(struct schedule *schedule, struct slice input, int64_t event_id, int64_t now)
{
    const API(UpdateScheduleRequest) *request =
        decode(schedule, API_TYPE(update_schedule_request), input);
    (void)event_id;
    if (request != NULL)
        update(schedule, request, now);
}

static void
signal_backfill(struct schedule *schedule, struct slice input, int64_t event_id, int64_t now)
{
    const API(BackfillScheduleRequest) *request =
        decode(schedule, API_TYPE(backfill_schedule_request), input);
    (void)now;
    if (request != NULL)
        backfill(schedule, request, event_id);
}

static void
signal_delete(struct schedule *schedule, struct slice input, int64_t event_id, int64_t now)
{
    (void)input, (void)event_id, (void)now;
    schedule->progress->is_deleted = true;
}

void
schedule_signal(struct schedule *schedule, const char *name, struct slice input, int64_t event_id,
                int64_t now)
{
    static const struct {
        const char *name;
        void (*apply)(struct schedule *schedule, struct slice input, int64_t event_id, int64_t now);
    } signals[] = {
        {SCHEDULE_PAUSE, signal_pause},   {SCHEDULE_UNPAUSE, signal_unpause},
        {SCHEDULE_UPDATE, signal_update}, {SCHEDULE_BACKFILL, signal_backfill},
        {SCHEDULE_DELETE, signal_delete},
    };
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (strcmp(signals[i].name, name) == 0)
            signals[i].apply(schedule, input, event_id, now);
}
