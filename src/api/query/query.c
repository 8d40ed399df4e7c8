/* query.c - the way of a query: a question about a run that one of its workers answers.
 *
 * Queries change nothing and are in memory alone. There are two ways to a worker. A query that need
 * not see everything, or that nothing could escape (the run is closed, or has no decision to be
 * completed), goes directly through matching: to the sticky list of the worker that has the run in
 * its memory, and if that worker does not answer, to the normal list with all of the history. A
 * strong query of a run with a decision waits at the shard: it goes out with a decision, or is
 * released when none is left, and goes directly then. All that is looked at on the way
 * is durable.
 *
 * The caller waits as a record (query.h). What continues it is always a fiber that begins by
 * looking at the run. A look at a shard that was lost takes the shard again, or ends with an error
 * that may be retried. */
#include "api/query/query.h"

#include <stdio.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "matching/matching.h"
#include "route/owner.h"
#include "wire/errors.h"
#include "wire/message.h"

#define FIRST_WAIT_MIN  NS_PER_S /* for the first decision */
#define FIRST_MARGIN    NS_PER_S /* before the caller's deadline */
#define QUERIER_BYTES   4096
#define QUERY_BYTES_MAX ((size_t)256 * 1024 * 1024) /* of a loop */
#define PAUSE           (20 * NS_PER_MS)            /* after it was woken for nothing */

/* --- answers -------------------------------------------------------------------------------------
 */

struct querier *
querier_find(struct api *api, const char *id)
{
    return map_get(api_here(api)->queriers, slice_text(id));
}

/* The memory of a query while it waits: here, and as a task. */
static size_t
weight_of(struct slice question)
{
    return QUERIER_BYTES + 3 * question.length;
}

void
querier_check(const struct querier *querier)
{
    check(querier_find(querier->parked.api, querier->id) == querier);
    check(querier->holder == HELD_BY_SHARD || querier->wait.run.number == 0);
    check(querier->holder != HELD_BY_WORKER || querier->query_task != NULL);
}

void
querier_end(struct querier *querier)
{
    querier_check(querier);
    check(querier->holder != HELD_BY_SHARD && querier->parked.call == NULL);
    struct api_loop *loop = api_here(querier->parked.api);
    void *removed = map_remove(loop->queriers, slice_text(querier->id));
    check(removed == querier && loop->query_bytes >= weight_of(querier->question));
    loop->query_bytes -= weight_of(querier->question);
    timer_stop(&querier->timer);
    timer_stop(&querier->poller_timer);
    parked_end(&querier->parked);
}

void
querier_fail(struct querier *querier, struct error *err)
{
    parked_answer(&querier->parked, err);
}

void
querier_answer(struct querier *querier, const API(WorkflowQueryResult) *result)
{
    struct parked *parked = &querier->parked;
    struct error *err = NULL;
    if (parked->call == NULL)
        return;
    API(QueryWorkflowResponse) *response = (API(QueryWorkflowResponse) *)parked->call->response;
    if (result->result_type == API_VALUE(QUERY_RESULT_TYPE__QUERY_RESULT_TYPE_FAILED))
        err = error_new(parked->call->arena, ERR_QUERY_FAILED, "%s", result->error_message);
    else
        response->query_result = result->answer;
    parked_answer(parked, err);
}

static struct error *
draining_error(struct querier *querier)
{
    return error_new(querier->parked.arena, ERR_UNAVAILABLE, "The server is shutting down.");
}

/* The run is closed in a way that the caller asked to be rejected for. */
static bool
is_rejected(const struct querier *querier, const struct query_view *view)
{
    if (view->is_open)
        return false;
    switch (querier->reject_condition) {
    case API_VALUE(QUERY_REJECT_CONDITION__QUERY_REJECT_CONDITION_NOT_OPEN):
        return true;
    case API_VALUE(QUERY_REJECT_CONDITION__QUERY_REJECT_CONDITION_NOT_COMPLETED_CLEANLY):
        return view->close_status !=
               API_VALUE(
                   WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_COMPLETED);
    default:
        return false;
    }
}

static void
reject(struct querier *querier, const struct query_view *view)
{
    struct parked *parked = &querier->parked;
    if (parked->call == NULL)
        return;
    API(QueryWorkflowResponse) *response = (API(QueryWorkflowResponse) *)parked->call->response;
    response->query_rejected = message_new(parked->arena, API_TYPE(query_rejected));
    response->query_rejected->close_status = view->close_status;
    parked_answer(parked, NULL);
}

/* --- directly ------------------------------------------------------------------------------------
 */

/* Until when the worker that has the run in its memory may answer, monotonic. */
static int64_t
sticky_limit(const struct querier *querier, const struct query_view *view)
{
    int64_t end = clock_monotonic() + view->sticky_timeout * NS_PER_S;
    return end < querier->parked.deadline ? end : querier->parked.deadline;
}

