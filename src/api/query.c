/* query.c - the way of a query: a question about a run that one of its workers answers.
 *
 * Queries change nothing and are in memory alone. There are two ways to a worker. A query that need
 * not see everything, or that nothing could escape (the run is closed, or has no decision to be
 * completed), goes directly through matching: to the list of the worker that has the run in its
 * memory, and if that one is silent to the normal list, with all of the history. A strong query of
 * a run with a decision waits at the shard: it rides on a decision, or is set free when the run has
 * none any more, and goes directly then. All that is looked at on the way is durable.
 *
 * Who asks waits as a record (query.h). Whatever sets it going again is a fiber that begins with a
 * look at the run. A look at a shard that was lost takes it again, or says that one may retry. */
#include "api/query.h"

#include <stdio.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "matching/matching.h"
#include "wire/errors.h"
#include "wire/message.h"

#define FIRST_WAIT_MIN  NS_PER_S /* for the first decision */
#define FIRST_MARGIN    NS_PER_S /* before the caller's deadline */
#define ASKER_BYTES     4096
#define ASKED_BYTES_MAX ((size_t)256 * 1024 * 1024) /* of a loop */
#define PAUSE           (20 * NS_PER_MS)            /* when it was woken for nothing */

/* --- answers -------------------------------------------------------------------------------------
 */

static struct api_loop *
here(struct api *api)
{
    return &api->loops[loop_index(loop_self())];
}

struct asker *
asker_find(struct api *api, const char *id)
{
    return map_get(here(api)->askers, slice_text(id));
}

/* What a query takes while it waits: here, and as a task. */
static size_t
weight_of(struct slice question)
{
    return ASKER_BYTES + 3 * question.length;
}

void
asker_end(struct asker *asker)
{
    check(asker->home == loop_self() && asker->hand != HAND_SHARD);
    struct api_loop *loop = here(asker->parked.api);
    void *removed = map_remove(loop->askers, slice_text(asker->id));
    check(removed == asker && loop->asked_bytes >= weight_of(asker->question));
    loop->asked_bytes -= weight_of(asker->question);
    timer_stop(&asker->timer);
    timer_stop(&asker->poller_timer);
    if (asker->wait.result_arena != NULL)
        arena_free(asker->wait.result_arena);
    parked_end(&asker->parked);
}

void
asker_fail(struct asker *asker, struct error *err)
{
    parked_answer(&asker->parked, err);
}

void
asker_answer(struct asker *asker, const API(WorkflowQueryResult) *result)
{
    struct parked *parked = &asker->parked;
    struct error *err = NULL;
    if (parked->call == NULL)
        return;
    API(QueryWorkflowResponse) *response = (API(QueryWorkflowResponse) *)parked->call->response;
    if (result->result_type == API_VALUE(QUERY_RESULT_TYPE__QUERY_RESULT_TYPE_FAILED))
        err = error_new(parked->arena, ERR_QUERY_FAILED, "%s", result->error_message);
    else
        response->query_result = result->answer;
    parked_answer(parked, err);
}

static struct error *
draining_error(struct asker *asker)
{
    return error_new(asker->parked.arena, ERR_UNAVAILABLE, "The server is shutting down.");
}

