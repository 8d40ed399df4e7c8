/* run_list.c - runs as a table and as JSON. See run_list.h. Columns and the members of the JSON are
 * those of the cadence command line; a run that is not closed says so. */
#include "cli/workflow/run_list.h"

#include <jansson.h>
#include <string.h>

#include "cli/output/render.h"
#include "cli/output/table.h"
#include "wire/presence.h"

#define COLUMNS_MAX 16

const char *
run_list_status(const API(WorkflowExecutionInfo) *info, struct arena *arena)
{
    if (info->close_status == 0 || info->close_time == NULL || info->close_time->seconds == 0)
        return "OPEN";
    return show_enum(API_TYPE(workflow_execution_close_status), "WORKFLOW_EXECUTION_CLOSE_STATUS_",
                     (int)info->close_status, arena);
}

static const char *
time_cell(struct cli_call *call, const GOOGLE(Timestamp) *time)
{
    if (time == NULL || time->seconds <= 0)
        return "-";
    if (cli_is_on(call, "print_raw_time"))
        return arena_format(call->arena, "%lld", (long long)presence_time(time));
    return show_time(time, call->arena);
}

static const char *
map_cell(const ProtobufCMessage *message, struct arena *arena)
{
    if (message == NULL)
        return "-";
    json_t *json = render_message(message, RENDER_READABLE, arena), *fields;
    fields = json_object_get(json, "fields");
    fields = fields != NULL ? fields : json_object_get(json, "indexedFields");
    const char *line = fields == NULL ? "-" : arena_text(arena, render_line(fields, 100, arena));
    json_decref(json);
    return line;
}

/* The cells of one run, or the heading for NULL. */
static size_t
make_cells(struct cli_call *call, const API(WorkflowExecutionInfo) *info, const char **cells)
{
    struct arena *arena = call->arena;
    size_t count = 0;
    bool is_heading = info == NULL;
#define CELL(title, value) cells[count++] = is_heading ? (title) : (value)
    CELL("WORKFLOW TYPE", show_or_dash(info->type != NULL ? info->type->name : "", arena));
    CELL("WORKFLOW ID", info->workflow_execution->workflow_id);
    CELL("RUN ID", info->workflow_execution->run_id);
    CELL("TASK LIST", show_or_dash(info->task_list, arena));
    CELL("IS CRON", info->is_cron ? "true" : "false");
    CELL("START TIME", time_cell(call, info->start_time));
    CELL("EXECUTION TIME", time_cell(call, info->execution_time));
    CELL("END TIME", time_cell(call, info->close_time));
    CELL("STATUS", run_list_status(info, arena));
    if (cli_is_on(call, "full")) {
        CELL("HISTORY LENGTH", arena_format(arena, "%lld", (long long)info->history_length));
        CELL("UPDATE TIME", time_cell(call, info->update_time));
    }
    if (cli_is_on(call, "print_cron")) {
        CELL("CRON SCHEDULE", show_or_dash(info->cron_schedule, arena));
        CELL("SCHEDULED TIME", time_cell(call, info->scheduled_execution_time));
    }
    if (cli_is_on(call, "print_memo"))
        CELL("MEMO", map_cell(info->memo != NULL ? &info->memo->base : NULL, arena));
    if (cli_is_on(call, "print_search_attr"))
        CELL("SEARCH ATTRIBUTES",
             map_cell(info->search_attributes != NULL ? &info->search_attributes->base : NULL,
                      arena));
#undef CELL
    return count;
}

static void
print_table(struct cli_call *call, const struct run_list *list)
{
    const char *cells[COLUMNS_MAX];
    size_t columns = make_cells(call, NULL, cells);
    struct table table = {.columns = columns, .arena = call->arena};
    table_add_row(&table, cells, columns);
    for (size_t i = 0; i < list->count; i++)
        table_add_row(&table, cells, make_cells(call, list->items[i], cells));
    cli_print("%s", table_text(&table));
}

static json_t *
json_time(const GOOGLE(Timestamp) *time, struct arena *arena)
{
    return json_string(render_time(presence_time(time), arena));
}

/* Each value as the JSON text that it is, as there. */
static json_t *
json_map(const ProtobufCMessage *message, struct arena *arena)
{
    json_t *out = json_object();
    if (message == NULL)
        return out;
    json_t *json = render_message(message, RENDER_READABLE, arena), *fields, *value;
    const char *name;
    fields = json_object_get(json, "fields");
    fields = fields != NULL ? fields : json_object_get(json, "indexedFields");
    json_object_foreach(fields, name, value)
        json_object_set_new(out, name, json_string(render_compact(value, arena)));
    json_decref(json);
    return out;
}

static json_t *
json_info(const API(WorkflowExecutionInfo) *info, struct arena *arena)
{
    json_t *one = json_object();
    json_object_set_new(one, "WorkflowType",
                        json_string(info->type != NULL ? info->type->name : ""));
    json_object_set_new(one, "WorkflowID", json_string(info->workflow_execution->workflow_id));
    json_object_set_new(one, "RunID", json_string(info->workflow_execution->run_id));
    json_object_set_new(one, "TaskList", json_string(info->task_list));
    json_object_set_new(one, "IsCron", json_boolean(info->is_cron));
    json_object_set_new(one, "StartTime", json_time(info->start_time, arena));
    json_object_set_new(one, "ExecutionTime", json_time(info->execution_time, arena));
    json_object_set_new(one, "EndTime", json_time(info->close_time, arena));
    json_object_set_new(one, "CloseStatus", json_string(run_list_status(info, arena)));
    json_object_set_new(one, "HistoryLength", json_integer((json_int_t)info->history_length));
    json_object_set_new(one, "UpdateTime", json_time(info->update_time, arena));
    json_object_set_new(one, "Memo",
                        json_map(info->memo != NULL ? &info->memo->base : NULL, arena));
    json_object_set_new(
        one, "SearchAttributes",
        json_map(info->search_attributes != NULL ? &info->search_attributes->base : NULL, arena));
    json_object_set_new(one, "CronSchedule", json_string(info->cron_schedule));
    json_object_set_new(one, "ScheduledExecutionTime",
                        json_time(info->scheduled_execution_time, arena));
    return one;
}

void
run_list_print(struct cli_call *call, const struct run_list *list)
{
    if (!call->as_json) {
        print_table(call, list);
        return;
    }
    json_t *all = json_array();
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(all, json_info(list->items[i], call->arena));
    cli_print_json(all);
}

void
run_list_exclude(struct run_list *list, const struct run_list *excluded)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        const char *id = list->items[i]->workflow_execution->workflow_id;
        bool is_excluded = false;
        for (size_t n = 0; n < excluded->count && !is_excluded; n++)
            is_excluded = strcmp(id, excluded->items[n]->workflow_execution->workflow_id) == 0;
        if (!is_excluded)
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}