/* Gives the query to a list. It may be answered before this returns. Yields. */
static struct error *
send_to_list(struct querier *querier, enum list_kind kind, const char *list, int64_t until)
{
    struct arena *arena = querier->parked.arena;
    struct task task = {
        .type = TASK_DECISION,
        .kind = kind,
        .domain_id = querier->key.domain_id,
        .list = list,
        .normal_list = "",
        .run_domain_id = querier->key.domain_id,
        .workflow_id = querier->key.workflow_id,
        .run_id = querier->key.run_id,
        .created_time = clock_wall(),
        .expiry_time = clock_wall() + (until - clock_monotonic()),
        .query_id = querier->id,
        .query = querier->question,
    };
    querier->query_task = task_copy(&task, arena);
    return matching_add_query(querier->parked.api->options.matching, querier->query_task, arena);
}

static bool
goes_to_sticky(const struct querier *querier, const struct query_view *view)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = querier->domain_name;
    return view->sticky_list[0] != '\0' && view->is_active_here &&
           caller_answers_sticky_queries(view->client_name, view->client_feature_version) &&
           dynamic_flag(querier->parked.api->options.dynamic, DYNAMIC_STICKY_QUERY, &filter);
}

/* The worker that has the run in its memory is gone or silent: decisions do not wait for it either
 * any more. Yields. */
static struct error *
forget_sticky(struct querier *querier)
{
    struct arena *arena = querier->parked.arena;
    probe("query_left_sticky_list");
    if (!querier->is_run_open)
        return NULL;
    struct error *err =
        engine_reset_sticky(querier->parked.api->options.engine, &querier->key, arena);
    bool is_gone =
        err != NULL && (err->kind == ERR_ALREADY_COMPLETED || err->kind == ERR_ENTITY_NOT_EXISTS);
    return is_gone ? NULL : err;
}

static struct error *
send_directly(struct querier *querier, const struct query_view *view)
{
    struct error *err;
    querier->is_run_open = view->is_open;
    bool was_sticky = querier->query_task != NULL;
    check(!was_sticky ||
          querier->query_task->kind == LIST_STICKY); /* the normal list is the last */
    if (!was_sticky && goes_to_sticky(querier, view)) {
        int64_t until = sticky_limit(querier, view);
        err = send_to_list(querier, LIST_STICKY, view->sticky_list, until);
        if (err == NULL)
            timer_start(&querier->timer, until);
        if (err == NULL || err->kind != ERR_STICKY_WORKER_UNAVAILABLE)
            return err;
        was_sticky = true;
    }
    err = was_sticky ? forget_sticky(querier) : NULL;
    if (err != NULL)
        return err;
    return send_to_list(querier, LIST_NORMAL, view->list, querier->parked.deadline);
}

/* --- the way -------------------------------------------------------------------------------------
 */

/* Takes how waiting at the shard ended. True: that was the end of the query. */
static bool
take_shard_end(struct querier *querier)
{
    struct arena *arena = querier->parked.arena;
    struct shard_wait *wait = &querier->wait;
    enum query_end end = wait->end;
    wait->end = QUERY_FREE;
    switch (end) {
    case QUERY_FREE:
        return false;
    case QUERY_ANSWERED:
        querier_answer(querier, wait->result);
        return true;
    case QUERY_FULL:
        querier_fail(querier,
                     error_new(arena, ERR_INTERNAL,
                               "consistent query buffer is full, cannot accept new consistent "
                               "queries"));
        return true;
    case QUERY_REFUSED:
        querier_fail(querier, error_new(arena, ERR_BAD_REQUEST, "client version not supported"));
        return true;
    }
    return true;
}

/* Waits at the shard, if it can. Yields. */
static struct error *
wait_at_shard(struct querier *querier, const struct query_view *view, bool is_keeping,
              int64_t until)
{
    struct arena *arena = querier->parked.arena;
    if (querier->awaited == view->next_event_id) {
        probe("query_woken_for_nothing");
        struct error *err = fiber_sleep(PAUSE, arena);
        if (err != NULL || querier->parked.call == NULL)
            return err;
    }
    querier->awaited = view->next_event_id;
    if (atomic_load(&querier->parked.api->is_draining)) /* api_drain did not find it waiting */
        return draining_error(querier);
    if (!shard_wait_begin(querier, is_keeping, until))
        return error_new(arena, ERR_UNAVAILABLE, "too many queries begin to wait");
    return NULL;
}

static struct error *
wait_for_first_decision(struct querier *querier, const struct query_view *view)
{
    if (view->is_open && clock_monotonic() < querier->first_deadline)
        return wait_at_shard(querier, view, false, querier->first_deadline);
    probe("query_before_first_decision");
    return error_new(querier->parked.arena, ERR_QUERY_FAILED,
                     "workflow must handle at least one decision task before it can be queried");
}

