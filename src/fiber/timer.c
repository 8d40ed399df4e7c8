/* timer.c - timers: one heap per loop, by due time, then by the order of starting.
 *
 * A timer that is due in the past is moved to just after this tick's time. So firing timers ends
 * even if each starts another at once, and a loop of them cannot starve the sockets. */
#include "fiber/timer.h"

#include "base/check.h"
#include "fiber/core.h"

void
timer_init(struct timer *timer, void (*fire)(struct timer *timer))
{
    check(fire != NULL);
    *timer = (struct timer){.fire = fire};
}

void
timer_start(struct timer *timer, int64_t due)
{
    struct loop *loop = loop_self();
    check(timer->fire != NULL);
    timer_stop(timer);
    if (due == NEVER)
        return;
    timer->node.key = due > loop->now ? due : loop->now + 1;
    timer->node.sequence = ++loop->timer_sequence;
    priority_push(&loop->timers, &timer->node);
    core_loop_kick(loop);
}

void
timer_stop(struct timer *timer)
{
    if (timer_is_pending(timer))
        priority_remove(&loop_self()->timers, &timer->node);
}

bool
timer_is_pending(const struct timer *timer)
{
    return priority_is_queued(&timer->node);
}

struct timer *
timer_first_due(struct loop *loop, int64_t now)
{
    struct priority_node *node = priority_first(&loop->timers);
    return node == NULL || node->key > now ? NULL : container_of(node, struct timer, node);
}

int64_t
timer_next_due(const struct loop *loop)
{
    const struct priority_node *node = priority_first(&loop->timers);
    return node == NULL ? NEVER : node->key;
}
