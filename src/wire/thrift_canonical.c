/* thrift_canonical.c - which fields have a place in thrift, and events that keep to them.
 *
 * Both questions walk the table beside the descriptors of protobuf: a field that no row of its
 * struct names has no place. A group (a Failure, say) has its rows in the struct around it, so what
 * is known of it depends on where it is. */
#include <string.h>

#include "base/check.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/presence.h"
#include "wire/thrift.h"
#include "wire/thrift_table.h"
#include "wire/thrift_value.h"
#include "wire/types.h"

/* Does a row name the field at `offset`: of the group at `group_offset`, or (group NULL) of the
 * struct's message itself? There the pointer to a group counts as well. */
static bool
row_names(const struct thrift_field *row, const ProtobufCMessageDescriptor *group,
          size_t group_offset, size_t offset)
{
    if (group == NULL)
        return (row->group == NULL ? row->offset : row->group_offset) == offset;
    return row->group == group && row->group_offset == group_offset && row->offset == offset;
}

static bool
struct_names(const struct thrift_struct *structure, const ProtobufCMessageDescriptor *group,
             size_t group_offset, size_t offset)
{
    for (const struct thrift_field *row = structure->fields; row->id != 0; row++)
        if (row_names(row, group, group_offset, offset))
            return true;
    return false;
}

/* ---- Canonical events ---- */

static ProtobufCMessage *copy_struct(struct arena *arena, const struct thrift_struct *structure,
                                     const ProtobufCMessage *message);

/* A message of its own with the same values. */
static void *
copy_shell(struct arena *arena, const void *message)
{
    size_t size = ((const ProtobufCMessage *)message)->descriptor->sizeof_message;
    return memcpy(arena_alloc(arena, size), message, size);
}

static GOOGLE(Duration) *
copy_duration(struct arena *arena, const struct thrift_field *row, const GOOGLE(Duration) *duration)
{
    GOOGLE(Duration) *copy = copy_shell(arena, duration);
    copy->seconds = thrift_seconds_of(row, duration);
    copy->nanos = 0;
    return copy;
}

static ProtobufCMessage *
copy_message(struct arena *arena, const struct thrift_field *row, const ProtobufCMessage *message)
{
    switch (row->kind) {
    case THRIFT_SECONDS:
    case THRIFT_LONG_SECONDS:
        return &copy_duration(arena, row, (const GOOGLE(Duration) *)message)->base;
    case THRIFT_TIME:
        return &presence_make_timestamp(arena, presence_time((const GOOGLE(Timestamp) *)message))
                    ->base;
    case THRIFT_PAYLOAD:
        return copy_shell(arena, message);
    default:
        return copy_struct(arena, row->structure(), message);
    }
}

/* The elements of a list or map. */
static void
copy_items(struct arena *arena, const struct thrift_field *row, const ProtobufCMessage *message,
           ProtobufCMessage *copy)
{
    union thrift_place from, to;
    bool is_there = thrift_place_of(row, message, &from) && thrift_place_of(row, copy, &to);
    size_t *count = thrift_count_of(row, copy);
    check(is_there);
    *count = *thrift_count_of(row, message);
    if (*count == 0)
        return;
    *to.messages = arena_alloc(arena, *count * sizeof **to.messages);
    if (row->kind == THRIFT_TEXT_LIST) {
        memcpy(*to.texts, *from.texts, *count * sizeof **to.texts);
        return;
    }
    for (size_t i = 0; i < *count; i++)
        (*to.messages)[i] = row->kind == THRIFT_STRUCT_LIST
                                ? copy_struct(arena, row->structure(), (*from.messages)[i])
                                : copy_shell(arena, (*from.messages)[i]);
    if (row->kind != THRIFT_STRUCT_LIST)
        wire_map_sort_messages(arena, *to.messages, count);
}

