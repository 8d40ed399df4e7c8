/* heartbeat.c - a worker says that it still works on its activity.
 *
 * The time and the details are kept with the pending activity: the timeout counts from there, and
 * the next attempt, or the event of the timeout, gets the details. */
#include "base/check.h"
#include "engine/command/inside.h"

struct error *
command_heartbeat_activity(struct step *step, const struct activity_report *report,
                           bool *is_cancel_requested)
{
    struct mutation *mutation = NULL;
    struct error *err = step_open_run(step, &mutation);
    if (err != NULL)
        return err;
    const STORED(PendingActivity) *activity = NULL;
    err = activity_find(mutation, &report->task, true, &activity);
    if (err != NULL)
        return err;

    STORED(PendingActivity) *alive = mutation_change_activity(mutation, activity->schedule_id);
    check(alive->started_id != EVENT_NONE && alive->row == 0);
    alive->event_version = step->context->event_version;
    alive->heartbeat_time = step->context->now;
    alive->heartbeat_details = run_keep(mutation_run(mutation), (API(Payload) *)report->payload);
    *is_cancel_requested = alive->is_cancel_requested;
    return NULL;
}
