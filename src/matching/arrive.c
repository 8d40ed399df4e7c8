/* arrive.c - what comes to a list: new offers, returned ones, polls, withdrawals. See inside.h. */
#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/inside.h"

/* --- offers ----------------------------------------------------------------------------------- */

/* A poll waits, nothing is before the task, and it may go now. */
static bool
try_sync_match(struct task_list *list, struct offer *offer)
{
    bool is_isolated = list_is_isolated(list); /* then others may wait for others */
    if (list->poll_count == 0 || (list->waiting_count > 0 && !is_isolated))
        return false;
    struct waiting_poll *poll = list_choose_poll(list, offer, false);
    if (poll == NULL || !list_has_token(list))
        return false;
    matching_count(list->loop_lists->matching->counters.success_sync, 1);
    list_hand_out(list, offer);
    list_give(list, offer, poll);
    return true;
}

bool
list_must_store(const struct task_list *list)
{
    struct dynamic_filter filter = list_filter(list);
    const struct dynamic *dynamic = list->loop_lists->matching->options.dynamic;
    return !list_is_sticky(list) &&
           (backlog_is_behind(list) || !dynamic_flag(dynamic, DYNAMIC_SYNC_MATCH, &filter));
}

static void
loop_lists_offer(struct task_list *list, struct offer *offer)
{
    list_know(list, offer);
    if (list_must_store(list)) {
        backlog_push(list, offer);
        return;
    }
    if (try_sync_match(list, offer))
        return;
    bool is_full = !list->is_served && list->waiting_count >= list_bound(list);
    if (list_is_sticky(list) && (is_full || !list_is_polled(list)))
        list_pass_on_one(list, offer);
    else if (is_full)
        backlog_push(list, offer);
    else
        list_add_waiting(list, offer);
}

void
list_add(struct task_list *list, struct offer *offer)
{
    check(list_is_empty(&offer->node) && !task_is_query(offer->task));
    check(offer->task->partition == list->partition);
    list->used = clock_monotonic();
    task_load_note(&list->task_load, list->used);
    isolation_note(list, offer->task);
    root_refresh(list);
    if (offer->task->normal_list[0] == '\0' && list_is_sticky(list))
        list->kind = LIST_NORMAL; /* it can pass nothing on: it has to store what is too much */
    if (list_merge(list, offer))
        return;
    if (offer_is_expired(offer, clock_wall())) {
        list_expire(list, offer);
        return;
    }
    loop_lists_offer(list, offer);
    member_changed(list);
    list_want(list);
}

void
list_return(struct task_list *list, struct offer *offer)
{
    const struct task *task = offer->task;
    check(list_is_empty(&offer->node) && task->type == list->type);
    list->used = clock_monotonic();
    probe("task_returned");
    if (task_is_query(task)) {
        list_return_query(list, offer);
        return;
    }
#ifdef CADENZA_FAULT_returned_task_dropped
    offer_free(offer);
    return;
#endif
    struct outstanding *row = task->row == 0 ? backlog_find(list, task->number) : NULL;
    if (task->row == 0 && (row == NULL || row->offer != NULL || row->is_done)) {
        offer_free(offer); /* the store has it, and it is or will be read again */
        return;
    }
    if (list_merge(list, offer))
        return;
    if (row != NULL)
        row->offer = offer;
    else
        list_know(list, offer);
    backlog_number(list, offer);
    list_push_front(&list->waiting, &offer->node);
    list->waiting_count++;
    if (list_is_sticky(list) && !list_is_polled(list))
        list_pass_on(list);
    else
        list_dispatch(list);
}

void
list_finish(struct task_list *list, struct offer *offer)
{
    int64_t number = offer->task->number;
    check(offer->task->row == 0 && number != 0);
    struct outstanding *row = backlog_find(list, number);
    if (row != NULL && row->offer != NULL) { /* it was read again meanwhile */
        struct offer *again = row->offer;
        list_remove_waiting(list, again);
        offer_free(again);
        row->offer = NULL;
    }
    backlog_finish(list, number);
    offer_free(offer);
}

/* --- polls ------------------------------------------------------------------------------------ */

static void
poll_expired(struct timer *timer)
{
    struct waiting_poll *poll = container_of(timer, struct waiting_poll, timer);
    struct task_list *list = poll->list;
    if (list->loop_lists->is_closing)
        return;
    if (waiting_poll_is_reserved(poll)) {
        probe("reservation_overdue");
        reservation_release(poll);
        return;
    }
    check(poll->is_parked);
    list->polled = clock_monotonic();
    matching_count(list->loop_lists->matching->counters.timeouts, 1);
    waiting_poll_send_back(list->loop_lists->matching, poll, POLL_EMPTY);
    member_changed(list);
    task_list_check(list);
}

static int64_t
poll_deadline(const struct task_list *list, const struct waiting_poll *poll)
{
    struct dynamic_filter filter = list_filter(list);
    const struct dynamic *dynamic = list->loop_lists->matching->options.dynamic;
    int64_t longest = dynamic_duration(dynamic, DYNAMIC_LONG_POLL_EXPIRATION, &filter);
    int64_t latest = clock_monotonic() + longest;
    return poll->expiry < latest ? poll->expiry : latest;
}

static void
learn_from(struct task_list *list, const struct waiting_poll *poll)
{
    list->used = list->polled = clock_monotonic();
    if (list->domain_name == NULL)
        list->domain_name = arena_text(list->arena, poll->domain_name);
    if (list->kind != LIST_NORMAL && list->base_name[0] == '\0' && poll->base_list[0] != '\0')
        list->base_name = arena_text(list->arena, poll->base_list);
    if (poll->list_id.type == TASK_ACTIVITY && poll->rate_per_second >= 0)
        member_request_rate(list, poll->rate_per_second);
    pollers_note(list, poll);
}

void
list_take_poll(struct task_list *list, struct waiting_poll *poll)
{
    check(poll->list_id.type == list->type);
    learn_from(list, poll);
    root_refresh(list);
    poll->since = clock_monotonic();
    poll->list = list;
    poll->is_parked = true;
    list_push_back(&list->polls, &poll->node);
    list->poll_count++;
    timer_init(&poll->timer, poll_expired);
    if (list->loop_lists->is_drained) {
        waiting_poll_send_back(list->loop_lists->matching, poll, POLL_EMPTY);
        return;
    }
    waiting_poll_start_timer(list, poll);
    list_dispatch(list);
}

void
waiting_poll_start_timer(struct task_list *list, struct waiting_poll *poll)
{
    timer_start(&poll->timer, poll_deadline(list, poll));
}

/* A sticky list belongs to one worker. When its last poll is withdrawn the worker is gone: what
 * waits for it goes to the others at once. */
void
list_withdraw(struct task_list *list, struct waiting_poll *poll)
{
    check(poll->list == list);
    waiting_poll_send_back(list->loop_lists->matching, poll, POLL_WITHDRAWN);
    probe("poll_withdrawn");
    member_changed(list);
    if (!list_is_sticky(list) || list->poll_count > 0)
        return;
    list->polled = clock_monotonic() - STICKY_WINDOW;
    list_pass_on(list);
    task_list_check(list);
}
