/* workflow_children.c - what a parent of the workflow load decides about its children. See
 * workflow_load.h.
 *
 * All are started with one list; when all are known to have started, each is asked for something
 * (a signal, or its end) if the family does that; some families wait until all have ended. */
#include "sim/workflow_inside.h"
#include "wire/message.h"

#define EVENT(name)    API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)
#define DECISION(name) API_VALUE(DECISION__ATTRIBUTES_##name##_DECISION_ATTRIBUTES)
#define POLICY(name)   API_VALUE(PARENT_CLOSE_POLICY__PARENT_CLOSE_POLICY_##name)

void
family_follow(struct family_progress *progress, const API(HistoryEvent) *event)
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
family_child_entry(const struct plan *plan, struct workflow_entry *child)
{
    *child = (struct workflow_entry){.schedule = plan->family % 2 == 0 ? "@every 2s" : "@every 3s",
                                     .is_buffered = plan->child_runs == 0};
    child->plan = (struct plan){.activities = plan->family % 2,
                                .runs = plan->child_runs,
                                .failures = plan->child_failures,
                                .fires = plan->child_fires};
    child->plan.signals = plan->family == FAMILY_WAITS ? 1 : 0;
    child->plan.is_endless = plan->family == FAMILY_CANCELS || plan->family == FAMILY_TERMINATES ||
                             plan->family == FAMILY_REQUESTS;
    if (plan->is_mild == 0)
        return;
    child->plan.is_mild = 1;
    child->plan.signals = child->plan.is_endless = 0;
    child->plan.timers = 3;
}

static API(Decision) *
start_child(const struct plan *plan, const char *workflow_id, unsigned number, struct arena *arena)
{
    static const API(ParentClosePolicy) policies[FAMILY_COUNT] = {
        [FAMILY_WAITS] = POLICY(INVALID), /* the default: they are terminated */
        [FAMILY_ABANDONS] = POLICY(ABANDON),     [FAMILY_CANCELS] = POLICY(REQUEST_CANCEL),
        [FAMILY_TERMINATES] = POLICY(TERMINATE), [FAMILY_REQUESTS] = POLICY(REQUEST_CANCEL),
    };
    struct workflow_entry own;
    family_child_entry(plan, &own);
    API(StartChildWorkflowExecutionDecisionAttributes) *child =
        message_new(arena, API_TYPE(start_child_workflow_execution_decision_attributes));
    child->workflow_id = child_id(workflow_id, number, arena);
    child->workflow_type = message_new(arena, API_TYPE(workflow_type));
    child->workflow_type->name = "plan";
    child->input = workflow_payload(arena, plan_print(&own.plan, arena));
    if (own.plan.failures > 0)
        child->retry_policy = plan_retry_policy(arena);
    if (own.plan.fires > 0) {
        child->cron_schedule = (char *)own.schedule;
        child->cron_overlap_policy =
            own.is_buffered ? API_VALUE(CRON_OVERLAP_POLICY__CRON_OVERLAP_POLICY_BUFFER_ONE)
                            : API_VALUE(CRON_OVERLAP_POLICY__CRON_OVERLAP_POLICY_SKIPPED);
    }
    child->parent_close_policy = policies[plan->family];
    API(Decision) *decision = plan_new_decision(arena, DECISION(START_CHILD_WORKFLOW_EXECUTION));
    decision->start_child_workflow_execution_decision_attributes = child;
    return decision;
}

static API(Decision) *
signal_child(const char *workflow_id, unsigned number, struct arena *arena)
{
    API(SignalExternalWorkflowExecutionDecisionAttributes) *signal =
        message_new(arena, API_TYPE(signal_external_workflow_execution_decision_attributes));
    signal->workflow_execution =
        workflow_execution(arena, child_id(workflow_id, number, arena), "");
    signal->signal_name = "s0";
    signal->child_workflow_only = true;
    API(Decision) *decision =
        plan_new_decision(arena, DECISION(SIGNAL_EXTERNAL_WORKFLOW_EXECUTION));
    decision->signal_external_workflow_execution_decision_attributes = signal;
    return decision;
}

static API(Decision) *
cancel_child(const char *workflow_id, unsigned number, struct arena *arena)
{
    API(RequestCancelExternalWorkflowExecutionDecisionAttributes) *cancel = message_new(
        arena, API_TYPE(request_cancel_external_workflow_execution_decision_attributes));
    cancel->workflow_execution =
        workflow_execution(arena, child_id(workflow_id, number, arena), "");
    cancel->child_workflow_only = true;
    API(Decision) *decision =
        plan_new_decision(arena, DECISION(REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION));
    decision->request_cancel_external_workflow_execution_decision_attributes = cancel;
    return decision;
}

bool
family_decide(const struct plan *plan, const struct family_progress *progress,
              const char *workflow_id, struct arena *arena, struct plan_step *step)
{
    bool asks = plan->family == FAMILY_WAITS || plan->family == FAMILY_REQUESTS;
    unsigned refused = plan->is_mild != 0 ? progress->refused : 0;
    unsigned unheard = plan->is_mild != 0 ? progress->unheard : 0;
    if (plan->children == 0)
        return false;
    step->has_children = progress->initiated == 0;
    for (unsigned i = 0; progress->initiated == 0 && i < plan->children; i++)
        step->decisions[step->count++] = start_child(plan, workflow_id, i, arena);
    if (progress->started + refused < plan->children)
        return true;
    for (unsigned i = 0; asks && progress->asked == 0 && i < plan->children; i++)
        step->decisions[step->count++] = plan->family == FAMILY_WAITS
                                             ? signal_child(workflow_id, i, arena)
                                             : cancel_child(workflow_id, i, arena);
    return asks && (progress->answered + unheard < plan->children ||
                    progress->ended + refused < plan->children);
}
