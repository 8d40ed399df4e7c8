/* keep.c - deep copies that live as long as their run. */
#include "engine/run/inside.h"

void *
run_keep_message(struct run *run, const ProtobufCMessage *message)
{
    return message_copy(run->arena, message);
}

char *
run_keep_text(struct run *run, const char *text)
{
    bool is_empty = text == NULL || text[0] == '\0';
    return is_empty ? presence_make_text(NULL) : arena_text(run->arena, text);
}

struct slice
run_keep_bytes(struct run *run, struct slice bytes)
{
    return bytes.length == 0 ? (struct slice){0} : arena_slice(run->arena, bytes);
}
