/* wakeups_fire.c - the fiber that fires wake-up timers when they are due, a bounded number at a
 * time.
 *
 * A wake-up timer fires by the wall clock, never before its time. Its step runs in a fiber of its
 * own; one that fails (no room, the domain is not active here) is tried again, later each time. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/context.h"
#include "engine/shard/inside.h"
#include "engine/shard/metrics.h"
#include "engine/shard/retain.h"
#include "engine/shard/step.h"
#include "engine/shard/wakeups.h"
#include "fiber/clock.h"

#define FIRING_MAX     64              /* wake-up timers that fire at a time */
#define CHECK_INTERVAL (10 * NS_PER_S) /* the wall clock may have jumped */
#define READ_DELAY     (500 * NS_PER_MS)

static int64_t
earlier(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* What became of a wake-up timer that fired. */
static void
wakeup_fired(struct wakeup *wakeup, const struct error *err, bool is_stale, bool is_held)
{
    struct tenure *tenure = wakeup->tenure;
    struct wakeups *wakeups = &tenure->wakeups;
    check(wakeup->state == WAKEUP_FIRING && wakeups->firing_count > 0);
    list_remove(&wakeup->node);
    wakeups->firing_count--;
    fiber_cond_signal(&wakeups->changed);
    if (err != NULL && !is_stale && !wakeup->is_gone && !tenure->is_over) {
        log_debug(tenure->shard->options.log, "a wake-up timer is tried again", log_error(err));
        if (is_held)
            wakeup_hold(wakeup);
        else
            wakeup_delay(wakeup);
        return;
    }
    if (err == NULL && !is_stale)
        metrics_wakeup(tenure->shard, wakeup);
    if (!wakeup->is_gone) {
        struct wakeup *removed = map64_remove(wakeups->by_row, wakeup->row);
        check(removed == wakeup);
    }
    memory_free(wakeup);
}

static void
wakeup_fiber(void *argument)
{
    struct wakeup *wakeup = argument;
    struct tenure *tenure = wakeup->tenure;
    struct arena *arena = arena_new(0);
    bool is_stale = false;
    uint64_t version = tenure->applied_domains.handled;
    struct error *err = tenure_delete_closed(tenure, &wakeup->key, wakeup->row, arena, &is_stale);
    if (err == NULL && !is_stale)
        err = tenure_wake(tenure, &wakeup->key, wakeup->row, arena, &is_stale);
    /* If the applied domains moved meanwhile, what the wake-up timer waits for may have come: it is
     * tried again. */
    bool is_held = is_inactive_error(err) && tenure->applied_domains.handled == version;
    wakeup_fired(wakeup, err, is_stale, is_held);
    arena_free(arena);
    tenure_leave(tenure);
}

static void
wakeup_fire(struct wakeup *wakeup)
{
    struct wakeups *wakeups = &wakeup->tenure->wakeups;
    check(wakeups->firing_count < FIRING_MAX && list_is_empty(&wakeup->node));
    wakeup->state = WAKEUP_FIRING;
    list_push_back(&wakeups->firing, &wakeup->node);
    wakeups->firing_count++;
    tenure_start_fiber(wakeup->tenure, "wake-up timer", wakeup_fiber, wakeup);
}

/* Fires what is due; returns when the next one is (monotonic). */
static int64_t
wakeups_fire_due(struct tenure *tenure)
{
    struct wakeups *wakeups = &tenure->wakeups;
    int64_t next = clock_monotonic() + CHECK_INTERVAL;
    list_each_safe(node, &wakeups->delayed) {
        struct wakeup *wakeup = list_entry(node, struct wakeup, node);
        check(wakeup->state == WAKEUP_DELAYED);
        if (wakeup->retry_time > clock_monotonic()) {
            next = earlier(next, wakeup->retry_time);
        } else if (wakeups->firing_count < FIRING_MAX) {
            list_remove(node);
            wakeups->delayed_count--;
            wakeup_fire(wakeup);
        }
    }
    while (tree_count(wakeups->waiting) > 0 && wakeups->firing_count < FIRING_MAX &&
           wakeups->delayed_count < wakeups->count_max) {
        struct wakeup *wakeup = tree_first(wakeups->waiting)->value;
        int64_t ahead = wakeup->time - clock_wall();
        if (ahead > 0) /* never early */
            return earlier(next, clock_monotonic() + ahead);
        wakeup_stop_waiting(wakeup);
        wakeup_fire(wakeup);
    }
    return next; /* if too many fire: one that is over wakes us */
}

void
wakeups_fiber(void *argument)
{
    struct tenure *tenure = argument;
    struct wakeups *wakeups = &tenure->wakeups;
    struct arena *arena = arena_new(0);
    enum wake wake = WAKE_READY;
    while (!tenure->is_over && wake != WAKE_CANCELLED) {
        int64_t next = wakeups_fire_due(tenure);
        if (wakeups_may_read(wakeups) && wakeups->read_retry_time <= clock_monotonic()) {
            struct error *err = wakeups_read(tenure, arena);
            wakeups->read_retry_time = err == NULL ? 0 : clock_monotonic() + READ_DELAY;
            next = wakeups->read_retry_time;
        }
        arena_reset(arena);
        if (!tenure->is_over && next > clock_monotonic())
            wake = fiber_cond_wait(&wakeups->changed, next);
    }
    arena_free(arena);
    tenure_leave(tenure);
}
