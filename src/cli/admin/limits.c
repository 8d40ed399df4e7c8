/* limits.c - what limits a server has and who meets them: config keys, admin hot-workflows. */
#include <jansson.h>

#include "cadenza/admin/v1/service.pb-c.h"
#include "cli/base/inside.h"
#include "cli/output/table.h"
#include "config/value.h"
#include "fiber/clock.h"
#include "wire/names.h"

#define TIMEOUT   (5 * NS_PER_S)
#define COUNT_MAX 1000

/* --- hot-workflows ---- */

/* "120", or "120 *" when some were above the limit. */
static const char *
show_rate(int64_t rate, bool is_limited, struct arena *arena)
{
    return arena_format(arena, "%lld%s", (long long)rate, is_limited ? " *" : "");
}

static void
print_hot_table(const STORE_API(HotWorkflowsResponse) *response, struct arena *arena)
{
    struct table table = {.columns = 4, .arena = arena};
    table_add(&table, "DOMAIN", "WORKFLOW ID", "CALLS/S", "TASKS/S");
    for (size_t i = 0; i < response->n_workflows; i++) {
        const STORE_API(HotWorkflow) *hot = response->workflows[i];
        table_add(&table, hot->domain, hot->workflow_id,
                  show_rate(hot->external_rate, hot->is_external_limited, arena),
                  show_rate(hot->internal_rate, hot->is_internal_limited, arena));
    }
    cli_print("%s", table_text(&table));
}

static void
print_hot_json(const STORE_API(HotWorkflowsResponse) *response)
{
    json_t *all = json_array();
    for (size_t i = 0; i < response->n_workflows; i++) {
        const STORE_API(HotWorkflow) *hot = response->workflows[i];
        json_array_append_new(all, json_pack("{s:s, s:s, s:I, s:I, s:b, s:b}", "domain",
                                             hot->domain, "workflowId", hot->workflow_id,
                                             "externalRate", (json_int_t)hot->external_rate,
                                             "internalRate", (json_int_t)hot->internal_rate,
                                             "isExternalLimited", hot->is_external_limited,
                                             "isInternalLimited", hot->is_internal_limited));
    }
    cli_print_json(all);
}

struct error *
cli_hot_workflows(struct cli_call *call)
{
    STORE_API(HotWorkflowsRequest) request = CADENZA__ADMIN__V1__HOT_WORKFLOWS_REQUEST__INIT;
    int64_t count;
    struct error *err = cli_number(call, "count", 1, COUNT_MAX, 0, &count);
    if (err != NULL)
        return err;
    request.count = (int32_t)count;
    if (call->domain.name != NULL)
        request.domain = (char *)call->domain.name;
    ProtobufCMessage *answer = NULL;
    err = cli_ask(call, "/cadenza.admin.v1.LimitsAPI/HotWorkflows", &request.base, TIMEOUT,
                  &cadenza__admin__v1__hot_workflows_response__descriptor, &answer);
    if (err != NULL)
        return err;
    const STORE_API(HotWorkflowsResponse) *response = (STORE_API(HotWorkflowsResponse) *)answer;
    if (call->as_json)
        print_hot_json(response);
    else
        print_hot_table(response, call->arena);
    return NULL;
}

/* --- keys ---- */

static void
print_keys_json(struct arena *arena)
{
    json_t *all = json_array();
    for (size_t i = 0; i < DYNAMIC_KEY_COUNT; i++) {
        const struct dynamic_row *row = &dynamic_rows[i];
        json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:s, s:s}", "key", row->name, "value",
                                             value_wanted(&row->rule, arena), "default",
                                             row->default_value, "constraints", row->filters,
                                             "description", row->sentence));
    }
    cli_print_json(all);
}

struct error *
cli_config_keys(struct cli_call *call)
{
    if (call->as_json) {
        print_keys_json(call->arena);
        return NULL;
    }
    struct table table = {.columns = 4, .arena = call->arena};
    table_add(&table, "KEY", "DEFAULT", "CONSTRAINTS", "WHAT IT DOES");
    for (size_t i = 0; i < DYNAMIC_KEY_COUNT; i++) {
        const struct dynamic_row *row = &dynamic_rows[i];
        table_add(&table, row->name, show_or_dash(row->default_value, call->arena),
                  show_or_dash(row->filters, call->arena), row->sentence);
    }
    cli_print("%s", table_text(&table));
    return NULL;
}
