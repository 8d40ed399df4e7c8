/* fits.c - can an event of a history be applied to the run? See fits.h.
 *
 * One question per kind of event, as apply.c has one function per kind: each asks for what that
 * function checks, and for what the records it leaves must have. */
#include "engine/run/fits.h"

#include "engine/run/inside.h"

#define EVENT_TIME_MAX (INT64_MAX / 2) /* room for the longest timeout behind it */

#define NOT_PENDING "what it is about is not pending"
#define HALF        "it lacks something that such an event has"
#define BACKWARDS   "time goes forward"

typedef const char *fits_function(const struct run *run, const API(HistoryEvent) *event);

static bool
is_moment(const GOOGLE(Timestamp) *timestamp)
{
    return timestamp == NULL ||
           (timestamp->seconds >= 0 && timestamp->seconds < EVENT_TIME_MAX / SECOND);
}

static bool
info_is_whole(const API(ParentExecutionInfo) *parent)
{
    return parent == NULL || parent->workflow_execution != NULL;
}

static const char *
fits_started(const struct run *run, const API(HistoryEvent) *event)
{
    const API(WorkflowExecutionStartedEventAttributes) *started =
        event->workflow_execution_started_event_attributes;
    if (run->core->state != 0)
        return "the run has begun";
    if (started->workflow_type == NULL || started->task_list == NULL ||
        !info_is_whole(started->parent_execution_info))
        return HALF;
    if (duration_seconds(started->first_decision_task_backoff) < 0)
        return BACKWARDS;
    return is_moment(started->expiration_time) ? NULL : "the run expires at no time";
}

/* Completed, failed, canceled: only a decision does that. */
static const char *
fits_decided_close(const struct run *run, const API(HistoryEvent) *event)
{
    return run->core->state == RUN_CREATED ? "no decision can have closed the run" : NULL;
}

static const char *
fits_always(const struct run *run, const API(HistoryEvent) *event)
{
    return NULL;
}

/* ---- decisions ---- */

static const char *
fits_decision_scheduled(const struct run *run, const API(HistoryEvent) *event)
{
    if (run->core->decision != NULL)
        return "a decision is pending";
    return event->decision_task_scheduled_event_attributes->task_list == NULL ? HALF : NULL;
}

static const char *
fits_decision_started(const struct run *run, const API(HistoryEvent) *event)
{
    const STORED(PendingDecision) *decision = run->core->decision;
    int64_t schedule_id = event->decision_task_started_event_attributes->scheduled_event_id;
    bool fits =
        decision != NULL && decision->schedule_id == schedule_id && !run_has_started_decision(run);
    return fits ? NULL : "another decision is pending, or none";
}

/* The end of a decision ends whichever is pending, as in Cadence: a cluster may have written one
 * that the others never saw begin. But there must have been decisions, and ids must be of the past.
 */
static const char *
fits_decision_ended(const struct run *run, const API(HistoryEvent) *event, int64_t schedule_id,
                    int64_t started_id)
{
    if (run->core->state == RUN_CREATED)
        return "no decision was scheduled yet";
    bool is_past = schedule_id > 0 && schedule_id < event->event_id && started_id < event->event_id;
    return is_past ? NULL : "it ends a decision that has not been scheduled yet";
}

static const char *
fits_decision_completed(const struct run *run, const API(HistoryEvent) *event)
{
    const API(DecisionTaskCompletedEventAttributes) *completed =
        event->decision_task_completed_event_attributes;
    if (completed->started_event_id <= completed->scheduled_event_id)
        return "the decision was started before it was scheduled";
    return fits_decision_ended(run, event, completed->scheduled_event_id,
                               completed->started_event_id);
}

static const char *
fits_decision_failed(const struct run *run, const API(HistoryEvent) *event)
{
    const API(DecisionTaskFailedEventAttributes) *failed =
        event->decision_task_failed_event_attributes;
    return fits_decision_ended(run, event, failed->scheduled_event_id, failed->started_event_id);
}

static const char *
fits_decision_timed_out(const struct run *run, const API(HistoryEvent) *event)
{
    const API(DecisionTaskTimedOutEventAttributes) *timed_out =
        event->decision_task_timed_out_event_attributes;
    return fits_decision_ended(run, event, timed_out->scheduled_event_id,
                               timed_out->started_event_id);
}

/* ---- activities and timers ---- */

static const char *
fits_activity_scheduled(const struct run *run, const API(HistoryEvent) *event)
{
    const API(ActivityTaskScheduledEventAttributes) *scheduled =
        event->activity_task_scheduled_event_attributes;
    return scheduled->activity_type == NULL || scheduled->task_list == NULL ? HALF : NULL;
}

static const char *
fits_activity_started(const struct run *run, const API(HistoryEvent) *event)
{
    const API(ActivityTaskStartedEventAttributes) *started =
        event->activity_task_started_event_attributes;
    const STORED(PendingActivity) *activity = run_find_activity(run, started->scheduled_event_id);
    if (activity == NULL)
        return NOT_PENDING;
    /* A later attempt may be known, of a cluster that went on without the others: it left no event,
     * so it never was. */
    bool is_started = activity->started_id != EVENT_NONE && activity->started_id != EVENT_TRANSIENT;
    return is_started ? "the activity is started" : NULL;
}

