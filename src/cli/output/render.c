/* render.c - see render.h. */
#include "cli/output/render.h"

#include <ctype.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "cli/output/table.h"
#include "wire/maps.h"
#include "wire/presence.h"

#define NS 1000000000LL

static json_t *render_value(const ProtobufCFieldDescriptor *field, const void *place,
                            enum render dialect, struct arena *arena);

/* ---- names ---- */

/* task_list → taskList; with `is_upper` TaskList. */
static const char *
camel(const char *name, bool is_upper, struct arena *arena)
{
    char *out = arena_text(arena, name), *to = out;
    for (; *name != '\0'; name++) {
        if (*name == '_') {
            is_upper = true;
            continue;
        }
        *to++ = is_upper ? (char)toupper((unsigned char)*name) : *name;
        is_upper = false;
    }
    *to = '\0';
    return out;
}

static bool
is_type(const ProtobufCFieldDescriptor *field, const char *name)
{
    const ProtobufCMessageDescriptor *type = field->descriptor;
    return field->type == PROTOBUF_C_TYPE_MESSAGE && strcmp(type->name, name) == 0;
}

static const char *
enum_word(const ProtobufCEnumDescriptor *type, int value, struct arena *arena)
{
    const char *end = strrchr(type->values[0].name, '_');
    size_t length = end == NULL ? 0 : (size_t)(end - type->values[0].name) + 1;
    return show_enum(type, arena_text_of(arena, slice_of(type->values[0].name, length)), value,
                     arena);
}

/* ---- values ---- */

static json_t *
render_bytes(struct slice bytes, enum render dialect, struct arena *arena)
{
    if (dialect == RENDER_READABLE) {
        json_t *value = bytes.length == 0 ? NULL
                                          : json_loadb((const char *)bytes.data, bytes.length,
                                                       JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (value != NULL)
            return value;
        if (text_is_utf8(bytes, NULL))
            return json_stringn((const char *)bytes.data, bytes.length);
    }
    struct slice text = text_base64_encode(arena, bytes, TEXT_BASE64_STANDARD);
    return json_stringn((const char *)text.data, text.length);
}

json_t *
render_payload(const API(Payload) *payload, enum render dialect, struct arena *arena)
{
    if (payload == NULL)
        return NULL;
    return render_bytes(presence_read_bytes(payload->data), dialect, arena);
}

static json_t *
render_timestamp(const GOOGLE(Timestamp) *time, enum render dialect, struct arena *arena)
{
    int64_t nanoseconds = presence_time(time);
    return dialect == RENDER_CADENCE ? json_integer((json_int_t)nanoseconds)
                                     : json_string(render_time(nanoseconds, arena));
}

static json_t *
render_duration(const GOOGLE(Duration) *duration, enum render dialect, struct arena *arena)
{
    if (dialect == RENDER_CADENCE)
        return json_integer((json_int_t)duration->seconds);
    return json_string(text_format_duration(arena, duration->seconds * NS + duration->nanos));
}

static json_t *
render_map(ProtobufCMessage *const *entries, size_t count, enum render dialect, struct arena *arena)
{
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++) {
        const ProtobufCFieldDescriptor *fields = entries[i]->descriptor->fields;
        const void *key = (const char *)entries[i] + fields[0].offset;
        const char *name = fields[0].type == PROTOBUF_C_TYPE_STRING
                               ? *(char *const *)key
                               : arena_format(arena, "%d", *(const int32_t *)key);
        json_t *value =
            render_value(&fields[1], (const char *)entries[i] + fields[1].offset, dialect, arena);
        json_object_set_new(object, name, value != NULL ? value : json_null());
    }
    return object;
}

/* An item that is empty counts, unlike a field. */
static json_t *
render_empty(const ProtobufCFieldDescriptor *field)
{
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return json_string("");
    if (field->type == PROTOBUF_C_TYPE_INT32 || field->type == PROTOBUF_C_TYPE_INT64)
        return json_integer(0);
    return json_null();
}

static json_t *
render_repeated(const ProtobufCFieldDescriptor *field, const char *items, size_t count,
                enum render dialect, struct arena *arena)
{
    size_t size = sizeof(void *);
    if (field->type == PROTOBUF_C_TYPE_INT32 || field->type == PROTOBUF_C_TYPE_ENUM)
        size = sizeof(int32_t);
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *value = render_value(field, items + i * size, dialect, arena);
        json_array_append_new(array, value != NULL ? value : render_empty(field));
    }
    return array;
}

static json_t *
render_sub_message(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message,
                   enum render dialect, struct arena *arena)
{
    if (message == NULL)
        return NULL;
    if (is_type(field, "google.protobuf.Timestamp"))
        return render_timestamp((const GOOGLE(Timestamp) *)message, dialect, arena);
    if (is_type(field, "google.protobuf.Duration"))
        return render_duration((const GOOGLE(Duration) *)message, dialect, arena);
    if (is_type(field, "uber.cadence.api.v1.Payload"))
        return render_payload((const API(Payload) *)message, dialect, arena);
    json_t *object = render_message(message, dialect, arena);
    json_t *name = json_object_get(object, "name");
    if (dialect == RENDER_CADENCE || json_object_size(object) != 1 || name == NULL)
        return object;
    json_incref(name);
    json_decref(object);
    return name;
}

