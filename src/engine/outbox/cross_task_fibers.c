/* cross_task_fibers.c - rows of the outbox that are work on another workflow: done by fibers, a
 * bounded number at a time, tried again until they are done. What the work is: engine/cross/.
 *
 * In memory a cross-workflow task is little more than the number of its row; the row is read when
 * its turn comes. The one who does the work (the engine, by a port) takes steps on other workflow
 * ids and on the run that the row belongs to, one after the other, never with two locks. A row may
 * be worked off more than once, and by an owner that was overtaken: so each of these steps is one
 * that adds nothing when it is repeated, and those on the run itself name the range id. The row
 * goes when all is done, by the last step itself or here. */
#include "engine/outbox/cross_task_fibers.h"
#include "base/check.h"
#include "base/memory.h"
#include "engine/outbox/deferred.h"
#include "engine/outbox/held.h"
#include "engine/outbox/outbox.h"
#include "engine/shard/inside.h"
#include "engine/shard/outbox_state.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define RUNNING_MAX        64 /* at a time */
#define CROSS_TASK_TIMEOUT (10 * NS_PER_S)
#define DELAY_MIN          (20 * NS_PER_MS)
#define DELAY_MAX          (10 * NS_PER_S)

/* One on its way. */
struct cross_task_attempt {
    struct tenure *tenure;
    struct cross_task cross_task;
};

static void cross_task_fiber(void *argument);

void
cross_tasks_init(struct tenure *tenure)
{
    list_init(&tenure->outbox.cross_tasks.ready);
    list_init(&tenure->outbox.cross_tasks.not_active);
    tenure->outbox.cross_tasks.lines = map_new();
}

void
cross_tasks_check(const struct cross_tasks *cross_tasks)
{
    check(cross_tasks->running <= RUNNING_MAX);
    check(cross_tasks->accepted_count >= map_count(cross_tasks->lines));
    if (!CHECK_DEEPLY || cross_tasks->delayed.count > CHECK_ROWS_MAX)
        return;
    list_each(node, &cross_tasks->not_active) {
        const struct transfer *transfer = list_entry(node, struct transfer, node);
        check(transfer->is_cross_task && priority_is_queued(&transfer->retry));
    }
    list_each(node, &cross_tasks->ready) {
        const struct transfer *transfer = list_entry(node, struct transfer, node);
        check(transfer->is_cross_task && !priority_is_queued(&transfer->retry));
        check(transfer->state != TRANSFER_OFFERED && !transfer->is_waiting_long);
    }
}

void
cross_tasks_free(struct tenure *tenure)
{
    priority_free(&tenure->outbox.cross_tasks.delayed);
    request_queues_free(&tenure->outbox.cross_tasks);
}

void
cross_task_forget(struct cross_tasks *cross_tasks, struct transfer *transfer)
{
    if (priority_is_queued(&transfer->retry))
        priority_remove(&cross_tasks->delayed, &transfer->retry);
    request_queue_leave(cross_tasks, transfer);
}

static void
cross_task_start(struct tenure *tenure, struct transfer *transfer)
{
    check(transfer->is_cross_task && list_is_empty(&transfer->node));
    check(!priority_is_queued(&transfer->retry) && !transfer->is_waiting_long);
    struct cross_task_attempt *attempt = memory_zalloc(1, sizeof *attempt);
    attempt->tenure = tenure;
    attempt->cross_task = (struct cross_task){.range_id = tenure->range_id,
                                              .row = transfer->task.row,
                                              .cursor = transfer->cursor,
                                              .is_repeat = transfer->is_repeat};
    transfer->is_repeat = true;
    transfer->state = TRANSFER_OFFERED;
    tenure->outbox.cross_tasks.running++;
    latch_add(&tenure->shard->cross_tasks, 1);
    tenure_start_fiber(tenure, "cross-workflow task", cross_task_fiber, attempt);
}

void
cross_tasks_start(struct tenure *tenure)
{
    struct cross_tasks *cross_tasks = &tenure->outbox.cross_tasks;
    while (tenure->shard->runs_cross_tasks && !tenure->is_over &&
           cross_tasks->running < RUNNING_MAX && !list_is_empty(&cross_tasks->ready))
        cross_task_start(tenure,
                         list_entry(list_pop_front(&cross_tasks->ready), struct transfer, node));
}

void
cross_tasks_add(struct tenure *tenure, struct transfer *transfer)
{
    check(transfer->is_cross_task && list_is_empty(&transfer->node));
    check(!transfer->is_waiting_long);
    transfer->state = TRANSFER_WAITING;
    if (!request_queue_enter(&tenure->outbox.cross_tasks, transfer))
        return;
    list_push_back(&tenure->outbox.cross_tasks.ready, &transfer->node);
    cross_tasks_start(tenure);
}

static void
cross_task_wait(struct cross_tasks *cross_tasks, struct transfer *transfer, int64_t time)
{
    check(!priority_is_queued(&transfer->retry) && list_is_empty(&transfer->node));
    transfer->retry.key = time;
    transfer->retry.sequence = ++cross_tasks->sequence;
    priority_push(&cross_tasks->delayed, &transfer->retry);
}

static void
cross_task_hurry(struct cross_tasks *cross_tasks, struct transfer *transfer)
{
    priority_remove(&cross_tasks->delayed, &transfer->retry);
    cross_task_wait(cross_tasks, transfer, 0);
}

