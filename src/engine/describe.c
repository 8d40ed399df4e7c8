/* describe.c - a run as DescribeWorkflowExecution shows it. See engine.h.
 *
 * The answer is filled under the lock with pointers into the run and encoded there: one copy, of
 * all of it, and it is decoded again once everything it says is durable. */
#include "base/check.h"
#include "engine/inside.h"
#include "store/key.h"
#include "uber/cadence/api/v1/service_workflow.pb-c.h"
#include "wire/message.h"
#include "wire/presence.h"

/* NULL for no time at all. */
static GOOGLE(Timestamp) *
time_of(int64_t nanoseconds, struct arena *arena)
{
    struct maybe_int64 time = {.is_set = nanoseconds != 0, .value = nanoseconds};
    return presence_make_maybe_timestamp(arena, time);
}

/* --- the run ---- */

static API(WorkflowExecutionConfiguration) *
describe_configuration(const STORED(RunRecord) *core, struct arena *arena)
{
    API(WorkflowExecutionConfiguration) *configuration =
        message_new(arena, API_TYPE(workflow_execution_configuration));
    configuration->task_list = run_info_list(core, arena);
    configuration->execution_start_to_close_timeout =
        presence_make_duration(arena, core->execution_timeout);
    configuration->task_start_to_close_timeout =
        presence_make_duration(arena, core->decision_timeout);
    return configuration;
}

/* --- what is pending ---- */

static API(PendingActivityState)
activity_state(const STORED(PendingActivity) *activity)
{
    if (activity->is_cancel_requested)
        return API_VALUE(PENDING_ACTIVITY_STATE__PENDING_ACTIVITY_STATE_CANCEL_REQUESTED);
    if (activity->started_id != EVENT_NONE)
        return API_VALUE(PENDING_ACTIVITY_STATE__PENDING_ACTIVITY_STATE_STARTED);
    return API_VALUE(PENDING_ACTIVITY_STATE__PENDING_ACTIVITY_STATE_SCHEDULED);
}

/* Attempts and what came of them are shown of activities that are retried. */
static void
describe_attempts(API(PendingActivityInfo) *info, const STORED(PendingActivity) *activity,
                  struct arena *arena)
{
    if (activity->retry_policy == NULL)
        return;
    info->attempt = activity->attempt;
    info->maximum_attempts = activity->retry_policy->maximum_attempts;
    info->expiration_time = time_of(activity->expiration_time, arena);
    info->last_failure = activity->last_failure;
    info->last_worker_identity = activity->last_worker_identity;
    info->started_worker_identity = activity->identity;
}

static API(PendingActivityInfo) *
describe_activity(const STORED(PendingActivity) *activity, struct arena *arena)
{
    API(PendingActivityInfo) *info = message_new(arena, API_TYPE(pending_activity_info));
    info->activity_id = activity->activity_id;
    info->activity_type = activity->activity_type;
    info->schedule_id = activity->schedule_id;
    info->state = activity_state(activity);
    bool is_started = activity->started_id != EVENT_NONE;
    int64_t alive_time = activity->heartbeat_time; /* a start is a sign of life too */
    if (alive_time == 0 && is_started)
        alive_time = activity->started_time;
    info->last_heartbeat_time = time_of(alive_time, arena);
    info->heartbeat_details = activity->heartbeat_details;
    if (info->state == API_VALUE(PENDING_ACTIVITY_STATE__PENDING_ACTIVITY_STATE_SCHEDULED))
        info->scheduled_time = time_of(activity->scheduled_time, arena);
    else
        info->last_started_time = time_of(activity->started_time, arena);
    describe_attempts(info, activity, arena);
    return info;
}

static void
describe_activities(API(DescribeWorkflowExecutionResponse) *response, const struct run *run,
                    struct arena *arena)
{
    size_t count = map64_count(run->activities), cursor = 0;
    void *activity;
    response->pending_activities =
        arena_zalloc(arena, count, sizeof response->pending_activities[0]);
    while (map64_next(run->activities, &cursor, NULL, &activity))
        response->pending_activities[response->n_pending_activities++] =
            describe_activity(activity, arena);
    check(response->n_pending_activities == count);
}

static API(PendingChildExecutionInfo) *
describe_child(const STORED(PendingChild) *child, struct arena *arena)
{
    API(PendingChildExecutionInfo) *info =
        message_new(arena, API_TYPE(pending_child_execution_info));
    info->workflow_execution = message_new(arena, API_TYPE(workflow_execution));
    info->workflow_execution->workflow_id = child->workflow_id;
    info->workflow_execution->run_id = child->started_run_id;
    info->workflow_type_name = child->workflow_type->name;
    info->initiated_id = child->initiated_id;
    info->parent_close_policy = child->parent_close_policy;
    info->domain = child->domain_name;
    return info;
}

