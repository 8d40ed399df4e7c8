/* audit.c - what operators did: admin audit. */
#include <jansson.h>

#include "cadenza/admin/v1/service.pb-c.h"
#include "cli/base/inside.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "fiber/clock.h"
#include "wire/names.h"

#define TIMEOUT   (5 * NS_PER_S)
#define COUNT_MAX 1000

static void
print_table(const STORE_API(ListAuditRecordsResponse) *response, struct arena *arena)
{
    struct table table = {.columns = 6, .arena = arena};
    table_add(&table, "TIME", "WHO", "FROM", "CALL", "DOMAIN", "RESULT");
    for (size_t i = 0; i < response->n_records; i++) {
        const STORE_API(AuditRecord) *record = response->records[i];
        table_add(&table, render_time(record->time_nanoseconds, arena), record->actor, record->peer,
                  record->operation, record->domain, record->result);
    }
    cli_print("%s", table_text(&table));
}

static void
print_json(const STORE_API(ListAuditRecordsResponse) *response)
{
    json_t *all = json_array();
    for (size_t i = 0; i < response->n_records; i++) {
        const STORE_API(AuditRecord) *record = response->records[i];
        json_array_append_new(
            all, json_pack("{s:I, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "number",
                           (json_int_t)record->number, "time", (json_int_t)record->time_nanoseconds,
                           "actor", record->actor, "peer", record->peer, "operation",
                           record->operation, "domain", record->domain, "request", record->request,
                           "result", record->result, "message", record->message));
    }
    cli_print_json(all);
}

struct error *
cli_audit(struct cli_call *call)
{
    STORE_API(ListAuditRecordsRequest) request =
        CADENZA__ADMIN__V1__LIST_AUDIT_RECORDS_REQUEST__INIT;
    int64_t count;
    struct error *err = cli_number(call, "count", 1, COUNT_MAX, 20, &count);
    if (err != NULL)
        return err;
    request.page_size = (int32_t)count;
    if (call->domain.name != NULL)
        request.domain = (char *)call->domain.name;
    ProtobufCMessage *answer = NULL;
    err = cli_ask(call, "/cadenza.admin.v1.AuditAPI/ListAuditRecords", &request.base, TIMEOUT,
                  &cadenza__admin__v1__list_audit_records_response__descriptor, &answer);
    if (err != NULL)
        return err;
    const STORE_API(ListAuditRecordsResponse) *response =
        (STORE_API(ListAuditRecordsResponse) *)answer;
    if (call->as_json)
        print_json(response);
    else
        print_table(response, call->arena);
    return NULL;
}
