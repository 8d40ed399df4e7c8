/* start_child.c - the decision to start a child. The start itself is work of the outbox.
 *
 * What the decision leaves out, the child takes from its parent. */
#include "domain/active.h"
#include "engine/command/retry.h"
#include "engine/command/schedule.h"
#include "engine/command/start.h"
#include "engine/command/target.h"
#include "wire/presence.h"

#define BAD          FAILED_CAUSE(BAD_START_CHILD_EXECUTION_ATTRIBUTES)
#define POLICY(name) API_VALUE(PARENT_CLOSE_POLICY__PARENT_CLOSE_POLICY_##name)

typedef API(StartChildWorkflowExecutionDecisionAttributes) wish_t;

static const char *
find_fault(const struct deciding *deciding, const wish_t *wish)
{
    const char *type = wish->workflow_type == NULL ? "" : wish->workflow_type->name;
    if (wish->workflow_id[0] == '\0')
        return "Required field WorkflowID is not set on decision.";
    if (type[0] == '\0')
        return "Required field WorkflowType is not set on decision.";
    if (target_is_longer(deciding, wish->domain, DYNAMIC_DOMAIN_NAME_LENGTH))
        return "Domain exceeds length limit.";
    if (target_is_longer(deciding, wish->workflow_id, DYNAMIC_WORKFLOW_ID_LENGTH))
        return "WorkflowId exceeds length limit.";
    if (target_is_longer(deciding, type, DYNAMIC_WORKFLOW_TYPE_LENGTH))
        return "WorkflowType exceeds length limit.";
    const char *fault = retry_policy_fault(wish->retry_policy);
    if (fault != NULL)
        return fault;
    return schedule_fault(wish->cron_schedule, deciding->step->facts->now, deciding->step->arena);
}

/* A child in another domain: not where one of the two is global. */
static bool
is_domain_good(struct deciding *deciding, const struct domain *target)
{
    const struct domain *own = deciding->step->facts->domain;
    bool is_global =
        own->record->domain->is_global_domain || target->record->domain->is_global_domain;
    if (strcmp(own->id, target->id) == 0 || !is_global)
        return true;
    deciding_refuse(deciding, BAD,
                    "The child workflow is trying to use domain %s but it's running in domain %s. "
                    "Cross-cluster and cross domain child workflows are not supported for global "
                    "domains",
                    target->id, own->id);
    return false;
}

/* */
static API(ParentClosePolicy)
choose_policy(const struct facts *facts, API(ParentClosePolicy) wished)
{
    if (!facts_flag(facts, DYNAMIC_PARENT_CLOSE_POLICY))
        return POLICY(ABANDON);
    bool is_known = wished == POLICY(ABANDON) || wished == POLICY(REQUEST_CANCEL) ||
                    wished == POLICY(TERMINATE);
    return is_known ? wished : POLICY(TERMINATE);
}

static GOOGLE(Duration) *
choose_timeout(GOOGLE(Duration) *wished, int64_t of_parent, struct arena *arena)
{
    return command_seconds(wished) > 0 ? wished : presence_make_duration(arena, of_parent);
}

static void
add_initiated(struct deciding *deciding, const wish_t *wish, API(TaskList) *list)
{
    struct arena *arena = deciding->step->arena;
    const STORED(RunRecord) *core = mutation_run(deciding->mutation)->core;
    const struct facts *facts = deciding->step->facts;
    API(HistoryEvent) *event = mutation_new_event(
        deciding->mutation, EVENT_KIND(START_CHILD_WORKFLOW_EXECUTION_INITIATED));
    API(StartChildWorkflowExecutionInitiatedEventAttributes) *attributes =
        event->start_child_workflow_execution_initiated_event_attributes;
    attributes->domain =
        wish->domain[0] != '\0' ? wish->domain : presence_make_text(facts->domain->name);
    attributes->workflow_id = wish->workflow_id;
    attributes->workflow_type = wish->workflow_type;
    attributes->task_list = list;
    attributes->input = wish->input;
    attributes->execution_start_to_close_timeout =
        choose_timeout(wish->execution_start_to_close_timeout, core->execution_timeout, arena);
    attributes->task_start_to_close_timeout =
        choose_timeout(wish->task_start_to_close_timeout, core->decision_timeout, arena);
    attributes->parent_close_policy = choose_policy(facts, wish->parent_close_policy);
    attributes->control = wish->control;
    attributes->decision_task_completed_event_id = deciding->completed_id;
    attributes->workflow_id_reuse_policy = wish->workflow_id_reuse_policy;
    attributes->retry_policy = wish->retry_policy;
    attributes->cron_schedule = wish->cron_schedule;
    attributes->cron_overlap_policy = wish->cron_overlap_policy;
    attributes->header = wish->header;
    attributes->memo = wish->memo;
    attributes->search_attributes = wish->search_attributes;
    attributes->active_cluster_selection_policy = wish->active_cluster_selection_policy;
    mutation_add_event(deciding->mutation, event);
}

void
decide_start_child(struct deciding *deciding, const API(Decision) *decision)
{
    const wish_t *wish = decision->start_child_workflow_execution_decision_attributes;
    const struct domain *target = target_find_domain(
        deciding, wish->domain, BAD, "Unable to schedule child execution across domain");
    if (target == NULL || !is_domain_good(deciding, target))
        return;
    const char *fault = find_fault(deciding, wish);
    struct cluster_attribute attribute =
        cluster_attribute_of(wish->active_cluster_selection_policy);
    struct cluster_attribute own = cluster_attribute_of(
        mutation_run(deciding->mutation)->core->active_cluster_selection_policy);
    if (fault == NULL && attribute.scope != NULL && !cluster_attribute_equals(&attribute, &own) &&
        facts_active(deciding->step->facts, target, &attribute).status == ACTIVE_UNKNOWN_ATTRIBUTE)
        fault = UNKNOWN_ATTRIBUTE_FAULT;
    if (fault != NULL) {
        deciding_refuse(deciding, BAD, "%s", fault);
        return;
    }
    API(TaskList) *list = target_choose_list(deciding, wish->task_list, BAD);
    if (list == NULL ||
        !deciding_may_hold(deciding, wish->input == NULL ? 0 : wish->input->data.len,
                           "StartChildWorkflowExecutionDecisionAttributes.Input"))
        return;
    add_initiated(deciding, wish, list);
}
