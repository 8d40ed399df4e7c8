/* divergence.c - what lost when clusters disagreed: admin divergence. */
#include <jansson.h>

#include "cadenza/admin/v1/service.pb-c.h"
#include "cli/base/inside.h"
#include "cli/output/table.h"
#include "fiber/clock.h"
#include "wire/names.h"

#define TIMEOUT   (30 * NS_PER_S)
#define COUNT_MAX 1000

static void
print_table(const STORE_API(ListDivergencesResponse) *response, struct arena *arena)
{
    struct table table = {.columns = 6, .arena = arena};
    table_add(&table, "DOMAIN", "WORKFLOW ID", "RUN ID", "LOST TO ANOTHER", "EVENTS", "VERSION");
    for (size_t i = 0; i < response->n_divergences; i++) {
        const STORE_API(Divergence) *lost = response->divergences[i];
        table_add(&table, lost->domain, lost->workflow_id, lost->run_id, lost->reason,
                  arena_format(arena, "%lld-%lld", (long long)lost->from_event_id,
                               (long long)lost->to_event_id),
                  arena_format(arena, "%lld", (long long)lost->version));
    }
    cli_print("%s", table_text(&table));
}

static void
print_json(const STORE_API(ListDivergencesResponse) *response)
{
    json_t *all = json_array();
    for (size_t i = 0; i < response->n_divergences; i++) {
        const STORE_API(Divergence) *lost = response->divergences[i];
        json_array_append_new(
            all,
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "domain", lost->domain,
                      "workflowId", lost->workflow_id, "runId", lost->run_id, "branchId",
                      lost->branch_id, "reason", lost->reason, "fromEventId",
                      (json_int_t)lost->from_event_id, "toEventId", (json_int_t)lost->to_event_id,
                      "version", (json_int_t)lost->version, "time", (json_int_t)lost->time));
    }
    cli_print_json(all);
}

struct error *
cli_divergence(struct cli_call *call)
{
    STORE_API(ListDivergencesRequest) request = CADENZA__ADMIN__V1__LIST_DIVERGENCES_REQUEST__INIT;
    int64_t count;
    struct error *err = cli_number(call, "count", 1, COUNT_MAX, 0, &count);
    if (err != NULL)
        return err;
    request.count = (int32_t)count;
    if (call->domain.name != NULL)
        request.domain = (char *)call->domain.name;
    ProtobufCMessage *answer = NULL;
    err = cli_ask(call, "/cadenza.admin.v1.RunsAPI/ListDivergences", &request.base, TIMEOUT,
                  &cadenza__admin__v1__list_divergences_response__descriptor, &answer);
    if (err != NULL)
        return err;
    const STORE_API(ListDivergencesResponse) *response =
        (STORE_API(ListDivergencesResponse) *)answer;
    if (call->as_json)
        print_json(response);
    else
        print_table(response, call->arena);
    return NULL;
}
