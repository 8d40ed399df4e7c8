/* message_json.c - see message_json.h. One walk over the descriptors serves every message. */
#include "wire/message_json.h"

#include "base/text.h"

void
message_json_append_text(struct buffer *out, struct slice text)
{
    buffer_append_u8(out, '"');
    for (size_t i = 0; i < text.length; i++) {
        uint8_t letter = text.data[i];
        if (letter == '"' || letter == '\\')
            buffer_append_format(out, "\\%c", letter);
        else if (letter < 0x20)
            buffer_append_format(out, "\\u%04x", letter);
        else
            buffer_append_u8(out, letter);
    }
    buffer_append_u8(out, '"');
}

static void
append_bytes(struct buffer *out, const ProtobufCBinaryData *bytes)
{
    struct arena *arena = arena_new(0);
    message_json_append_text(
        out, text_base64_encode(arena, slice_of(bytes->data, bytes->len), TEXT_BASE64_STANDARD));
    arena_free(arena);
}

static void
append_enum(struct buffer *out, const ProtobufCEnumDescriptor *type, int value)
{
    const ProtobufCEnumValue *known = protobuf_c_enum_descriptor_get_value(type, value);
    if (known != NULL)
        message_json_append_text(out, slice_text(known->name));
    else
        buffer_append_format(out, "%d", value);
}

static void
append_value(struct buffer *out, const ProtobufCFieldDescriptor *field, const void *place)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        message_json_append_text(out, slice_text(*(const char *const *)place));
        break;
    case PROTOBUF_C_TYPE_BYTES:
        append_bytes(out, place);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        message_json_append(out, *(const ProtobufCMessage *const *)place);
        break;
    case PROTOBUF_C_TYPE_ENUM:
        append_enum(out, field->descriptor, *(const int *)place);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        buffer_append_text(out, *(const protobuf_c_boolean *)place ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        buffer_append_format(out, "%.17g", *(const double *)place);
        break;
    case PROTOBUF_C_TYPE_UINT32:
        buffer_append_format(out, "%u", *(const uint32_t *)place);
        break;
    case PROTOBUF_C_TYPE_INT32:
        buffer_append_format(out, "%d", *(const int32_t *)place);
        break;
    case PROTOBUF_C_TYPE_UINT64:
        buffer_append_format(out, "%llu", (unsigned long long)*(const uint64_t *)place);
        break;
    case PROTOBUF_C_TYPE_INT64:
        buffer_append_format(out, "%lld", (long long)*(const int64_t *)place);
        break;
    default: /* kinds of numbers that our protos do not use */
        buffer_append_text(out, "null");
        break;
    }
}

static size_t
size_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_UINT32:
        return sizeof(int32_t);
    default:
        return sizeof(int64_t);
    }
}

static bool
is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const char *bytes = (const char *)message, *place = bytes + field->offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return *(const size_t *)(bytes + field->quantifier_offset) > 0;
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0)
        return *(const uint32_t *)(bytes + field->quantifier_offset) == field->id;
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return *(const char *const *)place != NULL && **(const char *const *)place != '\0';
    case PROTOBUF_C_TYPE_MESSAGE:
        return *(void *const *)place != NULL;
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)place)->len > 0;
    case PROTOBUF_C_TYPE_DOUBLE:
        return *(const double *)place != 0;
    default: {
        static const char nothing[sizeof(int64_t)];
        return memcmp(place, nothing, size_of(field->type)) != 0;
    }
    }
}

static void
append_field(struct buffer *out, const ProtobufCMessage *message,
             const ProtobufCFieldDescriptor *field)
{
    const char *bytes = (const char *)message, *place = bytes + field->offset;
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        append_value(out, field, place);
        return;
    }
    size_t count = *(const size_t *)(bytes + field->quantifier_offset);
    const char *elements = *(const char *const *)place;
    for (size_t i = 0; i < count; i++) {
        buffer_append_u8(out, i == 0 ? '[' : ',');
        append_value(out, field, elements + i * size_of(field->type));
    }
    buffer_append_u8(out, ']');
}

void
message_json_append(struct buffer *out, const ProtobufCMessage *message)
{
    char gap = '{';
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (!is_set(message, field))
            continue;
        buffer_append_format(out, "%c\"%s\":", gap, field->name);
        append_field(out, message, field);
        gap = ',';
    }
    buffer_append_text(out, gap == '{' ? "{}" : "}");
}
