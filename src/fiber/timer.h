/* timer.h - a callback at a moment of the monotonic clock. A million may be pending on a loop.
 *
 * Intrusive: a timer is a member of what it is about. Starting a started timer moves it. Timers
 * with the same moment fire in the order they were started. The callback runs on the loop's stack:
 * no yield. */
#ifndef CADENZA_FIBER_TIMER_H
#define CADENZA_FIBER_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/priority.h"

struct timer {
    struct priority_node node; /* by due time; see base/priority.h */
    void (*fire)(struct timer *timer);
};

void timer_init(struct timer *timer, void (*fire)(struct timer *timer));
/* Fires at `due` on the current loop's monotonic clock; at once (next tick) if that is past. */
void timer_start(struct timer *timer, int64_t due);
/* Harmless when it is not pending. */
void timer_stop(struct timer *timer);
bool timer_is_pending(const struct timer *timer);

#endif
