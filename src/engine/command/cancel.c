/* cancel.c - the decision that the run ends as cancelled. */
#include "base/check.h"
#include "engine/command/inside.h"

void
decision_list_close_canceled(struct decision_list *decision_list, const API(Payload) *details)
{
    check(!decision_list->is_closed && !decision_list->has_unhandled);
    API(HistoryEvent) *event =
        mutation_new_event(decision_list->mutation, EVENT_KIND(WORKFLOW_EXECUTION_CANCELED));
    API(WorkflowExecutionCanceledEventAttributes) *attributes =
        event->workflow_execution_canceled_event_attributes;
    attributes->details = (API(Payload) *)details;
    attributes->decision_task_completed_event_id = decision_list->completed_id;
    mutation_add_event(decision_list->mutation, event);
    decision_list->is_closed = true;
}

void
decide_cancel(struct decision_list *decision_list, const API(Decision) *decision)
{
    if (!decision_list_may_close(decision_list, "process cancellation"))
        return;
    decision_list_close_canceled(decision_list,
                                 decision->cancel_workflow_execution_decision_attributes->details);
}
