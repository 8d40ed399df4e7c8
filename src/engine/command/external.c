/* external.c - the decisions to signal another workflow and to ask for its end, and what became of
 * them. The delivery is work of the outbox. */
#include "base/check.h"
#include "engine/command/target.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

#define BAD_SIGNAL FAILED_CAUSE(BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES)
#define BAD_CANCEL FAILED_CAUSE(BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES)

/* Why it failed: kind SIGNAL or CANCEL. */
#define JOINED(first, second, third) API_VALUE(first##second##third)
#define EXTERNAL_CAUSE(kind, name)                                                                 \
    JOINED(kind##_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE__,                                      \
           kind##_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_, name)

/* ---- decisions ---- */

void
decide_signal_external(struct decision_list *decision_list, const API(Decision) *decision)
{
    const API(SignalExternalWorkflowExecutionDecisionAttributes) *request =
        decision->signal_external_workflow_execution_decision_attributes;
    if (target_find_domain(decision_list, request->domain, BAD_SIGNAL,
                           "Unable to signal workflow across domain:") == NULL)
        return;
    const char *fault =
        request->workflow_execution == NULL
            ? "Execution is nil on decision."
            : target_find_fault(decision_list, request->domain, request->workflow_execution);
    if (fault == NULL && request->signal_name[0] == '\0')
        fault = "SignalName is not set on decision.";
    if (fault != NULL) {
        decision_list_refuse(decision_list, BAD_SIGNAL, "%s", fault);
        return;
    }
    if (!decision_list_may_hold(decision_list,
                                request->input == NULL ? 0 : request->input->data.len,
                                "SignalExternalWorkflowExecutionDecisionAttributes.Input"))
        return;
    API(HistoryEvent) *event = mutation_new_event(
        decision_list->mutation, EVENT_KIND(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED));
    API(SignalExternalWorkflowExecutionInitiatedEventAttributes) *attributes =
        event->signal_external_workflow_execution_initiated_event_attributes;
    attributes->decision_task_completed_event_id = decision_list->completed_id;
    attributes->domain = request->domain;
    attributes->workflow_execution = request->workflow_execution;
    attributes->signal_name = request->signal_name;
    attributes->input = request->input;
    attributes->control = request->control;
    attributes->child_workflow_only = request->child_workflow_only;
    int64_t initiated_id = mutation_add_event(decision_list->mutation, event);
    check(run_find_external(mutation_run(decision_list->mutation), initiated_id) != NULL);
}

void
decide_cancel_external(struct decision_list *decision_list, const API(Decision) *decision)
{
    const API(RequestCancelExternalWorkflowExecutionDecisionAttributes) *request =
        decision->request_cancel_external_workflow_execution_decision_attributes;
    if (target_find_domain(decision_list, request->domain, BAD_CANCEL,
                           "Unable to cancel workflow across domain:") == NULL)
        return;
    const char *fault =
        request->workflow_execution == NULL
            ? "WorkflowId is not set on decision."
            : target_find_fault(decision_list, request->domain, request->workflow_execution);
    if (fault != NULL) {
        decision_list_refuse(decision_list, BAD_CANCEL, "%s", fault);
        return;
    }
    API(HistoryEvent) *event = mutation_new_event(
        decision_list->mutation, EVENT_KIND(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED));
    API(RequestCancelExternalWorkflowExecutionInitiatedEventAttributes) *attributes =
        event->request_cancel_external_workflow_execution_initiated_event_attributes;
    attributes->decision_task_completed_event_id = decision_list->completed_id;
    attributes->domain = request->domain;
    attributes->workflow_execution = request->workflow_execution;
    attributes->control = request->control;
    attributes->child_workflow_only = request->child_workflow_only;
    int64_t initiated_id = mutation_add_event(decision_list->mutation, event);
    check(run_find_external(mutation_run(decision_list->mutation), initiated_id) != NULL);
}

/* ---- what became of them ---- */

static API(WorkflowExecution) *
target_of(const STORED(PendingExternal) *external, struct arena *arena)
{
    API(WorkflowExecution) *execution = message_new(arena, API_TYPE(workflow_execution));
    execution->workflow_id = external->workflow_id;
    execution->run_id = external->run_id; /* as it was asked for */
    return execution;
}

/* The name that events give the target's domain. */
static char *
domain_of(const struct mutation *mutation, const STORED(PendingExternal) *external)
{
    bool is_own = external->domain_name[0] == '\0';
    return is_own ? presence_make_text(mutation_context(mutation)->domain->name)
                  : external->domain_name;
}

/* FILL(event, external): what the four events have in common. */
#define FILL(attributes)                                                                           \
    (attributes)->initiated_event_id = external->initiated_id;                                     \
    (attributes)->domain = domain_of(mutation, external);                                          \
    (attributes)->workflow_execution = target_of(external, mutation_arena(mutation))

static void
add_signal_end(struct mutation *mutation, const STORED(PendingExternal) *external,
               enum external_end end)
{
    if (end == EXTERNAL_DELIVERED) {
        API(HistoryEvent) *event =
            mutation_new_event(mutation, EVENT_KIND(EXTERNAL_WORKFLOW_EXECUTION_SIGNALED));
        FILL(event->external_workflow_execution_signaled_event_attributes);
        event->external_workflow_execution_signaled_event_attributes->control = external->control;
        mutation_add_event(mutation, event);
        return;
    }
    API(HistoryEvent) *event =
        mutation_new_event(mutation, EVENT_KIND(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED));
    API(SignalExternalWorkflowExecutionFailedEventAttributes) *failed =
        event->signal_external_workflow_execution_failed_event_attributes;
    FILL(failed);
    failed->control = external->control;
    failed->decision_task_completed_event_id = EVENT_NONE;
    failed->cause = EXTERNAL_CAUSE(SIGNAL, UNKNOWN_EXTERNAL_WORKFLOW_EXECUTION);
    mutation_add_event(mutation, event);
}

static void
add_cancel_end(struct mutation *mutation, const STORED(PendingExternal) *external,
               enum external_end end)
{
    if (end == EXTERNAL_DELIVERED) {
        API(HistoryEvent) *event =
            mutation_new_event(mutation, EVENT_KIND(EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED));
        FILL(event->external_workflow_execution_cancel_requested_event_attributes);
        mutation_add_event(mutation, event);
        return;
    }
    API(HistoryEvent) *event =
        mutation_new_event(mutation, EVENT_KIND(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED));
    API(RequestCancelExternalWorkflowExecutionFailedEventAttributes) *failed =
        event->request_cancel_external_workflow_execution_failed_event_attributes;
    FILL(failed);
    failed->decision_task_completed_event_id = EVENT_NONE;
    failed->cause = end == EXTERNAL_COMPLETED
                        ? EXTERNAL_CAUSE(CANCEL, WORKFLOW_ALREADY_COMPLETED)
                        : EXTERNAL_CAUSE(CANCEL, UNKNOWN_EXTERNAL_WORKFLOW_EXECUTION);
    mutation_add_event(mutation, event);
}

struct error *
command_end_external(struct step *step, int64_t initiated_id, enum external_end end)
{
    struct mutation *mutation;
    struct error *err = step_open_run(step, &mutation);
    if (err != NULL)
        return err;
    const STORED(PendingExternal) *external =
        run_find_external(mutation_run(mutation), initiated_id);
    if (external == NULL)
        return NULL; /* a repeat */
    if (external->is_cancel)
        add_cancel_end(mutation, external, end);
    else
        add_signal_end(mutation, external, end);
    check(run_find_external(mutation_run(mutation), initiated_id) == NULL);
    decision_schedule_if_needed(mutation);
    return NULL;
}

struct error *
run_check_parent(const struct mutation *mutation, const struct origin *origin)
{
    const API(ParentExecutionInfo) *parent = mutation_run(mutation)->core->parent;
    if (origin == NULL || !origin->is_child_only)
        return NULL;
    bool is_meant =
        parent != NULL && (origin->child_id == 0 || origin->child_id == parent->initiated_id);
    if (is_meant && strcmp(parent->workflow_execution->workflow_id, origin->workflow_id) == 0 &&
        strcmp(parent->workflow_execution->run_id, origin->run_id) == 0)
        return NULL;
    return errors_entity_not_exists(mutation_arena(mutation), NULL,
                                    "workflow parent does not match");
}
