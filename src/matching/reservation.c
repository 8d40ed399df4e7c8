/* reservation.c - polls that are kept for tasks that are about to exist (route/reservation.h).
 *
 * A reservation gets a poll where a task that came now would get it at once: a poll waits, nothing
 * waits before the task, and the list may give one out. A reserved poll is in none of its list's
 * queues and has no timer; its list stays in memory. If the poll is withdrawn meanwhile, that takes
 * effect when the reservation ends. A list with isolation groups, or one that the server works on
 * itself, grants none: there it matters whose task it is. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/inside.h"

static struct list_id
list_id_of_reservation(const struct reservation *reservation)
{
    return (struct list_id){reservation->domain_id, reservation->type, reservation->list,
                            reservation->partition};
}

/* --- on the list's loop ---- */

static bool
list_may_grant(struct task_list *list)
{
    return list->poll_count > 0 && list->waiting_count == 0 && list->query_count == 0 &&
           list_is_empty(&list->inbox) && !list->is_served && !list->loop_lists->is_drained &&
           !list_must_store(list) && !list_is_isolated(list) && list_has_token(list);
}

static void
grant(struct task_list *list, struct reservation *reservation)
{
    struct poll *poll = list_entry(list->polls.next, struct poll, node);
    check(poll->is_parked && poll->owner == list && !poll->is_reserved);
    list_remove(&poll->node);
    list->poll_count--;
    timer_stop(&poll->timer);
    poll->is_parked = false;
    poll->is_reserved = true;
    list->users++;
    list->used = clock_monotonic();
    task_load_note(&list->task_load, list->used);
    reservation->poll = poll;
    reservation->identity = poll->identity;
    member_changed(list);
    task_list_check(list);
}

static void
reservation_run(struct reservation *reservation)
{
    struct matching *matching = reservation->owner;
    struct list_id list_id = list_id_of_reservation(reservation);
    struct task_list *list = list_find(loop_lists_of(matching, &list_id), &list_id);
    if (list != NULL && list_may_grant(list))
        grant(list, reservation);
}

/* It waits again, before the others. */
static void
park_again(struct task_list *list, struct poll *poll)
{
    check(poll->is_reserved && !poll->is_parked && list->users > 0);
    list->users--;
    poll->is_reserved = false;
    poll->is_parked = true;
    list_push_front(&list->polls, &poll->node);
    list->poll_count++;
}

static void
reservation_give(struct task_list *list, struct reservation *reservation)
{
    struct poll *poll = reservation->poll;
    park_again(list, poll);
    poll->task = reservation->task;
    poll->task_arena = reservation->arena;
    poll->start = reservation->start;
    poll->request_id = reservation->request_id;
    list->polled = clock_monotonic();
    matching_count(list->loop_lists->matching->counters.success, 1);
    matching_count(list->loop_lists->matching->counters.success_sync, 1);
    bool has_recall = poll->has_recall;
    poll_send_back(poll, POLL_MATCHED);
    if (has_recall)
        poll_return_recall(poll);
}

static void
reservation_release(struct task_list *list, struct poll *poll)
{
    probe("reservation_released");
    list_return_token(list);
    park_again(list, poll);
    if (poll->has_recall)
        message_arrived(list->loop_lists->matching);
    if (poll->is_withdrawn) {
        list_withdraw(list, poll);
    } else if (list->loop_lists->is_drained) {
        poll_send_back(poll, POLL_EMPTY);
    } else {
        poll_start_timer(list, poll);
        list_dispatch(list);
    }
}

static void
reservation_end_here(struct reservation *reservation)
{
    struct poll *poll = reservation->poll;
    struct task_list *list = poll->owner;
    if (reservation->task != NULL)
        reservation_give(list, reservation);
    else
        reservation_release(list, poll);
    task_list_check(list);
    memory_free(reservation);
}

/* --- the way there and back ---- */

static void
reservation_came_back(struct loop_message *message)
{
    struct reservation *reservation = container_of(message, struct reservation, message);
    message_arrived(reservation->owner);
    reservation->answered(reservation);
}

static void
reservation_delivered(struct loop_message *message)
{
    struct reservation *reservation = container_of(message, struct reservation, message);
    reservation_run(reservation);
    reservation->message.deliver = reservation_came_back;
    loop_post_answer(reservation->caller_loop,
                     &reservation->message); /* still the same message: counted once */
}

static void
end_delivered(struct loop_message *message)
{
    struct reservation *reservation = container_of(message, struct reservation, message);
    message_arrived(reservation->owner);
    reservation_end_here(reservation);
}

enum reservation_end
matching_reserve(struct matching *matching, struct reservation *reservation)
{
    if (atomic_load(&matching->is_shutting_down))
        return RESERVATION_REFUSED;
    struct task task = {.type = reservation->type,
                        .kind = reservation->kind,
                        .domain_id = reservation->domain_id,
                        .list = reservation->list};
    reservation->owner = matching;
    reservation->caller_loop = loop_self();
    reservation->partition = partition_group_choose_write(loop_lists_here(matching), &task);
    struct list_id list_id = list_id_of_reservation(reservation);
    struct loop_lists *loop_lists = loop_lists_of(matching, &list_id);
    if (loop_lists_loop(loop_lists) == loop_self()) {
        reservation_run(reservation);
        return reservation->identity != NULL ? RESERVATION_GRANTED : RESERVATION_REFUSED;
    }
    reservation->message.deliver = reservation_delivered;
    return matching_try_send(matching, loop_lists_loop(loop_lists), &reservation->message)
               ? RESERVATION_REQUESTED
               : RESERVATION_REFUSED;
}

void
matching_end_reservation(struct matching *matching, struct reservation *reservation)
{
    struct poll *poll = reservation->poll;
    check(reservation->identity != NULL && poll != NULL);
    struct task_list *list = poll->owner; /* it does not change while the poll is reserved */
    if (loop_lists_loop(list->loop_lists) == loop_self()) {
        reservation_end_here(reservation);
        return;
    }
    reservation->message.deliver = end_delivered;
    matching_send(matching, loop_lists_loop(list->loop_lists), &reservation->message);
}