/* Goes on from what the run is now. */
static struct error *
go_on(struct querier *querier, const struct query_view *view)
{
    querier->key.run_id = view->run_id;
    querier->list = view->list;
    querier->sticky_list = view->sticky_list;
    if (querier->query_task == NULL && is_rejected(querier, view)) {
        reject(querier, view);
        return NULL;
    }
    if (view->previous_started_id <= 0)
        return wait_for_first_decision(querier, view);
    if (!querier->is_watched)
        poller_watch_begin(querier);
    bool must_wait = querier->query_task == NULL && querier->is_strong && view->is_open &&
                     view->is_active_here && view->has_decision;
    if (must_wait)
        return wait_at_shard(querier, view, true, querier->parked.deadline);
    return send_directly(querier, view);
}

void
querier_proceed(void *argument)
{
    struct querier *querier = argument;
    struct parked *parked = &querier->parked;
    querier_check(querier);
    check(querier->holder == HELD_BY_FIBER);
    fiber_set_deadline(parked->deadline);
    if (parked->call != NULL && !take_shard_end(querier)) {
        struct query_view view;
        struct error *err = atomic_load(&parked->api->is_draining) ? draining_error(querier) : NULL;
        if (err == NULL && querier->is_unpolled)
            err = poller_refusal(querier);
        if (err == NULL && !querier->is_admitted)
            err = engine_admit(parked->api->options.engine, &querier->key, parked->arena);
        querier->is_admitted = true;
        if (err == NULL)
            err = engine_query_view(parked->api->options.engine, &querier->key, querier->is_strong,
                                    parked->arena, &view);
        if (err == NULL && parked->call != NULL)
            err = go_on(querier, &view);
        if (querier->holder == HELD_BY_SHARD)
            return;
        if (err != NULL)
            querier_fail(querier, err);
    }
    bool is_draining = atomic_load(&parked->api->is_draining);
    if (parked->call != NULL && is_draining)
        querier_fail(querier, draining_error(querier));
    if (parked->call == NULL) { /* answered, or gone */
        if (querier->query_task != NULL)
            matching_cancel_query(parked->api->options.matching, querier->query_task);
        querier_end(querier);
        return;
    }
    querier->holder = HELD_BY_WORKER;
    querier_check(querier);
}

/* Waiting is over: for the first decision, or for a worker that has the run in its memory. */
static void
time_is_over(struct timer *timer)
{
    struct querier *querier = container_of(timer, struct querier, timer);
    querier_check(querier);
    if (querier->holder == HELD_BY_SHARD) {
        shard_wait_stop(querier);
    } else if (querier->holder == HELD_BY_WORKER && querier->query_task->kind == LIST_STICKY) {
        matching_cancel_query(querier->parked.api->options.matching, querier->query_task);
        querier->holder = HELD_BY_FIBER;
        fiber_start("query", querier_proceed, querier);
    }
}

/* The caller has gone, or the server drains. */
static void
hurry(struct parked *parked)
{
    struct querier *querier = container_of(parked, struct querier, parked);
    querier_check(querier);
    if (querier->holder == HELD_BY_SHARD) {
        shard_wait_stop(querier);
    } else if (querier->holder == HELD_BY_WORKER) {
        matching_cancel_query(parked->api->options.matching, querier->query_task);
        if (parked->call != NULL)
            querier_fail(querier, draining_error(querier));
        querier_end(querier);
    }
}

/* --- the beginning -------------------------------------------------------------------------------
 */

static void
make_id(struct querier *querier)
{
    struct uuid uuid = uuid_new_v4();
    char text[UUID_TEXT_LENGTH + 1];
    uuid_format(&uuid, text);
    snprintf(querier->id, sizeof querier->id, "%s-%u", text, route_place_of(route_here()));
}

struct error *
querier_begin(struct querier *querier, struct rpc_call *call)
{
    struct api_loop *loop = api_here(api_of(call));
    if (loop->query_bytes >= QUERY_BYTES_MAX)
        return errors_service_busy(call->arena, "", "Too many queries wait for an answer.");
    querier->parked.api = api_of(call);
    querier->parked.hurry = hurry;
    int64_t now = clock_monotonic(), latest = call->arrival.deadline - FIRST_MARGIN;
    querier->first_deadline = latest > now + FIRST_WAIT_MIN ? latest : now + FIRST_WAIT_MIN;
    make_id(querier);
    timer_init(&querier->timer, time_is_over);
    poller_watch_init(querier);
    shard_wait_init(querier);
    void *same = map_put(loop->queriers, slice_text(querier->id), querier);
    check(same == NULL); /* ids are new */
    loop->query_bytes += weight_of(querier->question);
    parked_begin(&querier->parked, call);
    fiber_start("query", querier_proceed, querier);
    return NULL;
}