/* The run is closed in a way that the caller does not want to hear of. */
static bool
is_rejected(const struct asker *asker, const struct query_view *view)
{
    if (view->is_open)
        return false;
    switch (asker->reject_condition) {
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
reject(struct asker *asker, const struct query_view *view)
{
    struct parked *parked = &asker->parked;
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
sticky_limit(const struct asker *asker, const struct query_view *view)
{
    int64_t end = clock_monotonic() + view->sticky_timeout * NS_PER_S;
    return end < asker->parked.deadline ? end : asker->parked.deadline;
}

/* Gives the query to a list. It may be answered before this returns. Yields. */
static struct error *
ask(struct asker *asker, enum list_kind kind, const char *list, int64_t until)
{
    struct arena *arena = asker->parked.arena;
    struct task task = {
        .type = TASK_DECISION,
        .kind = kind,
        .domain_id = asker->key.domain_id,
        .list = list,
        .normal_list = "",
        .run_domain_id = asker->key.domain_id,
        .workflow_id = asker->key.workflow_id,
        .run_id = asker->key.run_id,
        .created_time = clock_wall(),
        .expiry_time = clock_wall() + (until - clock_monotonic()),
        .query_id = asker->id,
        .query = asker->question,
    };
    asker->asked = task_copy(&task, arena);
    return matching_ask(asker->parked.api->options.matching, asker->asked, arena);
}

static bool
goes_to_sticky(const struct asker *asker, const struct query_view *view)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = asker->domain_name;
    return view->sticky_list[0] != '\0' && view->is_active_here &&
           caller_answers_sticky_queries(view->client_name, view->client_feature_version) &&
           dynamic_flag(asker->parked.api->options.dynamic, DYNAMIC_STICKY_QUERY, &filter);
}

/* The worker that has the run in its memory is gone or silent: decisions do not wait for it either
 * any more. Yields. */
static struct error *
forget_sticky(struct asker *asker)
{
    struct arena *arena = asker->parked.arena;
    mark("query_left_sticky_list");
    if (!asker->is_run_open)
        return NULL;
    struct error *err = engine_reset_sticky(asker->parked.api->options.engine, &asker->key, arena);
    bool is_gone =
        err != NULL && (err->kind == ERR_ALREADY_COMPLETED || err->kind == ERR_ENTITY_NOT_EXISTS);
    return is_gone ? NULL : err;
}

static struct error *
ask_directly(struct asker *asker, const struct query_view *view)
{
    struct error *err;
    asker->is_run_open = view->is_open;
    bool was_sticky = asker->asked != NULL;
    if (!was_sticky && goes_to_sticky(asker, view)) {
        int64_t until = sticky_limit(asker, view);
        err = ask(asker, LIST_STICKY, view->sticky_list, until);
        if (err == NULL)
            timer_start(&asker->timer, until);
        if (err == NULL || err->kind != ERR_STICKY_WORKER_UNAVAILABLE)
            return err;
        was_sticky = true;
    }
    err = was_sticky ? forget_sticky(asker) : NULL;
    if (err != NULL)
        return err;
    return ask(asker, LIST_NORMAL, view->list, asker->parked.deadline);
}

/* --- the way -------------------------------------------------------------------------------------
 */

/* What the shard had to say. True: that was all. */
static bool
take_shard_end(struct asker *asker)
{
    struct arena *arena = asker->parked.arena;
    struct shard_wait *wait = &asker->wait;
    enum query_end end = wait->end;
    wait->end = QUERY_FREE;
    switch (end) {
    case QUERY_FREE:
        return false;
    case QUERY_ANSWERED:
        asker_answer(asker, wait->result);
        return true;
    case QUERY_FULL:
        asker_fail(asker, error_new(arena, ERR_INTERNAL,
                                    "consistent query buffer is full, cannot accept new consistent "
                                    "queries"));
        return true;
    case QUERY_REFUSED:
        asker_fail(asker, error_new(arena, ERR_BAD_REQUEST, "client version not supported"));
        return true;
    }
    return true;
}

/* Waits at the shard, if it can. Yields. */
static struct error *
wait_at_shard(struct asker *asker, const struct query_view *view, bool is_keeping, int64_t until)
{
    struct arena *arena = asker->parked.arena;
    if (asker->awaited == view->next_event_id) {
        mark("query_woken_for_nothing");
        struct error *err = fiber_sleep(PAUSE, arena);
        if (err != NULL || asker->parked.call == NULL)
            return err;
    }
    asker->awaited = view->next_event_id;
    if (atomic_load(&asker->parked.api->is_draining)) /* who hurries us did not find us waiting */
        return draining_error(asker);
    if (!shard_wait_begin(asker, is_keeping, until))
        return error_new(arena, ERR_UNAVAILABLE, "too many queries begin to wait");
    return NULL;
}

static struct error *
wait_for_first_decision(struct asker *asker, const struct query_view *view)
{
    if (view->is_open && clock_monotonic() < asker->first_deadline)
        return wait_at_shard(asker, view, false, asker->first_deadline);
    mark("query_before_first_decision");
    return error_new(asker->parked.arena, ERR_QUERY_FAILED,
                     "workflow must handle at least one decision task before it can be queried");
}

/* Goes on from what the run is now. */
static struct error *
go_on(struct asker *asker, const struct query_view *view)
{
    asker->key.run_id = view->run_id;
    asker->list = view->list;
    asker->sticky_list = view->sticky_list;
    if (asker->asked == NULL && is_rejected(asker, view)) {
        reject(asker, view);
        return NULL;
    }
    if (view->previous_started_id <= 0)
        return wait_for_first_decision(asker, view);
    if (!asker->is_watched)
        poller_watch_begin(asker);
    bool must_wait = asker->asked == NULL && asker->is_strong && view->is_open &&
                     view->is_active_here && view->has_decision;
    if (must_wait)
        return wait_at_shard(asker, view, true, asker->parked.deadline);
    return ask_directly(asker, view);
}

void
asker_proceed(void *argument)
{
    struct asker *asker = argument;
    struct parked *parked = &asker->parked;
    check(asker->hand == HAND_FIBER);
    fiber_set_deadline(parked->deadline);
    if (parked->call != NULL && !take_shard_end(asker)) {
        struct query_view view;
        struct error *err = atomic_load(&parked->api->is_draining) ? draining_error(asker) : NULL;
        if (err == NULL && asker->is_unpolled)
            err = poller_refusal(asker);
        if (err == NULL && !asker->is_admitted)
            err = engine_admit(parked->api->options.engine, &asker->key, parked->arena);
        asker->is_admitted = true;
        if (err == NULL)
            err = engine_query_view(parked->api->options.engine, &asker->key, asker->is_strong,
                                    parked->arena, &view);
        if (err == NULL && parked->call != NULL)
            err = go_on(asker, &view);
        if (asker->hand == HAND_SHARD)
            return;
        if (err != NULL)
            asker_fail(asker, err);
    }
    bool is_draining = atomic_load(&parked->api->is_draining);
    if (parked->call != NULL && is_draining)
        asker_fail(asker, draining_error(asker));
    if (parked->call == NULL) { /* answered, or gone */
        if (asker->asked != NULL)
            matching_unask(parked->api->options.matching, asker->asked);
        asker_end(asker);
        return;
    }
    asker->hand = HAND_WORKER;
}

/* Waiting is over: for the first decision, or for a worker that has the run in its memory. */
static void
time_is_over(struct timer *timer)
{
    struct asker *asker = container_of(timer, struct asker, timer);
    if (asker->hand == HAND_SHARD) {
        shard_wait_stop(asker);
    } else if (asker->hand == HAND_WORKER && asker->asked->kind == LIST_STICKY) {
        matching_unask(asker->parked.api->options.matching, asker->asked);
        asker->hand = HAND_FIBER;
        fiber_start("query", asker_proceed, asker);
    }
}

/* The caller has gone, or the server drains. */
static void
hurry(struct parked *parked)
{
    struct asker *asker = container_of(parked, struct asker, parked);
    if (asker->hand == HAND_SHARD) {
        shard_wait_stop(asker);
    } else if (asker->hand == HAND_WORKER) {
        matching_unask(parked->api->options.matching, asker->asked);
        if (parked->call != NULL)
            asker_fail(asker, draining_error(asker));
        asker_end(asker);
    }
}

/* --- the beginning -------------------------------------------------------------------------------
 */

static void
make_id(struct asker *asker)
{
    struct uuid uuid = uuid_new_v4();
    char text[UUID_TEXT_LENGTH + 1];
    uuid_format(&uuid, text);
    snprintf(asker->id, sizeof asker->id, "%s-%u", text, loop_index(asker->home));
}

struct error *
asker_begin(struct asker *asker, struct rpc_call *call)
{
    struct api_loop *loop = here(api_of(call));
    if (loop->asked_bytes >= ASKED_BYTES_MAX)
        return errors_service_busy(call->arena, "", "Too many queries wait for an answer.");
    asker->parked.api = api_of(call);
    asker->parked.hurry = hurry;
    asker->home = loop_self();
    int64_t now = clock_monotonic(), latest = grpc_call_deadline(call->grpc) - FIRST_MARGIN;
    asker->first_deadline = latest > now + FIRST_WAIT_MIN ? latest : now + FIRST_WAIT_MIN;
    make_id(asker);
    timer_init(&asker->timer, time_is_over);
    poller_watch_init(asker);
    shard_wait_init(asker);
    map_put(loop->askers, slice_text(asker->id), asker);
    loop->asked_bytes += weight_of(asker->question);
    parked_begin(&asker->parked, call);
    fiber_start("query", asker_proceed, asker);
    return NULL;
}
