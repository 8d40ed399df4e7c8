/* runs_dead_letter.c - stores messages that cannot be applied; which workflow a message is about.
 */
#include "base/check.h"
#include "replication/in/runs_apply.h"
#include "wire/message.h"
#include "wire/presence.h"

const char *
task_domain(const ADMIN(ReplicationTask) *task)
{
    switch (task->attributes_case) {
    case ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_HISTORY_TASK_V2_ATTRIBUTES):
        return task->history_task_v2_attributes->domain_id;
    case ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_SYNC_ACTIVITY_TASK_ATTRIBUTES):
        return task->sync_activity_task_attributes->domain_id;
    case ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_FAILOVER_MARKER_ATTRIBUTES):
        return task->failover_marker_attributes->domain_id;
    default:
        return NULL;
    }
}

const char *
task_workflow_id(const ADMIN(ReplicationTask) *task)
{
    const API(WorkflowExecution) *execution = NULL;
    if (task->attributes_case ==
        ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_HISTORY_TASK_V2_ATTRIBUTES))
        execution = task->history_task_v2_attributes->workflow_execution;
    else if (task->attributes_case ==
             ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_SYNC_ACTIVITY_TASK_ATTRIBUTES))
        execution = task->sync_activity_task_attributes->workflow_execution;
    return execution == NULL ? "" : execution->workflow_id;
}

struct error *
dead_letter_task(const struct apply_world *world, const struct dead_lettered_task *dead_lettered,
                 struct arena *arena)
{
    /* A marker is tried until it is not awaited any more; what is about nothing needs no place. */
    check(task_domain(dead_lettered->task) != NULL);
    check(dead_lettered->task->attributes_case !=
          ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_FAILOVER_MARKER_ATTRIBUTES));
    STORED(DeadLetterRow) *letter = message_new(arena, STORED_TYPE(dead_letter_row));
    letter->task = presence_make_bytes(message_encode(arena, &dead_lettered->task->base));
    letter->cause = (char *)dead_lettered->cause->message;
    letter->source_shard = dead_lettered->source_shard + 1;
    return engine_put_dead_letter(
        world->engine, engine_shard_of(world->engine, task_workflow_id(dead_lettered->task)),
        dead_lettered->source, (uint64_t)dead_lettered->task->source_task_id, letter, arena);
}
