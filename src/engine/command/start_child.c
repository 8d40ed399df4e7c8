/* start_child.c - the decision to start a child. The start itself is work of the outbox.
 *
 * What the decision leaves out, the child takes from its parent. */
#include "base/check.h"
#include "domain/active.h"
#include "engine/command/retry.h"
#include "engine/command/schedule.h"
#include "engine/command/start.h"
#include "engine/command/target.h"
#include "wire/presence.h"

#define BAD          FAILED_CAUSE(BAD_START_CHILD_EXECUTION_ATTRIBUTES)
#define POLICY(name) API_VALUE(PARENT_CLOSE_POLICY__PARENT_CLOSE_POLICY_##name)

typedef API(StartChildWorkflowExecutionDecisionAttributes) request_t;

static const char *
find_fault(const struct decision_list *decision_list, const request_t *request)
{
    const char *type = request->workflow_type == NULL ? "" : request->workflow_type->name;
    if (request->workflow_id[0] == '\0')
        return "Required field WorkflowID is not set on decision.";
    if (type[0] == '\0')
        return "Required field WorkflowType is not set on decision.";
    if (target_is_longer(decision_list, request->domain, DYNAMIC_DOMAIN_NAME_LENGTH))
        return "Domain exceeds length limit.";
    if (target_is_longer(decision_list, request->workflow_id, DYNAMIC_WORKFLOW_ID_LENGTH))
        return "WorkflowId exceeds length limit.";
    if (target_is_longer(decision_list, type, DYNAMIC_WORKFLOW_TYPE_LENGTH))
        return "WorkflowType exceeds length limit.";
    const char *fault = retry_policy_fault(request->retry_policy);
    if (fault != NULL)
        return fault;
    return schedule_fault(request->cron_schedule, decision_list->step->context->now,
                          decision_list->step->arena);
}

/* A child in another domain: not where one of the two is global. */
static bool
is_domain_good(struct decision_list *decision_list, const struct domain *target)
{
    const struct domain *own = decision_list->step->context->domain;
    bool is_global =
        own->record->domain->is_global_domain || target->record->domain->is_global_domain;
    if (strcmp(own->id, target->id) == 0 || !is_global)
        return true;
    decision_list_refuse(
        decision_list, BAD,
        "The child workflow is trying to use domain %s but it's running in domain %s. "
        "Cross-cluster and cross domain child workflows are not supported for global "
        "domains",
        target->id, own->id);
    return false;
}

/* */
static API(ParentClosePolicy)
choose_policy(const struct run_context *context, API(ParentClosePolicy) requested)
{
    if (!run_context_flag(context, DYNAMIC_PARENT_CLOSE_POLICY))
        return POLICY(ABANDON);
    bool is_known = requested == POLICY(ABANDON) || requested == POLICY(REQUEST_CANCEL) ||
                    requested == POLICY(TERMINATE);
    return is_known ? requested : POLICY(TERMINATE);
}

static GOOGLE(Duration) *
choose_timeout(GOOGLE(Duration) *requested, int64_t of_parent, struct arena *arena)
{
    return command_seconds(requested) > 0 ? requested : presence_make_duration(arena, of_parent);
}

static void
add_initiated(struct decision_list *decision_list, const request_t *request, API(TaskList) *list)
{
    struct arena *arena = decision_list->step->arena;
    const STORED(RunRecord) *core = mutation_run(decision_list->mutation)->core;
    const struct run_context *context = decision_list->step->context;
    API(HistoryEvent) *event = mutation_new_event(
        decision_list->mutation, EVENT_KIND(START_CHILD_WORKFLOW_EXECUTION_INITIATED));
    API(StartChildWorkflowExecutionInitiatedEventAttributes) *attributes =
        event->start_child_workflow_execution_initiated_event_attributes;
    attributes->domain =
        request->domain[0] != '\0' ? request->domain : presence_make_text(context->domain->name);
    attributes->workflow_id = request->workflow_id;
    attributes->workflow_type = request->workflow_type;
    attributes->task_list = list;
    attributes->input = request->input;
    attributes->execution_start_to_close_timeout =
        choose_timeout(request->execution_start_to_close_timeout, core->execution_timeout, arena);
    attributes->task_start_to_close_timeout =
        choose_timeout(request->task_start_to_close_timeout, core->decision_timeout, arena);
    attributes->parent_close_policy = choose_policy(context, request->parent_close_policy);
    attributes->control = request->control;
    attributes->decision_task_completed_event_id = decision_list->completed_id;
    attributes->workflow_id_reuse_policy = request->workflow_id_reuse_policy;
    attributes->retry_policy = request->retry_policy;
    attributes->cron_schedule = request->cron_schedule;
    attributes->cron_overlap_policy = request->cron_overlap_policy;
    attributes->header = request->header;
    attributes->memo = request->memo;
    attributes->search_attributes = request->search_attributes;
    attributes->active_cluster_selection_policy = request->active_cluster_selection_policy;
    int64_t initiated_id = mutation_add_event(decision_list->mutation, event);
    check(run_find_child(mutation_run(decision_list->mutation), initiated_id) != NULL);
}

void
decide_start_child(struct decision_list *decision_list, const API(Decision) *decision)
{
    const request_t *request = decision->start_child_workflow_execution_decision_attributes;
    const struct domain *target = target_find_domain(
        decision_list, request->domain, BAD, "Unable to schedule child execution across domain");
    if (target == NULL || !is_domain_good(decision_list, target))
        return;
    const char *fault = find_fault(decision_list, request);
    struct cluster_attribute attribute =
        cluster_attribute_of(request->active_cluster_selection_policy);
    struct cluster_attribute own = cluster_attribute_of(
        mutation_run(decision_list->mutation)->core->active_cluster_selection_policy);
    if (fault == NULL && attribute.scope != NULL && !cluster_attribute_equals(&attribute, &own) &&
        run_context_active(decision_list->step->context, target, &attribute).status ==
            ACTIVE_UNKNOWN_ATTRIBUTE)
        fault = UNKNOWN_ATTRIBUTE_FAULT;
    if (fault != NULL) {
        decision_list_refuse(decision_list, BAD, "%s", fault);
        return;
    }
    API(TaskList) *list = target_choose_list(decision_list, request->task_list, BAD);
    if (list == NULL || !decision_list_may_hold(
                            decision_list, request->input == NULL ? 0 : request->input->data.len,
                            "StartChildWorkflowExecutionDecisionAttributes.Input"))
        return;
    add_initiated(decision_list, request, list);
}
