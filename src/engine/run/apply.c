/* apply.c - the table of all events: what each is called, what it does to a run, how it is treated.
 *
 * One line per kind. */
#include "engine/run/apply.h"

#include "engine/run/inside.h"

/* BUFFERED: it waits while a decision is started. LAST: it does, and goes behind the others.
 * DECIDED: a decision of a worker asked for it. CLOSE: it is the end of a run. */
enum { DIRECT = 0, BUFFERED = 1, LAST = 3, DECIDED = 4, CLOSE = 8 };

struct event_traits {
    const char *name;
    apply_function *apply;
    unsigned flags;
};

#define LINE(KIND, name, apply, flags) [EVENT_KIND(KIND)] = {name, apply, flags}
static const struct event_traits table[] = {
    LINE(WORKFLOW_EXECUTION_STARTED, "WorkflowExecutionStarted", apply_started, DIRECT),
    LINE(WORKFLOW_EXECUTION_COMPLETED, "WorkflowExecutionCompleted", apply_closed, DECIDED | CLOSE),
    LINE(WORKFLOW_EXECUTION_FAILED, "WorkflowExecutionFailed", apply_closed, CLOSE),
    LINE(WORKFLOW_EXECUTION_TIMED_OUT, "WorkflowExecutionTimedOut", apply_closed, CLOSE),
    LINE(WORKFLOW_EXECUTION_TERMINATED, "WorkflowExecutionTerminated", apply_closed, CLOSE),
    LINE(WORKFLOW_EXECUTION_CANCELED, "WorkflowExecutionCanceled", apply_closed, DECIDED | CLOSE),
    LINE(WORKFLOW_EXECUTION_CONTINUED_AS_NEW, "WorkflowExecutionContinuedAsNew", apply_closed,
         CLOSE),
    LINE(WORKFLOW_EXECUTION_CANCEL_REQUESTED, "WorkflowExecutionCancelRequested",
         apply_cancel_requested, BUFFERED),
    LINE(WORKFLOW_EXECUTION_SIGNALED, "WorkflowExecutionSignaled", apply_signaled, BUFFERED),
    LINE(DECISION_TASK_SCHEDULED, "DecisionTaskScheduled", apply_decision_scheduled, DIRECT),
    LINE(DECISION_TASK_STARTED, "DecisionTaskStarted", apply_decision_started, DIRECT),
    LINE(DECISION_TASK_COMPLETED, "DecisionTaskCompleted", apply_decision_completed, DIRECT),
    LINE(DECISION_TASK_FAILED, "DecisionTaskFailed", apply_decision_failed, DIRECT),
    LINE(DECISION_TASK_TIMED_OUT, "DecisionTaskTimedOut", apply_decision_timed_out, DIRECT),
    LINE(ACTIVITY_TASK_SCHEDULED, "ActivityTaskScheduled", apply_activity_scheduled, DECIDED),
    LINE(ACTIVITY_TASK_STARTED, "ActivityTaskStarted", apply_activity_started, BUFFERED),
    LINE(ACTIVITY_TASK_COMPLETED, "ActivityTaskCompleted", apply_activity_ended, LAST),
    LINE(ACTIVITY_TASK_FAILED, "ActivityTaskFailed", apply_activity_ended, LAST),
    LINE(ACTIVITY_TASK_TIMED_OUT, "ActivityTaskTimedOut", apply_activity_ended, LAST),
    LINE(ACTIVITY_TASK_CANCELED, "ActivityTaskCanceled", apply_activity_ended, LAST),
    LINE(ACTIVITY_TASK_CANCEL_REQUESTED, "ActivityTaskCancelRequested",
         apply_activity_cancel_requested, DECIDED),
    LINE(REQUEST_CANCEL_ACTIVITY_TASK_FAILED, "RequestCancelActivityTaskFailed", apply_nothing,
         BUFFERED),
    LINE(TIMER_STARTED, "TimerStarted", apply_timer_started, DECIDED),
    LINE(TIMER_FIRED, "TimerFired", apply_timer_ended, BUFFERED),
    LINE(TIMER_CANCELED, "TimerCanceled", apply_timer_ended, DECIDED),
    LINE(CANCEL_TIMER_FAILED, "CancelTimerFailed", apply_nothing, DECIDED),
    LINE(MARKER_RECORDED, "MarkerRecorded", apply_nothing, DECIDED),
    LINE(UPSERT_WORKFLOW_SEARCH_ATTRIBUTES, "UpsertWorkflowSearchAttributes",
         apply_search_attributes, DECIDED),
    LINE(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
         "RequestCancelExternalWorkflowExecutionInitiated", apply_cancel_initiated, DECIDED),
    LINE(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED,
         "RequestCancelExternalWorkflowExecutionFailed", apply_external_ended, BUFFERED),
    LINE(EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED, "ExternalWorkflowExecutionCancelRequested",
         apply_external_ended, BUFFERED),
    LINE(START_CHILD_WORKFLOW_EXECUTION_INITIATED, "StartChildWorkflowExecutionInitiated",
         apply_child_initiated, DECIDED),
    LINE(START_CHILD_WORKFLOW_EXECUTION_FAILED, "StartChildWorkflowExecutionFailed",
         apply_child_not_started, BUFFERED),
    LINE(CHILD_WORKFLOW_EXECUTION_STARTED, "ChildWorkflowExecutionStarted", apply_child_started,
         BUFFERED),
    LINE(CHILD_WORKFLOW_EXECUTION_COMPLETED, "ChildWorkflowExecutionCompleted", apply_child_ended,
         LAST),
    LINE(CHILD_WORKFLOW_EXECUTION_FAILED, "ChildWorkflowExecutionFailed", apply_child_ended, LAST),
    LINE(CHILD_WORKFLOW_EXECUTION_CANCELED, "ChildWorkflowExecutionCanceled", apply_child_ended,
         LAST),
    LINE(CHILD_WORKFLOW_EXECUTION_TIMED_OUT, "ChildWorkflowExecutionTimedOut", apply_child_ended,
         LAST),
    LINE(CHILD_WORKFLOW_EXECUTION_TERMINATED, "ChildWorkflowExecutionTerminated", apply_child_ended,
         LAST),
    LINE(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED, "SignalExternalWorkflowExecutionInitiated",
         apply_signal_initiated, DECIDED),
    LINE(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED, "SignalExternalWorkflowExecutionFailed",
         apply_external_ended, BUFFERED),
    LINE(EXTERNAL_WORKFLOW_EXECUTION_SIGNALED, "ExternalWorkflowExecutionSignaled",
         apply_external_ended, BUFFERED),
};
#undef LINE

