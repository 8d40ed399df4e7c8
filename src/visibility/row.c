/* row.c - which values a run has under which names. See engine.h. */
#include "base/check.h"
#include "uber/cadence/api/v1/common.pb-c.h"
#include "visibility/engine.h"
#include "wire/message.h"
#include "wire/presence.h"

static void
set_text(struct visibility_row *row, enum attribute_column column, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return;
    row->has[column] = true;
    row->column[column] =
        (struct attribute_value){.type = ATTRIBUTE_KEYWORD, .text = slice_text(text)};
}

static void
set_integer(struct visibility_row *row, enum attribute_column column, enum attribute_type type,
            int64_t integer)
{
    row->has[column] = true;
    row->column[column] = (struct attribute_value){.type = type, .integer = integer};
}

static void
set_time(struct visibility_row *row, enum attribute_column column,
         const GOOGLE(Timestamp) *timestamp)
{
    if (timestamp != NULL)
        set_integer(row, column, ATTRIBUTE_DATETIME, presence_time(timestamp));
}

static void
read_texts(const struct visibility_change *change, const API(WorkflowExecutionInfo) *info,
           struct visibility_row *row)
{
    set_text(row, COLUMN_DOMAIN_ID, change->domain_id);
    set_text(row, COLUMN_WORKFLOW_ID, change->workflow_id);
    set_text(row, COLUMN_RUN_ID, change->run_id);
    set_text(row, COLUMN_WORKFLOW_TYPE, info->type != NULL ? info->type->name : NULL);
    set_text(row, COLUMN_TASK_LIST, info->task_list);
    set_text(row, COLUMN_CRON_SCHEDULE, info->cron_schedule);
    const API(ActiveClusterSelectionPolicy) *policy = info->active_cluster_selection_policy;
    if (policy == NULL || policy->cluster_attribute == NULL)
        return;
    set_text(row, COLUMN_CLUSTER_ATTRIBUTE_SCOPE, policy->cluster_attribute->scope);
    set_text(row, COLUMN_CLUSTER_ATTRIBUTE_NAME, policy->cluster_attribute->name);
}

static void
read_times(const API(WorkflowExecutionInfo) *info, struct visibility_row *row)
{
    set_time(row, COLUMN_START_TIME, info->start_time);
    set_time(row, COLUMN_UPDATE_TIME, info->update_time);
    set_time(row, COLUMN_SCHEDULED_EXECUTION_TIME, info->scheduled_execution_time);
    bool is_delayed = info->execution_time != NULL && info->start_time != NULL &&
                      presence_time(info->execution_time) > presence_time(info->start_time);
    if (is_delayed)
        set_time(row, COLUMN_EXECUTION_TIME, info->execution_time);
}

/* Statuses count from 0 here, as in Cadence's stores: 0 of the wire is "unset". */
static void
read_numbers(const API(WorkflowExecutionInfo) *info, struct visibility_row *row)
{
    set_integer(row, COLUMN_IS_CRON, ATTRIBUTE_BOOL, info->is_cron);
    if (info->execution_status != 0)
        set_integer(row, COLUMN_EXECUTION_STATUS, ATTRIBUTE_INT, info->execution_status - 1);
    if (info->close_status == 0)
        return;
    set_integer(row, COLUMN_CLOSE_STATUS, ATTRIBUTE_INT, info->close_status - 1);
    set_integer(row, COLUMN_HISTORY_LENGTH, ATTRIBUTE_INT, info->history_length);
    set_time(row, COLUMN_CLOSE_TIME, info->close_time);
}

static void
read_custom(const API(SearchAttributes) *fields, const struct attribute_set *attributes,
            struct arena *arena, struct visibility_row *row)
{
    if (fields == NULL)
        return;
    row->custom = arena_zalloc(arena, fields->n_indexed_fields, sizeof row->custom[0]);
    for (size_t i = 0; i < fields->n_indexed_fields; i++) {
        const API(SearchAttributes__IndexedFieldsEntry) *entry = fields->indexed_fields[i];
        const struct search_attribute *attribute = attribute_find(attributes, entry->key);
        struct attribute_value *values;
        size_t count = 0;
        if (attribute == NULL || attribute->column != COLUMN_NONE || entry->value == NULL)
            continue;
        struct slice json = slice_of(entry->value->data.data, entry->value->data.len);
        struct error *err = attribute_read(attribute, json, arena, &values, &count);
        if (err == NULL && count > 0) /* else the info has it, but no query finds it */
            row->custom[row->custom_count++] = (struct visibility_custom){attribute, values, count};
    }
}

void
visibility_read_row(const struct visibility_change *change, const struct attribute_set *attributes,
                    struct arena *arena, struct visibility_row *row)
{
    API(WorkflowExecutionInfo) *info = NULL;
    check(change->info.length > 0);
    struct error *err =
        message_decode(arena, API_TYPE(workflow_execution_info), change->info, &info);
    check_that(err == NULL, "%s", err->message); /* the engine has encoded it */
    *row = (struct visibility_row){0};
    read_texts(change, info, row);
    read_times(info, row);
    read_numbers(info, row);
    set_integer(row, COLUMN_NUM_CLUSTERS, ATTRIBUTE_INT, change->num_clusters);
    read_custom(info->search_attributes, attributes, arena, row);
    check(row->has[COLUMN_RUN_ID] && row->has[COLUMN_START_TIME]);
}
