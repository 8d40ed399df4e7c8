/* serve.c - a storm on one list does not delay the others. See inside.h.
 *
 * What comes to a quiet loop is served at once. When more comes in a tick than a few offers, the
 * rest waits in inboxes, and lists with one take turns, an offer each; so an offer to another list
 * waits for as many offers as there are busy lists, not for all that came before it. After a
 * portion the loop gets its tick back, for messages, polls and sockets. */
#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/inside.h"

/* One offer of the list whose turn it is. */
static void
serve_one(struct loop_lists *loop_lists)
{
    struct list *node = list_pop_front(&loop_lists->busy);
    check(node != NULL);
    struct task_list *list = list_entry(node, struct task_list, busy);
    check(list->loop_lists == loop_lists);
    struct list *first = list_pop_front(&list->inbox);
    check(first != NULL);
    if (!list_is_empty(&list->inbox))
        list_push_back(&loop_lists->busy, &list->busy);
    list_add(list, list_entry(first, struct offer, node));
    task_list_check(list);
}

static void
serve(struct loop_lists *loop_lists)
{
    if (loop_lists->is_closing)
        return;
    for (; loop_lists->served < SERVED_MAX && !list_is_empty(&loop_lists->busy);
         loop_lists->served++)
        serve_one(loop_lists);
    loop_lists->served = 0;
    if (!list_is_empty(&loop_lists->busy))
        timer_start(&loop_lists->serve_on, clock_monotonic());
}

static void
tick_ends(struct deferred *deferred)
{
    struct loop_lists *loop_lists = container_of(deferred, struct loop_lists, serve);
    if (timer_is_pending(&loop_lists->serve_on))
        loop_lists->served = 0; /* the next tick goes on */
    else
        serve(loop_lists);
}

static void
goes_on(struct timer *timer)
{
    serve(container_of(timer, struct loop_lists, serve_on));
}

void
loop_lists_serve_init(struct loop_lists *loop_lists)
{
    list_init(&loop_lists->busy);
    loop_lists->serve = (struct deferred)DEFERRED_INIT(loop_lists->serve, tick_ends);
    timer_init(&loop_lists->serve_on, goes_on);
}

void
loop_lists_serve_stop(struct loop_lists *loop_lists)
{
    loop_undefer(&loop_lists->serve);
    timer_stop(&loop_lists->serve_on);
}

void
list_receive(struct task_list *list, struct offer *offer)
{
    struct loop_lists *loop_lists = list->loop_lists;
    if (loop_lists->served < SERVED_AT_ONCE && list_is_empty(&loop_lists->busy)) {
        loop_lists->served++;
        loop_defer(&loop_lists->serve);
        list_add(list, offer);
        return;
    }
    if (list_is_empty(&list->inbox))
        list_push_back(&loop_lists->busy, &list->busy);
    list_push_back(&list->inbox, &offer->node);
    loop_defer(&loop_lists->serve);
    probe("task_lists_take_turns");
}
