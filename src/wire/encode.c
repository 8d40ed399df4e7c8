/* encode.c - writing messages in one pass, from their end.
 *
 * The length of a nested message stands before it. Writing forwards, one has to measure a message
 * first, and what is nested in it again at each level; writing backwards, one knows the length when
 * its turn comes. So the last field goes first, to the end of what is free in the arena, and what
 * is not needed of that stays free.
 *
 * Each function takes the place before which it writes and returns the place where what it wrote
 * begins: kept in a register, not in memory that each byte written could be. The bytes are those
 * that libprotobuf-c would write (encode_test, wire_fuzz). */
#include <endian.h>

#include "base/check.h"
#include "wire/message.h"
#include "wire/types.h"

#define ROOM_FIRST ((size_t)64)   /* a guess: usually there is much more at the end of the arena */
#define ROOM_AHEAD ((size_t)1024) /* for what stands before a payload: it is not moved for that */
#define HEADER_MAX ((size_t)16)   /* a tag and a number, which may be a length */

struct message_writer {
    struct arena *arena;
    struct arena_room room;
};

static uint8_t *put_fields(struct message_writer *writer, uint8_t *at,
                           const ProtobufCMessage *message);

/* ---- room ---- */

/* Moves what is written to the end of a room with `size` free bytes, and some for what follows. */
static uint8_t *
message_writer_grow(struct message_writer *writer, const uint8_t *at, size_t size)
{
    struct arena_room old = writer->room;
    check(at >= old.start && at <= old.end);
    size_t written = (size_t)(old.end - at);
    writer->room = arena_open_room(writer->arena, size + 2 * written + ROOM_AHEAD);
    uint8_t *moved = writer->room.end - written;
    memcpy(moved, at, written);
    arena_close_room(old, old.end);
    return moved;
}

static inline uint8_t *
make_room(struct message_writer *writer, uint8_t *at, size_t size)
{
    return at - writer->room.start >= (ptrdiff_t)size ? at : message_writer_grow(writer, at, size);
}

/* ---- numbers, where there is room ---- */

static uint8_t *
put_long_varint(uint8_t *at, uint64_t number)
{
    size_t bits = 64 - (size_t)__builtin_clzll(number);
    size_t last = bits * 9 / 64; /* of the bytes, with seven bits each */
    at -= last + 1;
    for (size_t i = 0; i < last; i++, number >>= 7)
        at[i] = (uint8_t)(number | 0x80);
    at[last] = (uint8_t)number;
    return at;
}

static inline uint8_t *
put_varint(uint8_t *at, uint64_t number)
{
    if (number >= 1 << 14)
        return put_long_varint(at, number);
    if (number >= 1 << 7) {
        *--at = (uint8_t)(number >> 7);
        number |= 0x80;
    }
    *--at = (uint8_t)number;
    return at;
}

static inline uint8_t *
put_tag(uint8_t *at, const ProtobufCFieldDescriptor *field, enum wire_kind kind)
{
    return put_varint(at, (uint64_t)field->id << 3 | kind);
}

static inline uint8_t *
put_word32(uint8_t *at, const void *place)
{
    uint32_t number = htole32(*(const uint32_t *)place);
    return memcpy(at - sizeof number, &number, sizeof number);
}

static inline uint8_t *
put_word64(uint8_t *at, const void *place)
{
    uint64_t number = htole64(*(const uint64_t *)place);
    return memcpy(at - sizeof number, &number, sizeof number);
}

/* The number that a varint of this type holds. */
static inline uint64_t
varint_at(ProtobufCType type, const void *place)
{
    int32_t number = *(const int32_t *)place;
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_ENUM:
        return (uint64_t)(int64_t)number;
    case PROTOBUF_C_TYPE_UINT32:
        return (uint32_t)number;
    case PROTOBUF_C_TYPE_SINT32:
        return (uint32_t)number << 1 ^ (uint32_t)(number >> 31);
    case PROTOBUF_C_TYPE_SINT64:
        return *(const uint64_t *)place << 1 ^ (uint64_t)(*(const int64_t *)place >> 63);
    case PROTOBUF_C_TYPE_BOOL:
        return *(const protobuf_c_boolean *)place != 0;
    default:
        return *(const uint64_t *)place;
    }
}

