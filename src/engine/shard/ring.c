/* ring.c - the fiber that rings alarms when they are due, a bounded number at a time.
 *
 * An alarm rings by the wall clock, never before its time. Its step runs in a fiber of its own; one
 * that fails (no room, the domain is not active here) is tried again, later each time. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"

#define RINGING_MAX 64              /* alarms that ring at a time */
#define LOOK_AGAIN  (10 * NS_PER_S) /* the wall clock may have jumped */
#define READ_DELAY  (500 * NS_PER_MS)

static int64_t
earlier(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* What became of an alarm that rang. */
static void
alarm_rang(struct alarm *alarm, const struct error *err, bool is_stale, bool is_held)
{
    struct tenure *tenure = alarm->tenure;
    struct alarms *alarms = &tenure->alarms;
    list_remove(&alarm->node);
    alarms->ringing_count--;
    fiber_cond_signal(&alarms->changed);
    if (err != NULL && !is_stale && !alarm->is_gone && !tenure->is_over) {
        log_debug(tenure->shard->options.log, "an alarm is tried again", log_error(err));
        if (is_held)
            alarm_hold(alarm);
        else
            alarm_delay(alarm);
        return;
    }
    if (err == NULL && !is_stale)
        figures_alarm(tenure->shard, alarm);
    if (!alarm->is_gone)
        map64_remove(alarms->by_row, alarm->row);
    memory_free(alarm);
}

static void
alarm_fiber(void *argument)
{
    struct alarm *alarm = argument;
    struct tenure *tenure = alarm->tenure;
    struct arena *arena = arena_new(0);
    bool is_stale = false;
    uint64_t version = tenure->view.handled;
    struct error *err = tenure_delete_closed(tenure, &alarm->key, alarm->row, arena, &is_stale);
    if (err == NULL && !is_stale)
        err = tenure_wake(tenure, &alarm->key, alarm->row, arena, &is_stale);
    /* If the view moved meanwhile, what the alarm waits for may have come: it is tried again. */
    bool is_held = facts_say_inactive(err) && tenure->view.handled == version;
    alarm_rang(alarm, err, is_stale, is_held);
    arena_free(arena);
    tenure_leave(tenure);
}

static void
alarm_ring(struct alarm *alarm)
{
    struct alarms *alarms = &alarm->tenure->alarms;
    alarm->state = ALARM_RINGING;
    list_push_back(&alarms->ringing, &alarm->node);
    alarms->ringing_count++;
    tenure_start_fiber(alarm->tenure, "alarm", alarm_fiber, alarm);
}

/* Rings what is due; returns when the next one is (monotonic). */
static int64_t
alarms_ring_due(struct tenure *tenure)
{
    struct alarms *alarms = &tenure->alarms;
    int64_t next = clock_monotonic() + LOOK_AGAIN;
    list_each_safe(node, &alarms->delayed) {
        struct alarm *alarm = list_entry(node, struct alarm, node);
        if (alarm->retry_time > clock_monotonic()) {
            next = earlier(next, alarm->retry_time);
        } else if (alarms->ringing_count < RINGING_MAX) {
            list_remove(node);
            alarms->delayed_count--;
            alarm_ring(alarm);
        }
    }
    while (tree_count(alarms->waiting) > 0 && alarms->ringing_count < RINGING_MAX &&
           alarms->delayed_count < alarms->count_max) {
        struct alarm *alarm = tree_first(alarms->waiting)->value;
        int64_t ahead = alarm->time - clock_wall();
        if (ahead > 0) /* never early */
            return earlier(next, clock_monotonic() + ahead);
        alarm_stop_waiting(alarm);
        alarm_ring(alarm);
    }
    return next; /* if too many ring: one that is over wakes us */
}

void
alarms_fiber(void *argument)
{
    struct tenure *tenure = argument;
    struct alarms *alarms = &tenure->alarms;
    struct arena *arena = arena_new(0);
    enum wake wake = WAKE_READY;
    while (!tenure->is_over && wake != WAKE_CANCELLED) {
        int64_t next = alarms_ring_due(tenure);
        if (alarms_may_read(alarms) && alarms->read_retry_time <= clock_monotonic()) {
            struct error *err = alarms_read(tenure, arena);
            alarms->read_retry_time = err == NULL ? 0 : clock_monotonic() + READ_DELAY;
            next = alarms->read_retry_time;
        }
        arena_reset(arena);
        if (!tenure->is_over && next > clock_monotonic())
            wake = fiber_cond_wait(&alarms->changed, next);
    }
    arena_free(arena);
    tenure_leave(tenure);
}
