/* schedule_fire.c - the activity that starts what schedules ask for. See schedule/fire.c, which
 * decides what is done; here are its calls of the engine. */
#include "api/api.h"
#include "api/call/validate.h"
#include "domain/domains.h"
#include "fiber/probe.h"
#include "schedule/schedule.h"
#include "system/types.h"
#include "wire/message.h"
#include "wire/presence.h"

#define CONTINUED                                                                                  \
    API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_CONTINUED_AS_NEW)

/* The run is gone: there is nothing left to ask of it. */
static bool
is_gone(const struct error *err)
{
    return err != NULL &&
           (err->kind == ERR_ENTITY_NOT_EXISTS || err->kind == ERR_ALREADY_COMPLETED);
}

/* --- looking and ending ---- */

static struct error *
look_at(struct system_task *task, const struct run_key *key, bool *is_open,
        API(WorkflowExecutionCloseStatus) *status)
{
    struct query_view view = {0};
    struct error *err = engine_query_view(task->parts->engine, key, false, task->arena, &view);
    *is_open = err == NULL && view.is_open;
    *status = err == NULL && !view.is_open ? view.close_status : 0;
    return is_gone(err) ? NULL : err;
}

/* A run that continued as new, or was retried, counts as its newest run. */
static struct error *
check_run(void *context, const STORED(ScheduleRun) *run, bool *is_open,
          API(WorkflowExecutionCloseStatus) *status)
{
    struct system_task *task = context;
    struct run_key key = {task->key.domain_id, run->workflow_id, run->run_id};
    struct error *err = look_at(task, &key, is_open, status);
    if (err == NULL && !*is_open && *status == CONTINUED) {
        key.run_id = "";
        err = look_at(task, &key, is_open, status);
        probe("schedule_followed_run");
    }
    return err;
}

static API(WorkflowExecution) *
newest_of(struct system_task *task, const STORED(ScheduleRun) *run)
{
    API(WorkflowExecution) *execution = message_new(task->arena, API_TYPE(workflow_execution));
    execution->workflow_id = run->workflow_id;
    return execution;
}

static struct error *
cancel(void *context, const STORED(ScheduleRun) *run)
{
    struct system_task *task = context;
    API(RequestCancelWorkflowExecutionRequest) *request =
        message_new(task->arena, API_TYPE(request_cancel_workflow_execution_request));
    request->workflow_execution = newest_of(task, run);
    request->first_execution_run_id = run->run_id;
    request->identity = SCHEDULE_IDENTITY;
    request->cause = "schedule overlap policy: CANCEL_PREVIOUS";
    struct error *err =
        engine_request_cancel(task->parts->engine, task->key.domain_id, request, task->arena);
    bool is_done = is_gone(err) || (err != NULL && err->kind == ERR_CANCELLATION_ALREADY_REQUESTED);
    return is_done ? NULL : err;
}

static struct error *
terminate(void *context, const STORED(ScheduleRun) *run)
{
    struct system_task *task = context;
    API(TerminateWorkflowExecutionRequest) *request =
        message_new(task->arena, API_TYPE(terminate_workflow_execution_request));
    request->workflow_execution = newest_of(task, run);
    request->first_execution_run_id = run->run_id;
    request->identity = SCHEDULE_IDENTITY;
    request->reason = "schedule overlap policy: TERMINATE_PREVIOUS";
    struct error *err =
        engine_terminate(task->parts->engine, task->key.domain_id, request, task->arena);
    return is_gone(err) ? NULL : err;
}

/* --- starting ---- */

/* The checks that the API makes of every start. */
static struct error *
check_start(struct system_task *task, const API(StartWorkflowExecutionRequest) *request)
{
    const struct system_parts *parts = task->parts;
    struct limits limits = {.dynamic = parts->dynamic,
                            .domain = request->domain,
                            .arena = task->arena,
                            .workflow_id = request->workflow_id};
    struct search_rules rules = {.registry = parts->registry, .dynamic = parts->dynamic};
    struct error *err = validate_start(&limits, request, true);
    if (err == NULL)
        err = validate_start_blobs(&limits, request);
    if (err == NULL)
        err = api_check_search_attributes(&rules, request->search_attributes, request->domain,
                                          task->arena);
    return err;
}

static struct error *
check_domain(struct system_task *task, const char **name)
{
    const struct domain *domain = domains_find_id(task->parts->domains, task->key.domain_id);
    if (domain == NULL)
        return error_new(task->arena, ERR_ENTITY_NOT_EXISTS, "domain %s does not exist",
                         task->key.domain_id);
    *name = arena_text(task->arena, domain->name);
    struct call_domain call_domain = {domain->id, domain->name, domain};
    return validate_not_deprecated(&call_domain, task->arena);
}

static bool
is_final(const struct error *err)
{
    return err->kind == ERR_BAD_REQUEST || err->kind == ERR_LIMIT_EXCEEDED ||
           err->kind == ERR_ENTITY_NOT_EXISTS;
}

static struct error *
start(void *context, const STORED(ScheduleTask) *task, const STORED(ScheduleFire) *fire,
      const char **run_id, const char **refusal)
{
    struct system_task *work = context;
    struct start_answer answer = {0};
    const char *domain = "";
    API(StartWorkflowExecutionRequest) *request = schedule_start_request(task, fire, work->arena);
    struct start_command command = {.request = request};
    struct error *err = check_domain(work, &domain);
    request->domain = (char *)domain;
    if (err == NULL)
        err = check_start(work, request);
    if (err == NULL)
        err =
            engine_start(work->parts->engine, work->key.domain_id, &command, work->arena, &answer);
    if (err == NULL) {
        probe(answer.is_new ? "schedule_started" : "schedule_start_repeated");
        *run_id = answer.run_id;
        return NULL;
    }
    if (is_final(err))
        *refusal = err->message;
    return is_final(err) || err->kind == ERR_ALREADY_STARTED ? NULL : err;
}

static struct error *
run_activity(struct system_task *task, struct slice *result)
{
    STORED(ScheduleTask) *order = NULL;
    STORED(ScheduleReport) *report = NULL;
    struct schedule_port port = {.check_run = check_run,
                                 .cancel = cancel,
                                 .terminate = terminate,
                                 .start = start,
                                 .context = task};
    struct error *err = message_decode_as(task->arena, ERR_CORRUPT, STORED_TYPE(schedule_task),
                                          task->input, &order);
    if (err == NULL)
        err = schedule_fire(order, &port, task->arena, &report);
    if (err == NULL)
        *result = message_encode(task->arena, &report->base);
    return err;
}

const struct system_activity schedule_activity = {
    .type = SCHEDULE_FIRE, .list = SCHEDULE_LIST, .run = run_activity};
