/* task_list.c - calls about task lists, and how operators partition them. */
#include "api/call/validate.h"
#include "api/inside.h"
#include "matching/matching.h"
#include "uber/cadence/admin/v1/service.pb-c.h"
#include "wire/message.h"

/* Sets type and name of the spot. */
static struct error *
read_type(API(TaskListType) type, const char *refusal, struct arena *arena, struct list_spot *spot)
{
    bool is_decision = type == API_VALUE(TASK_LIST_TYPE__TASK_LIST_TYPE_DECISION);
    bool is_activity = type == API_VALUE(TASK_LIST_TYPE__TASK_LIST_TYPE_ACTIVITY);
    if (!is_decision && !is_activity)
        return error_new(arena, ERR_BAD_REQUEST, "%s", refusal);
    spot->type = is_decision ? TASK_DECISION : TASK_ACTIVITY;
    return NULL;
}

static struct error *
read_name(const API(TaskList) *list, struct arena *arena, struct list_spot *spot)
{
    if (list_name_parse(list->name, arena, &spot->name))
        return NULL;
    return error_new(arena, ERR_BAD_REQUEST, "invalid partitioned task list name %s", list->name);
}

/* Which list of which domain is meant. `limits` are those of the domain. */
static struct error *
find_list(struct rpc_call *call, const struct limits *limits, const API(TaskList) *list,
          struct list_spot *spot)
{
    struct call_domain domain;
    struct error *err = validate_task_list(limits, list);
    if (err == NULL)
        err = read_name(list, call->arena, spot);
    if (err == NULL)
        err = validate_domain(call, limits->domain, &domain);
    if (err == NULL)
        spot->domain_id = domain.id;
    return err;
}

struct error *
api_describe_task_list(struct rpc_call *call)
{
    const API(DescribeTaskListRequest) *request =
        (const API(DescribeTaskListRequest) *)call->request;
    API(DescribeTaskListResponse) *response = (API(DescribeTaskListResponse) *)call->response;
    struct limits limits = {api_of(call)->options.dynamic, request->domain, call->arena};
    struct list_spot spot = {0};
    struct error *err = validate_domain_name(&limits);
    if (err == NULL)
        err = read_type(request->task_list_type, "TaskListType is not set on request.", call->arena,
                        &spot);
    if (err == NULL)
        err = find_list(call, &limits, request->task_list, &spot);
    if (err != NULL)
        return err;
    err = matching_describe(api_of(call)->options.matching, &spot,
                            request->include_task_list_status, call->arena, response);
    if (response->task_list == NULL) /* it is not in use */
        response->task_list = request->task_list;
    return err;
}

struct error *
api_list_task_list_partitions(struct rpc_call *call)
{
    const API(ListTaskListPartitionsRequest) *request =
        (const API(ListTaskListPartitionsRequest) *)call->request;
    API(ListTaskListPartitionsResponse) *response =
        (API(ListTaskListPartitionsResponse) *)call->response;
    struct limits limits = {api_of(call)->options.dynamic, request->domain, call->arena};
    struct matching *matching = api_of(call)->options.matching;
    struct list_spot spot = {.type = TASK_DECISION};
    struct error *err = validate_domain_name(&limits);
    if (err == NULL)
        err = find_list(call, &limits, request->task_list, &spot);
    if (err != NULL)
        return err;
    err = matching_list_partitions(matching, &spot, call->arena,
                                   &response->decision_task_list_partitions,
                                   &response->n_decision_task_list_partitions);
    spot.type = TASK_ACTIVITY;
    if (err == NULL)
        err = matching_list_partitions(matching, &spot, call->arena,
                                       &response->activity_task_list_partitions,
                                       &response->n_activity_task_list_partitions);
    return err;
}

struct error *
api_get_task_lists_by_domain(struct rpc_call *call)
{
    const API(GetTaskListsByDomainRequest) *request =
        (const API(GetTaskListsByDomainRequest) *)call->request;
    struct limits limits = {api_of(call)->options.dynamic, request->domain, call->arena};
    struct call_domain domain;
    struct error *err = validate_domain_name(&limits);
    if (err == NULL)
        err = validate_domain(call, request->domain, &domain);
    if (err != NULL)
        return err;
    return matching_list_lists(api_of(call)->options.matching, domain.id, call->arena,
                               (API(GetTaskListsByDomainResponse) *)call->response);
}

/* --- operators -----------------------------------------------------------------------------------
 */

static struct error *
check_division(const ADMIN(UpdateTaskListPartitionConfigRequest) *request, struct arena *arena,
               struct list_spot *spot)
{
    const API(TaskList) *list = request->task_list;
    const API(TaskListPartitionConfig) *config = request->partition_config;
    if (list == NULL)
        return error_new(arena, ERR_BAD_REQUEST, "TaskList is not set on request.");
    if (list->kind == API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_INVALID))
        return error_new(arena, ERR_BAD_REQUEST, "Task list kind not set.");
    if (list->kind != API_VALUE(TASK_LIST_KIND__TASK_LIST_KIND_NORMAL))
        return error_new(arena, ERR_BAD_REQUEST,
                         "Only normal tasklist's partition config can be updated.");
    struct error *err = read_type(request->task_list_type, "Task list type not set.", arena, spot);
    if (err != NULL)
        return err;
    if (config == NULL)
        return error_new(arena, ERR_BAD_REQUEST,
                         "Task list partition config is not set in the request.");
    if (config->n_write_partitions > config->n_read_partitions)
        return error_new(arena, ERR_BAD_REQUEST,
                         "The number of write partitions cannot be larger than the number of read "
                         "partitions.");
    if (config->n_write_partitions == 0)
        return error_new(arena, ERR_BAD_REQUEST, "The number of partitions must be larger than 0.");
    err = read_name(list, arena, spot);
    if (err == NULL && spot->name.partition != 0)
        err = error_new(arena, ERR_BAD_REQUEST,
                        "Only root partition's partition config can be updated.");
    return err;
}

struct error *
api_update_task_list_partitions(struct rpc_call *call)
{
    const ADMIN(UpdateTaskListPartitionConfigRequest) *request =
        (const ADMIN(UpdateTaskListPartitionConfigRequest) *)call->request;
    struct limits limits = {api_of(call)->options.dynamic, request->domain, call->arena};
    struct list_spot spot = {0};
    struct call_domain domain;
    struct error *err = validate_domain(call, request->domain, &domain);
    if (err == NULL)
        err = check_division(request, call->arena, &spot);
    if (err == NULL)
        err = validate_task_list(&limits, request->task_list);
    if (err != NULL)
        return err;
    spot.domain_id = domain.id;
    return matching_divide(api_of(call)->options.matching, &spot, request->partition_config,
                           call->arena);
}
