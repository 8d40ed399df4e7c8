/* reservation.c - polls that are kept for tasks that are about to exist (route/reservation.h): the
 * list's side. See reserving.c for the shard's.
 *
 * A reservation gets a poll where a task that came now would get it at once: a poll waits, nothing
 * waits before the task, and the list may give one out. A reserved poll is in none of its list's
 * queues; its list stays in memory. If the poll is withdrawn meanwhile, or its time is over, that
 * takes effect when the reservation ends. If the end does not come, the list takes the poll back
 * after a time. A list with isolation groups, or one that the server works on itself, grants none:
 * there it matters whose task it is. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/inside.h"

static bool
list_may_grant(struct task_list *list)
{
    return list->poll_count > 0 && list->waiting_count == 0 && list->query_count == 0 &&
           list_is_empty(&list->inbox) && !list->is_served && !list->loop_lists->is_drained &&
           !list_must_store(list) && !list_is_isolated(list) && list_has_token(list);
}

static struct waiting_poll *
grant(struct task_list *list, struct waiter shard)
{
    struct waiting_poll *poll = list_entry(list->polls.next, struct waiting_poll, node);
    check(poll->is_parked && poll->list == list && !waiting_poll_is_reserved(poll));
    list_remove(&poll->node);
    list->poll_count--;
    poll->is_parked = false;
    poll->reserved_by = shard;
    list_push_back(&list->loop_lists->reserved, &poll->node);
    timer_start(&poll->timer, poll->expiry + RESERVED_MAX);
    list->users++;
    list->used = clock_monotonic();
    task_load_note(&list->task_load, list->used);
    member_changed(list);
    task_list_check(list);
    return poll;
}

struct waiting_poll *
reservation_grant(struct loop_lists *loop_lists, const struct list_id *list_id, struct waiter shard)
{
    struct task_list *list = list_find(loop_lists, list_id);
    return list != NULL && list_may_grant(list) ? grant(list, shard) : NULL;
}

void
reservations_forget(struct loop_lists *loop_lists)
{
    struct list *node;
    while ((node = list_pop_front(&loop_lists->reserved)) != NULL) {
        struct waiting_poll *poll = list_entry(node, struct waiting_poll, node);
        probe("reserved_at_the_end");
        timer_stop(&poll->timer);
        poll->list->users--;
        poll->list = NULL;
        waiting_poll_free(poll);
    }
}

/* It waits again, before the others. */
static void
park_again(struct task_list *list, struct waiting_poll *poll)
{
    check(waiting_poll_is_reserved(poll) && !poll->is_parked && list->users > 0);
    list->users--;
    timer_stop(&poll->timer);
    list_remove(&poll->node);
    poll->reserved_by = (struct waiter){0};
    poll->is_parked = true;
    list_push_front(&list->polls, &poll->node);
    list->poll_count++;
}

void
reservation_give(struct waiting_poll *poll, const struct reservation_outcome *outcome)
{
    struct task_list *list = poll->list;
    struct matching *matching = list->loop_lists->matching;
    check(outcome->task != NULL && outcome->arena != NULL);
    park_again(list, poll);
    poll->task = outcome->task;
    poll->arena = outcome->arena;
    poll->start = outcome->start;
    poll->request_id = outcome->request_id;
    list->polled = clock_monotonic();
    matching_count(matching->counters.success, 1);
    matching_count(matching->counters.success_sync, 1);
    waiting_poll_send_back(matching, poll, POLL_MATCHED);
    task_list_check(list);
}

void
reservation_release(struct waiting_poll *poll)
{
    struct task_list *list = poll->list;
    probe("reservation_released");
    list_return_token(list);
    park_again(list, poll);
    if (poll->is_withdrawn) {
        list_withdraw(list, poll);
    } else if (list->loop_lists->is_drained) {
        waiting_poll_send_back(list->loop_lists->matching, poll, POLL_EMPTY);
    } else {
        waiting_poll_start_timer(list, poll);
        list_dispatch(list);
    }
    task_list_check(list);
}
