/* apply_timer.c - events about timers. */
#include "engine/run/inside.h"

void
apply_timer_started(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const API(TimerStartedEventAttributes) *started = event->timer_started_event_attributes;
    struct run *run = mutation->run;
    int64_t wait;
    check(run_find_timer(run, started->timer_id) == NULL);
    STORED(PendingTimer) *timer = message_new(run->arena, STORED_TYPE(pending_timer));
    timer->event_version = event->version;
    timer->started_id = event->event_id;
    timer->timer_id = run_keep_text(run, started->timer_id);
    bool is_endless =
        __builtin_mul_overflow(duration_seconds(started->start_to_fire_timeout), SECOND, &wait) ||
        __builtin_add_overflow(event_time(event), wait, &timer->fire_time);
    if (is_endless)
        timer->fire_time = INT64_MAX;
#ifdef CADENZA_FAULT_timer_early
    timer->fire_time -= SECOND;
#endif
    mutation_put_timer(mutation, timer);
}

void
apply_timer_ended(struct mutation *mutation, const API(HistoryEvent) *event)
{
    bool has_fired = event->attributes_case == EVENT_KIND(TIMER_FIRED);
    check(has_fired || event->attributes_case == EVENT_KIND(TIMER_CANCELED));
    const char *timer_id = has_fired ? event->timer_fired_event_attributes->timer_id
                                     : event->timer_canceled_event_attributes->timer_id;
    int64_t started_id = has_fired ? event->timer_fired_event_attributes->started_event_id
                                   : event->timer_canceled_event_attributes->started_event_id;
    const STORED(PendingTimer) *timer = run_find_timer(mutation->run, timer_id);
    check_that(timer != NULL, "timer %s ends, but is not pending", timer_id);
    check(timer->started_id == started_id);
    mutation_remove_timer(mutation, timer_id);
}
