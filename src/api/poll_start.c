/* poll_start.c - a poll has found a task: its start is recorded, and the worker gets it.
 *
 * The start is recorded under a request id of the poll's own. Where it is in doubt whether it was,
 * the same is asked again: if it had been recorded, the answer is the same. What cannot be started
 * although it is there goes back to its list; what is void is dropped, and the poll waits on. */
#include "api/poll.h"
#include "api/query.h"
#include "api/tokens.h"
#include "base/check.h"
#include "domain/domains.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "wire/message.h"
#include "wire/presence.h"

#define ATTEMPTS_MAX 4
#define FIRST_PAUSE  (5 * NS_PER_MS) /* doubled each time */

/* A start as it is asked for. */
struct starting {
    struct parked_poll *waiting;
    const struct task *task;
    struct arena *arena; /* of this start alone: a poll may meet very many tasks that are void */
    char request_id[UUID_TEXT_LENGTH + 1];
    struct decision_start decision;
    struct activity_start activity;
};

static struct error *
ask_engine(struct starting *starting)
{
    struct parked_poll *waiting = starting->waiting;
    struct engine *engine = waiting->parked.api->options.engine;
    struct arena *arena = starting->arena;
    const char *identity = waiting->poll.identity;
    if (starting->task->type == TASK_DECISION)
        return engine_start_decision(engine, starting->task, starting->request_id, identity, arena,
                                     &starting->decision);
    return engine_start_activity(engine, starting->task, starting->request_id, identity, arena,
                                 &starting->activity);
}

/* What a refused start means for the task. */
enum verdict {
    TASK_IS_VOID,     /* nobody will ever start it */
    TASK_COMES_AGAIN, /* its row stands; whoever has the shard offers it */
    TASK_MUST_WAIT,   /* its run is not active here: its shard keeps it until it is */
    TASK_IS_IN_DOUBT, /* it may have been started by us */
};

static enum verdict
judge(const struct error *err)
{
    switch (err->kind) {
    case ERR_ENTITY_NOT_EXISTS:
    case ERR_ALREADY_COMPLETED:
    case ERR_EVENT_ALREADY_STARTED:
        return TASK_IS_VOID;
    case ERR_SHARD_OWNERSHIP_LOST:
        return TASK_COMES_AGAIN;
    case ERR_DOMAIN_NOT_ACTIVE:
    case ERR_BAD_REQUEST: /* the domain has no such cluster attribute */
        return TASK_MUST_WAIT;
    default:
        return TASK_IS_IN_DOUBT;
    }
}

static struct error *
record_start(struct starting *starting)
{
    struct error *err = ask_engine(starting);
    for (int i = 1; i < ATTEMPTS_MAX && err != NULL && judge(err) == TASK_IS_IN_DOUBT; i++) {
        mark("poll_start_asked_again");
        if (fiber_sleep(FIRST_PAUSE << i, starting->arena) != NULL)
            break;
        err = ask_engine(starting);
    }
    return err;
}

/* --- the answers ---------------------------------------------------------------------------------
 */

static void
answer_decision(struct starting *starting)
{
    struct parked_poll *waiting = starting->waiting;
    struct parked *parked = &waiting->parked;
    struct started_decision decision = {
        .domain_id = starting->task->run_domain_id,
        .domain_name = waiting->poll.domain_name,
        .workflow_id = starting->task->workflow_id,
        .start = &starting->decision,
    };
    API(PollForDecisionTaskResponse) *response =
        message_new(parked->arena, API_TYPE(poll_for_decision_task_response));
    struct pieces history;
    struct error *err = decision_show(parked->api, &decision, parked->arena, response, &history);
    if (err == NULL && parked->call != NULL) {
        response->backlog_count_hint = waiting->poll.backlog;
        response->auto_config_hint = poll_hint(waiting, parked->arena);
        parked->call->response = &response->base;
        parked->call->pieces = history.list.items;
        parked->call->piece_count = history.list.count;
    }
    poll_end(waiting, err);
}

static struct slice
activity_token(const struct starting *starting, struct arena *arena)
{
    const STORED(PendingActivity) *activity = starting->activity.activity;
    struct task_token token = {
        .domain_id = starting->task->run_domain_id,
        .workflow_id = starting->task->workflow_id,
        .workflow_type = starting->activity.workflow_type->name,
        .run_id = starting->activity.run_id,
        .schedule_id = activity->schedule_id,
        .schedule_attempt = activity->attempt,
        .activity_id = activity->activity_id,
        .activity_type = activity->activity_type == NULL ? "" : activity->activity_type->name,
    };
    return task_token_write(&token, arena);
}

