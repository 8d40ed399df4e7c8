/* record.c - a closed run as lists show it, in the JSON of Cadence's filestore. See inside.h.
 *
 * Cadence keeps less of a run than lists here show; what it does not know is written behind its
 * members, and it does not mind. */
#include "archive/inside.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vector.h"
#include "visibility/attributes.h"
#include "wire/event_json.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"

/* --- writing ---- */

static void
write_member(struct buffer *out, const char *name, const char *text)
{
    buffer_append_format(out, "%c\"%s\":", out->length == 0 ? '{' : ',', name);
    object_append_text(out, text);
}

static void
write_integer(struct buffer *out, const char *name, int64_t number)
{
    buffer_append_format(out, ",\"%s\":%lld", name, (long long)number);
}

/* "COMPLETED": the name of the value without that of the enum. */
static const char *
status_name(API(WorkflowExecutionCloseStatus) status)
{
    static const char prefix[] = "WORKFLOW_EXECUTION_CLOSE_STATUS_";
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(
        &uber__cadence__api__v1__workflow_execution_close_status__descriptor, (int)status);
    return value == NULL ? "" : value->name + sizeof prefix - 1;
}

static void
write_memo(struct buffer *out, const API(Memo) *memo)
{
    buffer_append_text(out, ",\"Memo\":");
    if (memo == NULL || memo->n_fields == 0) {
        buffer_append_text(out, "null");
        return;
    }
    buffer_append_text(out, "{\"fields\":{");
    for (size_t i = 0; i < memo->n_fields; i++) {
        const API(Payload) *value = memo->fields[i]->value;
        buffer_append_text(out, i > 0 ? "," : "");
        object_append_text(out, memo->fields[i]->key);
        buffer_append_u8(out, ':');
        object_append_bytes(out,
                            value == NULL ? (struct slice){0} : presence_read_bytes(value->data));
    }
    buffer_append_text(out, "}}");
}

/* Values are JSON texts themselves; one that is none was never searched by. */
static void
write_attributes(struct buffer *out, const API(SearchAttributes) *attributes, struct arena *arena)
{
    size_t count = 0;
    buffer_append_text(out, ",\"SearchAttributes\":{");
    for (size_t i = 0; attributes != NULL && i < attributes->n_indexed_fields; i++) {
        const API(Payload) *value = attributes->indexed_fields[i]->value;
        struct slice bytes = value == NULL ? (struct slice){0} : presence_read_bytes(value->data);
        if (!text_is_utf8(bytes, NULL) ||
            (bytes.length > 0 && memchr(bytes.data, '\0', bytes.length) != NULL))
            continue;
        buffer_append_text(out, count++ > 0 ? "," : "");
        object_append_text(out, attributes->indexed_fields[i]->key);
        buffer_append_u8(out, ':');
        object_append_text(out, arena_text_of(arena, bytes));
    }
    buffer_append_text(out, "}");
}

struct slice
archive_record_write(const struct archive_run *run, const API(WorkflowExecutionInfo) *info,
                     struct arena *arena)
{
    scoped(buffer_free) struct buffer out = {0};
    write_member(&out, "DomainID", run->domain_id);
    write_member(&out, "DomainName", run->domain_name);
    write_member(&out, "WorkflowID", run->workflow_id);
    write_member(&out, "RunID", run->run_id);
    write_member(&out, "WorkflowTypeName", info->type == NULL ? "" : info->type->name);
    write_integer(&out, "StartTimestamp", presence_time(info->start_time));
    write_integer(&out, "ExecutionTimestamp", presence_time(info->execution_time));
    write_integer(&out, "CloseTimestamp", presence_time(info->close_time));
    write_member(&out, "CloseStatus", status_name(info->close_status));
    write_integer(&out, "HistoryLength", info->history_length);
    write_memo(&out, info->memo);
    write_attributes(&out, info->search_attributes, arena);
    write_member(&out, "HistoryArchivalURI", run->history_uri == NULL ? "" : run->history_uri);
    write_member(&out, "TaskList", info->task_list);
    write_member(&out, "CronSchedule", info->cron_schedule);
    buffer_append_text(&out, "}\n");
    return arena_slice(arena, buffer_slice(&out));
}

/* --- reading ---- */

static void
read_text(struct json_reader *reader, char **text)
{
    const char *value = "";
    object_text(reader, &value);
    *text = (char *)value;
}

static void
read_time(struct json_reader *reader, GOOGLE(Timestamp) **timestamp)
{
    int64_t nanoseconds = 0;
    object_integer(reader, &nanoseconds);
    *timestamp = nanoseconds == 0 ? NULL : presence_make_timestamp(reader->arena, nanoseconds);
}

/* By its name, or its number in thrift. */
static void
read_status(struct json_reader *reader, API(WorkflowExecutionInfo) *info)
{
    int64_t number = -1;
    const char *name = "";
    if (object_peek(reader) == '"')
        object_text(reader, &name);
    else
        object_integer(reader, &number);
    const ProtobufCEnumDescriptor *type =
        &uber__cadence__api__v1__workflow_execution_close_status__descriptor;
    info->close_status =
        (API(WorkflowExecutionCloseStatus))(name[0] != '\0' ? event_json_find_value(type, name)
                                            : number >= 0 && number < (int64_t)type->n_values - 1
                                                ? (int32_t)number + 1
                                                : 0);
    reader->is_bad = reader->is_bad || info->close_status == 0;
}