static const char *
fits_activity_ended(const struct run *run, const API(HistoryEvent) *event)
{
    int64_t schedule_id;
    event_started_id(event, &schedule_id);
    return run_find_activity(run, schedule_id) == NULL ? NOT_PENDING : NULL;
}

static const char *
fits_timer_started(const struct run *run, const API(HistoryEvent) *event)
{
    const API(TimerStartedEventAttributes) *started = event->timer_started_event_attributes;
    return duration_seconds(started->start_to_fire_timeout) < 0 ? BACKWARDS : NULL;
}

static const char *
fits_timer(const struct run *run, const char *timer_id, int64_t started_id)
{
    const STORED(PendingTimer) *timer = run_find_timer(run, timer_id);
    return timer == NULL || timer->started_id != started_id ? NOT_PENDING : NULL;
}

static const char *
fits_timer_fired(const struct run *run, const API(HistoryEvent) *event)
{
    const API(TimerFiredEventAttributes) *fired = event->timer_fired_event_attributes;
    return fits_timer(run, fired->timer_id, fired->started_event_id);
}

static const char *
fits_timer_canceled(const struct run *run, const API(HistoryEvent) *event)
{
    const API(TimerCanceledEventAttributes) *canceled = event->timer_canceled_event_attributes;
    return fits_timer(run, canceled->timer_id, canceled->started_event_id);
}

/* ---- other workflows ---- */

static const char *
fits_child_initiated(const struct run *run, const API(HistoryEvent) *event)
{
    const API(StartChildWorkflowExecutionInitiatedEventAttributes) *initiated =
        event->start_child_workflow_execution_initiated_event_attributes;
    return initiated->workflow_type == NULL || initiated->task_list == NULL ? HALF : NULL;
}

static const char *
fits_child_started(const struct run *run, const API(HistoryEvent) *event)
{
    const API(ChildWorkflowExecutionStartedEventAttributes) *started =
        event->child_workflow_execution_started_event_attributes;
    const STORED(PendingChild) *child = run_find_child(run, started->initiated_event_id);
    if (started->workflow_execution == NULL || started->workflow_execution->run_id[0] == '\0')
        return HALF;
    return child == NULL || child->started_id != EVENT_NONE ? NOT_PENDING : NULL;
}

static const char *
fits_child_not_started(const struct run *run, const API(HistoryEvent) *event)
{
    const STORED(PendingChild) *child = run_find_child(
        run, event->start_child_workflow_execution_failed_event_attributes->initiated_event_id);
    return child == NULL || child->started_id != EVENT_NONE ? NOT_PENDING : NULL;
}

static const char *
fits_child_ended(const struct run *run, const API(HistoryEvent) *event)
{
    int64_t initiated_id;
    const int64_t *started_id = event_started_id(event, &initiated_id);
    if (*started_id == EVENT_NONE)
        return HALF;
    return run_find_child(run, initiated_id) == NULL ? NOT_PENDING : NULL;
}

static const char *
fits_signal_initiated(const struct run *run, const API(HistoryEvent) *event)
{
    return event->signal_external_workflow_execution_initiated_event_attributes
                       ->workflow_execution == NULL
               ? HALF
               : NULL;
}

static const char *
fits_cancel_initiated(const struct run *run, const API(HistoryEvent) *event)
{
    return event->request_cancel_external_workflow_execution_initiated_event_attributes
                       ->workflow_execution == NULL
               ? HALF
               : NULL;
}

/* The signal or cancel request that is pending under this id. */
static const char *
fits_external(const struct run *run, int64_t initiated_id, bool is_cancel)
{
    const STORED(PendingExternal) *external = run_find_external(run, initiated_id);
    return external == NULL || (bool)external->is_cancel != is_cancel ? NOT_PENDING : NULL;
}

