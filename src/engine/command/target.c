/* target.c - what a decision may aim at. See target.h. */
#include "engine/command/target.h"

#include "wire/message.h"

#define RESERVED_PREFIX "/__cadence_sys/"

bool
target_is_longer(const struct deciding *deciding, const char *text, enum dynamic_key limit)
{
    return (int64_t)strlen(text) > facts_integer(deciding->step->facts, limit);
}

static bool
has_cluster(const API(Domain) *domain, const char *name)
{
    for (size_t i = 0; i < domain->n_clusters; i++) {
        if (strcmp(domain->clusters[i]->cluster_name, name) == 0)
            return true;
    }
    return false;
}

/* May a run of one domain aim at the other? */
static bool
may_cross(const struct facts *facts, const API(Domain) *from, const API(Domain) *to)
{
    if (from->n_clusters != to->n_clusters)
        return false;
    if (from->n_clusters > 1 && !facts_flag(facts, DYNAMIC_CROSS_CLUSTER_OPERATIONS))
        return false;
    for (size_t i = 0; i < from->n_clusters; i++) {
        if (!has_cluster(to, from->clusters[i]->cluster_name))
            return false;
    }
    return true;
}

const struct domain *
target_find_domain(struct deciding *deciding, const char *name, API(DecisionTaskFailedCause) cause,
                   const char *unknown)
{
    const struct facts *facts = deciding->step->facts;
    if (name[0] == '\0')
        return facts->domain;
    const struct domain *target = facts->find_domain(facts->find_domain_context, name);
    if (target == NULL) {
        deciding_refuse(deciding, cause, "%s %s.", unknown, name);
        return NULL;
    }
    if (strcmp(target->id, facts->domain->id) == 0 ||
        may_cross(facts, facts->domain->record->domain, target->record->domain))
        return target;
    deciding_refuse(deciding, cause, "cannot make cross domain call between %s and %s",
                    facts->domain->name, target->name);
    return NULL;
}

API(TaskList) *
target_choose_list(struct deciding *deciding, const API(TaskList) *wished,
                   API(DecisionTaskFailedCause) cause)
{
    const API(TaskList) *own = mutation_run(deciding->mutation)->core->task_list;
    API(TaskList) *list = message_new(deciding->step->arena, API_TYPE(task_list));
    bool is_named = wished != NULL && wished->name[0] != '\0';
    list->name = is_named ? wished->name : own->name;
    list->kind = is_named ? wished->kind : own->kind;
    bool is_unsaid = list->kind == API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_INVALID);
    if (!is_named && is_unsaid)
        list->kind = API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL);
    if (!is_named)
        return list;
    bool is_normal = is_unsaid || list->kind == API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL);
    if (is_normal && own->kind == API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_EPHEMERAL))
        list->kind = own->kind;
    if (target_is_longer(deciding, list->name, DYNAMIC_TASK_LIST_NAME_LENGTH)) {
        deciding_refuse(
            deciding, cause, "task list name exceeds length limit of %lld",
            (long long)facts_integer(deciding->step->facts, DYNAMIC_TASK_LIST_NAME_LENGTH));
        return NULL;
    }
    if (strncmp(list->name, RESERVED_PREFIX, strlen(RESERVED_PREFIX)) == 0) {
        deciding_refuse(deciding, cause, "task list name cannot start with reserved prefix %s",
                        RESERVED_PREFIX);
        return NULL;
    }
    return list;
}

const char *
target_find_fault(const struct deciding *deciding, const char *domain,
                  const API(WorkflowExecution) *execution)
{
    struct uuid ignored;
    if (execution->workflow_id[0] == '\0')
        return "WorkflowId is not set on decision.";
    if (target_is_longer(deciding, domain, DYNAMIC_DOMAIN_NAME_LENGTH))
        return "Domain exceeds length limit.";
    if (target_is_longer(deciding, execution->workflow_id, DYNAMIC_WORKFLOW_ID_LENGTH))
        return "WorkflowId exceeds length limit.";
    if (execution->run_id[0] != '\0' && !uuid_parse(slice_text(execution->run_id), &ignored))
        return "Invalid RunId set on decision.";
    return NULL;
}