/* NULL: unset or empty. */
static json_t *
render_value(const ProtobufCFieldDescriptor *field, const void *place, enum render dialect,
             struct arena *arena)
{
    int64_t number = 0;
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return (*(char *const *)place)[0] == '\0' ? NULL : json_string(*(char *const *)place);
    case PROTOBUF_C_TYPE_BYTES: {
        struct slice bytes = presence_read_bytes(*(const ProtobufCBinaryData *)place);
        return bytes.length == 0 ? NULL : render_bytes(bytes, dialect, arena);
    }
    case PROTOBUF_C_TYPE_BOOL:
        return *(const protobuf_c_boolean *)place ? json_true() : NULL;
    case PROTOBUF_C_TYPE_DOUBLE:
        return *(const double *)place == 0 ? NULL : json_real(*(const double *)place);
    case PROTOBUF_C_TYPE_ENUM:
        number = *(const int32_t *)place;
        return number == 0 ? NULL : json_string(enum_word(field->descriptor, (int)number, arena));
    case PROTOBUF_C_TYPE_MESSAGE:
        return render_sub_message(field, *(ProtobufCMessage *const *)place, dialect, arena);
    case PROTOBUF_C_TYPE_INT32:
        number = *(const int32_t *)place;
        break;
    default:
        number = *(const int64_t *)place;
    }
    return number == 0 ? NULL : json_integer((json_int_t)number);
}

/* ---- messages ---- */

/* failure {reason, details} → reason, details; last_failure → lastFailureReason, ... */
static void
put_failure(json_t *object, const char *name, const API(Failure) *failure, enum render dialect,
            struct arena *arena)
{
    const char *prefix = strcmp(name, "failure") == 0 ? "" : camel(name, false, arena);
    const char *reason = prefix[0] == '\0' ? "reason" : arena_format(arena, "%sReason", prefix);
    const char *details = prefix[0] == '\0' ? "details" : arena_format(arena, "%sDetails", prefix);
    json_object_set_new(object, reason, json_string(failure->reason));
    if (failure->details.len > 0)
        json_object_set_new(object, details,
                            render_bytes(presence_read_bytes(failure->details), dialect, arena));
}

/* Cadence has seconds, and says so in two ways. */
static const char *
member_name(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
            enum render dialect, struct arena *arena)
{
    const char *name = camel(field->name, false, arena);
    bool is_retry = message->descriptor == API_TYPE(retry_policy);
    if (dialect == RENDER_CADENCE && is_type(field, "google.protobuf.Duration"))
        return arena_format(arena, is_retry ? "%sInSeconds" : "%sSeconds", name);
    return strcmp(name, "eventTime") == 0 ? "timestamp" : name;
}

static void
put_field(json_t *object, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
          enum render dialect, struct arena *arena)
{
    const char *place = (const char *)message + field->offset;
    const char *name = member_name(message, field, dialect, arena);
    const void *quantifier = (const char *)message + field->quantifier_offset;
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && *(const uint32_t *)quantifier != field->id)
        return;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t count = *(const size_t *)quantifier;
        const char *items = *(char *const *)place;
        bool is_map =
            field->type == PROTOBUF_C_TYPE_MESSAGE && wire_map_is_entry(field->descriptor);
        if (count > 0 && is_map)
            json_object_set_new(
                object, name, render_map((ProtobufCMessage *const *)items, count, dialect, arena));
        else if (count > 0)
            json_object_set_new(object, name, render_repeated(field, items, count, dialect, arena));
        return;
    }
    if (is_type(field, "uber.cadence.api.v1.Failure") && *(void *const *)place != NULL) {
        put_failure(object, field->name, *(API(Failure) *const *)place, dialect, arena);
        return;
    }
    json_t *value = render_value(field, place, dialect, arena);
    if (value != NULL)
        json_object_set_new(object, name, value);
}

json_t *
render_message(const ProtobufCMessage *message, enum render dialect, struct arena *arena)
{
    json_t *object = json_object();
    bool is_event = message->descriptor == API_TYPE(history_event);
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        put_field(object, message, &message->descriptor->fields[i], dialect, arena);
        if (is_event && i == 1)
            json_object_set_new(
                object, "eventType",
                json_string(render_event_type((const API(HistoryEvent) *)message, arena)));
    }
    return object;
}

/* ---- events ---- */

static const ProtobufCFieldDescriptor *
arm_of(const API(HistoryEvent) *event)
{
    for (unsigned i = 0; i < event->base.descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &event->base.descriptor->fields[i];
        if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && field->id == event->attributes_case)
            return field;
    }
    return NULL;
}

const char *
render_event_type(const API(HistoryEvent) *event, struct arena *arena)
{
    const ProtobufCFieldDescriptor *arm = arm_of(event);
    static const char tail[] = "_event_attributes";
    if (arm == NULL)
        return "Unknown";
    size_t length = strlen(arm->name) - strlen(tail);
    return camel(arena_text_of(arena, slice_of(arm->name, length)), true, arena);
}

const ProtobufCMessage *
render_event_attributes(const API(HistoryEvent) *event)
{
    const ProtobufCFieldDescriptor *arm = arm_of(event);
    return arm == NULL ? NULL : *(ProtobufCMessage *const *)((const char *)event + arm->offset);
}
