/* archived.c - histories and lists of runs that are gone, from the archive; and where domains may
 * have it. */
#include "api/visibility/archived.h"

#include "api/call/pages.h"
#include "api/call/validate.h"
#include "archive/archive.h"
#include "uber/cadence/api/v1/service_visibility.pb-c.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "visibility/feed/registry.h"
#include "visibility/query.h"
#include "wire/presence.h"

#define RESPONSE_HISTORY 1 /* field of GetWorkflowExecutionHistoryResponse */
#define EVENTS_MAX       1000

static struct archive *
archive_of(struct rpc_call *call)
{
    return api_of(call)->options.archive;
}

static struct error *
bad(struct rpc_call *call, const char *sentence)
{
    return error_new(call->arena, ERR_BAD_REQUEST, "%s", sentence);
}

static int64_t
setting(struct rpc_call *call, enum dynamic_key key, const char *domain)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain;
    return dynamic_integer(api_of(call)->options.dynamic, key, &filter);
}

/* --- histories ---- */

bool
archived_has_history(struct rpc_call *call, const struct error *err)
{
    const API(GetWorkflowExecutionHistoryRequest) *request =
        (const API(GetWorkflowExecutionHistoryRequest) *)call->request;
    struct archive *archive = archive_of(call);
    if (archive == NULL || request->skip_archival || request->workflow_execution == NULL ||
        request->workflow_execution->run_id[0] == '\0' ||
        !archive_is_readable(archive, ARCHIVE_HISTORY))
        return false;
    bool is_gone = err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS;
    return is_gone || archive_is_history_token(presence_read_bytes(request->next_page_token));
}

static size_t
events_max(struct rpc_call *call, const API(GetWorkflowExecutionHistoryRequest) *request)
{
    int64_t size = request->page_size > 0
                       ? request->page_size
                       : setting(call, DYNAMIC_HISTORY_PAGE_SIZE, request->domain);
    return size < 1 ? 1 : size > EVENTS_MAX ? EVENTS_MAX : (size_t)size;
}

static struct error *
not_found(struct rpc_call *call)
{
    return error_new(call->arena, ERR_ENTITY_NOT_EXISTS,
                     "Requested workflow history not found, may have passed retention period.");
}

static void
fill_history(struct rpc_call *call, const struct archive_history_page *page)
{
    API(GetWorkflowExecutionHistoryResponse) *response =
        (API(GetWorkflowExecutionHistoryResponse) *)call->response;
    struct pieces pieces = pieces_begin(call->arena);
    pieces_add(&pieces, page->events);
    pieces_wrap(&pieces, RESPONSE_HISTORY);
    response->archived = true;
    response->next_page_token = presence_make_bytes(page->token);
    call->pieces = pieces.list.items;
    call->piece_count = pieces.list.count;
}

struct error *
archived_get_history(struct rpc_call *call)
{
    const API(GetWorkflowExecutionHistoryRequest) *request =
        (const API(GetWorkflowExecutionHistoryRequest) *)call->request;
    const struct domain *domain = domains_find_name(api_of(call)->options.domains, request->domain);
    if (domain == NULL || domain->record->domain->history_archival_uri[0] == '\0')
        return not_found(call); /* it never was archived */
    struct archive_history_question question = {
        .uri = arena_text(call->arena, domain->record->domain->history_archival_uri),
        .domain_id = arena_text(call->arena, domain->id),
        .workflow_id = request->workflow_execution->workflow_id,
        .run_id = request->workflow_execution->run_id,
        .version_hint = domain->record->domain->failover_version,
        .events_max = events_max(call, request),
        .token = presence_read_bytes(request->next_page_token),
    };
    struct archive_history_page page = {0};
    struct error *err = archive_read_history(archive_of(call), &question, call->arena, &page);
    if (err == NULL)
        fill_history(call, &page);
    return err;
}

/* --- lists ---- */

static struct error *
check_request(struct rpc_call *call, const API(ListArchivedWorkflowExecutionsRequest) *request,
              size_t *page_size)
{
    if (request->domain[0] == '\0')
        return bad(call, "Domain not set on request.");
    int64_t most = setting(call, DYNAMIC_ARCHIVED_PAGE_MAX, request->domain);
    int64_t wanted = request->page_size > 0
                         ? request->page_size
                         : setting(call, DYNAMIC_LIST_PAGE_SIZE, request->domain);
    if (wanted > most)
        return error_new(call->arena, ERR_BAD_REQUEST, "Pagesize is larger than allowed %lld",
                         (long long)most);
    *page_size = wanted < 1 ? 1 : (size_t)wanted;
    struct archive *archive = archive_of(call);
    if (archive == NULL || !archive_is_enabled(archive, ARCHIVE_VISIBILITY))
        return bad(call, "Cluster is not configured for visibility archival");
    if (!archive_is_readable(archive, ARCHIVE_VISIBILITY))
        return bad(call, "Cluster is not configured for reading archived visibility records");
    return NULL;
}

static struct error *
check_domain(struct rpc_call *call, const char *name, struct archive_list_question *question)
{
    const struct domain *domain = domains_find_name(api_of(call)->options.domains, name);
    if (domain == NULL)
        return domain_error_unknown(name, call->arena);
    if (domain->record->domain->visibility_archival_status !=
        API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_ENABLED))
        return bad(call, "Domain is not configured for visibility archival");
    question->domain_id = arena_text(call->arena, domain->id);
    question->uri = arena_text(call->arena, domain->record->domain->visibility_archival_uri);
    return NULL;
}

/* B-034. An ORDER BY is read and ignored, since cadence-web appends one to every query: archived
 * runs come by CloseTime, the latest first. */
struct error *
api_list_archived_workflows(struct rpc_call *call)
{
    const API(ListArchivedWorkflowExecutionsRequest) *request =
        (const API(ListArchivedWorkflowExecutionsRequest) *)call->request;
    API(ListArchivedWorkflowExecutionsResponse) *response =
        (API(ListArchivedWorkflowExecutionsResponse) *)call->response;
    struct archive_list_question question = {.token =
                                                 presence_read_bytes(request->next_page_token)};
    struct archive_list_page page = {0};
    struct query query;
    struct error *err = check_request(call, request, &question.page_size);
    if (err == NULL)
        err = check_domain(call, request->domain, &question);
    question.query = &query;
    question.attributes = registry_set(api_of(call)->options.registry);
    if (err == NULL)
        err = query_parse(request->query, question.attributes, call->arena, &query);
    if (err == NULL)
        err = archive_list(archive_of(call), &question, call->arena, &page);
    if (err != NULL)
        return err;
    response->executions = page.info;
    response->n_executions = page.count;
    response->next_page_token = presence_make_bytes(page.token);
    return NULL;
}

/* --- domains ---- */

struct error *
archived_check_uris(struct rpc_call *call, const char *history, const char *visibility)
{
    struct archive *archive = archive_of(call);
    struct error *err = NULL;
    if (archive == NULL)
        return NULL;
    if (history[0] != '\0' && archive_is_enabled(archive, ARCHIVE_HISTORY))
        err = archive_check_uri(archive, ARCHIVE_HISTORY, history, call->arena);
    if (err == NULL && visibility[0] != '\0' && archive_is_enabled(archive, ARCHIVE_VISIBILITY))
        err = archive_check_uri(archive, ARCHIVE_VISIBILITY, visibility, call->arena);
    return err;
}
