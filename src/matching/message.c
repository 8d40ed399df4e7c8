/* message.c - tasks and names of lists as messages (cadenza/internal/v1/list.proto). See values.h.
 *
 * A message that is to be written points to the texts of what it says, and a task that was read has
 * its own: between hosts nothing else is shared. */
#include "matching/inside.h"

ProtobufCBinaryData
slice_to_message(struct slice bytes)
{
    return (ProtobufCBinaryData){bytes.length, (uint8_t *)(uintptr_t)bytes.data};
}

void
task_to_message(const struct task *task, INTERNAL(ListTask) * message)
{
    *message = (INTERNAL(ListTask))INTERNAL_VALUE(LIST_TASK__INIT);
    message->type = task->type;
    message->kind = task->kind;
    message->domain_id = (char *)task->domain_id;
    message->list = (char *)task->list;
    message->normal_list = (char *)task->normal_list;
    message->run_domain_id = (char *)task->run_domain_id;
    message->workflow_id = (char *)task->workflow_id;
    message->run_id = (char *)task->run_id;
    message->schedule_id = task->schedule_id;
    message->attempt = task->attempt;
    message->created_time = task->created_time;
    message->expiry_time = task->expiry_time;
    message->shard = task->shard;
    message->range_id = task->range_id;
    message->row = task->row;
    message->isolation_group = (char *)(task->isolation_group == NULL ? "" : task->isolation_group);
    message->number = task->number;
    message->partition = task->partition;
    message->query_id = task_is_query(task) ? (char *)task->query_id : "";
    message->query = slice_to_message(task->query);
}

struct task
task_from_message(const INTERNAL(ListTask) * message)
{
    bool is_query = message->query_id[0] != '\0';
    return (struct task){
        .type = message->type == TASK_DECISION ? TASK_DECISION : TASK_ACTIVITY,
        .kind = (enum list_kind)message->kind,
        .domain_id = message->domain_id,
        .list = message->list,
        .normal_list = message->normal_list,
        .run_domain_id = message->run_domain_id,
        .workflow_id = message->workflow_id,
        .run_id = message->run_id,
        .schedule_id = message->schedule_id,
        .attempt = message->attempt,
        .created_time = message->created_time,
        .expiry_time = message->expiry_time,
        .shard = message->shard,
        .range_id = message->range_id,
        .row = message->row,
        .isolation_group = message->isolation_group,
        .number = message->number,
        .partition = message->partition,
        .query_id = is_query ? message->query_id : NULL,
        .query = slice_of(message->query.data, message->query.len),
    };
}

struct task *
task_copy_message(const INTERNAL(ListTask) * message, struct arena *arena)
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
                 struct arena *arena)
{
    const struct matching_options *options = &matching->options;
    struct slice bytes = {0};
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
    return options->start_decode(options->context, task->type, bytes, arena);
}