/* */
static void
describe_children(API(DescribeWorkflowExecutionResponse) *response, const struct run *run,
                  struct arena *arena)
{
    size_t count = map64_count(run->children), cursor = 0;
    void *child;
    response->pending_children = arena_zalloc(arena, count, sizeof response->pending_children[0]);
    while (map64_next(run->children, &cursor, NULL, &child))
        response->pending_children[response->n_pending_children++] = describe_child(child, arena);
    check(response->n_pending_children == count);
}

/* */
static API(PendingDecisionInfo) *
describe_decision(const STORED(PendingDecision) *decision, struct arena *arena)
{
    bool is_started = decision->started_id != EVENT_NONE;
    API(PendingDecisionInfo) *info = message_new(arena, API_TYPE(pending_decision_info));
    info->state = is_started ? API_VALUE(PENDING_DECISION_STATE__PENDING_DECISION_STATE_STARTED)
                             : API_VALUE(PENDING_DECISION_STATE__PENDING_DECISION_STATE_SCHEDULED);
    info->scheduled_time = time_of(decision->scheduled_time, arena);
    info->original_scheduled_time = time_of(decision->original_scheduled_time, arena);
    info->attempt = decision->attempt;
    info->schedule_id = decision->schedule_id;
    if (is_started)
        info->started_time = time_of(decision->started_time, arena);
    return info;
}

/* It failed too often: its next attempt is scheduled for later. */
static API(PendingDecisionInfo) *
describe_paused(const STORED(RunRecord) *core, struct arena *arena)
{
    if (core->decision_retry_time == 0)
        return NULL;
    API(PendingDecisionInfo) *info = message_new(arena, API_TYPE(pending_decision_info));
    info->state = API_VALUE(PENDING_DECISION_STATE__PENDING_DECISION_STATE_SCHEDULED);
    info->scheduled_time = time_of(core->decision_retry_time, arena);
    info->original_scheduled_time = time_of(core->decision_retry_time, arena);
    info->attempt = core->decision_attempt;
    info->schedule_id = core->next_event_id;
    return info;
}

/* --- all of it ---- */

static void
look_describe(void *context, const struct run *run, const STORED(CurrentRecord) *current)
{
    struct served_look *look = context;
    struct slice *bytes = look->answer;
    struct arena *arena = look->arena;
    API(DescribeWorkflowExecutionResponse) *response =
        message_new(arena, API_TYPE(describe_workflow_execution_response));
    response->execution_configuration = describe_configuration(run->core, arena);
    response->workflow_execution_info = run_info(run->core, arena);
    response->pending_decision = run->core->decision != NULL
                                     ? describe_decision(run->core->decision, arena)
                                     : describe_paused(run->core, arena);
    describe_activities(response, run, arena);
    describe_children(response, run, arena);
    *bytes = message_encode(arena, &response->base);
}

static struct error *
serve_describe(void *engine, struct owner owner, const void *request, struct arena *arena,
               void *answer)
{
    struct slice bytes = {0};
    API(DescribeWorkflowExecutionResponse) *copy = NULL;
    struct error *err = engine_serve_look(engine, owner, request, look_describe, arena, &bytes);
    if (err == NULL)
        err = message_decode_as(arena, ERR_INTERNAL, API_TYPE(describe_workflow_execution_response),
                                bytes, &copy);
    if (err == NULL)
        *(API(DescribeWorkflowExecutionResponse) *)answer = *copy;
    return err;
}

/* Lost: the client asks again. Twice: it only reads. */
static const struct route_question describe_question = {
    .name = "shard.describe",
    .request = INTERNAL_TYPE(run_look),
    .answer = API_TYPE(describe_workflow_execution_response),
    .serve = serve_describe,
    .may_come_twice = true,
};

struct error *
engine_describe(struct engine *engine, const struct run_key *key, struct arena *arena,
                API(DescribeWorkflowExecutionResponse) *response)
{
    API(DescribeWorkflowExecutionResponse)
    answer = API_VALUE(DESCRIBE_WORKFLOW_EXECUTION_RESPONSE__INIT);
    struct error *err = engine_admit(engine, key, arena);
    if (err == NULL)
        err = engine_ask_look(engine, key, &describe_question, arena, &answer);
    if (err == NULL)
        *response = answer;
    return err;
}

/* --- any run at all ---- */

struct error *
engine_has_runs(struct engine *engine, const char *domain_id, struct arena *arena, bool *has_runs)
{
    struct slice from = key_of_text(domain_id, arena); /* of every current run of the domain */
    *has_runs = false;
    for (uint32_t i = 0; i < engine->options.shard_count && !*has_runs; i++) {
        struct scan scan = {.partition = PARTITION_OF_SHARD(i),
                            .kind = ROW_CURRENT,
                            .from = from,
                            .to = key_after_prefix(from, arena),
                            .rows_max = 1};
        struct rows rows;
        struct error *err = store_scan(engine->options.store, &scan, arena, &rows);
        if (err != NULL)
            return err;
        *has_runs = rows.count > 0;
    }
    return NULL;
}