/* ---- values ---- */

/* A number without its tag. */
static inline uint8_t *
put_number(uint8_t *at, ProtobufCType type, enum wire_kind kind, const void *place)
{
    if (kind == WIRE_VARINT)
        return put_varint(at, varint_at(type, place));
    return kind == WIRE_FIXED32 ? put_word32(at, place) : put_word64(at, place);
}

/* Each type has a function that writes one value with its tag; there is room for HEADER_MAX bytes.
 * X(type, its name, how it travels). */
#define NUMBER_TYPES(X)                                                                            \
    X(INT32, int32, VARINT)                                                                        \
    X(SINT32, sint32, VARINT)                                                                      \
    X(SFIXED32, sfixed32, FIXED32)                                                                 \
    X(INT64, int64, VARINT)                                                                        \
    X(SINT64, sint64, VARINT)                                                                      \
    X(SFIXED64, sfixed64, FIXED64)                                                                 \
    X(UINT32, uint32, VARINT)                                                                      \
    X(FIXED32, fixed32, FIXED32)                                                                   \
    X(UINT64, uint64, VARINT)                                                                      \
    X(FIXED64, fixed64, FIXED64)                                                                   \
    X(FLOAT, float, FIXED32)                                                                       \
    X(DOUBLE, double, FIXED64)                                                                     \
    X(BOOL, bool, VARINT)                                                                          \
    X(ENUM, enum, VARINT)

#define X(TYPE, type, KIND)                                                                        \
    static uint8_t *put_##type(struct message_writer *writer, uint8_t *at,                         \
                               const ProtobufCFieldDescriptor *field, const void *place)           \
    {                                                                                              \
        at = put_number(at, PROTOBUF_C_TYPE_##TYPE, WIRE_##KIND, place);                           \
        return put_tag(at, field, WIRE_##KIND);                                                    \
    }
NUMBER_TYPES(X)
#undef X

static inline uint8_t *
put_slice(struct message_writer *writer, uint8_t *at, const ProtobufCFieldDescriptor *field,
          const void *bytes, size_t length)
{
    at = make_room(writer, at, length + HEADER_MAX) - length;
    if (length > 0)
        memcpy(at, bytes, length);
    return put_tag(put_varint(at, length), field, WIRE_BYTES);
}

static uint8_t *
put_bytes(struct message_writer *writer, uint8_t *at, const ProtobufCFieldDescriptor *field,
          const void *place)
{
    const ProtobufCBinaryData *bytes = place;
    return put_slice(writer, at, field, bytes->data, bytes->len);
}

static uint8_t *
put_text(struct message_writer *writer, uint8_t *at, const ProtobufCFieldDescriptor *field,
         const void *place)
{
    const char *text = *(const char *const *)place;
    return put_slice(writer, at, field, text, strlen(text));
}

/* Length and tag for what was written since `behind` bytes were. */
static inline uint8_t *
put_length(struct message_writer *writer, uint8_t *at, const ProtobufCFieldDescriptor *field,
           size_t behind)
{
    size_t length = (size_t)(writer->room.end - at) - behind;
    at = make_room(writer, at, HEADER_MAX);
    return put_tag(put_varint(at, length), field, WIRE_BYTES);
}

static uint8_t *
put_message(struct message_writer *writer, uint8_t *at, const ProtobufCFieldDescriptor *field,
            const void *place)
{
    const ProtobufCMessage *message = *(const ProtobufCMessage *const *)place;
    size_t behind = (size_t)(writer->room.end - at);
    at = put_fields(writer, at, message);
    return put_length(writer, at, field, behind);
}

typedef uint8_t *put_function(struct message_writer *writer, uint8_t *at,
                              const ProtobufCFieldDescriptor *field, const void *place);

/* One value with its tag. */
static inline uint8_t *
put_value(struct message_writer *writer, uint8_t *at, const ProtobufCFieldDescriptor *field,
          const void *place)
{
    static put_function *const functions[] = {[PROTOBUF_C_TYPE_STRING] = put_text,
                                              [PROTOBUF_C_TYPE_BYTES] = put_bytes,
                                              [PROTOBUF_C_TYPE_MESSAGE] = put_message,
#define X(TYPE, type, KIND) [PROTOBUF_C_TYPE_##TYPE] = put_##type,
                                              NUMBER_TYPES(X)
#undef X
    };
    check(field->type < array_length(functions));
    return functions[field->type](writer, make_room(writer, at, HEADER_MAX), field, place);
}

static uint8_t *
put_packed(struct message_writer *writer, uint8_t *at, const ProtobufCFieldDescriptor *field,
           size_t count, const char *items)
{
    size_t size = message_element_size(field->type);
    enum wire_kind kind = message_wire_kind(field->type);
    size_t behind = (size_t)(writer->room.end - at);
    for (size_t i = count; i > 0; i--) {
        at = make_room(writer, at, HEADER_MAX);
        at = put_number(at, field->type, kind, items + (i - 1) * size);
    }
    return put_length(writer, at, field, behind);
}

/* ---- fields ---- */

static uint8_t *
put_repeated(struct message_writer *writer, uint8_t *at, const ProtobufCFieldDescriptor *field,
             size_t count, const char *items)
{
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_PACKED) != 0)
        return put_packed(writer, at, field, count, items);
    size_t size = message_element_size(field->type);
    for (size_t i = count; i > 0; i--)
        at = put_value(writer, at, field, items + (i - 1) * size);
    return at;
}