#define FITS_EXTERNAL(kind, is_cancel)                                                             \
    static const char *fits_##kind(const struct run *run, const API(HistoryEvent) *event)          \
    {                                                                                              \
        return fits_external(run, event->kind##_event_attributes->initiated_event_id, is_cancel);  \
    }
FITS_EXTERNAL(external_workflow_execution_signaled, false)
FITS_EXTERNAL(signal_external_workflow_execution_failed, false)
FITS_EXTERNAL(external_workflow_execution_cancel_requested, true)
FITS_EXTERNAL(request_cancel_external_workflow_execution_failed, true)
#undef FITS_EXTERNAL

/* ---- all of them ---- */

static fits_function *const table[] = {
    [EVENT_KIND(WORKFLOW_EXECUTION_STARTED)] = fits_started,
    [EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED)] = fits_decided_close,
    [EVENT_KIND(WORKFLOW_EXECUTION_FAILED)] = fits_decided_close,
    [EVENT_KIND(WORKFLOW_EXECUTION_TIMED_OUT)] = fits_always,
    [EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED)] = fits_always,
    [EVENT_KIND(WORKFLOW_EXECUTION_CANCELED)] = fits_decided_close,
    [EVENT_KIND(WORKFLOW_EXECUTION_CONTINUED_AS_NEW)] = fits_always,
    [EVENT_KIND(WORKFLOW_EXECUTION_CANCEL_REQUESTED)] = fits_always,
    [EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED)] = fits_always,
    [EVENT_KIND(DECISION_TASK_SCHEDULED)] = fits_decision_scheduled,
    [EVENT_KIND(DECISION_TASK_STARTED)] = fits_decision_started,
    [EVENT_KIND(DECISION_TASK_COMPLETED)] = fits_decision_completed,
    [EVENT_KIND(DECISION_TASK_FAILED)] = fits_decision_failed,
    [EVENT_KIND(DECISION_TASK_TIMED_OUT)] = fits_decision_timed_out,
    [EVENT_KIND(ACTIVITY_TASK_SCHEDULED)] = fits_activity_scheduled,
    [EVENT_KIND(ACTIVITY_TASK_STARTED)] = fits_activity_started,
    [EVENT_KIND(ACTIVITY_TASK_COMPLETED)] = fits_activity_ended,
    [EVENT_KIND(ACTIVITY_TASK_FAILED)] = fits_activity_ended,
    [EVENT_KIND(ACTIVITY_TASK_TIMED_OUT)] = fits_activity_ended,
    [EVENT_KIND(ACTIVITY_TASK_CANCELED)] = fits_activity_ended,
    [EVENT_KIND(ACTIVITY_TASK_CANCEL_REQUESTED)] = fits_always,
    [EVENT_KIND(REQUEST_CANCEL_ACTIVITY_TASK_FAILED)] = fits_always,
    [EVENT_KIND(TIMER_STARTED)] = fits_timer_started,
    [EVENT_KIND(TIMER_FIRED)] = fits_timer_fired,
    [EVENT_KIND(TIMER_CANCELED)] = fits_timer_canceled,
    [EVENT_KIND(CANCEL_TIMER_FAILED)] = fits_always,
    [EVENT_KIND(MARKER_RECORDED)] = fits_always,
    [EVENT_KIND(UPSERT_WORKFLOW_SEARCH_ATTRIBUTES)] = fits_always,
    [EVENT_KIND(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED)] = fits_cancel_initiated,
    [EVENT_KIND(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED)] =
        fits_request_cancel_external_workflow_execution_failed,
    [EVENT_KIND(EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED)] =
        fits_external_workflow_execution_cancel_requested,
    [EVENT_KIND(START_CHILD_WORKFLOW_EXECUTION_INITIATED)] = fits_child_initiated,
    [EVENT_KIND(START_CHILD_WORKFLOW_EXECUTION_FAILED)] = fits_child_not_started,
    [EVENT_KIND(CHILD_WORKFLOW_EXECUTION_STARTED)] = fits_child_started,
    [EVENT_KIND(CHILD_WORKFLOW_EXECUTION_COMPLETED)] = fits_child_ended,
    [EVENT_KIND(CHILD_WORKFLOW_EXECUTION_FAILED)] = fits_child_ended,
    [EVENT_KIND(CHILD_WORKFLOW_EXECUTION_CANCELED)] = fits_child_ended,
    [EVENT_KIND(CHILD_WORKFLOW_EXECUTION_TIMED_OUT)] = fits_child_ended,
    [EVENT_KIND(CHILD_WORKFLOW_EXECUTION_TERMINATED)] = fits_child_ended,
    [EVENT_KIND(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED)] = fits_signal_initiated,
    [EVENT_KIND(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED)] =
        fits_signal_external_workflow_execution_failed,
    [EVENT_KIND(EXTERNAL_WORKFLOW_EXECUTION_SIGNALED)] = fits_external_workflow_execution_signaled,
};

/* The versions of a history rise. */
static bool
version_falls(const STORED(RunRecord) *core, int64_t event_version)
{
    return core->n_versions > 0 &&
           event_version < core->versions[core->n_versions - 1]->event_version;
}

const char *
run_find_misplaced(const struct run *run, const API(HistoryEvent) *event)
{
    const STORED(RunRecord) *core = run->core;
    API(HistoryEvent__AttributesCase) kind = event->attributes_case;
    check(!run_has_buffered(run));
    if ((size_t)kind >= array_length(table) || table[kind] == NULL)
        return "there is no such kind of event";
    if (event->event_id != core->next_event_id)
        return "it is not the next event";
    if (version_falls(core, event->version))
        return "its version is lower than that of the event before it";
    if (!is_moment(event->event_time))
        return "its time cannot be";
    if (kind != EVENT_KIND(WORKFLOW_EXECUTION_STARTED) && !run_is_open(run))
        return core->state == 0 ? "the run has not begun" : "the run is closed";
    return NULL;
}

const char *
run_find_misfit(const struct run *run, const API(HistoryEvent) *event)
{
    const char *misplaced = run_find_misplaced(run, event);
    return misplaced != NULL ? misplaced : table[event->attributes_case](run, event);
}
