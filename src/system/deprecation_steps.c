/* deprecation_steps.c - the activities of a deprecation. See deprecation.h. Each can be
 * repeated. */
#include "system/worker.h"

#include "system/deprecation.h"

#include "api/workflow/diagnose.h"
#include "domain/domains.h"
#include "matching/matching.h"
#include "system/bulk.h"
#include "system/types.h"
#include "visibility/feed/registry.h"
#include "visibility/visibility.h"
#include "wire/message.h"

#define OWN_LISTS "cadence-sys-" /* lists that the server polls itself */

/* The domain of the activity; its id lives in the arena. */
static struct error *
find_domain(struct system_task *task, struct deprecation_request *deprecation, const char **id)
{
    const struct domain *domain = NULL;
    if (deprecation_read(task->input, task->arena, deprecation))
        domain = domains_find_name(task->parts->domains, deprecation->domain);
    if (domain == NULL) {
        task->reason = DEPRECATION_UNKNOWN;
        return domain_error_unknown(deprecation->domain, task->arena);
    }
    *id = arena_text(task->arena, domain->id);
    return NULL;
}

/* The change of a domain may be refused. */
static struct error *
judge_change(struct system_task *task, struct error *err)
{
    if (err != NULL && err->kind == ERR_ACCESS_DENIED)
        task->reason = DEPRECATION_DENIED;
    if (err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS)
        task->reason = DEPRECATION_UNKNOWN;
    if (err != NULL && err->kind == ERR_BAD_REQUEST)
        task->reason = BULK_FINAL;
    return err;
}

/* --- who polls ---- */

static bool
is_polled(const char *name, const API(DescribeTaskListResponse) *list)
{
    return strncmp(name, OWN_LISTS, strlen(OWN_LISTS)) != 0 && list != NULL && list->n_pollers > 0;
}

static const char *
find_polled(const API(GetTaskListsByDomainResponse) *lists)
{
    for (size_t i = 0; i < lists->n_decision_task_list_map; i++) {
        if (is_polled(lists->decision_task_list_map[i]->key,
                      lists->decision_task_list_map[i]->value))
            return lists->decision_task_list_map[i]->key;
    }
    for (size_t i = 0; i < lists->n_activity_task_list_map; i++) {
        if (is_polled(lists->activity_task_list_map[i]->key,
                      lists->activity_task_list_map[i]->value))
            return lists->activity_task_list_map[i]->key;
    }
    return NULL;
}

static struct error *
check_pollers(struct system_task *task, struct slice *result)
{
    struct deprecation_request deprecation;
    const char *id, *polled = NULL;
    API(GetTaskListsByDomainResponse) *lists =
        message_new(task->arena, API_TYPE(get_task_lists_by_domain_response));
    struct error *err = find_domain(task, &deprecation, &id);
    if (err == NULL)
        err = matching_list_lists(task->parts->matching, id, task->arena, lists);
    if (err == NULL)
        polled = find_polled(lists);
    if (polled == NULL)
        return err;
    task->reason = DEPRECATION_POLLED;
    return error_new(task->arena, ERR_BAD_REQUEST,
                     "domain %s has active pollers on task lists: [%s (cluster: %s)], use Force to "
                     "override",
                     deprecation.domain, polled, task->parts->group->current->name);
}

/* --- the domain ---- */

static bool
archives(const API(Domain) *domain)
{
    return domain->history_archival_status == API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_ENABLED) ||
           domain->visibility_archival_status ==
               API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_ENABLED);
}

static struct error *
disable_archival(struct system_task *task, struct slice *result)
{
    static const char *const paths[] = {"history_archival_status", "visibility_archival_status"};
    struct deprecation_request deprecation;
    const char *id;
    struct error *err = find_domain(task, &deprecation, &id);
    if (err != NULL)
        return err;
    const struct domain *domain = domains_find_id(task->parts->domains, id);
    if (domain == NULL || !archives(domain->record->domain))
        return NULL;
    API(UpdateDomainRequest) *request = message_new(task->arena, API_TYPE(update_domain_request));
    request->name = (char *)deprecation.domain;
    request->security_token = (char *)deprecation.token;
    request->history_archival_status = API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_DISABLED);
    request->visibility_archival_status = API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_DISABLED);
    request->update_mask = message_new(task->arena, GOOGLE_TYPE(field_mask));
    request->update_mask->paths = (char **)paths;
    request->update_mask->n_paths = array_length(paths);
    return judge_change(task, domains_update(task->parts->domains, request, task->arena, NULL));
}

static struct error *
deprecate(struct system_task *task, struct slice *result)
{
    struct deprecation_request deprecation;
    const char *id;
    struct error *err = find_domain(task, &deprecation, &id);
    if (err != NULL)
        return err;
    API(DeprecateDomainRequest) *request =
        message_new(task->arena, API_TYPE(deprecate_domain_request));
    request->name = (char *)deprecation.domain;
    request->security_token = (char *)deprecation.token;
    return judge_change(task, domains_deprecate(task->parts->domains, request, task->arena, NULL));
}

/* --- open runs ---- */

static struct error *
count_open(struct system_task *task, struct slice *result)
{
    struct deprecation_request deprecation;
    const char *id;
    struct query query;
    int64_t count = 0;
    struct error *err = find_domain(task, &deprecation, &id);
    if (err == NULL)
        err = query_parse("CloseTime = missing", registry_set(task->parts->registry), task->arena,
                          &query);
    if (err == NULL)
        err = engine_visibility_wait(task->parts->engine, task->arena);
    if (err == NULL)
        err = visibility_count(task->parts->visibility, id, &query, task->arena, &count);
    *result = slice_text(count > 0 ? "true" : "false");
    return err;
}

#define STEP(name) .type = (name), .list = DEPRECATION_LIST, .domain = SYSTEM_DOMAIN

const struct system_activity deprecation_check = {STEP(DEPRECATION_CHECK), .run = check_pollers};
const struct system_activity deprecation_archival = {STEP(DEPRECATION_ARCHIVAL),
                                                     .run = disable_archival};
const struct system_activity deprecation_mark = {STEP(DEPRECATION_MARK), .run = deprecate};
const struct system_activity deprecation_terminate = {STEP(BULK_ACTIVITY_V2), .run = bulk_run};
const struct system_activity deprecation_count = {STEP(DEPRECATION_COUNT), .run = count_open};
