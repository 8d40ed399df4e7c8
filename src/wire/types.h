/* types.h - facts of the field types of protobuf, for who walks messages by their descriptors.
 *
 * Inside wire/ only. */
#ifndef CADENZA_WIRE_TYPES_H
#define CADENZA_WIRE_TYPES_H

#include <protobuf-c/protobuf-c.h>

#include "wire/reader.h"

/* What the compiler makes for a field in a struct, and in the array of a repeated one. */
size_t message_element_size(ProtobufCType type);
/* How a single value of the type travels. */
enum wire_kind message_wire_kind(ProtobufCType type);

#endif
