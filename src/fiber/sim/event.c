/* event.c - the queue of what is to happen.
 *
 * Latencies are drawn in nanoseconds, so equal moments are rare; where they occur the order of
 * scheduling decides, which depends on nothing but the seed and the program. */
#include "fiber/sim/event.h"

#include "base/check.h"
#include "fiber/sim/inside.h"

void
event_init(struct event *event, enum step_kind kind, struct host *host,
           void (*fire)(struct world *world, struct event *event))
{
    *event = (struct event){.kind = kind, .host = host, .fire = fire};
    list_init(&event->owned);
}

void
event_schedule(struct world *world, struct event *event, struct host *owner, int64_t time)
{
    check(event->fire != NULL);
    event_cancel(world, event);
    event->node.key = time > world->now ? time : world->now;
    event->node.sequence = world->event_sequence++;
    struct heap *before = heap_select(world->heap); /* the queue may grow */
    priority_push(&world->events, &event->node);
    heap_select(before);
    if (owner != NULL)
        list_push_back(&owner->events, &event->owned);
}

void
event_cancel(struct world *world, struct event *event)
{
    if (event_is_pending(event))
        priority_remove(&world->events, &event->node);
    list_remove(&event->owned);
}

bool
event_is_pending(const struct event *event)
{
    return priority_is_queued(&event->node);
}

int64_t
event_next_time(const struct world *world)
{
    struct priority_node *first = priority_first(&world->events);
    return first == NULL ? NEVER : first->key;
}

struct event *
event_take(struct world *world)
{
    struct priority_node *node = priority_pop(&world->events);
    check(node != NULL);
    struct event *event = container_of(node, struct event, node);
    list_remove(&event->owned);
    return event;
}
