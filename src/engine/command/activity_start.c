/* activity_start.c - a poller got an activity.
 *
 * Without a retry policy that is an event at once; with one it only stands in the pending record
 * . A poll that asks again with its request id has the same start; anybody else learns that
 * the task is void. */
#include "base/check.h"
#include "engine/command/inside.h"
#include "wire/errors.h"

static void
start_by_event(struct mutation *mutation, const STORED(PendingActivity) *activity,
               const char *request_id, const char *identity)
{
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(ACTIVITY_TASK_STARTED));
    API(ActivityTaskStartedEventAttributes) *attributes =
        event->activity_task_started_event_attributes;
    attributes->scheduled_event_id = activity->schedule_id;
    attributes->attempt = activity->attempt;
    attributes->identity = (char *)identity;
    attributes->request_id = (char *)request_id;
    (void)mutation_add_event(mutation, event);
}

static void
start_in_silence(struct mutation *mutation, const STORED(PendingActivity) *activity,
                 const char *request_id, const char *identity)
{
    struct run *run = mutation_run(mutation);
    const struct run_context *context = mutation_context(mutation);
#ifndef CADENZA_FAULT_started_task_stays
    mutation_drop_transfer(mutation, activity->row);
#endif
    STORED(PendingActivity) *started = mutation_change_activity(mutation, activity->schedule_id);
    started->event_version = context->event_version;
    started->started_id = EVENT_TRANSIENT;
    started->started_time = context->now;
    started->heartbeat_time = context->now;
    started->request_id = run_keep_text(run, request_id);
    started->identity = run_keep_text(run, identity);
    started->row = 0;
}

void
activity_begin(struct mutation *mutation, int64_t schedule_id, const char *request_id,
               const char *identity)
{
    const STORED(PendingActivity) *activity =
        run_find_activity(mutation_run(mutation), schedule_id);
    check(activity != NULL && activity->started_id == EVENT_NONE);
    if (activity->retry_policy == NULL)
        start_by_event(mutation, activity, request_id, identity);
    else
        start_in_silence(mutation, activity, request_id, identity);
    activity = run_find_activity(mutation_run(mutation), schedule_id);
    check(activity->started_id != EVENT_NONE && activity->row == 0);
}

/* The answer: copies, for the caller looks at them after the run has gone on. */
void
activity_fill_start(const struct run *run, int64_t schedule_id, struct arena *arena,
                    struct activity_start *start)
{
    const STORED(PendingActivity) *activity = run_find_activity(run, schedule_id);
    check(activity->started_id != EVENT_NONE);
    *start = (struct activity_start){
        .activity = message_copy(arena, &activity->base),
        .workflow_type = message_copy(arena, &run->core->workflow_type->base),
        .run_id = arena_text(arena, run->core->run_id),
    };
}

struct error *
command_start_activity(struct step *step, const struct task_name *task, const char *request_id,
                       const char *identity, struct activity_start *start)
{
    struct mutation *mutation = NULL;
    struct error *err = step_open_run(step, &mutation);
    if (err != NULL && err->kind == ERR_ALREADY_COMPLETED)
        return errors_entity_not_exists(step->arena, NULL, "%s", err->message);
    if (err != NULL)
        return err;
    const STORED(PendingActivity) *activity = NULL;
    err = activity_find(mutation, task, false, &activity);
    if (err != NULL)
        return err;

    bool is_started = activity->started_id != EVENT_NONE;
#ifndef CADENZA_FAULT_started_for_anybody
    if (is_started && strcmp(activity->request_id, request_id) != 0)
        return error_new(step->arena, ERR_EVENT_ALREADY_STARTED, "Activity task already started.");
#endif
    int64_t schedule_id = activity->schedule_id;
    if (!is_started)
        activity_begin(mutation, schedule_id, request_id, identity);
    activity_fill_start(mutation_run(mutation), schedule_id, step->arena, start);
    return NULL;
}
