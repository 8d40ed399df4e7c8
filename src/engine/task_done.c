/* task_done.c - a row of the outbox is not needed any more: told to its shard. See task_done.h. */
#include "engine/task_done.h"

#include "base/check.h"
#include "base/memory.h"
#include "engine/inside.h"
#include "wire/message.h"

struct task_done_value *
task_done_new(uint32_t shard, uint64_t range_id, uint64_t row)
{
    struct task_done_value *done = memory_zalloc(1, sizeof *done);
    done->shard = shard;
    done->range_id = range_id;
    done->row = row;
    return done;
}

static struct slice
task_done_encode(const struct route_value *value, struct arena *arena)
{
    const struct task_done_value *done = container_of(value, struct task_done_value, value);
    INTERNAL(TaskDone) message = INTERNAL_VALUE(TASK_DONE__INIT);
    message.shard = done->shard;
    message.range_id = done->range_id;
    message.row = done->row;
    return message_encode(arena, &message.base);
}

static struct route_value *
task_done_decode(struct slice bytes)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    INTERNAL(TaskDone) *message = NULL;
    struct error *err =
        message_decode_as(arena, ERR_INTERNAL, INTERNAL_TYPE(task_done), bytes, &message);
    if (err != NULL)
        return NULL;
    return &task_done_new(message->shard, message->range_id, message->row)->value;
}

static void
task_done_free(struct route_value *value)
{
    memory_free(container_of(value, struct task_done_value, value));
}

static void
task_done_take(void *context, struct route_value *value)
{
    struct task_done_value *done = container_of(value, struct task_done_value, value);
    struct shard *shard = engine_served_shard(context, owner_of_shard(done->shard));
    check(done->row != 0);
    shard_task_done(shard, done->range_id, done->row);
    memory_free(done);
}

/* Lost: the row stays until the shard is taken again, which offers it again; then it is found void
 * or started, or its list has it twice, and one of the two is found void. So nothing goes wrong,
 * but the shard keeps the row in memory that long: the way between hosts has to repeat it, and
 * within one nothing is lost. Twice: a row that is not known is not there. */
const struct route_notice task_done_notice = {
    .name = "shard.task_done",
    .encode = task_done_encode,
    .decode = task_done_decode,
    .free = task_done_free,
    .take = task_done_take,
    .may_come_twice = true,
};

void
engine_task_done(struct engine *engine, const struct task *task)
{
    if (task->row == 0)
        return;
    check(task->shard < engine->options.shard_count);
    struct task_done_value *done = task_done_new(task->shard, task->range_id, task->row);
    /* Never refused: there are at most as many as rows that were offered. Later: the shard may be
     * the one that is just offering it. */
    route_tell_later(owner_of_shard(task->shard), &engine->service, &task_done_notice,
                     &done->value);
}
