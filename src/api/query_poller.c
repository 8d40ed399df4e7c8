/* query_poller.c - queries of runs whose task list nobody polls. See query.h.
 *
 * Such a query would wait until its deadline for an answer that nobody can give. Where the run is
 * active in another cluster it is answered there: that is where its workers are. Else it is refused
 * after a moment. The moment is for workers that are just being started, or come back after this
 * server was: what is known of pollers is in memory. A worker that was seen in the last five
 * minutes, as DescribeTaskList shows, may come again; for it the query waits.
 *
 * Whether anybody polls is looked at only when a query was not answered within the moment, so that
 * others pay nothing for it. The look yields, and the asker may be gone afterwards: it is found
 * again by its id. */
#include "api/query.h"
#include "api/validate.h"
#include "base/check.h"
#include "domain/active.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "matching/matching.h"
#include "wire/message.h"

#define POLLER_WAIT (2 * NS_PER_S)

/* Has anybody polled the list, or one of its partitions? Yields. */
static struct error *
is_list_polled(struct api *api, const char *domain_id, const char *list, struct arena *arena,
               bool *is_polled)
{
    API(DescribeTaskListResponse) *told = message_new(arena, API_TYPE(describe_task_list_response));
    struct list_spot spot = {.type = TASK_DECISION, .domain_id = domain_id, .name = {.list = list}};
    struct error *err = matching_describe(api->options.matching, &spot, false, arena, told);
    *is_polled = err != NULL || told->n_pollers > 0;
    return err;
}

/* --- of a query that waits ---- */

struct look {
    struct api *api;
    struct arena *arena;
    char id[QUERY_ID_SIZE];
    const char *domain_id, *list, *sticky_list;
};

/* Takes it back from where it waits; it ends then. */
static void
give_up(struct asker *asker)
{
    mark("query_without_worker");
    asker->is_unpolled = true;
    if (asker->hand == HAND_SHARD) {
        shard_wait_stop(asker);
        return;
    }
    matching_unask(asker->parked.api->options.matching, asker->asked);
    asker->hand = HAND_FIBER;
    fiber_start("query", asker_proceed, asker);
}

/* Does it wait for pollers of the normal list, or for a decision of any? */
static bool
is_waiting(const struct asker *asker)
{
    return asker->hand == HAND_SHARD
               ? asker->wait.is_keeping
               : asker->hand == HAND_WORKER && asker->asked->kind == LIST_NORMAL;
}

static void
look_fiber(void *argument)
{
    struct look *look = argument;
    struct api_loop *loop = api_here(look->api);
    bool is_polled = true;
    struct error *err =
        is_list_polled(look->api, look->domain_id, look->list, look->arena, &is_polled);
    if (err == NULL && !is_polled && look->sticky_list[0] != '\0')
        err =
            is_list_polled(look->api, look->domain_id, look->sticky_list, look->arena, &is_polled);
    struct asker *asker = asker_find(look->api, look->id);
    if (asker != NULL && asker->parked.call != NULL && !is_polled && is_waiting(asker))
        give_up(asker);
    arena_free(look->arena);
    latch_done(&loop->open);
}

static void
moment_is_over(struct timer *timer)
{
    struct asker *asker = container_of(timer, struct asker, poller_timer);
    if (!is_waiting(asker)) { /* with the worker that knows the run, or between two hands */
        poller_watch_begin(asker);
        return;
    }
    struct arena *arena = arena_new(1024);
    struct look *look = arena_make(arena, struct look);
    *look = (struct look){.api = asker->parked.api,
                          .arena = arena,
                          .domain_id = arena_text(arena, asker->key.domain_id),
                          .list = arena_text(arena, asker->list),
                          .sticky_list = arena_text(arena, asker->sticky_list)};
    memcpy(look->id, asker->id, sizeof look->id);
    latch_add(&api_here(look->api)->open, 1); /* the api lives until it has looked */
    fiber_start("query poller", look_fiber, look);
}

void
poller_watch_init(struct asker *asker)
{
    timer_init(&asker->poller_timer, moment_is_over);
}

void
poller_watch_begin(struct asker *asker)
{
    asker->is_watched = true;
    timer_start(&asker->poller_timer, clock_monotonic() + POLLER_WAIT);
}

struct error *
poller_refusal(const struct asker *asker)
{
    return error_new(asker->parked.arena, ERR_QUERY_FAILED,
                     "No worker has polled task list %s of domain %s in cluster %s in the last "
                     "five minutes, so nobody can answer the query: start one there and ask again.",
                     asker->list, asker->domain_name,
                     asker->parked.api->options.group->current->name);
}

/* --- of one that comes ---- */

/* May its run be active in another cluster? No yield. */
static bool
may_be_elsewhere(const struct api *api, const struct domain *domain)
{
    return domain->record->domain->is_global_domain &&
           (domain_is_active_active(domain) ||
            domain_active(domain, NULL, api->options.group).status == ACTIVE_ELSEWHERE);
}

struct error *
poller_ask_elsewhere(struct rpc_call *call, const struct call_domain *domain,
                     const API(QueryWorkflowRequest) *request, bool *is_asked)
{
    struct api *api = api_of(call);
    struct query_view view;
    struct run_key key = {domain->id, request->workflow_execution->workflow_id,
                          request->workflow_execution->run_id};
    bool is_polled = true;
    *is_asked = false;
    if (!may_be_elsewhere(api, domain->domain) || !forward_is_allowed(call, domain->domain))
        return NULL;
    struct error *err = engine_query_view(api->options.engine, &key, false, call->arena, &view);
    if (err != NULL || view.is_active_here || view.active_cluster[0] == '\0')
        return NULL; /* what is wrong is said where it is asked for */
    err = is_list_polled(api, key.domain_id, view.list, call->arena, &is_polled);
    if (err != NULL || is_polled)
        return NULL;
    mark("query_asked_elsewhere");
    *is_asked = true;
    return forward_to(call, domain->name, view.active_cluster);
}
