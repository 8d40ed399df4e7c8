/* query_task.c - the worker's side of a query that goes directly: a poll comes back with it,
 * RespondQueryTaskCompleted with the answer.
 *
 * Nothing is recorded when a worker gets a query. Before that the querier is looked for, by the id
 * that the query carries, at the place that is part of the id: a worker should not work for a
 * caller that has gone. A query whose worker has gone before it got it goes back to its list. */
#include "api/call/tokens.h"
#include "api/call/validate.h"
#include "api/query/query.h"
#include "api/worker/poll.h"
#include "base/check.h"
#include "base/text.h"
#include "cadenza/internal/v1/watch.pb-c.h"
#include "fiber/probe.h"
#include "route/ask.h"
#include "route/refusal.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

#define FIND_ATTEMPTS 3

/* --- to the querier ---- */

/* A querier, as a worker's call names it. */
struct querier_path {
    struct api *api;
    const char *id;
    const char *domain_id;
};

/* The querier that waits here; NULL: it has ended, or none of ours was meant. */
static struct querier *
find_here(struct api *api, const char *id, const char *domain_id)
{
    struct querier *querier = querier_find(api, id);
    bool is_there = querier != NULL && querier->query_task != NULL &&
                    querier->parked.call != NULL && strcmp(querier->key.domain_id, domain_id) == 0;
    return is_there ? querier : NULL;
}

static struct error *
serve_find(void *context, struct owner owner, const void *asked, struct arena *arena, void *result)
{
    const INTERNAL(FindQuery) *request = asked;
    INTERNAL(FoundQuery) *answer = result;
    answer->is_there = find_here(context, request->query_id, request->domain_id) != NULL;
    return NULL;
}

/* Ends the query with what a worker found. The shard does not hold it: a worker does, or the fiber
 * that is just giving it to one. */
static void
end_querier(struct querier *querier, const INTERNAL(EndQuery) * request)
{
    struct arena *arena = querier->parked.call->arena; /* its fiber may use the other one now */
    struct caller worker = {.name = request->worker_name,
                            .feature_version = request->worker_feature_version,
                            .library_version = request->worker_library_version};
    struct error *err = NULL;
    querier_check(querier);
    if (request->result == NULL)
        err = request->failure == NULL ? error_new(arena, ERR_INTERNAL, "no result")
                                       : refusal_from_message(request->failure, arena);
    if (err == NULL && querier->is_strong)
        err = caller_check_strong_queries(&worker, arena);
    if (err != NULL)
        querier_fail(querier, err);
    else
        querier_answer(querier, request->result);
    if (querier->holder == HELD_BY_WORKER) /* else its fiber ends it */
        querier_end(querier);
}

static struct error *
serve_end(void *context, struct owner owner, const void *asked, struct arena *arena, void *result)
{
    const INTERNAL(EndQuery) *request = asked;
    INTERNAL(FoundQuery) *answer = result;
    struct querier *querier = find_here(context, request->query_id, request->domain_id);
    answer->is_there = querier != NULL;
    if (querier != NULL)
        end_querier(querier, request);
    return NULL;
}

/* It only looks. Not answered: it is asked again; then the poll gives the query back to its list.
 */
static const struct route_question query_find = {
    .name = "query.find",
    .request = INTERNAL_TYPE(find_query),
    .answer = INTERNAL_TYPE(found_query),
    .serve = serve_find,
    .may_come_twice = true,
};
/* A second one finds the query ended, and its worker would be told so. Not answered: the worker
 * hears ERR_UNAVAILABLE and tries again; the caller of the query has its answer, or gets it then.
 */
static const struct route_question query_end = {
    .name = "query.end",
    .request = INTERNAL_TYPE(end_query),
    .answer = INTERNAL_TYPE(found_query),
    .serve = serve_end,
};

/* The place that an id names. False: it is not one of ours. */
static bool
find_place(const char *id, struct owner *place)
{
    const char *dash = strrchr(id, '-');
    int64_t index, most = (int64_t)route_place_count() - 1;
    if (dash == NULL || !text_parse_int64(slice_text(dash + 1), 0, most, &index))
        return false;
    *place = owner_at_place((unsigned)index);
    return true;
}

