/* diagnostics.c - the workflow that diagnoses a run: one activity reads the history of the run in
 * question, its result is the report, which is the result of the workflow. See diagnosis.h. */
#include "api/workflow/diagnose.h"
#include "base/check.h"
#include "base/json.h"
#include "domain/domains.h"
#include "fiber/clock.h"
#include "matching/matching.h"
#include "system/diagnosis.h"
#include "system/fold.h"
#include "system/types.h"
#include "wire/message.h"
#include "wire/presence.h"

#define ACTIVITY        "diagnostics-activity"
#define ACTIVITY_TIME   300 /* seconds */
#define ACTIVITY_RETRY  10  /* seconds between two attempts */
#define ACTIVITY_EXPIRY 3600
#define FINAL_REASON    "final" /* trying again is useless */

/* --- the report ---- */

/* The domain whose lists are described. */
struct list_owner {
    struct system_task *task;
    const char *domain_id;
    struct error *err; /* a list did not answer: who polls there is not known */
};

static bool
describe_pollers(void *context, bool is_decision, const char *list, int64_t *backlog)
{
    struct list_owner *owner = context;
    struct arena *arena = owner->task->arena;
    API(DescribeTaskListResponse) *response =
        message_new(arena, API_TYPE(describe_task_list_response));
    struct list_spot spot = {.type = is_decision ? TASK_DECISION : TASK_ACTIVITY,
                             .domain_id = owner->domain_id};
    if (!list_name_parse(list, arena, &spot.name))
        return false;
    struct error *err =
        matching_describe(owner->task->parts->matching, &spot, true, arena, response);
    if (err == NULL && response->task_list_status != NULL)
        *backlog = response->task_list_status->backlog_count_hint;
    if (err != NULL)
        owner->err = err;
    return err == NULL && response->n_pollers > 0;
}

static void
add_event(void *diagnosis, const API(HistoryEvent) *event, struct arena *arena)
{
    diagnosis_add(diagnosis, event);
}

static struct error *
add_history(struct system_task *task, const struct run_key *key, struct diagnosis *diagnosis)
{
    struct engine *engine = task->parts->engine;
    struct history_state state = {0};
    struct error *err = engine_history_state(engine, key, task->arena, &state);
    struct history_fold fold = {.workflow_id = key->workflow_id,
                                .lineage = &state.lineage,
                                .next_event_id = state.next_event_id,
                                .add = add_event,
                                .state = diagnosis};
    return err != NULL ? err : engine_fold_history(engine, &fold, task->arena);
}

static struct error *
make_report(struct system_task *task, const struct diagnosis_spec *request, struct slice *report)
{
    const struct domain *domain = domains_find_name(task->parts->domains, request->domain);
    if (domain == NULL)
        return domain_error_unknown(request->domain, task->arena);
    struct run_key key = {.domain_id = arena_text(task->arena, domain->id),
                          .workflow_id = request->workflow_id,
                          .run_id = request->run_id};
    struct list_owner owner = {.task = task, .domain_id = key.domain_id};
    struct pollers_port port = {describe_pollers, &owner};
    struct diagnosis *diagnosis = diagnosis_begin(task->arena);
    struct error *err = add_history(task, &key, diagnosis);
    if (err == NULL)
        *report = diagnosis_end(diagnosis, &port);
    diagnosis_free(diagnosis);
    return err != NULL ? err : owner.err;
}

/* --- the activity ---- */

static struct error *
read_request(const struct system_task *task, struct diagnosis_spec *request)
{
    struct json_reader reader = object_begin(task->input, task->arena);
    const char *name;
    *request = (struct diagnosis_spec){"", "", "", ""};
    while (object_next(&reader, &name)) {
        if (strcmp(name, "Domain") == 0)
            object_text(&reader, &request->domain);
        else if (strcmp(name, "WorkflowID") == 0)
            object_text(&reader, &request->workflow_id);
        else if (strcmp(name, "RunID") == 0)
            object_text(&reader, &request->run_id);
        else
            object_skip(&reader);
    }
    bool is_good =
        object_end(&reader) && request->workflow_id[0] != '\0' && request->run_id[0] != '\0';
    return is_good ? NULL : error_new(task->arena, ERR_BAD_REQUEST, "unknown input");
}

static struct error *
run_activity(struct system_task *task, struct slice *result)
{
    struct diagnosis_spec request;
    struct error *err = read_request(task, &request);
    if (err == NULL)
        err = make_report(task, &request, result);
    if (err == NULL)
        return NULL;
    if (err->kind == ERR_ENTITY_NOT_EXISTS || err->kind == ERR_BAD_REQUEST ||
        err->kind == ERR_CORRUPT)
        task->reason = FINAL_REASON;
    return error_new(task->arena, err->kind, "Workflow Diagnostics failed: %s", err->message);
}

const struct system_activity diagnostics_activity = {
    .type = ACTIVITY, .list = DIAGNOSTICS_LIST, .domain = SYSTEM_DOMAIN, .run = run_activity};

/* --- the workflow ---- */

struct run_state {
    struct slice input;
    bool is_scheduled;
    struct fold_end end; /* of the activity */
};

static void
fold(void *context, const API(HistoryEvent) *event, struct arena *arena)
{
    struct run_state *state = context;
    switch (event->attributes_case) {
    case EVENT_KIND(WORKFLOW_EXECUTION_STARTED):
        state->input =
            fold_payload(event->workflow_execution_started_event_attributes->input, arena);
        break;
    case EVENT_KIND(ACTIVITY_TASK_SCHEDULED):
        state->is_scheduled = true;
        break;
    default:
        fold_activity_end(&state->end, event, arena);
        break;
    }
}

static void
decide(void *context, struct system_decider *decider)
{
    struct run_state *state = context;
    switch (state->end.how) {
    case FOLD_OPEN:
        if (state->is_scheduled)
            break;
        system_schedule(decider, &(struct system_activity_order){
                                     .id = "0",
                                     .type = ACTIVITY,
                                     .list = DIAGNOSTICS_LIST,
                                     .input = state->input,
                                     .start_to_close = ACTIVITY_TIME,
                                     .retry = system_retry(decider->arena, ACTIVITY_RETRY,
                                                           ACTIVITY_EXPIRY, FINAL_REASON)});
        break;
    case FOLD_COMPLETED:
        system_complete(decider, state->end.result);
        break;
    default:
        system_fail(decider, "cadenceInternal:Generic", state->end.details);
        break;
    }
}

static struct error *
query(void *context, const char *type, struct slice arguments, struct arena *arena,
      struct slice *answer)
{
    struct run_state *state = context;
    if (strcmp(type, DIAGNOSTICS_REPORT) != 0)
        return error_new(arena, ERR_QUERY_FAILED, "unknown queryType %s", type);
    bool is_done = state->end.how == FOLD_COMPLETED;
    *answer = is_done ? state->end.result : diagnosis_pending(arena);
    return NULL;
}

const struct system_workflow diagnostics_workflow = {.type = DIAGNOSTICS_TYPE,
                                                     .list = DIAGNOSTICS_LIST,
                                                     .domain = SYSTEM_DOMAIN,
                                                     .state_size = sizeof(struct run_state),
                                                     .fold = fold,
                                                     .decide = decide,
                                                     .query = query};
