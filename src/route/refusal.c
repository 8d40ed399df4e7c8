/* refusal.c - see refusal.h. */
#include "route/refusal.h"

#include <string.h>

INTERNAL(Error)
refusal_to_message(const struct error *err)
{
    INTERNAL(Error) message = INTERNAL_VALUE(ERROR__INIT);
    message.kind = (char *)error_kind_name(err->kind);
    message.message =
        (ProtobufCBinaryData){strlen(err->message), (uint8_t *)(uintptr_t)err->message};
    message.detail =
        (ProtobufCBinaryData){err->detail.length, (uint8_t *)(uintptr_t)err->detail.data};
    return message;
}

static enum error_kind
kind_of_name(const char *name)
{
    for (int kind = 0; kind < ERROR_KIND_COUNT; kind++) {
        if (strcmp(error_kind_name((enum error_kind)kind), name) == 0)
            return (enum error_kind)kind;
    }
    return ERR_INTERNAL; /* of a later version */
}

struct error *
refusal_from_message(const INTERNAL(Error) * message, struct arena *arena)
{
    struct error *err = error_new(arena, kind_of_name(message->kind), "%.*s",
                                  (int)message->message.len, (const char *)message->message.data);
    err->detail = arena_slice(arena, slice_of(message->detail.data, message->detail.len));
    return err;
}
