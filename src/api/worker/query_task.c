/* query_task.c - the worker's side of a query that goes directly: a poll comes back with it,
 * RespondQueryTaskCompleted with the answer.
 *
 * Nothing is recorded when a worker gets a query. Before that the querier is looked for, by the id
 * that the query carries, on the loop that is part of the id: a worker should not work for a caller
 * that has gone. A query whose worker has gone before it got it goes back to its list. */
#include "api/call/tokens.h"
#include "api/call/validate.h"
#include "api/query/query.h"
#include "api/worker/poll.h"
#include "base/check.h"
#include "base/text.h"
#include "fiber/probe.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

/* --- to the querier ---- */

/* What the loop of a querier is asked to do. */
struct querier_call {
    struct api *api;
    const char *id;
    const char *domain_id;
    const API(WorkflowQueryResult) *result; /* NULL: see `failure` */
    const struct error *failure; /* NULL, and no result: only whether it is there is asked */
    const struct caller *worker; /* the worker that answers; with a result only */
    bool is_there;
};

/* The loop that an id names; NULL: it is not one of ours. */
static struct loop *
owner_loop_of(const char *id)
{
    const char *dash = strrchr(id, '-');
    int64_t index;
    if (dash == NULL ||
        !text_parse_int64(slice_text(dash + 1), 0, (int64_t)loop_count() - 1, &index))
        return NULL;
    return loop_at((unsigned)index);
}

/* Ends the query with what a worker found. The shard does not hold it: a worker does, or the fiber
 * that is just giving it to one. */
static void
notify_querier(struct querier *querier, const struct querier_call *call)
{
    struct arena *arena = querier->parked.arena;
    querier_check(querier);
    check(call->result == NULL || call->failure == NULL);
    check((call->result == NULL) == (call->worker == NULL));
    struct error *err = error_copy(arena, call->failure);
    if (err == NULL && querier->is_strong)
        err = caller_check_strong_queries(call->worker, arena);
    if (err != NULL)
        querier_fail(querier, err);
    else
        querier_answer(querier, call->result);
    if (querier->holder == HELD_BY_WORKER) /* else its fiber ends it */
        querier_end(querier);
}

static void
call_on_loop(void *argument)
{
    struct querier_call *call = argument;
    struct querier *querier = querier_find(call->api, call->id);
    call->is_there = querier != NULL && querier->query_task != NULL &&
                     querier->parked.call != NULL &&
                     strcmp(querier->key.domain_id, call->domain_id) == 0;
    if (call->is_there && (call->result != NULL || call->failure != NULL))
        notify_querier(querier, call);
}

/* Yields. Error: ERR_BUSY, it was not reached. */
static struct error *
call_querier(struct querier_call *call, struct arena *arena)
{
    struct loop *owner_loop = owner_loop_of(call->id);
    call->is_there = false;
    return owner_loop == NULL ? NULL : loop_call(owner_loop, call_on_loop, call, arena);
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
give_up(struct parked_poll *waiting, struct querier_call *querier, const struct error *failure)
{
    probe("query_cannot_be_shown");
    querier->failure = failure;
    struct error *err = call_querier(querier, waiting->parked.arena);
    if (err != NULL) /* it will time out */
        probe("query_failure_not_sent");
    poll_again(waiting);
}

void
poll_show_query(struct parked_poll *waiting)
{
    struct parked *parked = &waiting->parked;
    const struct task *task = waiting->poll.task;
    struct querier_call querier = {
        .api = parked->api, .id = task->query_id, .domain_id = task->run_domain_id};
    check(task_is_query(task) && !waiting->is_in_matching);
    struct error *err = call_querier(&querier, parked->arena);
    if (err == NULL && !querier.is_there) {
        probe("query_of_nobody");
        poll_again(waiting);
        return;
    }
    API(PollForDecisionTaskResponse) *response =
        message_new(parked->arena, API_TYPE(poll_for_decision_task_response));
    struct pieces history;
    if (err == NULL)
        err = show(waiting, response, &history);
    if (parked->call == NULL || (err != NULL && may_be_shown_again(err))) {
        give_back(waiting);
    } else if (err != NULL) {
        give_up(waiting, &querier, err);
    } else {
        response->backlog_count_hint = waiting->poll.backlog;
        response->auto_config_hint = poll_hint(waiting, parked->arena);
        parked->call->response = &response->base;
        parked->call->pieces = history.list.items;
        parked->call->piece_count = history.list.count;
        poll_end(waiting, NULL);
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
    struct querier_call querier = {.api = api_of(call),
                                   .id = token.query_id,
                                   .domain_id = token.domain_id,
                                   .result = fitting_result(&limits, request->result),
                                   .worker = &worker};
    err = call_querier(&querier, call->arena);
    if (err != NULL || querier.is_there)
        return err;
    return errors_entity_not_exists(call->arena, NULL, "query task not found, or already expired");
}

struct error *
api_answer_query(struct api *api, const struct task *query, const API(WorkflowQueryResult) *result,
                 struct arena *arena)
{
    check(task_is_query(query) && result != NULL);
    static const struct caller self = {.name = "uber-go", .feature_version = "1.7.0"};
    struct querier_call querier = {.api = api,
                                   .id = query->query_id,
                                   .domain_id = query->run_domain_id,
                                   .result = result,
                                   .worker = &self};
    struct error *err = call_querier(&querier, arena);
    if (err != NULL || querier.is_there)
        return err;
    return errors_entity_not_exists(arena, NULL, "query task not found, or already expired");
}
