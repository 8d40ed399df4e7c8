/* workflow_list.c - workflow list, listall, scan, listarchived, count; and asking for lists of
 * runs, page by page. See run_list.h. */
#include <string.h>

#include "base/vector.h"
#include "cli/base/request.h"
#include "cli/workflow/run_list.h"
#include "fiber/clock.h"
#include "wire/message.h"
#include "wire/presence.h"

#define VISIBILITY    "/uber.cadence.api.v1.VisibilityAPI/"
#define TIMEOUT       (30 * NS_PER_S)
#define PAGE_SIZE_MAX 10000

/* One of the list calls, for the page behind `token`. All responses look alike but for their type.
 */
struct page_request {
    const char *method;
    ProtobufCMessage *request;
    ProtobufCBinaryData *token; /* in the request */
    const ProtobufCMessageDescriptor *response;
};

/* ---- requests ---- */

static struct error *
set(struct cli_call *call, ProtobufCMessage *request, const char *path, const char *key)
{
    const struct request_context context = {.arena = call->arena, .now = clock_wall()};
    const char *value = cli_text(call, key);
    return value == NULL
               ? NULL
               : cli_wrong(call, request_set(&context, request, path, cli_flag_name(key), value));
}

static struct error *
make_query(struct cli_call *call, const char *method, const char *query, int64_t page_size,
           struct page_request *page)
{
    /* List, scan and archived requests have the same fields. */
    API(ListWorkflowExecutionsRequest) *request =
        message_new(call->arena, API_TYPE(list_workflow_executions_request));
    const char *domain;
    struct error *err = cli_need_domain(call, &domain);
    if (err != NULL)
        return err;
    request->domain = (char *)domain;
    request->query = presence_make_text(query);
    request->page_size = (int32_t)page_size;
    *page = (struct page_request){method, &request->base, &request->next_page_token,
                                  API_TYPE(list_workflow_executions_response)};
    return NULL;
}

/* Closed ones by status, type or id; open ones by type or id: only one of these, as the server has
 * it. */
static struct error *
make_filtered(struct cli_call *call, bool is_open, int64_t page_size, struct page_request *page)
{
    const struct request_context context = {.arena = call->arena, .now = clock_wall()};
    ProtobufCMessage *request =
        message_new(call->arena, is_open ? API_TYPE(list_open_workflow_executions_request)
                                         : API_TYPE(list_closed_workflow_executions_request));
    const char *domain, *size = arena_format(call->arena, "%lld", (long long)page_size);
    struct error *err = cli_need_domain(call, &domain);
    if (err == NULL)
        err = request_set(&context, request, "domain", "domain", domain);
    if (err == NULL)
        err = request_set(&context, request, "page_size", "pagesize", size);
    if (err == NULL)
        err =
            request_set(&context, request, "start_time_filter.earliest_time", "earliest_time", "0");
    if (err == NULL)
        err = request_set(&context, request, "start_time_filter.latest_time", "latest_time",
                          arena_format(call->arena, "%lld", (long long)(context.now + NS_PER_S)));
    if (err == NULL)
        err = set(call, request, "start_time_filter.earliest_time", "earliest_time");
    if (err == NULL)
        err = set(call, request, "start_time_filter.latest_time", "latest_time");
    if (err == NULL)
        err = set(call, request, "execution_filter.workflow_id", "workflow_id");
    if (err == NULL)
        err = set(call, request, "type_filter.name", "workflow_type");
    if (err == NULL && !is_open)
        err = set(call, request, "status_filter.status", "status");
    API(ListOpenWorkflowExecutionsRequest) *open =
        (API(ListOpenWorkflowExecutionsRequest) *)request;
    API(ListClosedWorkflowExecutionsRequest) *closed =
        (API(ListClosedWorkflowExecutionsRequest) *)request;
    *page = (struct page_request){
        .method = is_open ? "ListOpenWorkflowExecutions" : "ListClosedWorkflowExecutions",
        .request = request,
        .token = is_open ? &open->next_page_token : &closed->next_page_token,
        .response = API_TYPE(list_workflow_executions_response),
    };
    return err;
}

