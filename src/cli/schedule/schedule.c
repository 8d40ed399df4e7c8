/* schedule.c - see schedule.h; and schedule list. */
#include "cli/schedule/schedule.h"

#include <jansson.h>

#include "base/check.h"
#include "cli/base/commands.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "fiber/clock.h"
#include "uber/cadence/api/v1/service_schedule.pb-c.h"
#include "wire/message.h"

#define TIMEOUT       (5 * NS_PER_S)
#define PAGE_SIZE_MAX 1000

/* Takes what `given` has and the rest from `known`: a field of `given` that is 0 was not named. */
static void
keep_rest(ProtobufCMessage *given, const ProtobufCMessage *known, struct arena *arena)
{
    check(given->descriptor == known->descriptor);
    for (unsigned i = 0; i < given->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &given->descriptor->fields[i];
        char *to = (char *)given + field->offset;
        const char *from = (const char *)known + field->offset;
        bool is_text = field->type == PROTOBUF_C_TYPE_STRING;
        bool is_wide = is_text || field->type == PROTOBUF_C_TYPE_MESSAGE ||
                       field->type == PROTOBUF_C_TYPE_INT64;
        if (is_text ? (*(char **)to)[0] == '\0' : is_wide && *(int64_t *)to == 0)
            *(int64_t *)to = *(const int64_t *)from;
        else if (!is_wide && *(int32_t *)to == 0)
            *(int32_t *)to = *(const int32_t *)from;
    }
}

struct error *
schedule_complete_update(struct cli_call *call, ProtobufCMessage *request)
{
    check(request->descriptor == API_TYPE(update_schedule_request));
    API(UpdateScheduleRequest) *update = (API(UpdateScheduleRequest) *)request;
    API(DescribeScheduleRequest) ask = API_VALUE(DESCRIBE_SCHEDULE_REQUEST__INIT);
    if (update->spec == NULL && update->policies == NULL)
        return cli_wrong(call, error_new(call->arena, ERR_BAD_REQUEST,
                                         "nothing to change: give --cron_expression, "
                                         "--overlap_policy or another"));
    ask.domain = update->domain;
    ask.schedule_id = update->schedule_id;
    ProtobufCMessage *answer = NULL;
    struct error *err = cli_ask(call, SCHEDULE_API("DescribeSchedule"), &ask.base, TIMEOUT,
                                API_TYPE(describe_schedule_response), &answer);
    if (err != NULL)
        return cli_advise(call, err);
    const API(DescribeScheduleResponse) *known = (const API(DescribeScheduleResponse) *)answer;
    if (update->spec != NULL && known->spec != NULL)
        keep_rest(&update->spec->base, &known->spec->base, call->arena);
    if (update->policies != NULL && known->policies != NULL)
        keep_rest(&update->policies->base, &known->policies->base, call->arena);
    return NULL;
}

static void
add_entry(struct table *table, json_t *json, const API(ScheduleListEntry) *entry,
          struct arena *arena)
{
    bool is_paused = entry->state != NULL && entry->state->paused;
    if (json != NULL)
        json_array_append_new(json, render_message(&entry->base, RENDER_READABLE, arena));
    table_add(table, entry->schedule_id, entry->cron_expression,
              show_or_dash(entry->workflow_type != NULL ? entry->workflow_type->name : "", arena),
              is_paused ? "paused" : "running");
}

struct error *
cli_schedule_list(struct cli_call *call)
{
    API(ListSchedulesRequest) request = API_VALUE(LIST_SCHEDULES_REQUEST__INIT);
    struct table table = {.columns = 4, .arena = call->arena};
    json_t *json = json_array();
    const char *domain;
    int64_t page_size = 0;
    struct error *err = cli_need_domain(call, &domain);
    if (err == NULL)
        err = cli_number(call, "scan_page_size", 1, PAGE_SIZE_MAX, 0, &page_size);
    table_add(&table, "SCHEDULE ID", "CRON EXPRESSION", "WORKFLOW TYPE", "STATE");
    request.domain = (char *)domain;
    request.page_size = (int32_t)page_size;
    bool is_last = false;
    while (err == NULL && !is_last) {
        ProtobufCMessage *answer = NULL;
        err = cli_ask(call, SCHEDULE_API("ListSchedules"), &request.base, TIMEOUT,
                      API_TYPE(list_schedules_response), &answer);
        const API(ListSchedulesResponse) *page = (const API(ListSchedulesResponse) *)answer;
        for (size_t i = 0; err == NULL && i < page->n_schedules; i++)
            add_entry(&table, json, page->schedules[i], call->arena);
        if (err == NULL)
            request.next_page_token = page->next_page_token;
        is_last = request.next_page_token.len == 0;
    }
    if (err == NULL && call->as_json)
        cli_print_json(json_incref(json));
    else if (err == NULL)
        cli_print("%s", table_text(&table));
    json_decref(json);
    return err == NULL ? NULL : cli_advise(call, err);
}