/* Asks where the query waits. Yields. Error: ERR_BUSY, ERR_UNAVAILABLE, it was not reached. */
static struct error *
ask_querier(const struct querier_path *path, const struct route_question *question,
            const void *request, struct arena *arena, bool *is_there)
{
    struct owner place;
    INTERNAL(FoundQuery) answer = INTERNAL_VALUE(FOUND_QUERY__INIT);
    *is_there = false;
    if (!find_place(path->id, &place))
        return NULL;
    struct error *err = route_ask(place, &path->api->service, question, request, arena, &answer);
    *is_there = answer.is_there;
    return err;
}

static struct error *
find_querier(const struct querier_path *path, struct arena *arena, bool *is_there)
{
    INTERNAL(FindQuery) request = INTERNAL_VALUE(FIND_QUERY__INIT);
    request.query_id = (char *)path->id;
    request.domain_id = (char *)path->domain_id;
    struct error *err;
    int attempts = FIND_ATTEMPTS;
    do
        err = ask_querier(path, &query_find, &request, arena, is_there);
    while (err != NULL && err->kind == ERR_UNAVAILABLE && --attempts > 0);
    return err;
}

static INTERNAL(EndQuery) end_request(const struct querier_path *path)
{
    INTERNAL(EndQuery) request = INTERNAL_VALUE(END_QUERY__INIT);
    request.query_id = (char *)path->id;
    request.domain_id = (char *)path->domain_id;
    return request;
}

/* A worker has answered. Errors also: ERR_ENTITY_NOT_EXISTS, nobody waits for it any more. */
static struct error *
answer_querier(const struct querier_path *path, const API(WorkflowQueryResult) *result,
               const struct caller *worker, struct arena *arena)
{
    bool is_there;
    INTERNAL(EndQuery) request = end_request(path);
    request.result = (API(WorkflowQueryResult) *)result;
    request.worker_name = (char *)worker->name;
    request.worker_feature_version = (char *)worker->feature_version;
    request.worker_library_version = (char *)worker->library_version;
    struct error *err = ask_querier(path, &query_end, &request, arena, &is_there);
    if (err != NULL || is_there)
        return err;
    return errors_entity_not_exists(arena, NULL, "query task not found, or already expired");
}

/* --- a poll has found a query --------------------------------------------------------------------
 */

static struct slice
token_of(const struct task *task, struct arena *arena)
{
    struct query_token token = {.domain_id = task->run_domain_id,
                                .workflow_id = task->workflow_id,
                                .run_id = task->run_id,
                                .list = task->list,
                                .query_id = task->query_id};
    return query_token_write(&token, arena);
}

/* The answer to the poll. A worker that has the run in its memory gets no history. */
static struct error *
show(struct parked_poll *waiting, API(PollForDecisionTaskResponse) *response,
     struct pieces *history)
{
    struct parked *parked = &waiting->parked;
    const struct task *task = waiting->poll.task;
    struct run_key key = {task->run_domain_id, task->workflow_id, task->run_id};
    struct query_view view;
    struct error *err =
        engine_query_view(parked->api->options.engine, &key, false, parked->arena, &view);
    if (err == NULL)
        err = message_decode_as(parked->arena, ERR_CORRUPT, API_TYPE(workflow_query),
                                arena_slice(parked->arena, task->query), &response->query);
    if (err != NULL)
        return err;
    response->task_token = presence_make_bytes(token_of(task, parked->arena));
    struct started_query query = {.domain_name = waiting->poll.domain_name,
                                  .workflow_id = task->workflow_id,
                                  .view = &view,
                                  .is_sticky = task->kind == LIST_STICKY};
    return decision_show_query(parked->api, &query, parked->arena, response, history);
}

/* Whether another worker, or the same a little later, may get it instead: the poller's time is
 * over, or too much is on its way to another loop. */
static bool
may_be_shown_again(const struct error *err)
{
    return err->kind == ERR_DEADLINE || err->kind == ERR_CANCELLED || err->kind == ERR_BUSY;
}

static void
give_back(struct parked_poll *waiting)
{
    matching_return(waiting->parked.api->options.matching, waiting->poll.task);
    poll_end(waiting, NULL);
}