/* One page; *is_last: no other follows. */
static struct error *
ask_page(struct cli_call *call, struct page_request *page, struct run_list *list, bool *is_last)
{
    ProtobufCMessage *answer = NULL;
    struct error *err = cli_ask(call, arena_format(call->arena, VISIBILITY "%s", page->method),
                                page->request, TIMEOUT, page->response, &answer);
    if (err != NULL)
        return cli_advise(call, err);
    const API(ListWorkflowExecutionsResponse) *response =
        (const API(ListWorkflowExecutionsResponse) *)answer;
    for (size_t i = 0; i < response->n_executions; i++)
        vector_push_in(list, call->arena, response->executions[i]);
    *page->token = response->next_page_token;
    *is_last = response->next_page_token.len == 0;
    return NULL;
}

static struct error *
ask_pages(struct cli_call *call, struct page_request *page, bool wants_all, struct run_list *list)
{
    bool is_last = false;
    struct error *err;
    do
        err = ask_page(call, page, list, &is_last);
    while (err == NULL && wants_all && !is_last);
    return err;
}

struct error *
run_list_query(struct cli_call *call, const char *method, const char *query, int64_t page_size,
               bool wants_all, struct run_list *list)
{
    struct page_request page;
    struct error *err = make_query(call, method, query, page_size, &page);
    return err != NULL ? err : ask_pages(call, &page, wants_all, list);
}

/* Adds the open or the closed ones that the flags for times, type, id and status let through. */
static struct error *
run_list_filtered(struct cli_call *call, bool is_open, int64_t page_size, bool wants_all,
                  struct run_list *list)
{
    struct page_request page;
    struct error *err = make_filtered(call, is_open, page_size, &page);
    return err != NULL ? err : ask_pages(call, &page, wants_all, list);
}

/* ---- commands ---- */

/* Both the open and the closed ones of the flags when --query is not given. */
static struct error *
gather(struct cli_call *call, bool wants_all, struct run_list *list)
{
    const char *query = cli_text(call, "query"), *excluding = cli_text(call, "exclude_query");
    int64_t page_size;
    struct error *err = cli_number(call, "page_size", 1, PAGE_SIZE_MAX, 0, &page_size);
    if (err != NULL)
        return err;
    if (query != NULL)
        err = run_list_query(call, "ListWorkflowExecutions", query, page_size, wants_all, list);
    else
        err = run_list_filtered(call, cli_is_on(call, "open"), page_size, wants_all, list);
    struct run_list excluded = {0};
    if (err == NULL && excluding != NULL) {
        err = run_list_query(call, "ListWorkflowExecutions", excluding, PAGE_SIZE_MAX / 10, true,
                             &excluded);
        run_list_exclude(list, &excluded);
    }
    return err;
}

static struct error *
list(struct cli_call *call, bool wants_all)
{
    struct run_list runs = {0};
    struct error *err = gather(call, wants_all, &runs);
    if (err == NULL)
        run_list_print(call, &runs);
    return err;
}

struct error *
cli_workflow_list(struct cli_call *call)
{
    return list(call, cli_is_on(call, "more"));
}

struct error *
cli_workflow_list_all(struct cli_call *call)
{
    return list(call, true);
}

static struct error *
scan(struct cli_call *call, const char *method, bool wants_all)
{
    struct run_list runs = {0};
    int64_t page_size;
    struct error *err = cli_number(call, "scan_page_size", 1, PAGE_SIZE_MAX, 0, &page_size);
    if (err == NULL)
        err = run_list_query(call, method, cli_text(call, "query"), page_size, wants_all, &runs);
    if (err == NULL)
        run_list_print(call, &runs);
    return err;
}

struct error *
cli_workflow_scan(struct cli_call *call)
{
    return scan(call, "ScanWorkflowExecutions", true);
}

struct error *
cli_workflow_list_archived(struct cli_call *call)
{
    return scan(call, "ListArchivedWorkflowExecutions", cli_is_on(call, "more"));
}

struct error *
cli_workflow_count(struct cli_call *call)
{
    API(CountWorkflowExecutionsRequest) request =
        API_VALUE(COUNT_WORKFLOW_EXECUTIONS_REQUEST__INIT);
    const char *domain;
    struct error *err = cli_need_domain(call, &domain);
    if (err != NULL)
        return err;
    request.domain = (char *)domain;
    request.query = presence_make_text(cli_text(call, "query"));
    ProtobufCMessage *answer = NULL;
    err = cli_ask(call, VISIBILITY "CountWorkflowExecutions", &request.base, TIMEOUT,
                  API_TYPE(count_workflow_executions_response), &answer);
    if (err != NULL)
        return cli_advise(call, err);
    long long count = ((const API(CountWorkflowExecutionsResponse) *)answer)->count;
    cli_print(call->as_json ? "{\"count\": %lld}\n" : "%lld\n", count);
    return NULL;
}