static void
copy_value(struct arena *arena, const struct thrift_field *row, union thrift_place from,
           union thrift_place to)
{
    switch (row->kind) {
    case THRIFT_TEXT:
        *to.text = presence_make_text(*from.text);
        return;
    case THRIFT_BYTES:
        *to.bytes = *from.bytes;
        return;
    case THRIFT_BOOL:
        *to.boolean = *from.boolean;
        return;
    case THRIFT_I32:
    case THRIFT_LONG_I32:
        *to.int32 = *from.int32;
        return;
    case THRIFT_ENUM:
        *to.int32 = *from.int32 > 0 ? *from.int32 : 0;
        return;
    case THRIFT_I64:
        *to.int64 = *from.int64;
        return;
    case THRIFT_DOUBLE:
        *to.float64 = *from.float64;
        return;
    case THRIFT_EVENT_TYPE:
        *to.arm = *from.arm;
        return;
    default:
        if (*from.message != NULL)
            *to.message = copy_message(arena, row, *from.message);
        return;
    }
}

/* The struct with what its rows name, and no more. */
static ProtobufCMessage *
copy_struct(struct arena *arena, const struct thrift_struct *structure,
            const ProtobufCMessage *message)
{
    check(message->descriptor == structure->type);
    ProtobufCMessage *copy = message_new(arena, structure->type);
    for (const struct thrift_field *row = structure->fields; row->id != 0; row++) {
        union thrift_place from, to;
        if (thrift_is_counted(row)) {
            copy_items(arena, row, message, copy);
            continue;
        }
        if (!thrift_place_of(row, message, &from))
            continue;
        if (row->group != NULL && *thrift_group_of(row, copy) == NULL)
            *thrift_group_of(row, copy) = message_new(arena, row->group);
        if (thrift_place_of(row, copy, &to))
            copy_value(arena, row, from, to);
    }
    return copy;
}

void
thrift_make_canonical(struct arena *arena, API(HistoryEvent) *event)
{
    const struct thrift_event *kind = thrift_event_of_arm(event->attributes_case);
    check_that(kind != NULL, "an event without attributes");
    ProtobufCMessage *attributes =
        copy_struct(arena, kind->attributes(), thrift_attributes_of(event));
    /* What is beside them has its place (thrift_table_test), and only the time has a form. */
    if (event->event_time != NULL)
        event->event_time = presence_make_timestamp(arena, presence_time(event->event_time));
    event->workflow_execution_started_event_attributes = (void *)attributes; /* any arm */
}

/* ---- Which fields are known ---- */

/* Messages that are values in thrift. */
static bool
value_field_is_known(const struct thrift_field *row, const ProtobufCMessageDescriptor *type,
                     uint32_t number)
{
    if (row->entry == type || (row->kind == THRIFT_TIME && type == GOOGLE_TYPE(timestamp)))
        return true;
    bool is_seconds = row->kind == THRIFT_SECONDS || row->kind == THRIFT_LONG_SECONDS;
    if (is_seconds && type == GOOGLE_TYPE(duration))
        return number == 1; /* not the parts of a second */
    return row->kind == THRIFT_PAYLOAD && type == API_TYPE(payload);
}

static bool
struct_knows(const struct thrift_struct *structure, const ProtobufCMessageDescriptor *type,
             const ProtobufCFieldDescriptor *field)
{
    if (structure->type == type && struct_names(structure, NULL, 0, field->offset))
        return true;
    for (const struct thrift_field *row = structure->fields; row->id != 0; row++) {
        if (row->group == type && row->offset == field->offset)
            return true;
        if (value_field_is_known(row, type, field->id))
            return true;
        if (row->structure != NULL && struct_knows(row->structure(), type, field))
            return true;
    }
    return false;
}

bool
thrift_field_is_known(const ProtobufCMessageDescriptor *type, uint32_t number)
{
    const ProtobufCFieldDescriptor *field = message_find_field(type, number);
    if (field == NULL)
        return false;
    if (type == API_TYPE(history_event) && (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0)
        return thrift_event_of_arm((API(HistoryEvent__AttributesCase))number) != NULL;
    if (struct_knows(thrift_history_event(), type, field))
        return true;
    for (size_t i = 0; i < THRIFT_EVENT_COUNT; i++)
        if (struct_knows(thrift_events()[i].attributes(), type, field))
            return true;
    return false;
}
