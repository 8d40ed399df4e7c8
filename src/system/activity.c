/* activity.c - an activity of the server's own: its start, its work, its report. See worker.h.
 *
 * Reports are repeated while it is in doubt whether they arrived: a second one finds the activity
 * gone, which is as good. The activity's timeouts cover one that is never reported. */
#include "api/worker/start_attempt.h"
#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
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

/* Once. ERR_BUSY: it may not be recorded; worth another attempt. */
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
        probe("system_heartbeat_again");
        struct error *stopped = fiber_sleep(REPORT_PAUSE << i, arena);
        err = stopped != NULL ? stopped : beat(task, &report, arena);
    }
    return error_copy(task->arena, err);
}

static struct error *
report_outcome(const struct system_task *task, const struct error *failed, struct slice result)
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
        struct error *err = report_outcome(task, failed, result);
        if (err == NULL || is_over(err) || err->kind == ERR_BAD_REQUEST)
            return;
        probe("system_report_again");
        if (fiber_sleep(REPORT_PAUSE << i, task->arena) != NULL)
            return;
    }
}

static struct system_task
task_of(struct system_frame *frame, const struct start_attempt *start_attempt)
{
    const STORED(PendingActivity) *activity = start_attempt->activity.activity;
    return (struct system_task){
        .parts = &frame->parts,
        .arena = start_attempt->arena,
        .key = {start_attempt->task->run_domain_id, start_attempt->task->workflow_id,
                start_attempt->activity.run_id},
        .workflow_type = start_attempt->activity.workflow_type->name,
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
run(struct system_frame *frame, const struct start_attempt *start_attempt)
{
    const STORED(PendingActivity) *activity = start_attempt->activity.activity;
    const char *type = activity->activity_type == NULL ? "" : activity->activity_type->name;
    const struct system_activity *found =
        system_find_activity(frame, start_attempt->task->domain_id, type);
    struct system_task task = task_of(frame, start_attempt);
    struct slice result = {0};
    struct error *err;
    if (found == NULL)
        err = error_new(task.arena, ERR_BAD_REQUEST, "unknown activity type %s", type);
    else
        err = found->run(&task, &result);
    if (task.is_gone || (fiber_is_cancelled() && !task.is_cancel_requested))
        probe("system_activity_left"); /* its timeouts do the rest */
    else
        report(&task, err, result);
}

bool
work_on_activity(struct system_frame *frame, const struct task *task)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct start_attempt start_attempt = {.engine = frame->parts.engine,
                                          .matching = frame->parts.matching,
                                          .task = task,
                                          .identity = SYSTEM_IDENTITY,
                                          .arena = arena};
    fiber_set_deadline(clock_monotonic() + DECISION_TIME);
    enum start_outcome end = start_attempt_record(&start_attempt);
    if (end != STARTED)
        return end != START_IN_DOUBT;
    int64_t most = start_attempt.activity.activity->start_to_close;
    check(most > 0);
    fiber_set_deadline(clock_monotonic() + most * NS_PER_S);
    run(frame, &start_attempt);
    return true;
}