/* The name of the run's domain, which may be another than the list's. */
static char *
run_domain_name(const struct starting *starting, struct arena *arena)
{
    const struct domains *domains = starting->waiting->parked.api->options.domains;
    const struct domain *domain = domains_find_id(domains, starting->task->run_domain_id);
    return arena_text(arena, domain == NULL ? "" : domain->name);
}

static void
fill_activity(const struct starting *starting, struct arena *arena,
              API(PollForActivityTaskResponse) *response)
{
    const STORED(PendingActivity) *activity = starting->activity.activity;
    API(WorkflowExecution) *execution = message_new(arena, API_TYPE(workflow_execution));
    execution->workflow_id = (char *)starting->task->workflow_id;
    execution->run_id = (char *)starting->activity.run_id;
    response->task_token = presence_make_bytes(activity_token(starting, arena));
    response->workflow_execution = execution;
    response->activity_id = activity->activity_id;
    response->activity_type = activity->activity_type;
    response->input = activity->input;
    response->scheduled_time = presence_make_timestamp(arena, activity->first_scheduled_time);
    response->scheduled_time_of_this_attempt =
        presence_make_timestamp(arena, activity->scheduled_time);
    response->started_time = presence_make_timestamp(arena, activity->started_time);
    response->schedule_to_close_timeout =
        presence_make_duration(arena, activity->schedule_to_close);
    response->start_to_close_timeout = presence_make_duration(arena, activity->start_to_close);
    response->heartbeat_timeout = presence_make_duration(arena, activity->heartbeat_timeout);
    response->attempt = activity->attempt;
    response->heartbeat_details = activity->heartbeat_details;
    response->workflow_type = (API(WorkflowType) *)starting->activity.workflow_type;
    response->workflow_domain = run_domain_name(starting, arena);
    response->header = activity->header;
    response->auto_config_hint = poll_hint(starting->waiting, arena);
}

static void
answer_activity(struct starting *starting)
{
    struct parked *parked = &starting->waiting->parked;
    if (parked->call != NULL)
        fill_activity(starting, parked->arena,
                      (API(PollForActivityTaskResponse) *)parked->call->response);
    poll_end(starting->waiting, NULL);
}

/* --- the fiber -----------------------------------------------------------------------------------
 */

static void
give_up(struct starting *starting, const struct error *err)
{
    const struct api_options *options = &starting->waiting->parked.api->options;
    switch (judge(err)) {
    case TASK_IS_VOID:
        mark("poll_start_void");
        engine_task_done(options->engine, starting->task);
        matching_finish(options->matching, starting->task);
        break;
    case TASK_COMES_AGAIN:
        if (starting->task->row != 0) {
            matching_finish(options->matching, starting->task);
            break;
        }
        mark("stored_task_returned"); /* no row stands behind it: the list must keep it */
        matching_return(options->matching, starting->task);
        break;
    case TASK_MUST_WAIT:
        mark("task_waits_for_its_domain");
        matching_finish(options->matching, starting->task);
        break;
    case TASK_IS_IN_DOUBT:
        matching_return(options->matching, starting->task);
        break;
    }
    poll_again(starting->waiting);
}

void
poll_start(void *argument)
{
    struct parked_poll *waiting = argument;
    struct starting starting = {.waiting = waiting, .task = waiting->poll.task};
    check(starting.task != NULL && !waiting->is_in_matching);
    if (waiting->parked.call == NULL) {
        mark("poller_gone_before_start");
        matching_return(waiting->parked.api->options.matching, starting.task);
        poll_end(waiting, NULL);
        return;
    }
    fiber_set_deadline(waiting->parked.deadline);
    if (task_is_query(starting.task)) {
        poll_show_query(waiting);
        return;
    }
    starting.arena = arena_new(0);
    struct uuid request_id = uuid_new_v4();
    uuid_format(&request_id, starting.request_id);
    struct error *err = record_start(&starting);
    if (err == NULL)
        matching_finish(waiting->parked.api->options.matching, starting.task);
    if (err != NULL)
        give_up(&starting, err);
    else if (starting.task->type == TASK_DECISION)
        answer_decision(&starting);
    else
        answer_activity(&starting);
    arena_free(starting.arena); /* the poll may be gone by now */
}
