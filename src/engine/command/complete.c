/* complete.c - the decision that the run is done. */
#include "base/check.h"
#include "engine/command/inside.h"

void
decide_complete(struct deciding *deciding, const API(Decision) *decision)
{
    const API(CompleteWorkflowExecutionDecisionAttributes) *wish =
        decision->complete_workflow_execution_decision_attributes;
    if (!deciding_may_close(deciding, "complete workflow"))
        return;
    if (!deciding_may_hold(deciding, wish->result == NULL ? 0 : wish->result->data.len,
                           "CompleteWorkflowExecutionDecisionAttributes.Result"))
        return;
    deciding->is_closed = true;
    struct run_end end = {.result = wish->result, .completed_id = deciding->completed_id};
    if (run_is_followed(deciding->step, deciding->mutation, &end))
        return;
    API(HistoryEvent) *event =
        mutation_new_event(deciding->mutation, EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED));
    API(WorkflowExecutionCompletedEventAttributes) *attributes =
        event->workflow_execution_completed_event_attributes;
    attributes->result = wish->result;
    attributes->decision_task_completed_event_id = deciding->completed_id;
    mutation_add_event(deciding->mutation, event);
}
