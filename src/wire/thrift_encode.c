/* thrift_encode.c - events into a blob, row by row of the table.
 *
 * A struct is its fields, each with type and id before it, and a byte 0 behind them. A field is
 * written when its message field is set; see promise 2 of thrift.h for what "set" is. */
#include "wire/presence.h"
#include "wire/thrift.h"

#include "base/buffer.h"
#include "base/check.h"
#include "wire/thrift_table.h"
#include "wire/thrift_value.h"

static void encode_struct(struct buffer *out, const struct thrift_struct *structure,
                          const ProtobufCMessage *message);

static void
encode_head(struct buffer *out, enum thrift_type type, int16_t id)
{
    buffer_append_u8(out, (uint8_t)type);
    buffer_append_u16be(out, (uint16_t)id);
}

static void
encode_bytes(struct buffer *out, struct slice bytes)
{
    check_that(bytes.length <= INT32_MAX, "%zu bytes in one value", bytes.length);
    buffer_append_u32be(out, (uint32_t)bytes.length);
    buffer_append(out, bytes);
}

static void
encode_payload(struct buffer *out, const API(Payload) *payload)
{
    encode_bytes(out, payload == NULL ? (struct slice){0} : presence_read_bytes(payload->data));
}

static void
encode_count(struct buffer *out, size_t count)
{
    check_that(count <= INT32_MAX, "%zu elements in one value", count);
    buffer_append_u32be(out, (uint32_t)count);
}

/* A map in the order of its keys. */
static void
encode_map(struct buffer *out, const struct thrift_field *field, ProtobufCMessage *const *entries,
           size_t count)
{
    const ProtobufCFieldDescriptor *columns = field->entry->fields;
    buffer_append_u8(out, THRIFT_TYPE_BINARY);
    buffer_append_u8(out, THRIFT_TYPE_BINARY);
    encode_count(out, count);
    for (size_t i = 0; i < count; i++) {
        const char *entry = (const char *)entries[i];
        const void *value = *(void *const *)(entry + columns[1].offset);
        encode_bytes(out, slice_text(*(char *const *)(entry + columns[0].offset)));
        if (field->kind == THRIFT_TEXT_MAP)
            encode_bytes(out, slice_text(value));
        else
            encode_payload(out, value);
    }
}

static void
encode_texts(struct buffer *out, char *const *texts, size_t count)
{
    buffer_append_u8(out, THRIFT_TYPE_BINARY);
    encode_count(out, count);
    for (size_t i = 0; i < count; i++)
        encode_bytes(out, slice_text(texts[i]));
}

static void
encode_structs(struct buffer *out, const struct thrift_struct *structure,
               ProtobufCMessage *const *messages, size_t count)
{
    buffer_append_u8(out, THRIFT_TYPE_STRUCT);
    encode_count(out, count);
    for (size_t i = 0; i < count; i++)
        encode_struct(out, structure, messages[i]);
}

static void
encode_event_type(struct buffer *out, API(HistoryEvent__AttributesCase) arm)
{
    const struct thrift_event *event = thrift_event_of_arm(arm);
    check_that(event != NULL, "an event without attributes");
    buffer_append_u32be(out, (uint32_t)event->type);
}

static void
encode_value(struct buffer *out, const struct thrift_field *field, const union thrift_place place,
             size_t count)
{
    uint64_t bits;
    switch (field->kind) {
    case THRIFT_TEXT:
        return encode_bytes(out, slice_text(*place.text));
    case THRIFT_BYTES:
        return encode_bytes(out, presence_read_bytes(*place.bytes));
    case THRIFT_PAYLOAD:
        return encode_payload(out, *place.payload);
    case THRIFT_BOOL:
        return buffer_append_u8(out, *place.boolean != 0);
    case THRIFT_I32:
        return buffer_append_u32be(out, (uint32_t)*place.int32);
    case THRIFT_LONG_I32:
        return buffer_append_u64be(out, (uint64_t)(int64_t)*place.int32);
    case THRIFT_I64:
        return buffer_append_u64be(out, (uint64_t)*place.int64);
    case THRIFT_DOUBLE:
        memcpy(&bits, place.float64, sizeof bits);
        return buffer_append_u64be(out, bits);
    case THRIFT_ENUM:
        return buffer_append_u32be(out, (uint32_t)*place.int32 - 1);
    case THRIFT_SECONDS:
        return buffer_append_u32be(out, (uint32_t)thrift_seconds_of(field, *place.duration));
    case THRIFT_LONG_SECONDS:
        return buffer_append_u64be(out, (uint64_t)thrift_seconds_of(field, *place.duration));
    case THRIFT_TIME:
        return buffer_append_u64be(out, (uint64_t)presence_time(*place.timestamp));
    case THRIFT_EVENT_TYPE:
        return encode_event_type(out, *place.arm);
    case THRIFT_STRUCT:
        return encode_struct(out, field->structure(), *place.message);
    case THRIFT_STRUCT_LIST:
        return encode_structs(out, field->structure(), *place.messages, count);
    case THRIFT_TEXT_LIST:
        return encode_texts(out, *place.texts, count);
    case THRIFT_TEXT_MAP:
    case THRIFT_PAYLOAD_MAP:
        return encode_map(out, field, *place.messages, count);
    case THRIFT_KIND_COUNT:
        break;
    }
    unreachable("a field of kind %d", (int)field->kind);
}

static void
encode_fields(struct buffer *out, const struct thrift_struct *structure,
              const ProtobufCMessage *message)
{
    check(message->descriptor == structure->type);
    for (const struct thrift_field *field = structure->fields; field->id != 0; field++) {
        union thrift_place place;
        if (!thrift_place_of(field, message, &place))
            continue;
        size_t count = thrift_is_counted(field) ? *thrift_count_of(field, message) : 0;
        if (!thrift_value_is_set(field, place, count))
            continue;
        encode_head(out, thrift_kind_type(field->kind), field->id);
        encode_value(out, field, place, count);
    }
}

static void
encode_struct(struct buffer *out, const struct thrift_struct *structure,
              const ProtobufCMessage *message)
{
    encode_fields(out, structure, message);
    buffer_append_u8(out, THRIFT_STOP);
}

static void
encode_event(struct buffer *out, const API(HistoryEvent) *event)
{
    encode_fields(out, thrift_history_event(), &event->base);
    const struct thrift_event *kind = thrift_event_of_arm(event->attributes_case);
    encode_head(out, THRIFT_TYPE_STRUCT, kind->id);
    encode_struct(out, kind->attributes(), thrift_attributes_of(event));
    buffer_append_u8(out, THRIFT_STOP);
}

struct slice
thrift_encode_history(struct arena *arena, API(HistoryEvent) *const *events, size_t count)
{
    scoped(buffer_free) struct buffer out = {0};
    buffer_append_u8(&out, THRIFT_PREAMBLE);
    encode_head(&out, THRIFT_TYPE_LIST, THRIFT_HISTORY_ID);
    buffer_append_u8(&out, THRIFT_TYPE_STRUCT);
    encode_count(&out, count);
    for (size_t i = 0; i < count; i++)
        encode_event(&out, events[i]);
    buffer_append_u8(&out, THRIFT_STOP);
    return arena_slice(arena, buffer_slice(&out));
}
