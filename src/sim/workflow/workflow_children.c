/* workflow_children.c - what a parent of the workflow load decides about its children. See
 * workflow_load.h.
 *
 * All are started by one list of decisions; when all are known to have started, each is asked for
 * something (a signal, or its end) if the policy says so; with some policies the parent waits until
 * all have ended. */
#include "sim/workflow/workflow_inside.h"
#include "wire/message.h"

#define EVENT(name)    API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)
#define DECISION(name) API_VALUE(DECISION__ATTRIBUTES_##name##_DECISION_ATTRIBUTES)
#define POLICY(name)   API_VALUE(PARENT_CLOSE_POLICY__PARENT_CLOSE_POLICY_##name)

void
children_follow(struct children_progress *progress, const API(HistoryEvent) *event)
{
    int kind = (int)event->attributes_case;
    progress->initiated += kind == EVENT(START_CHILD_WORKFLOW_EXECUTION_INITIATED);
    progress->started += kind == EVENT(CHILD_WORKFLOW_EXECUTION_STARTED);
    progress->ended += kind == EVENT(CHILD_WORKFLOW_EXECUTION_COMPLETED) ||
                       kind == EVENT(CHILD_WORKFLOW_EXECUTION_CANCELED) ||
                       kind == EVENT(CHILD_WORKFLOW_EXECUTION_FAILED) ||
                       kind == EVENT(CHILD_WORKFLOW_EXECUTION_TERMINATED);
    progress->asked += kind == EVENT(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED) ||
                       kind == EVENT(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED);
    progress->answered += kind == EVENT(EXTERNAL_WORKFLOW_EXECUTION_SIGNALED) ||
                          kind == EVENT(EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED);
    progress->refused += kind == EVENT(START_CHILD_WORKFLOW_EXECUTION_FAILED);
    progress->unheard += kind == EVENT(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED) ||
                         kind == EVENT(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED);
}

static char *
child_id(const char *workflow_id, unsigned number, struct arena *arena)
{
    return arena_format(arena, "%s-c%u", workflow_id, number);
}

void
children_entry(const struct workload *workload, struct workflow_entry *child)
{
    *child = (struct workflow_entry){.schedule = workload->child_policy % 2 == 0 ? "@every 2s"
                                                                                 : "@every 3s",
                                     .is_buffered = workload->child_runs == 0};
    child->workload = (struct workload){.activities = workload->child_policy % 2,
                                        .runs = workload->child_runs,
                                        .failures = workload->child_failures,
                                        .fires = workload->child_fires};
    child->workload.signals = workload->child_policy == CHILD_POLICY_WAITS ? 1 : 0;
    child->workload.is_endless = workload->child_policy == CHILD_POLICY_CANCELS ||
                                 workload->child_policy == CHILD_POLICY_TERMINATES ||
                                 workload->child_policy == CHILD_POLICY_REQUESTS;
    if (workload->is_mild == 0)
        return;
    child->workload.is_mild = 1;
    child->workload.signals = child->workload.is_endless = 0;
    child->workload.timers = 3;
}

static API(Decision) *
start_child(const struct workload *workload, const char *workflow_id, unsigned number,
            struct arena *arena)
{
    static const API(ParentClosePolicy) policies[CHILD_POLICY_COUNT] = {
        [CHILD_POLICY_WAITS] = POLICY(INVALID), /* the default: they are terminated */
        [CHILD_POLICY_ABANDONS] = POLICY(ABANDON),
        [CHILD_POLICY_CANCELS] = POLICY(REQUEST_CANCEL),
        [CHILD_POLICY_TERMINATES] = POLICY(TERMINATE),
        [CHILD_POLICY_REQUESTS] = POLICY(REQUEST_CANCEL),
    };
    struct workflow_entry own;
    children_entry(workload, &own);
    API(StartChildWorkflowExecutionDecisionAttributes) *child =
        API_NEW(arena, start_child_workflow_execution_decision_attributes,
                .workflow_id = child_id(workflow_id, number, arena),
                .workflow_type = API_NEW(arena, workflow_type, .name = "plan"),
                .input = workflow_payload(arena, workload_print(&own.workload, arena)));
    if (own.workload.failures > 0)
        child->retry_policy = workload_retry_policy(arena);
    if (own.workload.fires > 0) {
        child->cron_schedule = (char *)own.schedule;
        child->cron_overlap_policy =
            own.is_buffered ? API_VALUE(CRON_OVERLAP_POLICY__CRON_OVERLAP_POLICY_BUFFER_ONE)
                            : API_VALUE(CRON_OVERLAP_POLICY__CRON_OVERLAP_POLICY_SKIPPED);
    }
    child->parent_close_policy = policies[workload->child_policy];
    API(Decision) *decision =
        workload_new_decision(arena, DECISION(START_CHILD_WORKFLOW_EXECUTION));
    decision->start_child_workflow_execution_decision_attributes = child;
    return decision;
}

static API(Decision) *
signal_child(const char *workflow_id, unsigned number, struct arena *arena)
{
    API(SignalExternalWorkflowExecutionDecisionAttributes) *signal = API_NEW(
        arena, signal_external_workflow_execution_decision_attributes,
        .workflow_execution = workflow_execution(arena, child_id(workflow_id, number, arena), ""),
        .signal_name = "s0", .child_workflow_only = true);
    API(Decision) *decision =
        workload_new_decision(arena, DECISION(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION));
    decision->signal_external_workflow_execution_decision_attributes = signal;
    return decision;
}

static API(Decision) *
cancel_child(const char *workflow_id, unsigned number, struct arena *arena)
{
    API(RequestCancelExternalWorkflowExecutionDecisionAttributes) *cancel = API_NEW(
        arena, request_cancel_external_workflow_execution_decision_attributes,
        .workflow_execution = workflow_execution(arena, child_id(workflow_id, number, arena), ""),
        .child_workflow_only = true);
    API(Decision) *decision =
        workload_new_decision(arena, DECISION(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION));
    decision->request_cancel_external_workflow_execution_decision_attributes = cancel;
    return decision;
}

bool
children_decide(const struct workload *workload, const struct children_progress *progress,
                const char *workflow_id, struct arena *arena, struct workload_step *step)
{
    bool asks = workload->child_policy == CHILD_POLICY_WAITS ||
                workload->child_policy == CHILD_POLICY_REQUESTS;
    unsigned refused = workload->is_mild != 0 ? progress->refused : 0;
    unsigned unheard = workload->is_mild != 0 ? progress->unheard : 0;
    if (workload->children == 0)
        return false;
    step->has_children = progress->initiated == 0;
    for (unsigned i = 0; progress->initiated == 0 && i < workload->children; i++)
        step->decisions[step->count++] = start_child(workload, workflow_id, i, arena);
    if (progress->started + refused < workload->children)
        return true;
    for (unsigned i = 0; asks && progress->asked == 0 && i < workload->children; i++)
        step->decisions[step->count++] = workload->child_policy == CHILD_POLICY_WAITS
                                             ? signal_child(workflow_id, i, arena)
                                             : cancel_child(workflow_id, i, arena);
    return asks && (progress->answered + unheard < workload->children ||
                    progress->ended + refused < workload->children);
}
