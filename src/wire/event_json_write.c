/* event_json_write.c - batches of history into JSON. See event_json.h.
 *
 * Row by row of the table that thrift.h is made of: what is set there is set here. */
#include <math.h>

#include "base/check.h"
#include "base/text.h"
#include "wire/event_json.h"
#include "wire/event_json_names.h"
#include "wire/presence.h"
#include "wire/thrift_value.h"

static void write_struct(struct buffer *out, const struct thrift_struct *structure,
                         const ProtobufCMessage *message);

static void
write_integer(struct buffer *out, int64_t number)
{
    buffer_append_format(out, "%lld", (long long)number);
}

static void
write_payload(struct buffer *out, const API(Payload) *payload)
{
    object_append_bytes(out,
                        payload == NULL ? (struct slice){0} : presence_read_bytes(payload->data));
}

static void
write_map(struct buffer *out, const struct thrift_field *field, ProtobufCMessage *const *entries,
          size_t count)
{
    const ProtobufCFieldDescriptor *columns = field->entry->fields;
    buffer_append_u8(out, '{');
    for (size_t i = 0; i < count; i++) {
        const char *entry = (const char *)entries[i];
        const void *value = *(void *const *)(entry + columns[1].offset);
        if (i > 0)
            buffer_append_u8(out, ',');
        object_append_text(out, *(char *const *)(entry + columns[0].offset));
        buffer_append_u8(out, ':');
        if (field->kind == THRIFT_TEXT_MAP)
            object_append_text(out, value);
        else
            write_payload(out, value);
    }
    buffer_append_u8(out, '}');
}

static void
write_list(struct buffer *out, const struct thrift_field *field, const union thrift_place place,
           size_t count)
{
    buffer_append_u8(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buffer_append_u8(out, ',');
        if (field->kind == THRIFT_TEXT_LIST)
            object_append_text(out, (*place.texts)[i]);
        else
            write_struct(out, field->structure(), (*place.messages)[i]);
    }
    buffer_append_u8(out, ']');
}

static void
write_enum(struct buffer *out, const ProtobufCFieldDescriptor *descriptor, int32_t value)
{
    char room[NAME_ROOM];
    const char *name = event_json_value_name(descriptor->descriptor, value, room);
    if (name[0] == '\0')
        write_integer(out, value - 1);
    else
        object_append_text(out, name);
}

static void
write_event_type(struct buffer *out, API(HistoryEvent__AttributesCase) arm)
{
    char room[NAME_ROOM];
    const struct thrift_event *event = thrift_event_of_arm(arm);
    check_that(event != NULL, "an event without attributes");
    object_append_text(out, event_json_type_name(event, room));
}

/* One of Cadence's times is not a number. */
static void
write_time(struct buffer *out, const ProtobufCFieldDescriptor *descriptor,
           const GOOGLE(Timestamp) *timestamp)
{
    int64_t nanoseconds = presence_time(timestamp);
    if (strcmp(descriptor->name, "first_scheduled_time") != 0) {
        write_integer(out, nanoseconds);
        return;
    }
    scoped(arena_drop) struct arena *arena = arena_new(128);
    object_append_text(out, text_format_moment(arena, nanoseconds));
}

static void
write_value(struct buffer *out, const struct thrift_struct *structure,
            const struct thrift_field *field, const union thrift_place place, size_t count)
{
    const ProtobufCFieldDescriptor *descriptor = event_json_descriptor(structure, field);
    switch (field->kind) {
    case THRIFT_TEXT:
        return object_append_text(out, *place.text);
    case THRIFT_BYTES:
        return object_append_bytes(out, presence_read_bytes(*place.bytes));
    case THRIFT_PAYLOAD:
        return write_payload(out, *place.payload);
    case THRIFT_BOOL:
        return buffer_append_text(out, *place.boolean ? "true" : "false");
    case THRIFT_I32:
    case THRIFT_LONG_I32:
        return write_integer(out, *place.int32);
    case THRIFT_I64:
        return write_integer(out, *place.int64);
    case THRIFT_DOUBLE:
        return buffer_append_format(out, "%.17g", isfinite(*place.float64) ? *place.float64 : 0);
    case THRIFT_ENUM:
        return write_enum(out, descriptor, *place.int32);
    case THRIFT_SECONDS:
    case THRIFT_LONG_SECONDS:
        return write_integer(out, thrift_seconds_of(field, *place.duration));
    case THRIFT_TIME:
        return write_time(out, descriptor, *place.timestamp);
    case THRIFT_EVENT_TYPE:
        return write_event_type(out, *place.arm);
    case THRIFT_STRUCT:
        return write_struct(out, field->structure(), *place.message);
    case THRIFT_STRUCT_LIST:
    case THRIFT_TEXT_LIST:
        return write_list(out, field, place, count);
    case THRIFT_TEXT_MAP:
    case THRIFT_PAYLOAD_MAP:
        return write_map(out, field, *place.messages, count);
    case THRIFT_KIND_COUNT:
        break;
    }
    unreachable("a field of kind %d", (int)field->kind);
}

static void
write_name(struct buffer *out, const char *name)
{
    if (out->data[out->length - 1] != '{')
        buffer_append_u8(out, ',');
    buffer_append_format(out, "\"%s\":", name);
}

/* Members of an object that was begun. */
static void
write_members(struct buffer *out, const struct thrift_struct *structure,
              const ProtobufCMessage *message)
{
    check(message->descriptor == structure->type);
    for (const struct thrift_field *field = structure->fields; field->id != 0; field++) {
        union thrift_place place;
        char name[NAME_ROOM];
        if (!thrift_place_of(field, message, &place))
            continue;
        size_t count = thrift_is_counted(field) ? *thrift_count_of(field, message) : 0;
        if (!thrift_value_is_set(field, place, count))
            continue;
        write_name(out, event_json_field_name(structure, field, name));
        write_value(out, structure, field, place, count);
    }
}

static void
write_struct(struct buffer *out, const struct thrift_struct *structure,
             const ProtobufCMessage *message)
{
    buffer_append_u8(out, '{');
    write_members(out, structure, message);
    buffer_append_u8(out, '}');
}

static void
write_event(struct buffer *out, const API(HistoryEvent) *event)
{
    char name[NAME_ROOM];
    const struct thrift_event *kind = thrift_event_of_arm(event->attributes_case);
    buffer_append_u8(out, '{');
    write_members(out, thrift_history_event(), &event->base);
    write_name(out, event_json_attributes_name(kind, name));
    write_struct(out, kind->attributes(), thrift_attributes_of(event));
    buffer_append_u8(out, '}');
}

void
event_json_append_batch(struct buffer *out, const API(History) *batch)
{
    buffer_append_text(out, "{\"events\":[");
    for (size_t i = 0; i < batch->n_events; i++) {
        if (i > 0)
            buffer_append_text(out, ",\n");
        write_event(out, batch->events[i]);
    }
    buffer_append_text(out, "]}");
}
