/* offer.c - rows that wait are offered: tasks to the owner of their list, cross-workflow tasks to
 * the fibers that do them.
 *
 * A row that must not go on yet is handed to what it waits for: its domain (held.c) or the turn of
 * its workflow id (throttle.c). A list that has no room refuses a task; refused ones are offered
 * again together and in their order, and after so many refusals in a row nothing is offered until
 * then. */
#include "base/check.h"
#include "engine/outbox/cross_task_fibers.h"
#include "engine/outbox/held.h"
#include "engine/outbox/outbox.h"
#include "engine/outbox/throttle.h"
#include "engine/shard/inside.h"
#include "engine/shard/metrics.h"
#include "fiber/clock.h"
#include "fiber/probe.h"

#define REFUSED_DELAY (100 * NS_PER_MS)
#define REFUSED_MAX   64 /* refusals in a row: then all wait */

void
outbox_offer(struct tenure *tenure)
{
    struct outbox *outbox = &tenure->outbox;
    const struct task_port *port = &tenure->shard->options.tasks;
    unsigned refused = 0;
    while (!list_is_empty(&outbox->waiting) && refused < REFUSED_MAX && !tenure->is_over) {
        struct transfer *transfer =
            list_entry(list_pop_front(&outbox->waiting), struct transfer, node);
        check(transfer->state == TRANSFER_WAITING && !transfer->is_waiting_long);
        if (!transfer_is_active(tenure, transfer)) {
            transfer_hold(tenure, transfer);
            continue;
        }
        if (transfer->attribute_scope != NULL)
            transfer_count_homeless(tenure, transfer);
        if (transfer->is_cross_task) {
            cross_tasks_add(tenure, transfer);
            continue;
        }
        if (!transfer->had_turn && throttle_holds(tenure, transfer))
            continue;
        transfer->had_turn = true;          /* its turn has come, also if it is refused */
        transfer->state = TRANSFER_OFFERED; /* before: the list may say at once that it is done */
        metrics_task(tenure->shard, &transfer->task, transfer->attempts + 1);
        if (port->offer(port->context, &transfer->task))
            continue;
        refused++;
        transfer->attempts++;
        transfer->state = TRANSFER_REFUSED;
        list_push_back(&outbox->refused, &transfer->node);
    }
    if (refused > 0 && outbox->retry_time == NEVER) {
        probe("task_refused");
        outbox->retry_time = clock_monotonic() + REFUSED_DELAY;
        fiber_cond_signal(&outbox->changed);
    }
    check(list_is_empty(&outbox->refused) || outbox->retry_time != NEVER);
}

void
outbox_offer_refused(struct tenure *tenure)
{
    struct outbox *outbox = &tenure->outbox;
    outbox->retry_time = NEVER;
    list_splice_back(&outbox->refused, &outbox->waiting); /* the oldest first */
    list_splice_back(&outbox->waiting, &outbox->refused);
    list_each(node, &outbox->waiting)
        list_entry(node, struct transfer, node)->state = TRANSFER_WAITING;
    probe("task_offer_retried");
    outbox_offer(tenure);
}

void
outbox_offer_early(struct tenure *tenure, struct transfer *transfer)
{
    const struct task_port *port = &tenure->shard->options.tasks;
    const struct task *task = &transfer->task;
    check(transfer->state == TRANSFER_UNDURABLE);
#ifdef CADENZA_FAULT_cross_task_before_durable
    if (transfer->is_cross_task) {
        list_remove(&transfer->node);
        cross_tasks_add(tenure, transfer);
        return;
    }
#endif
    if (transfer->is_cross_task || !list_is_empty(&tenure->outbox.waiting) ||
        !transfer_is_active(tenure, transfer) ||
        !throttle_take(tenure, task->run_domain_id, task->workflow_id))
        return;
    if (transfer->attribute_scope != NULL)
        transfer_count_homeless(tenure, transfer);
    transfer->had_turn = true;
    list_remove(&transfer->node);
    transfer->state = TRANSFER_OFFERED; /* before: the list may say at once that it is done */
    metrics_task(tenure->shard, &transfer->task, transfer->attempts + 1);
    if (port->offer(port->context, task)) {
        probe("task_offered_early");
        return;
    }
    transfer->state = TRANSFER_UNDURABLE;
    list_push_back(&tenure->outbox.undurable, &transfer->node);
}
