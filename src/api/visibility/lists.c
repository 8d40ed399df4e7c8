/* lists.c - VisibilityAPI: runs by query or by filter, and how many there are.
 *
 * A page is made of the bytes that visibility keeps: nothing is decoded. Visibility is a moment
 * behind what was committed; a caller that needs all of it says so by a header (call/headers.c) and
 * waits. What its own connection has just written a caller sees without that (own_writes.h). */
#include "api/call/pages.h"
#include "api/call/validate.h"
#include "api/inside.h"
#include "api/visibility/locations.h"
#include "api/visibility/own_writes.h"
#include "cadenza/admin/v1/service.pb-c.h"
#include "engine/engine.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "visibility/feed/registry.h"
#include "visibility/filters.h"
#include "visibility/visibility.h"
#include "wire/message.h"
#include "wire/presence.h"

#define BASIC_STORE      "db"
#define FIELD_EXECUTIONS 1 /* of all responses that are pages */
#define FIELD_NEXT_PAGE  2

/* What a page is asked for, by whichever call. */
struct page_spec {
    const char *domain;
    int32_t page_size;
    ProtobufCBinaryData token;
    bool is_unordered;
};

static struct error *
bad(struct rpc_call *call, const char *sentence)
{
    return error_new(call->arena, ERR_BAD_REQUEST, "%s", sentence);
}

static struct dynamic_filter
filter_of(const char *domain)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain;
    return filter;
}

static bool
is_basic(struct rpc_call *call, const char *domain)
{
    struct dynamic_filter filter = filter_of(domain);
    const char *store =
        dynamic_text(api_of(call)->options.dynamic, DYNAMIC_READ_VISIBILITY_STORE, &filter);
    return strcmp(store, BASIC_STORE) == 0;
}

/* --- what is refused at the door ---- */

/* 0 and less mean the usual size; *size is what it will be (B-005). */
static struct error *
check_page_size(struct rpc_call *call, const struct page_spec *spec, size_t *size)
{
    const struct dynamic *dynamic = api_of(call)->options.dynamic;
    struct dynamic_filter filter = filter_of(spec->domain);
    int64_t wanted = spec->page_size > 0
                         ? spec->page_size
                         : dynamic_integer(dynamic, DYNAMIC_LIST_PAGE_SIZE, &filter);
    int64_t most = dynamic_integer(dynamic, DYNAMIC_LIST_PAGE_MAX, &filter);
    if (wanted > most && !is_basic(call, spec->domain))
        return error_new(call->arena, ERR_BAD_REQUEST, "Pagesize is larger than allow %lld",
                         (long long)most);
    wanted = wanted > most ? most : wanted;
    *size = wanted < 1 ? 1 : (size_t)wanted;
    return NULL;
}

static struct error *
check_domain_set(struct rpc_call *call, const char *name)
{
    return name[0] == '\0' ? bad(call, "Domain not set on request.") : NULL;
}

/* B-002 */
static struct error *
check_times(struct rpc_call *call, const API(StartTimeFilter) *filter)
{
    struct maybe_int64 earliest, latest;
    if (filter == NULL)
        return bad(call, "StartTimeFilter is required");
    if (filter->earliest_time == NULL)
        return bad(call, "EarliestTime in StartTimeFilter is required");
    if (filter->latest_time == NULL)
        return bad(call, "LatestTime in StartTimeFilter is required");
    struct error *err = presence_read_timestamp(call->arena, "start_time_filter.earliest_time",
                                                filter->earliest_time, &earliest);
    if (err == NULL)
        err = presence_read_timestamp(call->arena, "start_time_filter.latest_time",
                                      filter->latest_time, &latest);
    if (err == NULL && earliest.value > latest.value)
        err = bad(call, "EarliestTime in StartTimeFilter should not be larger than LatestTime");
    return err;
}

