/* query.c - queries on their way to a poller. See matching.h.
 *
 * A query is an offer without a row: somebody waits for its answer, so it goes before tasks, and it
 * is worth nothing once nobody waits. It stays on the list that it was given to: whether another
 * list may answer as well, who asks decides. */
#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "matching/inside.h"
#include "wire/errors.h"

static void
drop_query(struct task_list *list, struct offer *offer)
{
    check(list->ask_count > 0);
    list_remove(&offer->node);
    list->ask_count--;
    offer_free(offer);
}

/* The first that somebody waits for; NULL: none. */
static struct offer *
first_query(struct task_list *list)
{
    int64_t wall = clock_wall();
    while (!list_is_empty(&list->asks)) {
        struct offer *offer = list_entry(list->asks.next, struct offer, node);
        if (!offer_is_expired(offer, wall))
            return offer;
        drop_query(list, offer);
    }
    return NULL;
}

struct offer *
list_take_query(struct task_list *list)
{
    struct offer *offer = first_query(list);
    if (offer == NULL)
        return NULL;
    check(list->ask_count > 0 && task_is_query(offer->task));
    list_remove(&offer->node);
    list->ask_count--;
    return offer;
}

void
list_dispatch_queries(struct task_list *list)
{
    while (list->poll_count > 0) {
        struct offer *offer = list_take_query(list);
        if (offer == NULL)
            return;
        list_match(list, offer);
    }
}

void
list_return_query(struct task_list *list, struct offer *offer)
{
    check(task_is_query(offer->task));
    mark("query_returned");
    list_push_front(&list->asks, &offer->node);
    list->ask_count++;
    list_dispatch_queries(list);
    member_changed(list);
    list_want(list);
}

void
list_unask(struct task_list *list, struct offer *named)
{
    list_each_safe(node, &list->asks) {
        struct offer *offer = list_entry(node, struct offer, node);
        if (strcmp(offer->task->query_id, named->task->query_id) == 0)
            drop_query(list, offer);
    }
    offer_free(named);
}

void
list_expire_queries(struct task_list *list)
{
    int64_t wall = clock_wall();
    list_each_safe(node, &list->asks) {
        struct offer *offer = list_entry(node, struct offer, node);
        if (offer_is_expired(offer, wall))
            drop_query(list, offer);
    }
}

/* --- the doors -----------------------------------------------------------------------------------
 */

struct ask_call {
    struct matching *matching;
    struct place *place;
    const struct task *query;
    struct arena *arena;
    struct error *err;
};

static void
ask_on_loop(void *argument)
{
    struct ask_call *call = argument;
    const struct task *query = call->query;
    if (call->place->is_drained) {
        call->err = error_new(call->arena, ERR_UNAVAILABLE, "The server is shutting down.");
        return;
    }
    struct address address = task_address(query);
    struct task_list *list = list_get(call->place, &address, query->kind);
    list->used = clock_monotonic();
    if (query->kind == LIST_STICKY && !list_is_polled(list)) {
        mark("query_without_sticky_worker");
        call->err = error_new(call->arena, ERR_STICKY_WORKER_UNAVAILABLE,
                              "sticky worker is unavailable, please use non-sticky task list.");
        return;
    }
    if (list->ask_count >= list_bound(list) || matching_is_full(call->matching, query->domain_id)) {
        call->err = errors_service_busy(call->arena, "", "Too many queries wait for a worker.");
        return;
    }
    struct offer *offer = offer_new(call->matching, query, ERRAND_ADD);
    list_push_back(&list->asks, &offer->node);
    list->ask_count++;
    list_dispatch_queries(list);
    member_changed(list);
    list_want(list);
}

struct error *
matching_ask(struct matching *matching, const struct task *query, struct arena *arena)
{
    check(task_is_query(query) && query->row == 0 && query->type == TASK_DECISION);
    struct task found = *query;
    task_find_partition(&found, arena);
    struct address address = task_address(&found);
    struct place *place = place_of(matching, &address);
    struct ask_call call = {.matching = matching, .place = place, .query = &found, .arena = arena};
    struct error *err = loop_call(place_loop(place), ask_on_loop, &call, arena);
    return err != NULL ? err : call.err;
}

void
matching_unask(struct matching *matching, const struct task *query)
{
    check(task_is_query(query));
    offer_send(offer_new(matching, query, ERRAND_UNASK));
}
