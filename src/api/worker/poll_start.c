/* poll_start.c - a poll has found a task: its start is recorded (start_attempt.h), unless the step
 * that made the task did that already, and the worker gets it. If it cannot be started here, the
 * poll waits on. */
#include "api/call/tokens.h"
#include "api/query/query.h"
#include "api/worker/poll.h"
#include "api/worker/start_attempt.h"
#include "base/check.h"
#include "domain/domains.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"
#include "wire/presence.h"

/* --- the answers ---------------------------------------------------------------------------------
 */

static void
answer_decision(struct parked_poll *waiting, const struct start_attempt *start_attempt)
{
    struct parked *parked = &waiting->parked;
    struct started_decision decision = {
        .domain_id = start_attempt->task->run_domain_id,
        .domain_name = waiting->poll.domain_name,
        .workflow_id = start_attempt->task->workflow_id,
        .start = &start_attempt->decision,
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
activity_token(const struct start_attempt *start_attempt, struct arena *arena)
{
    const STORED(PendingActivity) *activity = start_attempt->activity.activity;
    struct task_token token = {
        .domain_id = start_attempt->task->run_domain_id,
        .workflow_id = start_attempt->task->workflow_id,
        .workflow_type = start_attempt->activity.workflow_type->name,
        .run_id = start_attempt->activity.run_id,
        .schedule_id = activity->schedule_id,
        .schedule_attempt = activity->attempt,
        .activity_id = activity->activity_id,
        .activity_type = activity->activity_type == NULL ? "" : activity->activity_type->name,
    };
    return task_token_write(&token, arena);
}

/* The name of the run's domain, which may be another than the list's. */
static char *
run_domain_name(const struct parked_poll *waiting, const struct task *task)
{
    const struct domains *domains = waiting->parked.api->options.domains;
    const struct domain *domain = domains_find_id(domains, task->run_domain_id);
    return arena_text(waiting->parked.arena, domain == NULL ? "" : domain->name);
}

static void
fill_activity(const struct parked_poll *waiting, const struct start_attempt *start_attempt,
              API(PollForActivityTaskResponse) *response)
{
    struct arena *arena = waiting->parked.arena;
    const STORED(PendingActivity) *activity = start_attempt->activity.activity;
    API(WorkflowExecution) *execution = message_new(arena, API_TYPE(workflow_execution));
    execution->workflow_id = (char *)start_attempt->task->workflow_id;
    execution->run_id = (char *)start_attempt->activity.run_id;
    response->task_token = presence_make_bytes(activity_token(start_attempt, arena));
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
    response->workflow_type = (API(WorkflowType) *)start_attempt->activity.workflow_type;
    response->workflow_domain = run_domain_name(waiting, start_attempt->task);
    response->header = activity->header;
    response->auto_config_hint = poll_hint(waiting, arena);
}

static void
answer_activity(struct parked_poll *waiting, const struct start_attempt *start_attempt)
{
    struct parked *parked = &waiting->parked;
    if (parked->call != NULL)
        fill_activity(waiting, start_attempt,
                      (API(PollForActivityTaskResponse) *)parked->call->response);
    poll_end(waiting, NULL);
}

/* --- the fiber -----------------------------------------------------------------------------------
 */

/* The step that made the task started it, too. */
static bool
is_started(const struct parked_poll *waiting, struct start_attempt *start_attempt)
{
    const struct task_start *start = waiting->poll.start;
    if (start == NULL)
        return false;
    start_attempt->decision = start->decision;
    start_attempt->activity = start->activity;
    return true;
}

void
poll_start(void *argument)
{
    struct parked_poll *waiting = argument;
    const struct api_options *options = &waiting->parked.api->options;
    const struct task *task = waiting->poll.task;
    check(task != NULL && !waiting->is_in_matching);
    if (waiting->parked.call == NULL) {
        poll_gone(waiting);
        return;
    }
    fiber_set_deadline(waiting->parked.deadline);
    if (task_is_query(task)) {
        poll_show_query(waiting);
        return;
    }
    struct start_attempt start_attempt = {.engine = options->engine,
                                          .matching = options->matching,
                                          .task = task,
                                          .identity = waiting->poll.identity,
                                          .same_as = waiting->poll.request_id,
                                          .arena = arena_new(0)};
    if (!is_started(waiting, &start_attempt) && start_attempt_record(&start_attempt) != STARTED)
        poll_again(waiting);
    else if (task->type == TASK_DECISION)
        answer_decision(waiting, &start_attempt);
    else
        answer_activity(waiting, &start_attempt);
    arena_free(start_attempt.arena); /* the poll may be gone by now */
}