/* B-009 */
static struct error *
check_filter_allowed(struct rpc_call *call, const char *domain, bool has_filter)
{
    struct dynamic_filter filter = filter_of(domain);
    bool is_disabled =
        dynamic_flag(api_of(call)->options.dynamic, DYNAMIC_LIST_BY_FILTER_DISABLED, &filter);
    return has_filter && is_disabled ? bad(call, "No permission to do this operation.") : NULL;
}

/* B-010 */
static struct error *
check_supported(struct rpc_call *call, const char *domain)
{
    return is_basic(call, domain) ? bad(call, "Operation is not supported") : NULL;
}

/* H-032 */
static struct error *
check_rate(struct rpc_call *call, const char *domain)
{
    return quota_check_list(call, domain,
                            is_basic(call, domain) ? DYNAMIC_LIST_QPS_BASIC : DYNAMIC_LIST_QPS);
}

/* --- pages ---- */

static struct error *
await_committed(struct rpc_call *call, const char *domain)
{
    if (!api_caller_wants_committed(call)) {
        own_writes_wait(call, domain);
        return NULL;
    }
    return engine_visibility_wait(api_of(call)->options.engine, call->arena);
}

/* The response in wire form: it goes out as it is. */
static void
answer_page(struct rpc_call *call, const struct visibility_page *page)
{
    struct slice *pieces = arena_zalloc(call->arena, 2 * page->count + 2, sizeof pieces[0]);
    size_t count = 0;
    for (size_t i = 0; i < page->count; i++) {
        pieces[count++] = pages_field_header(call->arena, FIELD_EXECUTIONS, page->info[i].length);
        pieces[count++] = page->info[i];
    }
    if (page->token.length > 0) {
        pieces[count++] = pages_field_header(call->arena, FIELD_NEXT_PAGE, page->token.length);
        pieces[count++] = page->token;
    }
    call->pieces = pieces;
    call->piece_count = count;
}

static struct error *
list_page(struct rpc_call *call, const struct page_spec *spec, const struct query *query,
          const char *domain_id)
{
    struct visibility_question question = {
        .domain_id = domain_id,
        .query = query,
        .token = slice_of(spec->token.data, spec->token.len),
        .is_unordered = spec->is_unordered,
    };
    struct visibility_page page = {0};
    struct error *err = check_page_size(call, spec, &question.page_size);
    if (err == NULL)
        err = check_rate(call, spec->domain);
    if (err == NULL)
        err = await_committed(call, spec->domain);
    if (err == NULL)
        err = visibility_list(api_of(call)->options.visibility, &question, call->arena, &page);
    if (err == NULL)
        answer_page(call, &page);
    return err;
}

static const struct attribute_set *
attributes_of(struct rpc_call *call)
{
    return registry_set(api_of(call)->options.registry);
}

/* The locations must live as long as the query is used. */
static struct error *
parse(struct rpc_call *call, const char *domain, const char *text, struct locations *locations,
      struct query *query)
{
    struct domains *domains = api_of(call)->options.domains;
    struct locations_spec spec = {domains, domains_find_name(domains, domain), attributes_of(call),
                                  text};
    return locations_parse(locations, &spec, call->arena, query);
}

static struct error *
list_by_query(struct rpc_call *call, const struct page_spec *spec, const char *text)
{
    struct query query;
    scoped(locations_drop) struct locations locations = {0};
    struct call_domain domain;
    size_t page_size;
    struct error *err = check_domain_set(call, spec->domain);
    if (err == NULL)
        err = check_page_size(call, spec, &page_size);
    if (err == NULL)
        err = check_supported(call, spec->domain);
    if (err == NULL)
        err = parse(call, spec->domain, text, &locations, &query);
    if (err == NULL)
        err = validate_domain(call, spec->domain, &domain);
    return err != NULL ? err : list_page(call, spec, &query, domain.id);
}

struct error *
api_list_workflows(struct rpc_call *call)
{
    const API(ListWorkflowExecutionsRequest) *request =
        (const API(ListWorkflowExecutionsRequest) *)call->request;
    struct page_spec spec = {.domain = request->domain,
                             .page_size = request->page_size,
                             .token = request->next_page_token};
    return list_by_query(call, &spec, request->query);
}