void
cross_tasks_domain_changed(struct tenure *tenure)
{
    struct cross_tasks *cross_tasks = &tenure->outbox.cross_tasks;
    struct list *node;
    while ((node = list_pop_front(&cross_tasks->not_active)) != NULL)
        cross_task_hurry(cross_tasks, list_entry(node, struct transfer, node));
}

void
cross_tasks_wake(struct tenure *tenure)
{
    struct cross_tasks *cross_tasks = &tenure->outbox.cross_tasks;
    int64_t now = clock_monotonic();
    while (cross_tasks_next_time(cross_tasks) <= now) {
        struct priority_node *first = priority_pop(&cross_tasks->delayed);
        struct transfer *transfer = container_of(first, struct transfer, retry);
        list_remove(&transfer->node);
        transfer_end_long_wait(&tenure->outbox, transfer);
        list_push_back(&cross_tasks->ready, &transfer->node);
    }
    cross_tasks_start(tenure);
}

int64_t
cross_tasks_next_time(const struct cross_tasks *cross_tasks)
{
    const struct priority_node *first = priority_first(&cross_tasks->delayed);
    return first == NULL ? NEVER : first->key;
}

/* --- one cross-workflow task ---- */

static struct error *
cross_task_read(const struct cross_task_attempt *attempt, struct arena *arena,
                STORED(TransferRow) **transfer)
{
    const struct shard *shard = attempt->tenure->shard;
    bool found;
    struct slice value;
    struct error *err =
        store_get(shard->options.store, shard->partition, ROW_TRANSFER,
                  transfer_key(attempt->cross_task.row, arena), arena, &found, &value);
    if (err != NULL)
        return err;
    if (!found) /* the owner that overtook us has done it */
        return error_new(arena, ERR_SHARD_OWNERSHIP_LOST, "a row of the outbox is gone");
    return message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(transfer_row), value, transfer);
}

static void
cross_task_delay(struct tenure *tenure, struct transfer *transfer, const struct error *err)
{
    struct cross_tasks *cross_tasks = &tenure->outbox.cross_tasks;
    int64_t delay = DELAY_MIN << (transfer->attempts < 12 ? transfer->attempts : 12);
    fiber_cond_signal(&tenure->outbox.changed);
    probe("cross_task_retried");
    log_debug(tenure->shard->options.log, "work on another workflow is tried again",
              log_error(err));
    bool is_in_queue = transfer->request_queue.length > 0; /* it keeps its place there */
    if (!is_in_queue && !transfer_begin_long_wait(&tenure->outbox, transfer, DEFERRED_FOR_RETRY))
        return;
    transfer->attempts++;
    transfer->state = TRANSFER_REFUSED;
    cross_task_wait(cross_tasks, transfer,
                    clock_monotonic() + (delay < DELAY_MAX ? delay : DELAY_MAX));
    if (err->kind == ERR_DOMAIN_NOT_ACTIVE)
        list_push_back(&cross_tasks->not_active, &transfer->node);
}

/* What became of it. The row may have gone with one of its steps. */
static void
cross_task_ended(const struct cross_task_attempt *attempt, const struct error *err)
{
    struct tenure *tenure = attempt->tenure;
    check(tenure->outbox.cross_tasks.running > 0);
    tenure->outbox.cross_tasks.running--;
    if (tenure->is_over)
        return;
    struct transfer *transfer = map64_get(tenure->outbox.known, attempt->cross_task.row);
    check(transfer == NULL || transfer->state == TRANSFER_OFFERED);
    check(transfer == NULL || attempt->cross_task.cursor >= transfer->cursor);
    if (transfer != NULL)
        transfer->cursor = attempt->cross_task.cursor; /* what lies behind it is done */
    if (err != NULL && err->kind == ERR_DOMAIN_NOT_ACTIVE)
        probe("cross_task_not_active"); /* it failed for nobody: the next attempt may succeed */
    if (transfer != NULL && err != NULL && !transfer_is_active(tenure, transfer)) {
        transfer_hold(tenure, transfer);
    } else if (transfer != NULL && err != NULL) {
        cross_task_delay(tenure, transfer, err);
    } else if (transfer != NULL && attempt->cross_task.has_more) {
        transfer->attempts = 0;
        cross_tasks_add(tenure, transfer);
    } else if (transfer != NULL) {
        outbox_done(tenure, attempt->cross_task.row);
    }
    cross_tasks_start(tenure);
}

static void
cross_task_fiber(void *argument)
{
    struct cross_task_attempt *attempt = argument;
    struct tenure *tenure = attempt->tenure;
    const struct cross_task_port *port = &tenure->shard->options.cross_tasks;
    struct arena *arena = arena_new(0);
    STORED(TransferRow) *transfer = NULL;
    fiber_set_deadline(clock_monotonic() + CROSS_TASK_TIMEOUT);
    struct error *err = cross_task_read(attempt, arena, &transfer);
    attempt->cross_task.transfer = transfer;
    if (err == NULL)
        err = port->run(port->context, &attempt->cross_task, arena);
    cross_task_ended(attempt, err);
    arena_free(arena);
    memory_free(attempt);
    latch_done(&tenure->shard->cross_tasks);
    tenure_leave(tenure);
}

/* --- the shard ---- */

void
shard_run_cross_tasks(struct shard *shard)
{
    shard_check(shard);
    check(shard->options.cross_tasks.run != NULL && !shard->is_closing);
    shard->runs_cross_tasks = true;
    if (shard->tenure != NULL)
        cross_tasks_start(shard->tenure);
}

void
shard_stop_cross_tasks(struct shard *shard)
{
    shard_check(shard);
    shard->runs_cross_tasks = false;
    latch_wait(&shard->cross_tasks);
}
