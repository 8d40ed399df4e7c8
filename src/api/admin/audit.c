/* audit.c - ListAuditRecords: what operators did. */
#include "audit/audit.h"
#include "api/inside.h"

#define COUNT_DEFAULT 100
#define COUNT_MAX     1000

struct error *
api_list_audit_records(struct rpc_call *call)
{
    const STORE_API(ListAuditRecordsRequest) *request =
        (const STORE_API(ListAuditRecordsRequest) *)call->request;
    STORE_API(ListAuditRecordsResponse) *response =
        (STORE_API(ListAuditRecordsResponse) *)call->response;
    struct audit *audit = api_of(call)->options.audit;
    if (request->page_size < 0 || request->page_size > COUNT_MAX)
        return error_new(call->arena, ERR_BAD_REQUEST, "page_size: %d is not from 0 to %d.",
                         request->page_size, COUNT_MAX);
    if (audit == NULL)
        return error_new(call->arena, ERR_BAD_REQUEST, "This server keeps no records.");
    struct audit_filter filter = {
        .domain = request->domain,
        .operation = request->operation,
        .before = request->before,
        .count_max = request->page_size == 0 ? COUNT_DEFAULT : (size_t)request->page_size};
    return audit_list(audit, &filter, call->arena, &response->records, &response->n_records,
                      &response->next);
}