static API(Payload) *
make_payload(struct json_reader *reader, struct slice bytes)
{
    API(Payload) *payload = message_new(reader->arena, API_TYPE(payload));
    payload->data = presence_make_bytes(bytes);
    return payload;
}

static void
read_memo_fields(struct json_reader *reader, API(Memo) *memo)
{
    vector_of(API(Memo__FieldsEntry) *) list = {0};
    const char *key = "";
    bool outer = object_enter(reader);
    while (object_next(reader, &key)) {
        struct slice bytes = {0};
        API(Memo__FieldsEntry) *entry = message_new(reader->arena, API_TYPE(memo__fields_entry));
        entry->key = (char *)key;
        object_bytes(reader, &bytes);
        entry->value = make_payload(reader, bytes);
        vector_push_in(&list, reader->arena, entry);
    }
    object_leave(reader, outer);
    memo->fields = list.items;
    memo->n_fields = list.count;
    if (!reader->is_bad && list.count > 0)
        wire_map_sort(reader->arena, memo->fields, &memo->n_fields);
}

static void
read_memo(struct json_reader *reader, API(WorkflowExecutionInfo) *info)
{
    const char *name = "";
    if (object_null(reader))
        return;
    bool outer = object_enter(reader);
    while (object_next(reader, &name)) {
        if (strcmp(name, "fields") == 0 && !object_null(reader))
            read_memo_fields(reader, info->memo);
        else if (strcmp(name, "fields") != 0)
            object_skip(reader);
    }
    object_leave(reader, outer);
}

static void
read_attributes(struct json_reader *reader, API(SearchAttributes) *attributes)
{
    vector_of(API(SearchAttributes__IndexedFieldsEntry) *) list = {0};
    const char *key = "";
    if (object_null(reader))
        return;
    bool outer = object_enter(reader);
    while (object_next(reader, &key)) {
        const char *text = "";
        API(SearchAttributes__IndexedFieldsEntry) *entry =
            message_new(reader->arena, API_TYPE(search_attributes__indexed_fields_entry));
        entry->key = (char *)key;
        object_text(reader, &text);
        entry->value = make_payload(reader, slice_text(text));
        vector_push_in(&list, reader->arena, entry);
    }
    object_leave(reader, outer);
    attributes->indexed_fields = list.items;
    attributes->n_indexed_fields = list.count;
    if (!reader->is_bad && list.count > 0)
        wire_map_sort(reader->arena, attributes->indexed_fields, &attributes->n_indexed_fields);
}

static void
read_member(struct json_reader *reader, const char *name, API(WorkflowExecutionInfo) *info)
{
    if (strcmp(name, "WorkflowID") == 0)
        read_text(reader, &info->workflow_execution->workflow_id);
    else if (strcmp(name, "RunID") == 0)
        read_text(reader, &info->workflow_execution->run_id);
    else if (strcmp(name, "WorkflowTypeName") == 0)
        read_text(reader, &info->type->name);
    else if (strcmp(name, "StartTimestamp") == 0)
        read_time(reader, &info->start_time);
    else if (strcmp(name, "ExecutionTimestamp") == 0)
        read_time(reader, &info->execution_time);
    else if (strcmp(name, "CloseTimestamp") == 0)
        read_time(reader, &info->close_time);
    else if (strcmp(name, "CloseStatus") == 0)
        read_status(reader, info);
    else if (strcmp(name, "HistoryLength") == 0)
        object_integer(reader, &info->history_length);
    else if (strcmp(name, "Memo") == 0)
        read_memo(reader, info);
    else if (strcmp(name, "SearchAttributes") == 0)
        read_attributes(reader, info->search_attributes);
    else if (strcmp(name, "TaskList") == 0)
        read_text(reader, &info->task_list);
    else if (strcmp(name, "CronSchedule") == 0)
        read_text(reader, &info->cron_schedule);
    else
        object_skip(reader);
}

struct error *
archive_record_read(struct slice json, struct arena *arena, API(WorkflowExecutionInfo) **info)
{
    struct json_reader reader = object_begin(json, arena);
    API(WorkflowExecutionInfo) *read = message_new(arena, API_TYPE(workflow_execution_info));
    const char *name = "";
    read->workflow_execution = message_new(arena, API_TYPE(workflow_execution));
    read->type = message_new(arena, API_TYPE(workflow_type));
    read->memo = message_new(arena, API_TYPE(memo));
    read->search_attributes = message_new(arena, API_TYPE(search_attributes));
    while (object_next(&reader, &name))
        read_member(&reader, name, read);
    if (!object_end(&reader) || read->close_status == 0 ||
        read->workflow_execution->run_id[0] == '\0')
        return error_new(arena, ERR_CORRUPT, "an archived record cannot be read");
    if (read->execution_time == NULL)
        read->execution_time = read->start_time; /* B-034 */
    read->is_cron = read->cron_schedule[0] != '\0';
    *info = read;
    return NULL;
}
