/* complete.c - the decision that the run is done. */
#include "base/check.h"
#include "engine/command/inside.h"

void
decide_complete(struct decision_list *decision_list, const API(Decision) *decision)
{
    const API(CompleteWorkflowExecutionDecisionAttributes) *request =
        decision->complete_workflow_execution_decision_attributes;
    if (!decision_list_may_close(decision_list, "complete workflow"))
        return;
    if (!decision_list_may_hold(decision_list,
                                request->result == NULL ? 0 : request->result->data.len,
                                "CompleteWorkflowExecutionDecisionAttributes.Result"))
        return;
    decision_list->is_closed = true;
    struct run_end end = {.result = request->result, .completed_id = decision_list->completed_id};
    if (run_is_followed(decision_list->step, decision_list->mutation, &end))
        return;
    API(HistoryEvent) *event =
        mutation_new_event(decision_list->mutation, EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED));
    API(WorkflowExecutionCompletedEventAttributes) *attributes =
        event->workflow_execution_completed_event_attributes;
    attributes->result = request->result;
    attributes->decision_task_completed_event_id = decision_list->completed_id;
    mutation_add_event(decision_list->mutation, event);
}