/* The query cannot be shown to any worker: its caller gets the error, and the poll waits on. */
static void
give_up(struct parked_poll *waiting, const struct querier_path *path, const struct error *failure)
{
    bool is_there;
    probe("query_cannot_be_shown");
    INTERNAL(Error) message = refusal_to_message(failure);
    INTERNAL(EndQuery) request = end_request(path);
    request.failure = &message;
    struct error *err = ask_querier(path, &query_end, &request, waiting->parked.arena, &is_there);
    if (err != NULL) /* it will time out */
        probe("query_failure_not_sent");
    poll_again(waiting);
}

/* The querier is there: the poll is answered with its query. */
static void
show_to_worker(struct parked_poll *waiting, const struct querier_path *path)
{
    struct parked *parked = &waiting->parked;
    API(PollForDecisionTaskResponse) *response =
        message_new(parked->arena, API_TYPE(poll_for_decision_task_response));
    struct pieces history;
    struct error *err = show(waiting, response, &history);
    if (parked->call == NULL || (err != NULL && may_be_shown_again(err))) {
        give_back(waiting);
    } else if (err != NULL) {
        give_up(waiting, path, err);
    } else {
        response->backlog_count_hint = waiting->poll.backlog;
        response->auto_config_hint = poll_hint(waiting, parked->arena);
        parked->call->response = &response->base;
        parked->call->pieces = history.list.items;
        parked->call->piece_count = history.list.count;
        poll_end(waiting, NULL);
    }
}

void
poll_show_query(struct parked_poll *waiting)
{
    struct parked *parked = &waiting->parked;
    const struct task *task = waiting->poll.task;
    struct querier_path path = {
        .api = parked->api, .id = task->query_id, .domain_id = task->run_domain_id};
    bool is_there;
    check(task_is_query(task) && !waiting->is_in_matching);
    struct error *err = find_querier(&path, parked->arena, &is_there);
    if (err != NULL) { /* not reached: it may be there */
        give_back(waiting);
    } else if (!is_there) {
        probe("query_of_nobody");
        poll_again(waiting);
    } else {
        show_to_worker(waiting, &path);
    }
}

/* --- the answer ----------------------------------------------------------------------------------
 */

/* The result that the caller gets: one that is too large becomes a failure that says so. */
static const API(WorkflowQueryResult) *
fitting_result(const struct limits *limits, const API(WorkflowQueryResult) *result)
{
    struct error *err =
        result == NULL ? NULL : validate_blob(limits, validate_payload_size(result->answer));
    if (result != NULL && err == NULL)
        return result;
    API(WorkflowQueryResult) *other = message_new(limits->arena, API_TYPE(workflow_query_result));
    other->result_type = err == NULL ? API_VALUE(QUERY_RESULT_TYPE__QUERY_RESULT_TYPE_ANSWERED)
                                     : API_VALUE(QUERY_RESULT_TYPE__QUERY_RESULT_TYPE_FAILED);
    other->error_message = err == NULL ? "" : arena_text(limits->arena, err->message);
    return other;
}

struct error *
api_complete_query(struct rpc_call *call)
{
    const API(RespondQueryTaskCompletedRequest) *request =
        (const API(RespondQueryTaskCompletedRequest) *)call->request;
    struct query_token token;
    struct call_domain domain;
    struct error *err =
        query_token_read(presence_read_bytes(request->task_token), call->arena, &token);
    if (err == NULL)
        err = validate_domain_id(call, token.domain_id, &domain);
    if (err != NULL)
        return err;
    struct limits limits = {api_of(call)->options.dynamic, domain.name, call->arena};
    struct caller worker = api_caller(call);
    struct querier_path path = {
        .api = api_of(call), .id = token.query_id, .domain_id = token.domain_id};
    return answer_querier(&path, fitting_result(&limits, request->result), &worker, call->arena);
}

struct error *
api_answer_query(struct api *api, const struct task *query, const API(WorkflowQueryResult) *result,
                 struct arena *arena)
{
    check(task_is_query(query) && result != NULL);
    static const struct caller self = {
        .name = "uber-go", .feature_version = "1.7.0", .library_version = ""};
    struct querier_path path = {
        .api = api, .id = query->query_id, .domain_id = query->run_domain_id};
    return answer_querier(&path, result, &self, arena);
}
