/* types.h - facts of the field types of protobuf, for code that walks messages by their
 * descriptors.
 *
 * Inside wire/ only. */
#ifndef CADENZA_WIRE_TYPES_H
#define CADENZA_WIRE_TYPES_H

#include <protobuf-c/protobuf-c.h>

#include "base/check.h"
#include "base/compiler.h"
#include "wire/reader.h"

/* What the compiler makes for a field in a struct, and in the array of a repeated one. */
static inline size_t
message_element_size(ProtobufCType type)
{
    static const uint8_t sizes[] = {
        [PROTOBUF_C_TYPE_INT32] = 4,
        [PROTOBUF_C_TYPE_SINT32] = 4,
        [PROTOBUF_C_TYPE_SFIXED32] = 4,
        [PROTOBUF_C_TYPE_INT64] = 8,
        [PROTOBUF_C_TYPE_SINT64] = 8,
        [PROTOBUF_C_TYPE_SFIXED64] = 8,
        [PROTOBUF_C_TYPE_UINT32] = 4,
        [PROTOBUF_C_TYPE_FIXED32] = 4,
        [PROTOBUF_C_TYPE_UINT64] = 8,
        [PROTOBUF_C_TYPE_FIXED64] = 8,
        [PROTOBUF_C_TYPE_FLOAT] = 4,
        [PROTOBUF_C_TYPE_DOUBLE] = 8,
        [PROTOBUF_C_TYPE_BOOL] = sizeof(protobuf_c_boolean),
        [PROTOBUF_C_TYPE_ENUM] = 4,
        [PROTOBUF_C_TYPE_STRING] = sizeof(char *),
        [PROTOBUF_C_TYPE_BYTES] = sizeof(ProtobufCBinaryData),
        [PROTOBUF_C_TYPE_MESSAGE] = sizeof(ProtobufCMessage *),
    };
    check(type < array_length(sizes));
    return sizes[type];
}

/* How a single value of the type travels. */
static inline enum wire_kind
message_wire_kind(ProtobufCType type)
{
    static const uint8_t kinds[] = {
        [PROTOBUF_C_TYPE_INT32] = WIRE_VARINT,     [PROTOBUF_C_TYPE_SINT32] = WIRE_VARINT,
        [PROTOBUF_C_TYPE_SFIXED32] = WIRE_FIXED32, [PROTOBUF_C_TYPE_INT64] = WIRE_VARINT,
        [PROTOBUF_C_TYPE_SINT64] = WIRE_VARINT,    [PROTOBUF_C_TYPE_SFIXED64] = WIRE_FIXED64,
        [PROTOBUF_C_TYPE_UINT32] = WIRE_VARINT,    [PROTOBUF_C_TYPE_FIXED32] = WIRE_FIXED32,
        [PROTOBUF_C_TYPE_UINT64] = WIRE_VARINT,    [PROTOBUF_C_TYPE_FIXED64] = WIRE_FIXED64,
        [PROTOBUF_C_TYPE_FLOAT] = WIRE_FIXED32,    [PROTOBUF_C_TYPE_DOUBLE] = WIRE_FIXED64,
        [PROTOBUF_C_TYPE_BOOL] = WIRE_VARINT,      [PROTOBUF_C_TYPE_ENUM] = WIRE_VARINT,
        [PROTOBUF_C_TYPE_STRING] = WIRE_BYTES,     [PROTOBUF_C_TYPE_BYTES] = WIRE_BYTES,
        [PROTOBUF_C_TYPE_MESSAGE] = WIRE_BYTES,
    };
    check(type < array_length(kinds));
    return kinds[type];
}

#endif