/* A string or message that is the arm and was not given is not written. */
static bool
arm_is_given(const ProtobufCFieldDescriptor *field, const void *place)
{
    if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE)
        return true;
    const void *pointer = *(const void *const *)place;
    return pointer != NULL && pointer != field->default_value;
}

/* Types that have eight bytes of 0 where nothing is set, or the length in them; the others have
 * four. A string that was not set may also be an empty one. */
#define WIDE_TYPES                                                                                 \
    (1u << PROTOBUF_C_TYPE_INT64 | 1u << PROTOBUF_C_TYPE_SINT64 | 1u << PROTOBUF_C_TYPE_SFIXED64 | \
     1u << PROTOBUF_C_TYPE_UINT64 | 1u << PROTOBUF_C_TYPE_FIXED64 | 1u << PROTOBUF_C_TYPE_DOUBLE | \
     1u << PROTOBUF_C_TYPE_STRING | 1u << PROTOBUF_C_TYPE_BYTES | 1u << PROTOBUF_C_TYPE_MESSAGE)

/* Is there something else than what a new message has? Most fields are not set: those first. */
static inline bool
value_is_set(ProtobufCType type, const void *place)
{
    bool is_wide = (WIDE_TYPES >> type & 1) != 0;
    if (is_wide ? *(const uint64_t *)place == 0 : *(const uint32_t *)place == 0)
        return false;
    if (type == PROTOBUF_C_TYPE_STRING)
        return **(const char *const *)place != '\0';
    if (type == PROTOBUF_C_TYPE_DOUBLE)
        return *(const double *)place != 0;
    return type != PROTOBUF_C_TYPE_FLOAT || *(const float *)place != 0;
}

static uint8_t *
put_fields(struct message_writer *writer, uint8_t *at, const ProtobufCMessage *message)
{
    const char *start = (const char *)message;
    const ProtobufCFieldDescriptor *fields = message->descriptor->fields;
    for (size_t i = message->descriptor->n_fields; i > 0; i--) {
        const ProtobufCFieldDescriptor *field = &fields[i - 1];
        const char *place = start + field->offset;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t count = *(const size_t *)(start + field->quantifier_offset);
            if (count > 0)
                at = put_repeated(writer, at, field, count, *(const char *const *)place);
        } else if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
            uint32_t arm = *(const uint32_t *)(start + field->quantifier_offset);
            if (arm == field->id && arm_is_given(field, place))
                at = put_value(writer, at, field, place);
        } else if (value_is_set(field->type, place)) {
            at = put_value(writer, at, field, place);
        }
    }
    return at;
}

struct slice
message_encode(struct arena *arena, const ProtobufCMessage *message)
{
    struct message_writer writer = {.arena = arena, .room = arena_open_room(arena, ROOM_FIRST)};
    uint8_t *at = put_fields(&writer, writer.room.end, message);
    size_t length = (size_t)(writer.room.end - at);
    arena_close_room(writer.room, at);
    return length == 0 ? (struct slice){0} : slice_of(at, length);
}