struct error *
api_scan_workflows(struct rpc_call *call)
{
    const API(ScanWorkflowExecutionsRequest) *request =
        (const API(ScanWorkflowExecutionsRequest) *)call->request;
    struct page_spec spec = {.domain = request->domain,
                             .page_size = request->page_size,
                             .token = request->next_page_token,
                             .is_unordered = true};
    return list_by_query(call, &spec, request->query);
}

/* --- open and closed ---- */

static struct error *
admit_filters(struct rpc_call *call, const struct page_spec *spec,
              const API(StartTimeFilter) *times, bool has_filter, struct call_domain *domain)
{
    size_t page_size;
    struct error *err = check_domain_set(call, spec->domain);
    if (err == NULL)
        err = check_times(call, times);
    if (err == NULL)
        err = check_page_size(call, spec, &page_size);
    if (err == NULL)
        err = validate_domain(call, spec->domain, domain);
    if (err == NULL)
        err = check_filter_allowed(call, spec->domain, has_filter);
    return err;
}

static struct error *
list_by_filters(struct rpc_call *call, const struct page_spec *spec,
                const struct query_filters *filters, const struct call_domain *domain)
{
    struct query query;
    query_of_filters(filters, attributes_of(call), call->arena, &query);
    return list_page(call, spec, &query, domain->id);
}

struct error *
api_list_open_workflows(struct rpc_call *call)
{
    const API(ListOpenWorkflowExecutionsRequest) *request =
        (const API(ListOpenWorkflowExecutionsRequest) *)call->request;
    struct page_spec spec = {.domain = request->domain,
                             .page_size = request->page_size,
                             .token = request->next_page_token};
    struct call_domain domain;
    struct error *err =
        admit_filters(call, &spec, request->start_time_filter, request->filters_case != 0, &domain);
    if (err != NULL)
        return err;
    struct query_filters filters = query_filters_of_open(request);
    return list_by_filters(call, &spec, &filters, &domain);
}

struct error *
api_list_closed_workflows(struct rpc_call *call)
{
    const API(ListClosedWorkflowExecutionsRequest) *request =
        (const API(ListClosedWorkflowExecutionsRequest) *)call->request;
    struct page_spec spec = {.domain = request->domain,
                             .page_size = request->page_size,
                             .token = request->next_page_token};
    struct call_domain domain;
    struct error *err =
        admit_filters(call, &spec, request->start_time_filter, request->filters_case != 0, &domain);
    if (err != NULL)
        return err;
    struct query_filters filters = query_filters_of_closed(request);
    return list_by_filters(call, &spec, &filters, &domain);
}

/* --- how many ---- */

struct error *
api_count_workflows(struct rpc_call *call)
{
    const API(CountWorkflowExecutionsRequest) *request =
        (const API(CountWorkflowExecutionsRequest) *)call->request;
    API(CountWorkflowExecutionsResponse) *response =
        (API(CountWorkflowExecutionsResponse) *)call->response;
    struct query query;
    scoped(locations_drop) struct locations locations = {0};
    struct call_domain domain;
    struct error *err = check_domain_set(call, request->domain);
    if (err == NULL)
        err = check_supported(call, request->domain);
    if (err == NULL)
        err = parse(call, request->domain, request->query, &locations, &query);
    if (err == NULL)
        err = validate_domain(call, request->domain, &domain);
    if (err == NULL)
        err = check_rate(call, request->domain);
    if (err == NULL)
        err = await_committed(call, request->domain);
    if (err == NULL)
        err = visibility_count(api_of(call)->options.visibility, domain.id, &query, call->arena,
                               &response->count);
    return err;
}

/* --- for operators ---- */

struct error *
api_rebuild_visibility(struct rpc_call *call)
{
    STORE_API(RebuildResponse) *response = (STORE_API(RebuildResponse) *)call->response;
    return engine_visibility_rebuild(api_of(call)->options.engine, call->arena, &response->runs);
}
