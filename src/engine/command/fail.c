/* fail.c - the decision that the run has failed. */
#include "base/check.h"
#include "engine/command/inside.h"
#include "wire/message.h"

void
decide_fail(struct deciding *deciding, const API(Decision) *decision)
{
    const API(Failure) *failure = decision->fail_workflow_execution_decision_attributes->failure;
    struct mutation *mutation = deciding->mutation;
    if (!deciding_may_close(deciding, "complete workflow"))
        return;
    if (failure == NULL) {
        deciding_refuse(deciding, FAILED_CAUSE(BAD_FAIL_WORKFLOW_EXECUTION_ATTRIBUTES),
                        "Reason is not set on decision.");
        return;
    }
    if (!deciding_may_hold(deciding, failure->details.len,
                           "FailWorkflowExecutionDecisionAttributes.Details"))
        return;
    if (mutation_run(mutation)->core->is_cancel_requested) { /* cancellation is sticky */
        API(Payload) *details = message_new(mutation_arena(mutation), API_TYPE(payload));
        details->data = failure->details;
        deciding_close_canceled(deciding, details);
        return;
    }
    deciding->is_closed = true;
    struct run_end end = {.failure = failure, .completed_id = deciding->completed_id};
    if (run_is_followed(deciding->step, mutation, &end))
        return;
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(WORKFLOW_EXECUTION_FAILED));
    API(WorkflowExecutionFailedEventAttributes) *attributes =
        event->workflow_execution_failed_event_attributes;
    attributes->failure = (API(Failure) *)failure;
    attributes->decision_task_completed_event_id = deciding->completed_id;
    mutation_add_event(mutation, event);
}
