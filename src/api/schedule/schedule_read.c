/* schedule_read.c - ScheduleAPI: Describe and List.
 *
 * The state of a schedule follows from the history of its newest run, so only the store has to be
 * read: there is no moment at which a schedule cannot be described. A run that continues as new
 * ends and is continued in one commit; a reader finds the one or the other. */
#include "api/schedule/schedule.h"
#include "engine/engine.h"
#include "fiber/clock.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "visibility/feed/registry.h"
#include "visibility/filters.h"
#include "visibility/visibility.h"
#include "wire/message.h"
#include "wire/presence.h"

#define PAGE_DEFAULT 10
#define STATUS(name)                                                                               \
    API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_##name)

/* --- one ---- */

static void
add_event(void *schedule, const API(HistoryEvent) *event, struct arena *arena)
{
    schedule_fold(schedule, event, arena);
}

static struct error *
fold_run(struct rpc_call *call, const char *workflow_id, const struct query_view *view,
         struct schedule *schedule)
{
    struct history_fold fold = {.workflow_id = workflow_id,
                                .lineage = &view->lineage,
                                .next_event_id = view->next_event_id,
                                .add = add_event,
                                .state = schedule};
    return engine_fold_history(api_of(call)->options.engine, &fold, call->arena);
}

static const char *
status_name(API(WorkflowExecutionCloseStatus) status)
{
    return status == STATUS(FAILED)       ? "FAILED"
           : status == STATUS(CANCELED)   ? "CANCELED"
           : status == STATUS(TERMINATED) ? "TERMINATED"
           : status == STATUS(TIMED_OUT)  ? "TIMED_OUT"
                                          : "unknown";
}

static struct error *
look(struct rpc_call *call, const struct schedule_call *wanted, struct query_view *view)
{
    struct run_key key = {wanted->domain.id, wanted->workflow_id, ""};
    struct error *err =
        engine_query_view(api_of(call)->options.engine, &key, true, call->arena, view);
    if (err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS)
        return schedule_not_found(call, wanted);
    if (err != NULL || view->is_open)
        return err;
    if (view->close_status == STATUS(COMPLETED)) /* it was deleted, or has reached its end */
        return schedule_not_found(call, wanted);
    return error_new(call->arena, ERR_INTERNAL,
                     "schedule \"%s\" in domain \"%s\" is not operational: scheduler workflow "
                     "ended with status %s",
                     wanted->schedule_id, wanted->domain.name, status_name(view->close_status));
}

struct error *
schedule_load(struct rpc_call *call, const struct schedule_call *wanted, struct schedule *schedule)
{
    struct query_view view = {0};
    struct error *err = look(call, wanted, &view);
    if (err == NULL)
        err = fold_run(call, wanted->workflow_id, &view, schedule);
    if (err != NULL)
        return err;
    bool is_there = schedule->definition != NULL && !schedule->progress->is_deleted;
    return is_there ? NULL : schedule_not_found(call, wanted);
}

bool
schedule_is_leaving(struct rpc_call *call, const struct schedule_call *wanted)
{
    struct query_view view = {0};
    struct schedule schedule = {0};
    struct error *err = look(call, wanted, &view);
    if (err != NULL)
        return true; /* it has left */
    err = fold_run(call, wanted->workflow_id, &view, &schedule);
    return err == NULL && schedule.definition != NULL && schedule.progress->is_deleted;
}

struct error *
api_describe_schedule(struct rpc_call *call)
{
    const API(DescribeScheduleRequest) *request =
        (const API(DescribeScheduleRequest) *)call->request;
    struct schedule_call wanted;
    struct schedule schedule = {0};
    struct error *err = schedule_admit(call, request->domain, request->schedule_id, &wanted);
    if (err == NULL)
        err = schedule_load(call, &wanted, &schedule);
    if (err == NULL)
        schedule_describe(&schedule, clock_wall(), call->arena,
                          (API(DescribeScheduleResponse) *)call->response);
    return err;
}

/* --- all ---- */

static struct error *
add_entries(struct rpc_call *call, const struct visibility_page *page)
{
    API(ListSchedulesResponse) *response = (API(ListSchedulesResponse) *)call->response;
    response->schedules = arena_zalloc(call->arena, page->count + 1, sizeof response->schedules[0]);
    for (size_t i = 0; i < page->count; i++) {
        API(WorkflowExecutionInfo) *info = NULL;
        struct error *err = message_decode_as(
            call->arena, ERR_CORRUPT, API_TYPE(workflow_execution_info), page->info[i], &info);
        if (err != NULL)
            return err;
        API(ScheduleListEntry) *entry = schedule_list_entry(info->workflow_execution->workflow_id,
                                                            info->search_attributes, call->arena);
        if (entry != NULL)
            response->schedules[response->n_schedules++] = entry;
    }
    response->next_page_token = presence_make_bytes(page->token);
    return NULL;
}

static size_t
page_size(struct rpc_call *call, const API(ListSchedulesRequest) *request)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = request->domain;
    int64_t most = dynamic_integer(api_of(call)->options.dynamic, DYNAMIC_LIST_PAGE_MAX, &filter);
    int64_t wanted = request->page_size > 0 ? request->page_size : PAGE_DEFAULT;
    wanted = wanted > most ? most : wanted;
    return wanted < 1 ? 1 : (size_t)wanted;
}

static struct error *
list(struct rpc_call *call, const API(ListSchedulesRequest) *request, const char *domain_id)
{
    const struct api_options *options = &api_of(call)->options;
    struct query_filters filters = {
        .earliest = 0, .latest = INT64_MAX, .workflow_type = SCHEDULE_TYPE};
    struct query query;
    struct visibility_page page = {0};
    query_of_filters(&filters, registry_set(options->registry), call->arena, &query);
    struct visibility_question question = {.domain_id = domain_id,
                                           .query = &query,
                                           .page_size = page_size(call, request),
                                           .token = presence_read_bytes(request->next_page_token)};
    struct error *err = NULL;
    if (api_caller_wants_committed(call))
        err = engine_visibility_wait(options->engine, call->arena);
    if (err == NULL)
        err = visibility_list(options->visibility, &question, call->arena, &page);
    return err != NULL ? err : add_entries(call, &page);
}

struct error *
api_list_schedules(struct rpc_call *call)
{
    const API(ListSchedulesRequest) *request = (const API(ListSchedulesRequest) *)call->request;
    struct call_domain domain;
    if (request->domain[0] == '\0')
        return error_new(call->arena, ERR_BAD_REQUEST, "Domain not set on request.");
    struct error *err = validate_domain(call, request->domain, &domain);
    if (err == NULL)
        err = quota_check_list(call, request->domain, DYNAMIC_LIST_QPS);
    return err != NULL ? err : list(call, request, arena_text(call->arena, domain.id));
}
