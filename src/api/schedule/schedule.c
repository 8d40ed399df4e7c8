/* schedule.c - ScheduleAPI: schedules are created, changed and deleted. Reading is schedule_read.c.
 *
 * A schedule is a run of the user's domain (schedule/schedule.h), so creating one is a start, and
 * every change is a signal that contains the request: durable when it is answered, in the order of
 * acknowledgement, whatever the run is doing at that moment. */
#include "api/schedule/schedule.h"

#include "engine/engine.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"
#include "wire/presence.h"

#define LEAVE_TIME  (5 * NS_PER_S) /* how long CreateSchedule waits for a deleted one to end */
#define LEAVE_PAUSE (20 * NS_PER_MS)

static struct error *
bad(struct rpc_call *call, const char *sentence)
{
    return error_new(call->arena, ERR_BAD_REQUEST, "%s", sentence);
}

struct error *
schedule_admit(struct rpc_call *call, const char *domain, const char *schedule_id,
               struct schedule_call *found)
{
    if (domain[0] == '\0')
        return bad(call, "Domain not set on request.");
    if (schedule_id[0] == '\0')
        return bad(call, "ScheduleID is not set on request.");
    found->schedule_id = schedule_id;
    found->workflow_id = arena_format(call->arena, SCHEDULE_PREFIX "%s", schedule_id);
    return validate_domain(call, domain, &found->domain);
}

struct error *
schedule_not_found(struct rpc_call *call, const struct schedule_call *wanted)
{
    return error_new(call->arena, ERR_ENTITY_NOT_EXISTS,
                     "schedule \"%s\" not found in domain \"%s\"", wanted->schedule_id,
                     wanted->domain.name);
}

static API(Payload) *
payload_of(struct rpc_call *call, struct slice bytes)
{
    return presence_make_payload(call->arena, (struct maybe_bytes){.is_set = true, .bytes = bytes});
}

/* --- create ---- */

static struct error *
check_create(struct rpc_call *call, const API(CreateScheduleRequest) *request)
{
    struct error *err = schedule_check_spec(call, request->spec);
    if (err == NULL)
        err = schedule_check_action(call, request->action);
    if (err == NULL)
        err = schedule_check_policies(call, request->policies);
    if (err == NULL)
        err = schedule_check_attributes(call, request->search_attributes);
    return err;
}

static API(StartWorkflowExecutionRequest) *
make_start(struct rpc_call *call, const API(CreateScheduleRequest) *request,
           const struct schedule_call *wanted)
{
    struct arena *arena = call->arena;
    STORED(ScheduleDefinition) definition;
    cadenza__storage__v1__schedule_definition__init(&definition);
    definition.spec = request->spec;
    definition.action = request->action;
    definition.search_attributes = request->search_attributes;
    bool is_paused = request->state != NULL && request->state->paused;
    API(StartWorkflowExecutionRequest) *start =
        message_new(arena, API_TYPE(start_workflow_execution_request));
    start->domain = request->domain;
    start->workflow_id = (char *)wanted->workflow_id;
    start->workflow_type = message_new(arena, API_TYPE(workflow_type));
    start->workflow_type->name = SCHEDULE_TYPE;
    start->task_list = message_new(arena, API_TYPE(task_list));
    start->task_list->name = SCHEDULE_LIST;
    start->input = payload_of(call, schedule_first_input(request, arena));
    start->execution_start_to_close_timeout = presence_make_duration(arena, SCHEDULE_RUN_SECONDS);
    start->task_start_to_close_timeout = presence_make_duration(arena, SCHEDULE_DECISION_SECONDS);
    start->identity = SCHEDULE_IDENTITY;
    start->request_id = uuid_new_text(call->arena);
    start->workflow_id_reuse_policy =
        API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE);
    start->memo = request->memo;
    start->search_attributes = schedule_attributes(&definition, is_paused, arena);
    return start;
}

static struct error *
check_start(struct rpc_call *call, const API(StartWorkflowExecutionRequest) *start,
            const struct call_domain *domain)
{
    const struct api_options *options = &api_of(call)->options;
    struct limits limits = {options->dynamic, start->domain, call->arena, options->log,
                            start->workflow_id};
    struct search_rules rules = {.registry = options->registry, .dynamic = options->dynamic};
    struct error *err = validate_start(&limits, start, true);
    if (err == NULL)
        err = validate_not_deprecated(domain, call->arena);
    if (err == NULL)
        err = validate_start_blobs(&limits, start);
    if (err == NULL)
        err = api_check_search_attributes(&rules, start->search_attributes, start->domain,
                                          call->arena);
    return err;
}

/* A schedule that was deleted ends a moment later; it may be created again at once, so that moment
 * is waited for. */
