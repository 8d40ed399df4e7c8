/* copy.c - deep copies of messages, guided by their descriptors. */
#include <string.h>

#include "base/check.h"
#include "wire/message.h"
#include "wire/presence.h"
#include "wire/types.h"

/* Makes what the value at `place` points to the arena's own. */
static void
value_own(struct arena *arena, ProtobufCType type, void *place)
{
    if (type == PROTOBUF_C_TYPE_STRING) {
        char **text = place;
        bool is_empty = *text == NULL || (*text)[0] == '\0';
        *text = is_empty ? presence_make_text(NULL) : arena_text(arena, *text);
    } else if (type == PROTOBUF_C_TYPE_BYTES) {
        ProtobufCBinaryData *bytes = place;
        struct slice copy = presence_read_bytes(*bytes);
        *bytes =
            presence_make_bytes(copy.length == 0 ? (struct slice){0} : arena_slice(arena, copy));
    } else if (type == PROTOBUF_C_TYPE_MESSAGE) {
        ProtobufCMessage **message = place;
        *message = message_copy(arena, *message);
    }
}

static void
repeated_own(struct arena *arena, const ProtobufCFieldDescriptor *field, size_t count, void *place)
{
    char **array = place;
    if (count == 0) {
        *array = NULL;
        return;
    }
    size_t size = message_element_size(field->type);
    char *copy = arena_zalloc(arena, count, size);
    memcpy(copy, *array, count * size);
    *array = copy;
    for (size_t i = 0; i < count; i++)
        value_own(arena, field->type, copy + i * size);
}

static void
field_own(struct arena *arena, const ProtobufCFieldDescriptor *field, char *copy)
{
    void *place = copy + field->offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t count;
        memcpy(&count, copy + field->quantifier_offset, sizeof count);
        repeated_own(arena, field, count, place);
        return;
    }
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        uint32_t arm;
        memcpy(&arm, copy + field->quantifier_offset, sizeof arm);
        if (arm != field->id)
            return;
    }
    value_own(arena, field->type, place);
}

void *
message_copy(struct arena *arena, const ProtobufCMessage *message)
{
    if (message == NULL)
        return NULL;
    const ProtobufCMessageDescriptor *type = message->descriptor;
    check(type->sizeof_message >= sizeof *message);
    check(message->n_unknown_fields == 0);
    char *copy = arena_alloc(arena, type->sizeof_message);
    memcpy(copy, message, type->sizeof_message);
    for (unsigned i = 0; i < type->n_fields; i++)
        field_own(arena, &type->fields[i], copy);
    return copy;
}
