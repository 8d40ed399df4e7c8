/* task.c - see task.h. */
#include "route/task.h"

#include "wire/presence.h"

struct task *
task_copy(const struct task *task, struct arena *arena)
{
    struct task *copy = arena_make(arena, struct task);
    *copy = *task;
    copy->domain_id = arena_text(arena, task->domain_id);
    copy->list = arena_text(arena, task->list);
    copy->normal_list = arena_text(arena, task->normal_list);
    copy->run_domain_id = arena_text(arena, task->run_domain_id);
    copy->workflow_id = arena_text(arena, task->workflow_id);
    copy->run_id = arena_text(arena, task->run_id);
    const char *group = task->isolation_group;
    copy->isolation_group = group == NULL ? "" : arena_text(arena, group);
    if (task_is_query(task)) {
        copy->query_id = arena_text(arena, task->query_id);
        copy->query = arena_slice(arena, task->query);
    }
    return copy;
}

INTERNAL(Task)
task_to_message(const struct task *task)
{
    INTERNAL(Task) message = INTERNAL_VALUE(TASK__INIT);
    message.type = (uint32_t)task->type;
    message.kind = (uint32_t)task->kind;
    message.domain_id = presence_make_text(task->domain_id);
    message.list = presence_make_text(task->list);
    message.normal_list = presence_make_text(task->normal_list);
    message.run_domain_id = presence_make_text(task->run_domain_id);
    message.workflow_id = presence_make_text(task->workflow_id);
    message.run_id = presence_make_text(task->run_id);
    message.schedule_id = task->schedule_id;
    message.attempt = task->attempt;
    message.created_time = task->created_time;
    message.expiry_time = task->expiry_time;
    message.shard = task->shard;
    message.range_id = task->range_id;
    message.row = task->row;
    message.isolation_group = presence_make_text(task->isolation_group);
    message.number = task->number;
    message.partition = task->partition;
    message.is_query = task_is_query(task);
    message.query_id = presence_make_text(task->query_id);
    message.query = presence_make_bytes(task->query);
    return message;
}

struct task
task_from_message(const INTERNAL(Task) * message)
{
    return (struct task){
        .type = (enum task_type)message->type,
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
        .query_id = message->is_query ? message->query_id : NULL,
        .query = presence_read_bytes(message->query),
    };
}
