/* runs_park.c - messages that cannot be applied: who they are about, and where they are kept. */
#include "replication/runs_apply.h"
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
struct parking {
    const struct parked_task *parked;
    struct shard *shard;
    struct arena *arena;
    struct error *err;
};

static void
park_on_loop(void *argument)
{
    struct parking *parking = argument;
    const struct parked_task *parked = parking->parked;
    STORED(DeadLetterRow) *letter = message_new(parking->arena, STORED_TYPE(dead_letter_row));
    letter->task = presence_make_bytes(message_encode(parking->arena, &parked->task->base));
    letter->cause = (char *)parked->cause->message;
    letter->source_shard = parked->source_shard + 1;
    parking->err = shard_park(parking->shard, parked->source,
                              (uint64_t)parked->task->source_task_id, letter, parking->arena);
}

struct error *
park_task(const struct apply_world *world, const struct parked_task *parked, struct arena *arena)
{
    uint32_t shard = engine_shard_of(world->engine, task_workflow_id(parked->task));
    struct parking parking = {
        .parked = parked, .shard = engine_shard(world->engine, shard), .arena = arena};
    struct error *err = route_to_shard(shard, park_on_loop, &parking, arena);
    return err != NULL ? err : parking.err;
}
