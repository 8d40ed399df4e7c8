/* fail.c - the decision that the run has failed. */
#include "base/check.h"
#include "engine/command/inside.h"
#include "wire/message.h"

void
decide_fail(struct decision_list *decision_list, const API(Decision) *decision)
{
    const API(Failure) *failure = decision->fail_workflow_execution_decision_attributes->failure;
    struct mutation *mutation = decision_list->mutation;
    if (!decision_list_may_close(decision_list, "complete workflow"))
        return;
    if (failure == NULL) {
        decision_list_refuse(decision_list, FAILED_CAUSE(BAD_FAIL_WORKFLOW_EXECUTION_ATTRIBUTES),
                             "Reason is not set on decision.");
        return;
    }
    if (!decision_list_may_hold(decision_list, failure->details.len,
                                "FailWorkflowExecutionDecisionAttributes.Details"))
        return;
    if (mutation_run(mutation)->core->is_cancel_requested) { /* cancellation is sticky */
        API(Payload) *details = message_new(mutation_arena(mutation), API_TYPE(payload));
        details->data = failure->details;
        decision_list_close_canceled(decision_list, details);
        return;
    }
    decision_list->is_closed = true;
    struct run_end end = {.failure = failure, .completed_id = decision_list->completed_id};
    if (run_is_followed(decision_list->step, mutation, &end))
        return;
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(WORKFLOW_EXECUTION_FAILED));
    API(WorkflowExecutionFailedEventAttributes) *attributes =
        event->workflow_execution_failed_event_attributes;
    attributes->failure = (API(Failure) *)failure;
    attributes->decision_task_completed_event_id = decision_list->completed_id;
    mutation_add_event(mutation, event);
}
