/* tend.c - a list is looked after now and then: what expired goes, and so does a list that nobody
 * uses. See inside.h.
 *
 * A list leaves memory in steps, one at a time: what it has in memory is stored (its outbox rows
 * may go then), what was read is forgotten (the store has it), its writer is closed. Whatever comes
 * meanwhile keeps the list. */
#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/inside.h"

static void
drop_expired(struct task_list *list)
{
    int64_t wall = clock_wall();
    list_each_safe(node, &list->waiting) {
        struct offer *offer = list_entry(node, struct offer, node);
        if (!offer_is_expired(offer, wall))
            continue;
        list_remove_waiting(list, offer);
        list_expire(list, offer);
    }
}

/* Other hosts may have stored something since we looked, or have taken the list. */
static void
look_again(struct task_list *list)
{
    struct backlog *backlog = &list->backlog;
    if (list->loop_lists->matching->options.is_alone || list_is_sticky(list))
        return;
    if (list->poll_count == 0 && !member_is_wanted_elsewhere(list))
        return;
    if (backlog_is_behind(list) || backlog->is_worked || backlog->is_queued)
        return;
    if (clock_monotonic() - list->looked < LOOK_INTERVAL)
        return;
    backlog->is_loaded = false;
    backlog_kick(list);
}

static int64_t
idle_time(const struct task_list *list)
{
    struct dynamic_filter filter = list_filter(list);
    const struct dynamic *dynamic = list->loop_lists->matching->options.dynamic;
    return dynamic_duration(dynamic, DYNAMIC_TASK_LIST_IDLE_TIME, &filter);
}

static bool
is_idle(const struct task_list *list)
{
    const struct backlog *backlog = &list->backlog;
    if (list->poll_count > 0 || list->users > 0 || list->is_unloading || backlog->is_worked ||
        backlog->is_queued || timer_is_pending(&backlog->retry) || list->member.invited > 0)
        return false;
    if (list->is_served && list->waiting_count > 0)
        return false;
    return clock_monotonic() - list->used >= idle_time(list);
}

static bool
has_unstored(const struct task_list *list)
{
    list_each(node, &list->waiting)
        if (!backlog_has_row(list, list_entry(node, struct offer, node)))
            return true;
    return false;
}

bool
list_is_unused(const struct task_list *list)
{
    const struct backlog *backlog = &list->backlog;
    return list->poll_count == 0 && list->users == 0 && list->waiting_count == 0 &&
           list->query_count == 0 && list_is_empty(&list->inbox) &&
           list_is_empty(&backlog->pending) && list_is_empty(&backlog->in_flight);
}

/* One step towards the end; true: it is freed. */
static bool
unload(struct task_list *list)
{
    struct backlog *backlog = &list->backlog;
    if (list_is_sticky(list)) {
        list_pass_on(list);
    } else if (has_unstored(list)) {
        if (backlog->is_loaded && !backlog->is_failed && !backlog->is_putting_away)
            backlog_put_away(list);
        return false;
    } else {
        backlog_forget_read(list);
        backlog_flush(list, true);
    }
    if (!list_is_unused(list) || backlog->is_queued)
        return false;
    if (backlog->writer != NULL) {
        list->is_unloading = true;
        backlog_kick(list);
        return false;
    }
    probe("task_list_unloaded");
    list_free(list);
    return true;
}

static void
plan(struct task_list *list)
{
    int64_t interval = list->loop_lists->matching->options.is_alone ? TEND_INTERVAL : LOOK_INTERVAL;
    int64_t idle = idle_time(list);
    if (idle < interval)
        interval = idle < NS_PER_MS ? NS_PER_MS : idle;
    timer_start(&list->tend, clock_monotonic() + interval);
}

static void
tend(struct timer *timer)
{
    struct task_list *list = container_of(timer, struct task_list, tend);
    if (list->loop_lists->is_closing)
        return;
    pollers_forget_old(list);
    drop_expired(list);
    list_expire_queries(list);
    if (list_is_sticky(list) && !list_is_polled(list))
        list_pass_on(list);
    look_again(list);
    root_refresh(list);
    member_tend(list);
    backlog_find_lost(list);
    if (list->backlog.acked > list->backlog.deleted)
        backlog_flush(list, true);
    list_want(list);
    if (is_idle(list) && unload(list))
        return;
    task_list_check(list);
    plan(list);
}

void
list_tend_begin(struct task_list *list)
{
    timer_init(&list->tend, tend);
    plan(list);
}
