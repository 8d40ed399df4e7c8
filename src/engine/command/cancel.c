/* cancel.c - the decision that the run has given up its work. */
#include "base/check.h"
#include "engine/command/inside.h"

void
deciding_close_canceled(struct deciding *deciding, const API(Payload) *details)
{
    API(HistoryEvent) *event =
        mutation_new_event(deciding->mutation, EVENT_KIND(WORKFLOW_EXECUTION_CANCELED));
    API(WorkflowExecutionCanceledEventAttributes) *attributes =
        event->workflow_execution_canceled_event_attributes;
    attributes->details = (API(Payload) *)details;
    attributes->decision_task_completed_event_id = deciding->completed_id;
    mutation_add_event(deciding->mutation, event);
    deciding->is_closed = true;
}

void
decide_cancel(struct deciding *deciding, const API(Decision) *decision)
{
    if (!deciding_may_close(deciding, "process cancellation"))
        return;
    deciding_close_canceled(deciding,
                            decision->cancel_workflow_execution_decision_attributes->details);
}
