/* managed_pollers.c - do the workers of a domain poll in the cluster that it moves to? See
 * managed.h. */
#include "api/api.h"
#include "base/check.h"
#include "domain/domains.h"
#include "matching/matching.h"
#include "system/managed.h"
#include "wire/maps.h"
#include "wire/message.h"

#define LISTS_PATH "/uber.cadence.api.v1.WorkflowAPI/GetTaskListsByDomain"

/* By workers of the domain's own; what servers poll themselves is polled where it is needed. */
static bool
is_polled(const API(DescribeTaskListResponse) *list)
{
    for (size_t i = 0; list != NULL && i < list->n_pollers; i++) {
        if (strcmp(list->pollers[i]->identity, SYSTEM_IDENTITY) != 0)
            return true;
    }
    return false;
}

/* The first list of decisions or activities that is polled here and not there; NULL: none. */
static const char *
find_lacking(const API(GetTaskListsByDomainResponse) *here,
             const API(GetTaskListsByDomainResponse) *there)
{
    for (size_t i = 0; i < here->n_decision_task_list_map; i++) {
        const char *name = here->decision_task_list_map[i]->key;
        const API(GetTaskListsByDomainResponse__DecisionTaskListMapEntry) *other =
            wire_map_find(there->decision_task_list_map, there->n_decision_task_list_map, name);
        if (is_polled(here->decision_task_list_map[i]->value) &&
            (other == NULL || !is_polled(other->value)))
            return name;
    }
    for (size_t i = 0; i < here->n_activity_task_list_map; i++) {
        const char *name = here->activity_task_list_map[i]->key;
        const API(GetTaskListsByDomainResponse__ActivityTaskListMapEntry) *other =
            wire_map_find(there->activity_task_list_map, there->n_activity_task_list_map, name);
        if (is_polled(here->activity_task_list_map[i]->value) &&
            (other == NULL || !is_polled(other->value)))
            return name;
    }
    return NULL;
}

static struct error *
list_here(const struct system_task *task, const char *name,
          API(GetTaskListsByDomainResponse) *lists)
{
    const struct domain *domain = domains_find_name(task->parts->domains, name);
    if (domain == NULL)
        return domain_error_unknown(name, task->arena);
    return matching_list_lists(task->parts->matching, arena_text(task->arena, domain->id),
                               task->arena, lists);
}

static struct error *
list_there(const struct system_task *task, const char *name, const char *target,
           const API(GetTaskListsByDomainResponse) **lists)
{
    ProtobufCMessage *response = NULL;
    API(GetTaskListsByDomainRequest) *request =
        message_new(task->arena, API_TYPE(get_task_lists_by_domain_request));
    request->domain = (char *)name;
    struct error *err =
        api_call_cluster(task->parts->api, target, LISTS_PATH, &request->base, task->arena,
                         API_TYPE(get_task_lists_by_domain_response), &response);
    *lists = (const API(GetTaskListsByDomainResponse) *)response;
    return err;
}

struct error *
managed_check_pollers(const struct system_task *task, const char *domain, const char *target)
{
    const API(GetTaskListsByDomainResponse) *there;
    API(GetTaskListsByDomainResponse) *none =
        message_new(task->arena, API_TYPE(get_task_lists_by_domain_response));
    API(GetTaskListsByDomainResponse) *here =
        message_new(task->arena, API_TYPE(get_task_lists_by_domain_response));
    check(target[0] != '\0');
    bool is_here = strcmp(target, task->parts->group->current->name) == 0;
    struct error *err = is_here ? NULL : list_here(task, domain, here);
    if (err != NULL || is_here || find_lacking(here, none) == NULL)
        return err; /* nobody polls: there is nothing to lack */
    err = list_there(task, domain, target, &there);
    if (err != NULL && err->kind == ERR_ACCESS_DENIED)
        return NULL; /* this cluster may not ask; the failover goes on */
    if (err != NULL)
        return error_new(task->arena, ERR_BAD_REQUEST, "failed to get task list for domain %s: %s",
                         domain, err->message);
    const char *lacking = find_lacking(here, there);
    return lacking == NULL
               ? NULL
               : error_new(task->arena, ERR_BAD_REQUEST,
                           "received zero poller in task list %s with domain %s", lacking, domain);
}
