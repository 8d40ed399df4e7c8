/* request_cancel_activity.c - a decision asks that an activity be cancelled.
 *
 * The wish is an event in any case. A worker that has the activity learns of it with its next
 * heartbeat; one that nobody has is cancelled at once, and the decider is told by a new decision. A
 * wish about no pending activity, or one that was cancelled before, is followed by an event that
 * says so. */
#include "engine/command/inside.h"

#define ACTIVITY_UNKNOWN     "ACTIVITY_ID_UNKNOWN"
#define ACTIVITY_NOT_STARTED "ACTIVITY_ID_NOT_STARTED"

static bool
is_valid(struct deciding *deciding, const char *activity_id)
{
    const API(DecisionTaskFailedCause) cause = FAILED_CAUSE(BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES);
    const struct facts *facts = deciding->step->facts;
    if (activity_id[0] == '\0') {
        deciding_refuse(deciding, cause, "ActivityId is not set on decision.");
        return false;
    }
    if ((int64_t)strlen(activity_id) > facts_integer(facts, DYNAMIC_ACTIVITY_ID_LENGTH)) {
        deciding_refuse(deciding, cause, "ActivityId exceeds length limit.");
        return false;
    }
    return true;
}

static void
add_requested(struct deciding *deciding, const char *activity_id)
{
    API(HistoryEvent) *event =
        mutation_new_event(deciding->mutation, EVENT_KIND(ACTIVITY_TASK_CANCEL_REQUESTED));
    API(ActivityTaskCancelRequestedEventAttributes) *attributes =
        event->activity_task_cancel_requested_event_attributes;
    attributes->activity_id = (char *)activity_id;
    attributes->decision_task_completed_event_id = deciding->completed_id;
    (void)mutation_add_event(deciding->mutation, event);
}

static void
add_failed(struct deciding *deciding, const char *activity_id)
{
    API(HistoryEvent) *event =
        mutation_new_event(deciding->mutation, EVENT_KIND(REQUEST_CANCEL_ACTIVITY_TASK_FAILED));
    API(RequestCancelActivityTaskFailedEventAttributes) *attributes =
        event->request_cancel_activity_task_failed_event_attributes;
    attributes->activity_id = (char *)activity_id;
    attributes->cause = (char *)ACTIVITY_UNKNOWN;
    attributes->decision_task_completed_event_id = deciding->completed_id;
    (void)mutation_add_event(deciding->mutation, event);
}

void
decide_request_cancel_activity(struct deciding *deciding, const API(Decision) *decision)
{
    const char *activity_id =
        decision->request_cancel_activity_task_decision_attributes->activity_id;
    if (!is_valid(deciding, activity_id))
        return;
    const struct run *run = mutation_run(deciding->mutation);
    const STORED(PendingActivity) *activity = run_find_activity_id(run, activity_id);
    bool is_new = activity != NULL && !activity->is_cancel_requested;
    add_requested(deciding, activity_id);
    if (!is_new) {
        add_failed(deciding, activity_id);
        return;
    }
    activity = run_find_activity_id(run, activity_id); /* the record is a new one now */
    if (activity->started_id != EVENT_NONE)
        return;
    API(Payload) *details = command_text_payload(ACTIVITY_NOT_STARTED, deciding->step->arena);
    activity_canceled_event(deciding->mutation, activity, details, deciding->identity);
    deciding->needs_decision = true;
}
