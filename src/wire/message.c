/* message.c - making, finding and writing; decode.c reads.
 *
 * Writing is left to libprotobuf-c: what it writes of a message that we made is right. */
#include "wire/message.h"

#include "base/check.h"
#include "wire/types.h"

const ProtobufCFieldDescriptor *
message_find_field(const ProtobufCMessageDescriptor *type, uint32_t number)
{
    if (number - 1 < type->n_fields && type->fields[number - 1].id == number)
        return &type->fields[number -
                             1]; /* most messages number their fields from 1 without gaps */
    unsigned low = 0, high = type->n_fields;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (type->fields[middle].id == number)
            return &type->fields[middle];
        if (type->fields[middle].id < number)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

void *
message_new(struct arena *arena, const ProtobufCMessageDescriptor *type)
{
    check(type->magic == PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC && type->message_init != NULL);
    ProtobufCMessage *message = arena_alloc(arena, type->sizeof_message);
    type->message_init(message);
    return message;
}

struct slice
message_encode(struct arena *arena, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    if (size == 0)
        return (struct slice){0};
    uint8_t *bytes = arena_alloc(arena, size);
    size_t written = protobuf_c_message_pack(message, bytes);
    check_that(written == size, "%s: %zu bytes foreseen, %zu written", message->descriptor->name,
               size, written);
    return slice_of(bytes, size);
}

size_t
message_element_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_ENUM:
        return 4;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
        return sizeof(char *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(ProtobufCMessage *);
    }
    unreachable("field type %d", (int)type);
}

enum wire_kind
message_wire_kind(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return WIRE_FIXED32;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return WIRE_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    default:
        return WIRE_VARINT;
    }
}
