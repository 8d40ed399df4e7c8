/* thrift_canonical.c - which fields have a place in thrift, and events that keep to them.
 *
 * Both questions walk the table beside the descriptors of protobuf: a field that no row of its
 * struct names has no place. A group (a Failure, say) has its rows in the struct around it, so what
 * is known of it depends on where it is. */
#include <string.h>

#include "base/check.h"
#include "wire/maps.h"
#include "wire/message.h"
#include "wire/thrift.h"
#include "wire/thrift_table.h"
#include "wire/thrift_value.h"
#include "wire/types.h"

static void make_struct_canonical(struct arena *arena, const struct thrift_struct *structure,
                                  ProtobufCMessage *message);

/* Unset, as in a new message. */
static void
field_clear(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    char *place = (char *)message + field->offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        *(size_t *)((char *)message + field->quantifier_offset) = 0;
    else if (field->type == PROTOBUF_C_TYPE_STRING)
        *(char **)place = presence_make_text("");
    else
        memset(place, 0, message_element_size(field->type));
}

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

/* Clears the fields of `message`, which is the struct's own or that of a group in it, that no row
 * names. */
static void
drop_unknown(const struct thrift_struct *structure, const ProtobufCMessageDescriptor *group,
             size_t group_offset, ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        bool is_arm = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
        if (!is_arm && !struct_names(structure, group, group_offset, field->offset))
            field_clear(message, field);
    }
}

static void
make_duration_canonical(const struct thrift_field *row, GOOGLE(Duration) *duration)
{
    if (duration == NULL)
        return;
    duration->seconds = thrift_seconds_of(row, duration);
    duration->nanos = 0;
}

static void
make_list_canonical(struct arena *arena, const struct thrift_field *row, ProtobufCMessage **items,
                    size_t *count)
{
    if (row->kind != THRIFT_STRUCT_LIST)
        return wire_map_sort_messages(arena, items, count);
    for (size_t i = 0; i < *count; i++)
        make_struct_canonical(arena, row->structure(), items[i]);
}

static void
make_value_canonical(struct arena *arena, const struct thrift_field *row, union thrift_place place,
                     ProtobufCMessage *message)
{
    switch (row->kind) {
    case THRIFT_ENUM:
        *place.int32 = *place.int32 > 0 ? *place.int32 : 0;
        return;
    case THRIFT_SECONDS:
    case THRIFT_LONG_SECONDS:
        return make_duration_canonical(row, *place.duration);
    case THRIFT_TIME:
        if (*place.timestamp != NULL)
            *place.timestamp =
                presence_make_timestamp(arena, thrift_nanoseconds_of(*place.timestamp));
        return;
    case THRIFT_STRUCT:
        if (*place.message != NULL)
            make_struct_canonical(arena, row->structure(), *place.message);
        return;
    case THRIFT_STRUCT_LIST:
    case THRIFT_TEXT_MAP:
    case THRIFT_PAYLOAD_MAP:
        return make_list_canonical(arena, row, *place.messages, thrift_count_of(row, message));
    default:
        return;
    }
}

static void
make_struct_canonical(struct arena *arena, const struct thrift_struct *structure,
                      ProtobufCMessage *message)
{
    check(message->descriptor == structure->type);
    drop_unknown(structure, NULL, 0, message);
    for (const struct thrift_field *row = structure->fields; row->id != 0; row++) {
        union thrift_place place;
        if (!thrift_place_of(row, message, &place))
            continue;
        if (row->group != NULL)
            drop_unknown(structure, row->group, row->group_offset, *thrift_group_of(row, message));
        make_value_canonical(arena, row, place, message);
    }
}

void
thrift_make_canonical(struct arena *arena, API(HistoryEvent) *event)
{
    const struct thrift_event *kind = thrift_event_of_arm(event->attributes_case);
    check_that(kind != NULL, "an event without attributes");
    make_struct_canonical(arena, thrift_history_event(), &event->base);
    make_struct_canonical(arena, kind->attributes(), thrift_attributes_of(event));
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
