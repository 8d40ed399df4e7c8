/* message.c - making messages and finding their fields; decode.c reads, encode.c writes. */
#include "wire/message.h"

#include <ctype.h>

#include "base/check.h"

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

bool
message_is_same_name(const char *one, const char *other)
{
    for (;; one++, other++) {
        one += strspn(one, "_");
        other += strspn(other, "_");
        if (toupper((unsigned char)*one) != toupper((unsigned char)*other))
            return false;
        if (*one == '\0')
            return true;
    }
}
