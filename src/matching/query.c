/* query.c - queries on their way to a poller. See matching.h.
 *
 * A query is an offer without a row: somebody waits for its answer, so it goes before tasks, and it
 * is worth nothing once nobody waits. It stays on the list that it was given to: whether another
 * list may answer as well, who asks decides. */
#include "base/check.h"
#include "cadenza/internal/v1/error.pb-c.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/inside.h"
#include "route/ask.h"
#include "wire/errors.h"

static void
drop_query(struct task_list *list, struct offer *offer)
{
    check(list->query_count > 0);
    list_remove(&offer->node);
    list->query_count--;
    offer_free(offer);
}

/* The first that somebody waits for; NULL: none. */
static struct offer *
first_query(struct task_list *list)
{
    int64_t wall = clock_wall();
    while (!list_is_empty(&list->queries)) {
        struct offer *offer = list_entry(list->queries.next, struct offer, node);
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
    check(list->query_count > 0 && task_is_query(offer->task));
    list_remove(&offer->node);
    list->query_count--;
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
    probe("query_returned");
    list_push_front(&list->queries, &offer->node);
    list->query_count++;
    list_dispatch_queries(list);
    member_changed(list);
    list_want(list);
}

void
list_cancel_query(struct task_list *list, struct offer *named)
{
    list_each_safe(node, &list->queries) {
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
    list_each_safe(node, &list->queries) {
        struct offer *offer = list_entry(node, struct offer, node);
        if (offer_is_expired(offer, wall))
            drop_query(list, offer);
    }
}

/* --- the interface ---------------------------------------------------------------------------- */

static struct error *
check_query(struct task_list *list, const struct task *query, struct arena *arena)
{
    if (query->kind == LIST_STICKY && !list_is_polled(list)) {
        probe("query_without_sticky_worker");
        return error_new(arena, ERR_STICKY_WORKER_UNAVAILABLE,
                         "sticky worker is unavailable, please use non-sticky task list.");
    }
    if (list->query_count >= list_bound(list) ||
        matching_is_full(list->loop_lists->matching, query->domain_id))
        return errors_service_busy(arena, "", "Too many queries wait for a worker.");
    return NULL;
}

static struct error *
serve_query(void *context, struct owner owner, const void *argument, struct arena *arena,
            void *result)
{
    struct matching *matching = context;
    const INTERNAL(AddQueryRequest) *request = argument;
    struct loop_lists *loop_lists = loop_lists_here(matching);
    if (loop_lists->is_drained)
        return error_new(arena, ERR_UNAVAILABLE, "The server is shutting down.");
    struct task query = task_from_message(request->query);
    struct list_id list_id = list_id_of_task(&query);
    struct task_list *list = list_get(loop_lists, &list_id, query.kind);
    list->used = clock_monotonic();
    struct error *err = check_query(list, &query, arena);
    if (err != NULL)
        return err;
    struct offer *offer = offer_new(matching, &query, OFFER_ADD);
    offer_hold(matching, offer);
    list_push_back(&list->queries, &offer->node);
    list->query_count++;
    list_dispatch_queries(list);
    member_changed(list);
    list_want(list);
    task_list_check(list);
    return NULL;
}

/* Lost, or its answer: the asker is told that it may have been done, and cancels the query. Not
 * twice: two workers would work on it. */
static const struct route_question query_question = {
    .name = "list.add_query",
    .request = INTERNAL_TYPE(add_query_request),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_query,
};

struct error *
matching_add_query(struct matching *matching, const struct task *query, struct arena *arena)
{
    check(task_is_query(query) && query->row == 0 && query->type == TASK_DECISION);
    struct task found = *query;
    task_find_partition(&found, arena);
    struct list_id list_id = list_id_of_task(&found);
    INTERNAL(Task) task = task_to_message(&found);
    INTERNAL(AddQueryRequest) request = INTERNAL_VALUE(ADD_QUERY_REQUEST__INIT);
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    request.query = &task;
    return route_ask(list_owner(&list_id), &matching->service, &query_question, &request, arena,
                     &answer);
}

void
matching_cancel_query(struct matching *matching, const struct task *query)
{
    check(task_is_query(query));
    offer_send(offer_new(matching, query, OFFER_CANCEL_QUERY));
}
