/* print.c - events for people.
 *
 * Most attributes can be shown by what they are: names and ids as they stand, enums by their last
 * words, messages with a name by that name. So one walk over the descriptor prints every kind; only
 * what is always there or hardly ever read is left out, by a list of names. */
#include "engine/run/print.h"

#include "base/buffer.h"
#include "engine/run/inside.h"

#define TEXT_MAX 60 /* of a payload */

static bool
is_boring(const char *name)
{
    static const char *const names[] = {"identity",
                                        "request_id",
                                        "first_execution_run_id",
                                        "original_execution_run_id",
                                        "header",
                                        "memo",
                                        "search_attributes",
                                        "partition_config",
                                        "decision_task_completed_event_id"};
    for (size_t i = 0; i < array_length(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* "execution_start_to_close_timeout" is long: people know the words, not the suffixes. */
static const char *
short_name(const char *name, struct arena *arena)
{
    static const char *const suffixes[] = {"_event_id", "_timeout", "_interval"};
    for (size_t i = 0; i < array_length(suffixes); i++) {
        size_t cut = strlen(suffixes[i]), length = strlen(name);
        if (length > cut && strcmp(name + length - cut, suffixes[i]) == 0)
            return arena_text_of(arena, slice_of(name, length - cut));
    }
    return name;
}

static const char *
enum_text(const ProtobufCEnumDescriptor *type, int value, struct arena *arena)
{
    const ProtobufCEnumValue *known = protobuf_c_enum_descriptor_get_value(type, value);
    if (known == NULL)
        return arena_format(arena, "%d", value);
    /* The names begin with that of the enum: TIMEOUT_TYPE_HEARTBEAT. */
    size_t words = 0;
    for (const char *c = type->short_name; *c != '\0'; c++)
        words += *c >= 'A' && *c <= 'Z';
    const char *text = known->name;
    while (words-- > 0 && strchr(text, '_') != NULL)
        text = strchr(text, '_') + 1;
    return text;
}

static const char *
bytes_text(ProtobufCBinaryData bytes, struct arena *arena)
{
    size_t shown = bytes.len > TEXT_MAX ? TEXT_MAX : bytes.len;
    char *text = arena_text_of(arena, slice_of(bytes.data, shown));
    for (size_t i = 0; i < shown; i++)
        if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] > '~')
            text[i] = '.';
    return shown < bytes.len ? arena_format(arena, "%s...", text) : text;
}

static const char *
message_text(const ProtobufCMessage *message, struct arena *arena)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    if (type == GOOGLE_TYPE(duration))
        return arena_format(arena, "%llds",
                            (long long)((const GOOGLE(Duration) *)message)->seconds);
    if (type == API_TYPE(payload))
        return bytes_text(((const API(Payload) *)message)->data, arena);
    if (type == API_TYPE(failure)) {
        const API(Failure) *failure = (const API(Failure) *)message;
        return arena_format(arena, "%s(%s)", failure->reason, bytes_text(failure->details, arena));
    }
    if (type == API_TYPE(workflow_type))
        return ((const API(WorkflowType) *)message)->name;
    if (type == API_TYPE(activity_type))
        return ((const API(ActivityType) *)message)->name;
    if (type == API_TYPE(task_list))
        return ((const API(TaskList) *)message)->name;
    return "{...}";
}

/* The value as text; NULL: unset, or nothing to show. */
static const char *
value_text(const ProtobufCFieldDescriptor *field, const void *place, struct arena *arena)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = *(char *const *)place;
        return text[0] == '\0' ? NULL : text;
    }
    case PROTOBUF_C_TYPE_INT64:
        return *(const int64_t *)place == 0
                   ? NULL
                   : arena_format(arena, "%lld", (long long)*(const int64_t *)place);
    case PROTOBUF_C_TYPE_INT32:
        return *(const int32_t *)place == 0 ? NULL
                                            : arena_format(arena, "%d", *(const int32_t *)place);
    case PROTOBUF_C_TYPE_ENUM:
        return *(const int *)place == 0 ? NULL
                                        : enum_text(field->descriptor, *(const int *)place, arena);
    case PROTOBUF_C_TYPE_BOOL:
        return *(const protobuf_c_boolean *)place ? "true" : NULL;
    case PROTOBUF_C_TYPE_BYTES: {
        ProtobufCBinaryData bytes = *(const ProtobufCBinaryData *)place;
        return bytes.len == 0 ? NULL : bytes_text(bytes, arena);
    }
    case PROTOBUF_C_TYPE_MESSAGE: {
        const ProtobufCMessage *message = *(ProtobufCMessage *const *)place;
        return message == NULL ? NULL : message_text(message, arena);
    }
    default:
        return NULL;
    }
}

static void
append_event(struct buffer *buffer, const API(HistoryEvent) *event, struct arena *arena)
{
    const ProtobufCMessage *attributes = event_attributes(event);
    buffer_append_format(buffer, "%lld %s", (long long)event->event_id,
                         event_name(event->attributes_case));
    for (unsigned i = 0; i < attributes->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &attributes->descriptor->fields[i];
        if (field->label == PROTOBUF_C_LABEL_REPEATED || is_boring(field->name))
            continue;
        const char *text = value_text(field, (const char *)attributes + field->offset, arena);
        if (text != NULL)
            buffer_append_format(buffer, " %s=%s", short_name(field->name, arena), text);
    }
}

const char *
event_print(const API(HistoryEvent) *event, struct arena *arena)
{
    struct buffer buffer = {0};
    append_event(&buffer, event, arena);
    const char *text = arena_text_of(arena, buffer_slice(&buffer));
    buffer_free(&buffer);
    return text;
}

const char *
failed_cause_print(API(DecisionTaskFailedCause) cause, struct arena *arena)
{
    return enum_text(&uber__cadence__api__v1__decision_task_failed_cause__descriptor, (int)cause,
                     arena);
}

const char *
history_print(API(HistoryEvent) *const *events, size_t count, struct arena *arena)
{
    struct buffer buffer = {0};
    for (size_t i = 0; i < count; i++) {
        append_event(&buffer, events[i], arena);
        buffer_append_text(&buffer, "\n");
    }
    const char *text = arena_text_of(arena, buffer_slice(&buffer));
    buffer_free(&buffer);
    return text;
}
