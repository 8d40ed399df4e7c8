/* invariants.c - what holds of a task list whenever a step on it is over. See inside.h.
 *
 * A step is a run of one of the list's entry points: an offer or a poll that came, a timer, a batch
 * that is durable, a worker's turn. Within a step an offer may be in no queue for a moment, so the
 * checks stand at its end. What takes constant time is always checked; the queues are walked over
 * only where CHECK_DEEPLY says so, and only while they are short: a test with 100,000 tasks would
 * otherwise walk over all of them with each one. */
#include "base/check.h"
#include "matching/inside.h"

#define WALK_MAX 200 /* nodes */

/* --- the queues ------------------------------------------------------------------------------- */

static size_t
count_known(const struct list *offers)
{
    size_t known = 0;
    list_each(node, offers)
        known += list_entry(node, struct offer, node)->is_known;
    return known;
}

static void
waiting_check(const struct task_list *list)
{
    size_t count = 0;
    list_each(node, &list->waiting) {
        const struct offer *offer = list_entry(node, struct offer, node);
        check(offer->task->type == list->type && offer->task->partition == list->partition);
        check(!task_is_query(offer->task) && offer->task->number > 0);
        check(!offer->is_known || offer->task->row != 0);
        count++;
    }
    check(count == list->waiting_count);
}

static void
queries_check(const struct task_list *list)
{
    size_t count = 0;
    list_each(node, &list->queries) {
        const struct offer *offer = list_entry(node, struct offer, node);
        check(task_is_query(offer->task) && !offer->is_known);
        count++;
    }
    check(count == list->query_count);
}

static void
polls_check(const struct task_list *list)
{
    size_t count = 0;
    list_each(node, &list->polls) {
        const struct waiting_poll *poll = list_entry(node, struct waiting_poll, node);
        check(poll->list == list && poll->list_id.type == list->type && poll->task == NULL);
        check(poll->is_parked && !waiting_poll_is_reserved(poll));
        count++;
    }
    check(count == list->poll_count);
}

/* --- the backlog ------------------------------------------------------------------------------ */

/* Rows that were read: in order, each found by its number, those that are done behind one that is
 * not. */
static void
outstanding_check(const struct task_list *list)
{
    const struct backlog *backlog = &list->backlog;
    int64_t before = backlog->acked, open = 0;
    size_t count = 0;
    list_each(node, &backlog->outstanding) {
        const struct outstanding *row = list_entry(node, struct outstanding, node);
        check(row->number > before && row->number <= backlog->read);
        check(backlog_find(list, row->number) == row);
        check(count > 0 || !row->is_done);
        check(row->offer == NULL || (!row->is_done && row->offer->task->number == row->number));
        before = row->number;
        open += !row->is_done;
        count++;
    }
    check(open == backlog->open && count == map64_count(backlog->by_number));
}

/* Batches become durable in the order of their tickets. */
static void
in_flight_check(const struct backlog *backlog)
{
    ticket_t before = 0;
    list_each(node, &backlog->in_flight) {
        const struct offer *offer = list_entry(node, struct offer, node);
        check(offer->ticket >= before && offer->task->number > 0);
        before = offer->ticket;
    }
    check(backlog->writer == NULL || before <= writer_newest(backlog->writer));
}

void
backlog_check(const struct task_list *list)
{
    const struct backlog *backlog = &list->backlog;
    check(backlog->deleted <= backlog->acked && backlog->acked <= backlog->read);        /* 1 */
    check(backlog->read <= backlog->written && backlog->written < backlog->number_next); /* 1 */
    check(backlog->number_next <= (int64_t)backlog->range * TASK_BLOCK + 1);             /* 3 */
    check(backlog->open >= 0 && backlog->rows >= 0);
    check((size_t)backlog->open <= map64_count(backlog->by_number));
    check(list_is_empty(&backlog->outstanding) == (map64_count(backlog->by_number) == 0));
    check(list_is_empty(&backlog->pending) == (backlog->pending_count == 0));
    check(!(backlog->is_queued && backlog->is_worked)); /* one worker at a time */
    check(list_is_empty(&backlog->work) == !backlog->is_queued);
    if (backlog->writer == NULL && !list->loop_lists->is_closing)
        check(list_is_empty(&backlog->in_flight) && list_is_empty(&backlog->outstanding));
}

/* --- a list ----------------------------------------------------------------------------------- */

static void
root_check(const struct task_list *list)
{
    const struct root *root = list->root;
    check(list->partition == 0 && root->partition_state_count <= PARTITIONS_MAX);
    check(root->highest >= root->highest_recorded && root->highest < PARTITIONS_MAX);
    if (CHECK_DEEPLY)
        division_check(&root->published);
}

/* Offers that are found by their outbox row are in a queue. Not all of them, in the middle of
 * passing on to a normal list of the same name. */
static void
known_check(const struct task_list *list)
{
    size_t known = count_known(&list->waiting) + count_known(&list->backlog.pending) +
                   count_known(&list->backlog.in_flight);
    check(known <= map64_count(list->known));
}

static void
walk(const struct task_list *list)
{
    waiting_check(list);
    queries_check(list);
    polls_check(list);
    known_check(list);
    outstanding_check(list);
    in_flight_check(&list->backlog);
}

void
task_list_check(const struct task_list *list)
{
    check(loop_lists_are_here(list->loop_lists));
    check(list_is_empty(&list->waiting) == (list->waiting_count == 0));
    check(list_is_empty(&list->queries) == (list->query_count == 0));
    check(list_is_empty(&list->polls) == (list->poll_count == 0));
    check(list_is_empty(&list->inbox) == list_is_empty(&list->busy));
    check(!list->loop_lists->is_drained || list->poll_count == 0);
    check(list->member.invited <= INVITED_MAX);
    check(list->member.invited == 0 || list->member.invited_to != list->partition);
    backlog_check(list);
    if (list->root != NULL)
        root_check(list);
    size_t nodes = map64_count(list->known) + map64_count(list->backlog.by_number) +
                   list->waiting_count + list->backlog.pending_count + list->query_count +
                   list->poll_count;
    if (CHECK_DEEPLY && nodes <= WALK_MAX)
        walk(list);
}

/* --- a divided list, as a loop knows it ------------------------------------------------------- */

void
partition_group_check(const struct partition_group *partition_group)
{
    const struct division *division = &partition_group->division;
    check(division->reads > 1 && division->reads <= PARTITIONS_MAX);
    check(division->writes >= 1 && division->writes <= division->reads);
    if (!CHECK_DEEPLY)
        return;
    division_check(division);
    for (size_t i = 0; i < division->reads; i++)
        check(partition_group->weights[i] >= -1);
}