static struct error *
start_run(struct rpc_call *call, const API(StartWorkflowExecutionRequest) *start,
          const struct schedule_call *wanted)
{
    struct start_command command = {.request = start};
    struct start_answer answer = {0};
    int64_t until = clock_monotonic() + LEAVE_TIME;
    for (;;) {
        struct error *err = engine_start(api_of(call)->options.engine, wanted->domain.id, &command,
                                         call->arena, &answer);
        if (err == NULL || err->kind != ERR_ALREADY_STARTED)
            return err;
        if (clock_monotonic() >= until || !schedule_is_leaving(call, wanted))
            return error_new(call->arena, ERR_BAD_REQUEST,
                             "schedule \"%s\" already exists in domain \"%s\"", wanted->schedule_id,
                             wanted->domain.name);
        probe("schedule_waited_for_another_to_leave");
        err = fiber_sleep(LEAVE_PAUSE, call->arena);
        if (err != NULL)
            return err;
    }
}

struct error *
api_create_schedule(struct rpc_call *call)
{
    const API(CreateScheduleRequest) *request = (const API(CreateScheduleRequest) *)call->request;
    struct schedule_call wanted;
    API(StartWorkflowExecutionRequest) *start = NULL;
    struct error *err = schedule_admit(call, request->domain, request->schedule_id, &wanted);
    if (err == NULL)
        err = check_create(call, request);
    if (err == NULL) {
        start = make_start(call, request, &wanted);
        err = check_start(call, start, &wanted.domain);
    }
    if (err == NULL)
        err = start_run(call, start, &wanted);
    if (err == NULL)
        ((API(CreateScheduleResponse) *)call->response)->schedule_id = request->schedule_id;
    return err;
}

/* --- changes ---- */

static struct error *
send_signal(struct rpc_call *call, const struct schedule_call *wanted, const char *name,
            struct slice input)
{
    const struct api_options *options = &api_of(call)->options;
    struct limits limits = {options->dynamic, wanted->domain.name, call->arena, options->log,
                            wanted->workflow_id};
    API(SignalWorkflowExecutionRequest) *request =
        message_new(call->arena, API_TYPE(signal_workflow_execution_request));
    request->domain = (char *)wanted->domain.name;
    request->workflow_execution = message_new(call->arena, API_TYPE(workflow_execution));
    request->workflow_execution->workflow_id = (char *)wanted->workflow_id;
    request->signal_name = (char *)name;
    request->signal_input = payload_of(call, input);
    request->identity = SCHEDULE_IDENTITY;
    request->request_id = uuid_new_text(call->arena);
    struct error *err = validate_blob(&limits, input.length);
    if (err == NULL)
        err = engine_signal(options->engine, wanted->domain.id, request, call->arena);
    bool is_gone =
        err != NULL && (err->kind == ERR_ENTITY_NOT_EXISTS || err->kind == ERR_ALREADY_COMPLETED);
    return is_gone ? schedule_not_found(call, wanted) : err;
}

/* The signal contains the request itself. */
static struct error *
change(struct rpc_call *call, const struct schedule_call *wanted, const char *name,
       const ProtobufCMessage *request)
{
    struct schedule schedule = {0};
    struct error *err = schedule_load(call, wanted, &schedule);
    return err != NULL ? err
                       : send_signal(call, wanted, name, message_encode(call->arena, request));
}

static struct error *
check_update(struct rpc_call *call, const API(UpdateScheduleRequest) *request)
{
    if (request->spec == NULL && request->action == NULL && request->policies == NULL &&
        request->search_attributes == NULL)
        return bad(call, "At least one of Spec, Action, Policies, or SearchAttributes must be set "
                         "on request.");
    struct error *err = schedule_check_policies(call, request->policies);
    if (err == NULL && request->spec != NULL)
        err = schedule_check_spec(call, request->spec);
    if (err == NULL && request->action != NULL)
        err = schedule_check_action(call, request->action);
    if (err == NULL)
        err = schedule_check_attributes(call, request->search_attributes);
    return err;
}

struct error *
api_update_schedule(struct rpc_call *call)
{
    const API(UpdateScheduleRequest) *request = (const API(UpdateScheduleRequest) *)call->request;
    const struct api_options *options = &api_of(call)->options;
    struct search_rules rules = {.registry = options->registry, .dynamic = options->dynamic};
    struct schedule_call wanted;
    struct error *err = schedule_admit(call, request->domain, request->schedule_id, &wanted);
    if (err == NULL)
        err = check_update(call, request);
    if (err == NULL)
        err = api_check_search_attributes(&rules, request->search_attributes, request->domain,
                                          call->arena);
    return err != NULL ? err : change(call, &wanted, SCHEDULE_UPDATE, &request->base);
}

