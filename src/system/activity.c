/* activity.c - an activity of the server's own: its start, its work, its report. See worker.h.
 *
 * Reports are repeated while it is in doubt whether they arrived: a second one finds the activity
 * gone, which is the same. What is never reported is covered by the activity's timeouts. */
#include "api/starting.h"
#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "system/inside.h"
#include "wire/message.h"
#include "wire/presence.h"

#define REPORTS_MAX  8
#define REPORT_PAUSE (20 * NS_PER_MS) /* doubled each time */

static struct activity_report
report_of(const struct system_task *task, struct slice payload, struct arena *arena)
{
    return (struct activity_report){
        .task = {.schedule_id = task->schedule_id,
                 .attempt = task->attempt,
                 .activity_id = task->activity_id},
        .identity = SYSTEM_IDENTITY,
        .payload = presence_make_payload(
            arena, (struct maybe_bytes){.is_set = payload.length > 0, .bytes = payload})};
}

bool
system_passes(const struct error *err)
{
    switch (err->kind) {
    case ERR_SHARD_OWNERSHIP_LOST:
    case ERR_UNAVAILABLE:
    case ERR_OUTCOME_UNKNOWN:
    case ERR_SERVICE_BUSY:
    case ERR_BUSY:
        return true;
    default:
        return false;
    }
}

static bool
is_over(const struct error *err)
{
    return err->kind == ERR_ENTITY_NOT_EXISTS || err->kind == ERR_ALREADY_COMPLETED;
}

/* Once. ERR_BUSY: it is not known to be recorded, and may be soon. */
static struct error *
beat(struct system_task *task, const struct activity_report *report, struct arena *arena)
{
    bool is_cancel_requested = false;
    struct error *err = engine_heartbeat_activity(task->parts->engine, &task->key, report, arena,
                                                  &is_cancel_requested);
    if (is_cancel_requested) {
        task->is_cancel_requested = true;
        return error_new(arena, ERR_CANCELLED, "the activity was cancelled");
    }
    if (err == NULL)
        return NULL;
    if (is_over(err))
        task->is_gone = true;
    bool is_final = task->is_gone || err->kind == ERR_CANCELLED || err->kind == ERR_DEADLINE ||
                    err->kind == ERR_BAD_REQUEST;
    return is_final ? err : error_new(arena, ERR_BUSY, "%s", err->message);
}

struct error *
system_heartbeat(struct system_task *task, struct slice details)
{
    scoped(arena_drop) struct arena *arena = arena_new(0); /* an activity may run for years */
    struct activity_report report = report_of(task, details, arena);
    struct error *err = beat(task, &report, arena);
    for (int i = 0; i < REPORTS_MAX && err != NULL && err->kind == ERR_BUSY; i++) {
        mark("system_heartbeat_again");
        struct error *stopped = fiber_sleep(REPORT_PAUSE << i, arena);
        err = stopped != NULL ? stopped : beat(task, &report, arena);
    }
    return error_copy(task->arena, err);
}

static struct error *
tell(const struct system_task *task, const struct error *failed, struct slice result)
{
    struct engine *engine = task->parts->engine;
    struct activity_report report = report_of(task, result, task->arena);
    if (failed == NULL)
        return engine_complete_activity(engine, &task->key, &report, task->arena);
    if (task->is_cancel_requested)
        return engine_cancel_activity(engine, &task->key, &report, task->arena);
    API(Failure) *failure = message_new(task->arena, API_TYPE(failure));
    failure->reason = (char *)task->reason;
    failure->details = presence_make_bytes(slice_text(failed->message));
    report.failure = failure;
    return engine_fail_activity(engine, &task->key, &report, task->arena);
}

static void
report(const struct system_task *task, const struct error *failed, struct slice result)
{
    for (int i = 0; i < REPORTS_MAX; i++) {
        struct error *err = tell(task, failed, result);
        if (err == NULL || is_over(err) || err->kind == ERR_BAD_REQUEST)
            return;
        mark("system_report_again");
        if (fiber_sleep(REPORT_PAUSE << i, task->arena) != NULL)
            return;
    }
}

static struct system_task
task_of(struct system_frame *frame, const struct starting *starting)
{
    const STORED(PendingActivity) *activity = starting->activity.activity;
    return (struct system_task){
        .parts = &frame->parts,
        .arena = starting->arena,
        .key = {starting->task->run_domain_id, starting->task->workflow_id,
                starting->activity.run_id},
        .workflow_type = starting->activity.workflow_type->name,
        .activity_id = activity->activity_id,
        .attempt = activity->attempt,
        .scheduled_time = activity->first_scheduled_time,
        .heartbeat_timeout = activity->heartbeat_timeout,
        .input = presence_read_payload(activity->input).bytes,
        .details = presence_read_payload(activity->heartbeat_details).bytes,
        .reason = "cadenceInternal:Generic",
        .schedule_id = activity->schedule_id,
    };
}

static void
run(struct system_frame *frame, const struct starting *starting)
{
    const STORED(PendingActivity) *activity = starting->activity.activity;
    const char *type = activity->activity_type == NULL ? "" : activity->activity_type->name;
    const struct system_activity *found =
        system_find_activity(frame, starting->task->domain_id, type);
    struct system_task task = task_of(frame, starting);
    struct slice result = {0};
    struct error *err;
    if (found == NULL)
        err = error_new(task.arena, ERR_BAD_REQUEST, "unknown activity type %s", type);
    else
        err = found->run(&task, &result);
    if (task.is_gone || (fiber_is_cancelled() && !task.is_cancel_requested))
        mark("system_activity_left"); /* its timeouts see to the rest */
    else
        report(&task, err, result);
}

bool
work_on_activity(struct system_frame *frame, const struct task *task)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct starting starting = {.engine = frame->parts.engine,
                                .matching = frame->parts.matching,
                                .task = task,
                                .identity = SYSTEM_IDENTITY,
                                .arena = arena};
    fiber_set_deadline(clock_monotonic() + DECISION_TIME);
    enum starting_end end = starting_record(&starting);
    if (end != STARTED)
        return end != START_IN_DOUBT;
    int64_t most = starting.activity.activity->start_to_close;
    check(most > 0);
    fiber_set_deadline(clock_monotonic() + most * NS_PER_S);
    run(frame, &starting);
    return true;
}
