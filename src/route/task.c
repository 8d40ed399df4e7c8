/* task.c - see task.h. */
#include "route/task.h"

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
