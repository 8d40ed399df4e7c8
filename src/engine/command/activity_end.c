/* activity_end.c - a worker says how an activity ended: result, failure or cancellation.
 *
 * A failure may be followed by another attempt; then nothing is written into the history. Every
 * end that is written has its started event before it, and wakes the worker of the run. */
#include "base/check.h"
#include "engine/command/inside.h"

/* Finds what the report is about. */
static struct error *
find_reported(struct step *step, const struct activity_report *report, struct mutation **mutation,
              const STORED(PendingActivity) **activity)
{
    struct error *err = step_open_run(step, mutation);
    if (err != NULL)
        return err;
    return activity_find(*mutation, &report->task, true, activity);
}

struct error *
command_complete_activity(struct step *step, const struct activity_report *report)
{
    struct mutation *mutation = NULL;
    const STORED(PendingActivity) *activity = NULL;
    struct error *err = find_reported(step, report, &mutation, &activity);
    if (err != NULL)
        return err;

    int64_t schedule_id = activity->schedule_id;
    int64_t started_id = activity_started_event(mutation, activity);
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(ACTIVITY_TASK_COMPLETED));
    API(ActivityTaskCompletedEventAttributes) *attributes =
        event->activity_task_completed_event_attributes;
    attributes->scheduled_event_id = schedule_id;
    attributes->started_event_id = started_id;
    attributes->result = (API(Payload) *)report->payload;
    attributes->identity = (char *)report->identity;
    (void)mutation_add_event(mutation, event);
    check(run_find_activity(mutation_run(mutation), schedule_id) == NULL);
    decision_schedule_if_needed(mutation);
    return NULL;
}

struct error *
command_fail_activity(struct step *step, const struct activity_report *report)
{
    struct mutation *mutation = NULL;
    const STORED(PendingActivity) *activity = NULL;
    struct error *err = find_reported(step, report, &mutation, &activity);
    if (err != NULL)
        return err;
    if (activity_retry(mutation, activity, report->failure))
        return NULL;

    int64_t schedule_id = activity->schedule_id;
    int64_t started_id = activity_started_event(mutation, activity);
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(ACTIVITY_TASK_FAILED));
    API(ActivityTaskFailedEventAttributes) *attributes =
        event->activity_task_failed_event_attributes;
    attributes->scheduled_event_id = schedule_id;
    attributes->started_event_id = started_id;
    attributes->failure = (API(Failure) *)report->failure;
    attributes->identity = (char *)report->identity;
    (void)mutation_add_event(mutation, event);
    check(run_find_activity(mutation_run(mutation), schedule_id) == NULL);
    decision_schedule_if_needed(mutation);
    return NULL;
}

void
activity_canceled_event(struct mutation *mutation, const STORED(PendingActivity) *activity,
                        const API(Payload) *details, const char *identity)
{
    check(activity->is_cancel_requested);
    int64_t schedule_id = activity->schedule_id;
    int64_t requested_id = activity->cancel_requested_event_id;
    int64_t started_id = activity_started_event(mutation, activity);
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(ACTIVITY_TASK_CANCELED));
    API(ActivityTaskCanceledEventAttributes) *attributes =
        event->activity_task_canceled_event_attributes;
    attributes->scheduled_event_id = schedule_id;
    attributes->started_event_id = started_id;
    attributes->latest_cancel_requested_event_id = requested_id;
    attributes->details = (API(Payload) *)details;
    attributes->identity = (char *)identity;
    (void)mutation_add_event(mutation, event);
    check(run_find_activity(mutation_run(mutation), schedule_id) == NULL);
}

struct error *
command_cancel_activity(struct step *step, const struct activity_report *report)
{
    struct mutation *mutation = NULL;
    const STORED(PendingActivity) *activity = NULL;
    struct error *err = find_reported(step, report, &mutation, &activity);
    if (err != NULL)
        return err;
    if (!activity->is_cancel_requested) /* nobody asked for it */
        return error_new(step->arena, ERR_INTERNAL,
                         "Unable to add ActivityTaskCanceled event to history.");
    activity_canceled_event(mutation, activity, report->payload, report->identity);
    decision_schedule_if_needed(mutation);
    return NULL;
}
