/* outstanding.c - stored tasks that were read: done in any order, acknowledged in order of number.
 * See inside.h.
 *
 * Forgetting what was read loses nothing: it is in the store until it is acknowledged, and is read
 * again. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/inside.h"

/* --- what was read ---------------------------------------------------------------------------- */

struct outstanding *
backlog_find(const struct task_list *list, int64_t number)
{
    return map64_get(list->backlog.by_number, (uint64_t)number);
}

bool
backlog_has_row(const struct task_list *list, const struct offer *offer)
{
    const struct outstanding *row = backlog_find(list, offer->task->number);
    return row != NULL && row->offer == offer;
}

void
backlog_note_read(struct task_list *list, int64_t number, struct offer *offer)
{
    struct backlog *backlog = &list->backlog;
    check(number > backlog->read);
    struct outstanding *row = memory_zalloc(1, sizeof *row);
    row->number = number;
    row->offer = offer;
    list_push_back(&backlog->outstanding, &row->node);
    map64_put(backlog->by_number, (uint64_t)number, row);
    backlog->read = number;
    backlog->open++;
}

/* Moves the acknowledged level over all that is done. */
static void
advance(struct backlog *backlog)
{
    while (!list_is_empty(&backlog->outstanding)) {
        struct outstanding *row = list_entry(backlog->outstanding.next, struct outstanding, node);
        if (!row->is_done)
            return;
        check(row->number > backlog->acked);
        backlog->acked = row->number;
        list_remove(&row->node);
        map64_remove(backlog->by_number, (uint64_t)row->number);
        memory_free(row);
    }
    backlog->acked = backlog->read;
}

void
backlog_read_up_to(struct task_list *list, int64_t number)
{
    check(number >= list->backlog.read);
    list->backlog.read = number;
    advance(&list->backlog);
}

void
backlog_finish(struct task_list *list, int64_t number)
{
    struct backlog *backlog = &list->backlog;
    struct outstanding *row = backlog_find(list, number);
    if (row == NULL || row->is_done)
        return;
    check(row->offer == NULL || list_is_empty(&row->offer->node));
    row->is_done = true;
    row->offer = NULL;
    backlog->deletable++;
    backlog->open--;
    if (backlog->rows > 0)
        backlog->rows--;
    advance(backlog);
    loop_defer(&backlog->flush);
}

/* --- starting over ---------------------------------------------------------------------------- */

void
backlog_forget_read(struct task_list *list)
{
    struct backlog *backlog = &list->backlog;
    struct list *node;
    while ((node = list_pop_front(&backlog->outstanding)) != NULL) {
        struct outstanding *row = list_entry(node, struct outstanding, node);
        if (row->offer != NULL) {
            list_remove_waiting(list, row->offer);
            offer_free(row->offer);
        }
        map64_remove(backlog->by_number, (uint64_t)row->number);
        memory_free(row);
    }
#ifndef CADENZA_FAULT_forgotten_rows_stay_open
    backlog->open = 0;
#endif
    backlog->read = backlog->acked;
    if (list->waiting_count == 0)
        backlog->number_in_memory = backlog->acked;
}

/* The oldest that is not done keeps all others from being deleted. Within seconds its caller
 * finishes or returns it; a caller that does neither has lost the task. */
void
backlog_find_lost(struct task_list *list)
{
    struct backlog *backlog = &list->backlog;
    if (list_is_empty(&backlog->outstanding) || backlog->is_worked)
        return;
    const struct outstanding *first =
        list_entry(backlog->outstanding.next, struct outstanding, node);
    check(!first->is_done);
    if (first->offer != NULL || clock_monotonic() - first->handed < OUTCOME_MAX)
        return;
    probe("task_outcome_missing");
    backlog_forget_read(list);
}

void
backlog_put_away(struct task_list *list)
{
    struct backlog *backlog = &list->backlog;
    check(list->poll_count == 0 && backlog->is_loaded && !backlog->is_worked);
    backlog_forget_read(list);
    backlog->is_putting_away = true;
    probe("task_list_put_away");
    backlog->pending_count += list->waiting_count;
    list->waiting_count = 0;
    list_splice_back(&list->waiting, &backlog->pending); /* those that wait come first */
    list_splice_back(&backlog->pending, &list->waiting);
    loop_defer(&backlog->flush);
    backlog_kick(list);
}

void
backlog_recover(struct task_list *list)
{
    struct backlog *backlog = &list->backlog;
    check(backlog->writer == NULL);
    probe("task_list_lost");
    backlog_forget_read(list);
    list_each(node, &backlog->in_flight)
        backlog->pending_count++;
    list_splice_back(&backlog->in_flight, &backlog->pending);
    list_splice_back(&backlog->pending, &backlog->in_flight);
    list_each(node, &backlog->pending) /* what landed keeps its numbers, these get new ones */
        list_entry(node, struct offer, node)->task->number = 0;
    backlog->is_failed = backlog->is_loaded = backlog->is_putting_away = false;
}
