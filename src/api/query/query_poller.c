/* query_poller.c - queries of runs whose task list no worker polls. See query.h.
 *
 * Such a query would wait until its deadline for an answer that no worker can give. Where the run
 * is active in another cluster it is answered there: that is where its workers are. Else it is
 * refused after a moment. The moment is for workers that are just starting, or that reconnect after
 * this server was restarted: what is known of pollers is in memory. A worker that was seen in the
 * last five minutes, as DescribeTaskList shows, may come again; for it the query waits.
 *
 * This is looked at only when a query was not answered within the moment, so that others pay
 * nothing for it. The look yields, and the query may have ended afterwards: it is found again by
 * its id. */
#include "api/call/validate.h"
#include "api/query/query.h"
#include "base/check.h"
#include "domain/active.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/matching.h"
#include "wire/message.h"

#define POLLER_WAIT (2 * NS_PER_S)

/* Has anybody polled the list, or one of its partitions? Yields. */
static struct error *
is_list_polled(struct api *api, const char *domain_id, const char *list, struct arena *arena,
               bool *is_polled)
{
    API(DescribeTaskListResponse) *description =
        message_new(arena, API_TYPE(describe_task_list_response));
    struct list_spot spot = {.type = TASK_DECISION, .domain_id = domain_id, .name = {.list = list}};
    struct error *err = matching_describe(api->options.matching, &spot, false, arena, description);
    *is_polled = err != NULL || description->n_pollers > 0;
    return err;
}

/* --- of a query that waits ---- */

struct poller_check {
    struct api *api;
    struct arena *arena;
    char id[QUERY_ID_SIZE];
    const char *domain_id, *list, *sticky_list;
};

/* Takes it back from where it waits; it ends then. */
static void
give_up(struct querier *querier)
{
    check(querier->holder != HELD_BY_FIBER && !querier->is_unpolled);
    probe("query_without_worker");
    querier->is_unpolled = true;
    if (querier->holder == HELD_BY_SHARD) {
        shard_wait_stop(querier);
        return;
    }
    matching_cancel_query(querier->parked.api->options.matching, querier->query_task);
    querier->holder = HELD_BY_FIBER;
    fiber_start("query", querier_proceed, querier);
}

/* Does it wait for pollers of the normal list, or for a decision of any? */
static bool
is_waiting(const struct querier *querier)
{
    return querier->holder == HELD_BY_SHARD
               ? querier->wait.is_keeping
               : querier->holder == HELD_BY_WORKER && querier->query_task->kind == LIST_NORMAL;
}

static void
poller_check_main(void *argument)
{
    struct poller_check *poller_check = argument;
    struct api_loop *loop = api_here(poller_check->api);
    bool is_polled = true;
    struct error *err = is_list_polled(poller_check->api, poller_check->domain_id,
                                       poller_check->list, poller_check->arena, &is_polled);
    if (err == NULL && !is_polled && poller_check->sticky_list[0] != '\0')
        err = is_list_polled(poller_check->api, poller_check->domain_id, poller_check->sticky_list,
                             poller_check->arena, &is_polled);
    struct querier *querier = querier_find(poller_check->api, poller_check->id);
    if (querier != NULL && querier->parked.call != NULL && !is_polled && is_waiting(querier))
        give_up(querier);
    arena_free(poller_check->arena);
    latch_done(&loop->open);
}

static void
moment_is_over(struct timer *timer)
{
    struct querier *querier = container_of(timer, struct querier, poller_timer);
    if (!is_waiting(querier)) { /* with the worker that has the run in memory, or held by a fiber */
        poller_watch_begin(querier);
        return;
    }
    struct arena *arena = arena_new(1024);
    struct poller_check *poller_check = arena_make(arena, struct poller_check);
    *poller_check = (struct poller_check){.api = querier->parked.api,
                                          .arena = arena,
                                          .domain_id = arena_text(arena, querier->key.domain_id),
                                          .list = arena_text(arena, querier->list),
                                          .sticky_list = arena_text(arena, querier->sticky_list)};
    memcpy(poller_check->id, querier->id, sizeof poller_check->id);
    latch_add(&api_here(poller_check->api)->open, 1); /* the api lives until it has looked */
    fiber_start("query poller", poller_check_main, poller_check);
}

void
poller_watch_init(struct querier *querier)
{
    timer_init(&querier->poller_timer, moment_is_over);
}

void
poller_watch_begin(struct querier *querier)
{
    check(!timer_is_pending(&querier->poller_timer));
    querier->is_watched = true;
    timer_start(&querier->poller_timer, clock_monotonic() + POLLER_WAIT);
}

struct error *
poller_refusal(const struct querier *querier)
{
    check(querier->is_unpolled);
    return error_new(querier->parked.arena, ERR_QUERY_FAILED,
                     "No worker has polled task list %s of domain %s in cluster %s in the last "
                     "five minutes, so nobody can answer the query: start one there and ask again.",
                     querier->list, querier->domain_name,
                     querier->parked.api->options.group->current->name);
}

/* --- of a query that has just come ---- */

/* May its run be active in another cluster? No yield. */
static bool
may_be_elsewhere(const struct api *api, const struct domain *domain)
{
    return domain->record->domain->is_global_domain &&
           (domain_is_active_active(domain) ||
            domain_active(domain, NULL, api->options.group).status == ACTIVE_ELSEWHERE);
}

struct error *
poller_query_remote(struct rpc_call *call, const struct call_domain *domain,
                    const API(QueryWorkflowRequest) *request, bool *is_forwarded)
{
    struct api *api = api_of(call);
    struct query_view view;
    struct run_key key = {domain->id, request->workflow_execution->workflow_id,
                          request->workflow_execution->run_id};
    bool is_polled = true;
    *is_forwarded = false;
    if (!may_be_elsewhere(api, domain->domain) || !forward_is_allowed(call, domain->domain))
        return NULL;
    struct error *err = engine_query_view(api->options.engine, &key, false, call->arena, &view);
    if (err != NULL || view.is_active_here || view.active_cluster[0] == '\0')
        return NULL; /* the handler says what is wrong */
    err = is_list_polled(api, key.domain_id, view.list, call->arena, &is_polled);
    if (err != NULL || is_polled)
        return NULL;
    probe("query_asked_elsewhere");
    *is_forwarded = true;
    return forward_to(call, domain->name, view.active_cluster);
}