struct error *
api_pause_schedule(struct rpc_call *call)
{
    const API(PauseScheduleRequest) *request = (const API(PauseScheduleRequest) *)call->request;
    struct schedule_call wanted;
    struct error *err = schedule_admit(call, request->domain, request->schedule_id, &wanted);
    return err != NULL ? err : change(call, &wanted, SCHEDULE_PAUSE, &request->base);
}

struct error *
api_unpause_schedule(struct rpc_call *call)
{
    const API(UnpauseScheduleRequest) *request = (const API(UnpauseScheduleRequest) *)call->request;
    struct schedule_call wanted;
    int policy;
    struct error *err = schedule_admit(call, request->domain, request->schedule_id, &wanted);
    if (err == NULL)
        err = presence_read_enum(call->arena, "catch_up_policy", API_TYPE(schedule_catch_up_policy),
                                 (int)request->catch_up_policy, 0, &policy);
    return err != NULL ? err : change(call, &wanted, SCHEDULE_UNPAUSE, &request->base);
}

/* --- backfills ---- */

static struct error *
check_backfill(struct rpc_call *call, const API(BackfillScheduleRequest) *request)
{
    struct maybe_int64 start, end;
    int policy;
    if (request->start_time == NULL)
        return bad(call, "StartTime is not set on request.");
    if (request->end_time == NULL)
        return bad(call, "EndTime is not set on request.");
    struct error *err =
        presence_read_timestamp(call->arena, "start_time", request->start_time, &start);
    if (err == NULL)
        err = presence_read_timestamp(call->arena, "end_time", request->end_time, &end);
    if (err == NULL && end.value <= start.value)
        err = bad(call, "EndTime must be after StartTime.");
    if (err == NULL)
        err = presence_read_enum(call->arena, "overlap_policy", API_TYPE(schedule_overlap_policy),
                                 (int)request->overlap_policy, 0, &policy);
    return err;
}

struct error *
api_backfill_schedule(struct rpc_call *call)
{
    API(BackfillScheduleRequest) *request = (API(BackfillScheduleRequest) *)call->request;
    struct schedule_call wanted;
    struct schedule schedule = {0};
    struct error *err = schedule_admit(call, request->domain, request->schedule_id, &wanted);
    if (err == NULL)
        err = check_backfill(call, request);
    if (err == NULL)
        err = schedule_load(call, &wanted, &schedule);
    if (err != NULL)
        return err;
    if (request->backfill_id[strspn(request->backfill_id, " \t\r\n")] == '\0')
        request->backfill_id = uuid_new_text(call->arena);
    if (!schedule_has_room(&schedule,
                           request->backfill_id)) /* Cadence says nothing, and drops it */
        return error_new(call->arena, ERR_LIMIT_EXCEEDED,
                         "schedule \"%s\" has %d pending backfills", wanted.schedule_id,
                         SCHEDULE_BACKFILLS_MAX);
    return send_signal(call, &wanted, SCHEDULE_BACKFILL,
                       message_encode(call->arena, &request->base));
}

/* --- delete ---- */

static bool
is_served(struct rpc_call *call, const char *domain)
{
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    filter.domain_name = domain;
    return dynamic_flag(api_of(call)->options.dynamic, DYNAMIC_SCHEDULER, &filter);
}

static struct error *
terminate(struct rpc_call *call, const struct schedule_call *wanted)
{
    API(TerminateWorkflowExecutionRequest) *request =
        message_new(call->arena, API_TYPE(terminate_workflow_execution_request));
    request->domain = (char *)wanted->domain.name;
    request->workflow_execution = message_new(call->arena, API_TYPE(workflow_execution));
    request->workflow_execution->workflow_id = (char *)wanted->workflow_id;
    request->reason = "terminated by DeleteSchedule";
    request->identity = SCHEDULE_IDENTITY;
    return engine_terminate(api_of(call)->options.engine, wanted->domain.id, request, call->arena);
}

/* Terminates the run where a signal would not do: schedules are switched off, or the run has too
 * many signals. */
static struct error *
leave(struct rpc_call *call, const struct schedule_call *wanted)
{
    struct error *err = NULL;
    if (is_served(call, wanted->domain.name)) {
        err = send_signal(call, wanted, SCHEDULE_DELETE, (struct slice){0});
        if (err == NULL || err->kind != ERR_LIMIT_EXCEEDED)
            return err;
    }
    return terminate(call, wanted);
}

struct error *
api_delete_schedule(struct rpc_call *call)
{
    const API(DeleteScheduleRequest) *request = (const API(DeleteScheduleRequest) *)call->request;
    struct schedule_call wanted;
    struct error *err = schedule_admit(call, request->domain, request->schedule_id, &wanted);
    if (err != NULL)
        return err;
    err = leave(call, &wanted);
    bool is_gone =
        err != NULL && (err->kind == ERR_ENTITY_NOT_EXISTS || err->kind == ERR_ALREADY_COMPLETED);
    return is_gone ? NULL : err;
}
