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

void *
message_new_like(struct arena *arena, const ProtobufCMessageDescriptor *type, const void *fields)
{
    char *message = message_new(arena, type);
    memcpy(message + sizeof(ProtobufCMessage), (const char *)fields + sizeof(ProtobufCMessage),
           type->sizeof_message - sizeof(ProtobufCMessage));
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        bool is_text = field->type == PROTOBUF_C_TYPE_STRING &&
                       field->label != PROTOBUF_C_LABEL_REPEATED &&
                       (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0;
        const char **text = (const char **)(message + field->offset);
        if (is_text && *text == NULL)
            *text = field->default_value;
    }
    return message;
}

void *
message_new_around(struct arena *arena, const ProtobufCMessageDescriptor *type,
                   const ProtobufCMessage *arm)
{
    char *message = message_new(arena, type);
    unsigned i = 0;
    while (i < type->n_fields && type->fields[i].descriptor != arm->descriptor)
        i++;
    check(i < type->n_fields && (type->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0);
    memcpy(message + type->fields[i].offset, &arm, sizeof arm);
    *(uint32_t *)(message + type->fields[i].quantifier_offset) = type->fields[i].id;
    return message;
}
