/* runs_dead_letter.c - stores messages that cannot be applied; which workflow a message is about.
 */
#include "base/check.h"
#include "replication/in/runs_apply.h"
#include "route/route.h"
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

/* On the loop of the shard. */
struct dead_letter_call {
    const struct dead_lettered_task *dead_lettered;
    struct shard *shard;
    struct arena *arena;
    struct error *err;
};

static void
dead_letter_on_loop(void *argument)
{
    struct dead_letter_call *dead_letter_call = argument;
    const struct dead_lettered_task *dead_lettered = dead_letter_call->dead_lettered;
    STORED(DeadLetterRow) *letter =
        message_new(dead_letter_call->arena, STORED_TYPE(dead_letter_row));
    letter->task =
        presence_make_bytes(message_encode(dead_letter_call->arena, &dead_lettered->task->base));
    letter->cause = (char *)dead_lettered->cause->message;
    letter->source_shard = dead_lettered->source_shard + 1;
    dead_letter_call->err = shard_put_dead_letter(dead_letter_call->shard, dead_lettered->source,
                                                  (uint64_t)dead_lettered->task->source_task_id,
                                                  letter, dead_letter_call->arena);
}

struct error *
dead_letter_task(const struct apply_world *world, const struct dead_lettered_task *dead_lettered,
                 struct arena *arena)
{
    /* A marker is tried until it is not awaited any more; what is about nothing needs no place. */
    check(task_domain(dead_lettered->task) != NULL);
    check(dead_lettered->task->attributes_case !=
          ADMIN_VALUE(REPLICATION_TASK__ATTRIBUTES_FAILOVER_MARKER_ATTRIBUTES));
    uint32_t shard = engine_shard_of(world->engine, task_workflow_id(dead_lettered->task));
    struct dead_letter_call dead_letter_call = {.dead_lettered = dead_lettered,
                                                .shard = engine_shard(world->engine, shard),
                                                .arena = arena};
    struct error *err = route_to_shard(shard, dead_letter_on_loop, &dead_letter_call, arena);
    return err != NULL ? err : dead_letter_call.err;
}
