/* serve.c - a storm on one list leaves the others alone. See inside.h.
 *
 * What comes to a quiet loop is served at once. When more comes in a tick than a few offers, the
 * rest waits in inboxes, and lists with one take turns, an offer each; so an offer to another list
 * waits for as many offers as there are busy lists, not for all that came before it. After a
 * portion the loop gets its tick back, for letters, polls and sockets. */
#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "matching/inside.h"

/* One offer of the list whose turn it is. */
static void
serve_one(struct place *place)
{
    struct list *node = list_pop_front(&place->busy);
    check(node != NULL);
    struct task_list *list = list_entry(node, struct task_list, busy);
    check(list->place == place);
    struct list *first = list_pop_front(&list->inbox);
    check(first != NULL);
    if (!list_is_empty(&list->inbox))
        list_push_back(&place->busy, &list->busy);
    list_add(list, list_entry(first, struct offer, node));
}

static void
serve(struct place *place)
{
    for (; place->served < SERVED_MAX && !list_is_empty(&place->busy); place->served++)
        serve_one(place);
    place->served = 0;
    if (!list_is_empty(&place->busy))
        timer_start(&place->serve_on, clock_monotonic());
}

static void
tick_ends(struct deferred *deferred)
{
    struct place *place = container_of(deferred, struct place, serve);
    if (timer_is_pending(&place->serve_on))
        place->served = 0; /* the next tick goes on */
    else
        serve(place);
}

static void
goes_on(struct timer *timer)
{
    serve(container_of(timer, struct place, serve_on));
}

void
place_serve_init(struct place *place)
{
    list_init(&place->busy);
    place->serve = (struct deferred)DEFERRED_INIT(place->serve, tick_ends);
    timer_init(&place->serve_on, goes_on);
}

void
place_serve_stop(struct place *place)
{
    loop_undefer(&place->serve);
    timer_stop(&place->serve_on);
}

void
list_receive(struct task_list *list, struct offer *offer)
{
    struct place *place = list->place;
    if (place->served < SERVED_AT_ONCE && list_is_empty(&place->busy)) {
        place->served++;
        loop_defer(&place->serve);
        list_add(list, offer);
        return;
    }
    if (list_is_empty(&list->inbox))
        list_push_back(&place->busy, &list->busy);
    list_push_back(&list->inbox, &offer->node);
    loop_defer(&place->serve);
    mark("lists_take_turns");
}
