/* request_cancel_activity.c - a decision asks that an activity be cancelled.
 *
 * The request is an event in any case. A worker that has the activity learns of it with its next
 * heartbeat; an activity that no worker has is cancelled at once, and the decider learns of it by a
 * new decision. If no such activity is pending, or its cancellation was requested before, an event
 * that says so follows. */
#include "base/check.h"
#include "engine/command/inside.h"

#define ACTIVITY_UNKNOWN     "ACTIVITY_ID_UNKNOWN"
#define ACTIVITY_NOT_STARTED "ACTIVITY_ID_NOT_STARTED"

static bool
is_valid(struct decision_list *decision_list, const char *activity_id)
{
    const API(DecisionTaskFailedCause) cause = FAILED_CAUSE(BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES);
    const struct run_context *context = decision_list->step->context;
    if (activity_id[0] == '\0') {
        decision_list_refuse(decision_list, cause, "ActivityId is not set on decision.");
        return false;
    }
    if ((int64_t)strlen(activity_id) > run_context_integer(context, DYNAMIC_ACTIVITY_ID_LENGTH)) {
        decision_list_refuse(decision_list, cause, "ActivityId exceeds length limit.");
        return false;
    }
    return true;
}

static void
add_requested(struct decision_list *decision_list, const char *activity_id)
{
    API(HistoryEvent) *event =
        mutation_new_event(decision_list->mutation, EVENT_KIND(ACTIVITY_TASK_CANCEL_REQUESTED));
    API(ActivityTaskCancelRequestedEventAttributes) *attributes =
        event->activity_task_cancel_requested_event_attributes;
    attributes->activity_id = (char *)activity_id;
    attributes->decision_task_completed_event_id = decision_list->completed_id;
    (void)mutation_add_event(decision_list->mutation, event);
}

static void
add_failed(struct decision_list *decision_list, const char *activity_id)
{
    API(HistoryEvent) *event = mutation_new_event(decision_list->mutation,
                                                  EVENT_KIND(REQUEST_CANCEL_ACTIVITY_TASK_FAILED));
    API(RequestCancelActivityTaskFailedEventAttributes) *attributes =
        event->request_cancel_activity_task_failed_event_attributes;
    attributes->activity_id = (char *)activity_id;
    attributes->cause = (char *)ACTIVITY_UNKNOWN;
    attributes->decision_task_completed_event_id = decision_list->completed_id;
    (void)mutation_add_event(decision_list->mutation, event);
}

void
decide_request_cancel_activity(struct decision_list *decision_list, const API(Decision) *decision)
{
    const char *activity_id =
        decision->request_cancel_activity_task_decision_attributes->activity_id;
    if (!is_valid(decision_list, activity_id))
        return;
    const struct run *run = mutation_run(decision_list->mutation);
    const STORED(PendingActivity) *activity = run_find_activity_id(run, activity_id);
    bool is_new = activity != NULL && !activity->is_cancel_requested;
    add_requested(decision_list, activity_id);
    if (!is_new) {
        add_failed(decision_list, activity_id);
        return;
    }
    activity = run_find_activity_id(run, activity_id); /* the record is a new one now */
    check(activity->is_cancel_requested);
    if (activity->started_id != EVENT_NONE)
        return;
    API(Payload) *details = command_text_payload(ACTIVITY_NOT_STARTED, decision_list->step->arena);
    activity_canceled_event(decision_list->mutation, activity, details, decision_list->identity);
    decision_list->needs_decision = true;
}
