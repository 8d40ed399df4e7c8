/* target.c - what a decision may aim at. See target.h. */
#include "engine/command/target.h"

#include "domain/domain.h"
#include "wire/message.h"

#define RESERVED_PREFIX "/__cadence_sys/"

bool
target_is_longer(const struct decision_list *decision_list, const char *text,
                 enum dynamic_key limit)
{
    return (int64_t)strlen(text) > run_context_integer(decision_list->step->context, limit);
}

/* May a run of one domain aim at the other? */
static bool
may_cross(const struct run_context *context, const API(Domain) *from, const API(Domain) *to)
{
    if (from->n_clusters != to->n_clusters)
        return false;
    if (from->n_clusters > 1 && !run_context_flag(context, DYNAMIC_CROSS_CLUSTER_OPERATIONS))
        return false;
    for (size_t i = 0; i < from->n_clusters; i++) {
        if (!domain_has_cluster(to, from->clusters[i]->cluster_name))
            return false;
    }
    return true;
}

const struct domain *
target_find_domain(struct decision_list *decision_list, const char *name,
                   API(DecisionTaskFailedCause) cause, const char *unknown)
{
    const struct run_context *context = decision_list->step->context;
    if (name[0] == '\0')
        return context->domain;
    const struct domain *target = context->find_domain(context->find_domain_context, name);
    if (target == NULL) {
        decision_list_refuse(decision_list, cause, "%s %s.", unknown, name);
        return NULL;
    }
    if (strcmp(target->id, context->domain->id) == 0 ||
        may_cross(context, context->domain->record->domain, target->record->domain))
        return target;
    decision_list_refuse(decision_list, cause, "cannot make cross domain call between %s and %s",
                         context->domain->name, target->name);
    return NULL;
}

API(TaskList) *
target_choose_list(struct decision_list *decision_list, const API(TaskList) *requested,
                   API(DecisionTaskFailedCause) cause)
{
    const API(TaskList) *own = mutation_run(decision_list->mutation)->core->task_list;
    API(TaskList) *list = message_new(decision_list->step->arena, API_TYPE(task_list));
    bool is_named = requested != NULL && requested->name[0] != '\0';
    list->name = is_named ? requested->name : own->name;
    list->kind = is_named ? requested->kind : own->kind;
    bool is_unsaid = list->kind == API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_INVALID);
    if (!is_named && is_unsaid)
        list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL);
    if (!is_named)
        return list;
    bool is_normal = is_unsaid || list->kind == API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL);
    if (is_normal && own->kind == API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_EPHEMERAL))
        list->kind = own->kind;
    if (target_is_longer(decision_list, list->name, DYNAMIC_TASK_LIST_NAME_LENGTH)) {
        decision_list_refuse(decision_list, cause, "task list name exceeds length limit of %lld",
                             (long long)run_context_integer(decision_list->step->context,
                                                            DYNAMIC_TASK_LIST_NAME_LENGTH));
        return NULL;
    }
    if (strncmp(list->name, RESERVED_PREFIX, strlen(RESERVED_PREFIX)) == 0) {
        decision_list_refuse(decision_list, cause,
                             "task list name cannot start with reserved prefix %s",
                             RESERVED_PREFIX);
        return NULL;
    }
    return list;
}

const char *
target_find_fault(const struct decision_list *decision_list, const char *domain,
                  const API(WorkflowExecution) *execution)
{
    struct uuid ignored;
    if (execution->workflow_id[0] == '\0')
        return "WorkflowId is not set on decision.";
    if (target_is_longer(decision_list, domain, DYNAMIC_DOMAIN_NAME_LENGTH))
        return "Domain exceeds length limit.";
    if (target_is_longer(decision_list, execution->workflow_id, DYNAMIC_WORKFLOW_ID_LENGTH))
        return "WorkflowId exceeds length limit.";
    if (execution->run_id[0] != '\0' && !uuid_parse(slice_text(execution->run_id), &ignored))
        return "Invalid RunId set on decision.";
    return NULL;
}
