/* message.c - parts of the messages to and from lists (cadenza/internal/v1/list.proto). See
 * values.h.
 */
#include "matching/inside.h"

ProtobufCBinaryData
slice_to_message(struct slice bytes)
{
    return (ProtobufCBinaryData){bytes.length, (uint8_t *)(uintptr_t)bytes.data};
}

struct task *
task_copy_message(const INTERNAL(Task) * message, struct arena *arena)
{
    struct task task = task_from_message(message);
    return task_copy(&task, arena);
}

void
list_id_to_message(const struct list_id *list_id, INTERNAL(ListId) * message)
{
    *message = (INTERNAL(ListId))INTERNAL_VALUE(LIST_ID__INIT);
    message->domain_id = (char *)list_id->domain_id;
    message->type = list_id->type;
    message->name = (char *)list_id->name;
    message->partition = list_id->partition;
}

struct list_id
list_id_from_message(const INTERNAL(ListId) * message)
{
    return (struct list_id){.domain_id = message->domain_id,
                            .type = message->type == TASK_DECISION ? TASK_DECISION : TASK_ACTIVITY,
                            .name = message->name,
                            .partition = message->partition};
}

/* --- what is to be known of a start that a reservation brought ---- */

ProtobufCBinaryData
start_to_message(const struct matching *matching, const struct task *task, void *start,
                 struct slice start_bytes, struct arena *arena)
{
    const struct matching_options *options = &matching->options;
    struct slice bytes = start_bytes;
#ifdef CADENZA_FAULT_pointer_in_message
    return slice_to_message(arena_slice(arena, slice_of(&start, sizeof start)));
#endif
    if (start != NULL && options->start_encode != NULL)
        bytes = options->start_encode(options->context, task->type, start, arena);
    return slice_to_message(bytes);
}

void *
start_from_message(const struct matching *matching, const struct task *task, struct slice bytes,
                   struct arena *arena)
{
    const struct matching_options *options = &matching->options;
    if (bytes.length == 0 || options->start_decode == NULL)
        return NULL;
#ifdef CADENZA_FAULT_pointer_in_message
    return *(void *const *)bytes.data;
#endif
    return options->start_decode(options->context, task->type, bytes, arena);
}