static const struct event_traits *
traits_of(API(HistoryEvent__AttributesCase) kind)
{
    check((size_t)kind < array_length(table));
    check_that(table[kind].name != NULL, "no event kind %d", (int)kind);
    return &table[kind];
}

void
run_apply(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const struct event_traits *traits = traits_of(event->attributes_case);
    check_that(traits->apply != NULL, "%s cannot be applied yet", traits->name);
    check(event->event_id > 0 || event->event_id == EVENT_BUFFERED);
    traits->apply(mutation, event);
}

void
apply_nothing(struct mutation *mutation, const API(HistoryEvent) *event)
{
    check(mutation->run->core->state != 0);
    check(event->attributes_case != 0);
}

bool
event_may_be_buffered(API(HistoryEvent__AttributesCase) kind)
{
    return (traits_of(kind)->flags & BUFFERED) != 0;
}

bool
event_comes_from_decision(API(HistoryEvent__AttributesCase) kind)
{
    return (traits_of(kind)->flags & DECIDED) != 0;
}

bool
event_goes_last(API(HistoryEvent__AttributesCase) kind)
{
    return (traits_of(kind)->flags & LAST) == LAST;
}

bool
event_closes_run(API(HistoryEvent__AttributesCase) kind)
{
    return (traits_of(kind)->flags & CLOSE) != 0;
}

const char *
event_name(API(HistoryEvent__AttributesCase) kind)
{
    return traits_of(kind)->name;
}
