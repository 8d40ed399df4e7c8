/* flush.c - buffered events get their ids.
 *
 * Ends of activities and children go behind the rest, so that a start is before its end whatever
 * the order in which the two arrived. An end may name a start that got its id just now;
 * run_apply_id fills it in. */
#include "engine/run/inside.h"
#include "fiber/probe.h"

static void
flush_one(struct mutation *mutation, const STORED(BufferedEvent) *buffered)
{
    API(HistoryEvent) *event = message_copy(mutation->arena, &buffered->event->base);
    check(event->event_id == EVENT_BUFFERED);
    event->version = mutation->context->event_version;
#ifndef CADENZA_FAULT_buffered_lost
    event_append(mutation, event);
    run_apply_id(mutation, event);
#endif
    buffered_remove(mutation, buffered->number);
}

bool
mutation_flush_buffered(struct mutation *mutation)
{
    check(!run_has_started_decision(mutation->run));
    check(run_is_open(mutation->run) && !mutation->is_holding);
    size_t count;
    STORED(BufferedEvent) **all = buffered_all(mutation, &count);
    for (int is_last = 0; is_last <= 1; is_last++) {
        for (size_t i = 0; i < count; i++)
            if (event_goes_last(all[i]->event->attributes_case) == (is_last == 1))
                flush_one(mutation, all[i]);
    }
    check(!run_has_buffered(mutation->run));
    if (count > 0)
        probe("buffered_flushed");
    return count > 0;
}

void
mutation_drop_buffered(struct mutation *mutation)
{
    size_t count;
    STORED(BufferedEvent) **all = buffered_all(mutation, &count);
    for (size_t i = 0; i < count; i++)
        buffered_remove(mutation, all[i]->number);
    if (count > 0)
        probe("buffered_dropped");
}

/* The buffered TimerFired of this timer, or NULL. */
static const STORED(BufferedEvent) *
find_fired(const struct mutation *mutation, const char *timer_id)
{
    size_t count;
    STORED(BufferedEvent) **all = buffered_all(mutation, &count);
    for (size_t i = 0; i < count; i++) {
        const API(HistoryEvent) *event = all[i]->event;
        if (event->attributes_case == EVENT_KIND(TIMER_FIRED) &&
            strcmp(event->timer_fired_event_attributes->timer_id, timer_id) == 0)
            return all[i];
    }
    return NULL;
}

bool
mutation_unbuffer_timer(struct mutation *mutation, const char *timer_id)
{
    const STORED(BufferedEvent) *fired = find_fired(mutation, timer_id);
    if (fired == NULL)
        return false;
    struct run *run = mutation->run;
    check(run_find_timer(run, timer_id) == NULL); /* it went when it fired */
    STORED(PendingTimer) *timer = message_new(run->arena, STORED_TYPE(pending_timer));
    timer->event_version = fired->event->version;
    timer->started_id = fired->event->timer_fired_event_attributes->started_event_id;
    timer->timer_id = run_keep_text(run, timer_id);
    timer->fire_time = event_time(fired->event);
    buffered_remove(mutation, fired->number);
    mutation_put_timer(mutation, timer);
    return true;
}
