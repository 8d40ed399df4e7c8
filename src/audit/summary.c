/* summary.c - see summary.h. */
#include "audit/summary.h"

#include <stdio.h>

#include "base/buffer.h"

#define BYTES_MAX 2000
#define DEPTH_MAX 4

static void add_message(struct buffer *buffer, const ProtobufCMessage *message, unsigned depth);

static void
add_text(struct buffer *buffer, const char *text)
{
    buffer_append(buffer, slice_text(text));
}

static void
add_number(struct buffer *buffer, long long number)
{
    char room[32];
    snprintf(room, sizeof room, "%lld", number);
    add_text(buffer, room);
}

static void
add_enum(struct buffer *buffer, const ProtobufCEnumDescriptor *type, int value)
{
    const ProtobufCEnumValue *known = protobuf_c_enum_descriptor_get_value(type, value);
    if (known != NULL)
        add_text(buffer, known->name);
    else
        add_number(buffer, value);
}

static bool
is_secret(const ProtobufCFieldDescriptor *field)
{
    return strstr(field->name, "token") != NULL || field->type == PROTOBUF_C_TYPE_BYTES;
}

/* Of one element. False: it is as if it were not set. */
static bool
add_value(struct buffer *buffer, const ProtobufCFieldDescriptor *field, const void *value,
          unsigned depth)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        add_text(buffer, *(const char *const *)value);
        return true;
    case PROTOBUF_C_TYPE_BOOL:
        add_text(buffer, *(const protobuf_c_boolean *)value ? "true" : "false");
        return true;
    case PROTOBUF_C_TYPE_ENUM:
        add_enum(buffer, field->descriptor, *(const int *)value);
        return true;
    case PROTOBUF_C_TYPE_INT32:
        add_number(buffer, *(const int32_t *)value);
        return true;
    case PROTOBUF_C_TYPE_INT64:
        add_number(buffer, *(const int64_t *)value);
        return true;
    case PROTOBUF_C_TYPE_MESSAGE:
        add_text(buffer, "{");
        if (depth < DEPTH_MAX)
            add_message(buffer, *(const ProtobufCMessage *const *)value, depth + 1);
        add_text(buffer, "}");
        return true;
    default:
        add_text(buffer, "?");
        return false;
    }
}

static bool
is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const char *bytes = (const char *)message, *value = bytes + field->offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return *(const size_t *)(bytes + field->quantifier_offset) > 0;
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
        *(const uint32_t *)(bytes + field->quantifier_offset) != field->id)
        return false;
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return *(const char *const *)value != NULL && **(const char *const *)value != '\0';
    case PROTOBUF_C_TYPE_MESSAGE:
        return *(void *const *)value != NULL;
    case PROTOBUF_C_TYPE_INT64:
        return *(const int64_t *)value != 0;
    default:
        return *(const int32_t *)value != 0;
    }
}

static size_t
element_size(const ProtobufCFieldDescriptor *field)
{
    bool is_wide = field->type == PROTOBUF_C_TYPE_STRING ||
                   field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_INT64;
    return is_wide ? sizeof(void *) : sizeof(int32_t);
}

static void
add_field(struct buffer *buffer, const ProtobufCMessage *message,
          const ProtobufCFieldDescriptor *field, unsigned depth)
{
    const char *bytes = (const char *)message, *value = bytes + field->offset;
    add_text(buffer, field->name);
    add_text(buffer, "=");
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        add_value(buffer, field, value, depth);
        return;
    }
    size_t count = *(const size_t *)(bytes + field->quantifier_offset);
    const char *elements = *(const char *const *)value;
    for (size_t i = 0; i < count && buffer_slice(buffer).length < BYTES_MAX; i++) {
        add_text(buffer, i == 0 ? "[" : " ");
        if (!add_value(buffer, field, elements + i * element_size(field), depth))
            break;
    }
    add_text(buffer, "]");
}

static void
add_message(struct buffer *buffer, const ProtobufCMessage *message, unsigned depth)
{
    const char *gap = "";
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (is_secret(field) || !is_set(message, field))
            continue;
        if (buffer_slice(buffer).length > BYTES_MAX) {
            add_text(buffer, " ...");
            return;
        }
        add_text(buffer, gap);
        add_field(buffer, message, field, depth);
        gap = " ";
    }
}

const char *
summary_of(const ProtobufCMessage *message, struct arena *arena)
{
    struct buffer buffer = {0};
    if (message != NULL)
        add_message(&buffer, message, 0);
    const char *text = arena_text_of(arena, buffer_slice(&buffer));
    buffer_free(&buffer);
    return text;
}
