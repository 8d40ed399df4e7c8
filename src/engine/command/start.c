/* start.c - a run begins, if the workflow id may be used. */
#include "engine/command/start.h"

#include "base/check.h"
#include "domain/active.h"
#include "engine/branches/runs.h"
#include "wire/errors.h"
#include "wire/presence.h"

#define CREATED      CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_CREATED
#define RUNNING      CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_RUNNING
#define COMPLETED    CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_COMPLETED
#define CORRUPTED    CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_CORRUPTED
#define POLICY(name) API_VALUE(WORKFLOW_ID_REUSE_POLICY__WORKFLOW_ID_REUSE_POLICY_##name)
#define CLOSE_STATUS(name)                                                                         \
    API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_##name)

static bool
start_is_open(const struct step *step)
{
    return step->current != NULL &&
           (step->current->state == CREATED || step->current->state == RUNNING);
}

bool
start_is_repeat(const struct step *step, const API(StartWorkflowExecutionRequest) *request,
                struct start_answer *answer)
{
    const STORED(CurrentRecord) *current = step->current;
#ifdef CADENZA_FAULT_start_request_forgotten
    return false;
#endif
    if (current == NULL || request->request_id[0] == '\0')
        return false;
    bool is_current = strcmp(current->create_request_id, request->request_id) == 0;
    bool is_chain = strcmp(current->chain_request_id, request->request_id) == 0;
    if (is_current || is_chain)
        answer->run_id =
            arena_text(step->arena, is_current ? current->run_id : current->chain_run_id);
    answer->is_new = false;
    return is_current || is_chain;
}

static bool
start_ended_well(const STORED(CurrentRecord) *current)
{
    return current->close_status == CLOSE_STATUS(COMPLETED) ||
           current->close_status == CLOSE_STATUS(CONTINUED_AS_NEW);
}

/* The refusals differ in their sentence. */
#define start_refuse(step, format)                                                                 \
    errors_already_started((step)->arena, (step)->current->create_request_id,                      \
                           (step)->current->run_id, format, (step)->workflow_id,                   \
                           (step)->current->run_id)

static struct error *
start_check_closed(const struct step *step, API(WorkflowIdReusePolicy) policy)
{
    check(step->current->state == COMPLETED);
    switch (policy) {
    case POLICY(INVALID): /* unset means the first one */
    case POLICY(ALLOW_DUPLICATE_FAILED_ONLY):
        if (!start_ended_well(step->current))
            return NULL;
        return start_refuse(step, "Workflow execution already finished successfully. "
                                  "WorkflowId: %s, RunId: %s. Workflow ID reuse policy: allow "
                                  "duplicate workflow ID if last run failed.");
    case POLICY(ALLOW_DUPLICATE):
    case POLICY(TERMINATE_IF_RUNNING):
        return NULL;
    case POLICY(REJECT_DUPLICATE):
        return start_refuse(step, "Workflow execution already finished. WorkflowId: %s, "
                                  "RunId: %s. Workflow ID reuse policy: reject duplicate "
                                  "workflow ID.");
    default:
        return error_new(step->arena, ERR_INTERNAL,
                         "Failed to process start workflow reuse policy.");
    }
}

struct error *
start_check_reuse(const struct step *step, const API(StartWorkflowExecutionRequest) *request)
{
    const STORED(CurrentRecord) *current = step->current;
    if (current == NULL || current->state == CORRUPTED)
        return NULL;
    if (start_is_open(step)) {
        if (request->workflow_id_reuse_policy == POLICY(TERMINATE_IF_RUNNING))
            return NULL;
        return start_refuse(step,
                            "Workflow execution is already running. WorkflowId: %s, RunId: %s.");
    }
    if (current->state != COMPLETED)
        return error_new(step->arena, ERR_INTERNAL,
                         "Failed to process workflow, workflow has invalid state: %d.",
                         (int)current->state);
    return start_check_closed(step, request->workflow_id_reuse_policy);
}

/* The open run makes room, in the same step. */
static void
start_terminate_running(struct step *step, const char *new_run_id)
{
    check(step->mutation != NULL);
    const char *details = arena_format(step->arena, "New runID: %s", new_run_id);
    run_terminate(step->mutation, "TerminateIfRunning Policy",
                  command_text_payload(details, step->arena), HISTORY_SERVICE);
}

void
start_new_run(struct step *step, const struct start_command *command, struct start_answer *answer)
{
    const API(StartWorkflowExecutionRequest) *request = command->request;
    struct mutation *begun = step_begin_run(step);
    const char *run_id = mutation_run(begun)->core->run_id;
    if (start_is_open(step))
        start_terminate_running(step, run_id);
    run_begin(begun,
              &(struct run_birth){
                  .attributes = start_attributes(step->context, command, run_id, step->arena),
                  .create_request_id = request->request_id,
                  .jitter_start = command_seconds(request->jitter_start),
                  .has_first_decision = command->signal == NULL,
              });
    if (command->signal != NULL) {
        run_add_signal(begun, command->signal->signal_name, command->signal->signal_input,
                       request->identity, request->request_id);
        decision_schedule_if_needed(begun);
    }
    step_check(step);
    *answer = (struct start_answer){.run_id = arena_text(step->arena, run_id), .is_new = true};
}

struct error *
command_start(struct step *step, const struct start_command *command, struct start_answer *answer)
{
    struct error *err = step_check_domain(step);
    if (err != NULL)
        return err;
    if (start_is_repeat(step, command->request, answer))
        return NULL;
    err = start_check_reuse(step, command->request);
    if (err != NULL)
        return err;
    start_new_run(step, command, answer);
    return NULL;
}

/* ---- the next run belongs to something else ---- */

/* The next run is to be the newest of its attribute, and to begin after all of the current one's.
 */
static const char *
move_behind_candidates(struct step *step, const API(ActiveClusterSelectionPolicy) *next)
{
    struct candidates candidates = candidates_read(step->current, step->arena);
    const STORED(Contender) *newest =
        candidates_find(&candidates, next == NULL ? NULL : next->cluster_attribute);
    int64_t latest = candidates_latest_start(&candidates);
    if (newest != NULL && newest->last_write_version > step->context->event_version)
        return "of which the workflow ID has a run with a higher failover version.";
    if (step->context->now > latest)
        return NULL;
    struct run_context *context = arena_make(step->arena, struct run_context);
    *context = *step->context;
    context->now = latest + 1;
    step->context = context;
    return NULL;
}

const char *
start_move_attribute(struct step *step, const API(ActiveClusterSelectionPolicy) *own,
                     const API(ActiveClusterSelectionPolicy) *next, const char *verb)
{
    const struct run_context *context = step->context;
    struct cluster_attribute from = cluster_attribute_of(own), to = cluster_attribute_of(next);
    const char *fault = NULL;
    check(step->begun == NULL); /* the next run begins with the context that this may leave */
    if (cluster_attribute_equals(&from, &to))
        return NULL;
    struct active_cluster there = run_context_active(context, context->domain, &to);
    struct active_cluster here = run_context_active(context, context->domain, &from);
    if (there.status == ACTIVE_UNKNOWN_ATTRIBUTE)
        return UNKNOWN_ATTRIBUTE_FAULT;
    if (strcmp(there.cluster_name, here.cluster_name) != 0)
        fault = "that is active in a different cluster.";
    else if (there.failover_version < context->event_version)
        fault = "whose failover version is lower.";
    else
        fault = move_behind_candidates(step, next);
    return fault == NULL
               ? NULL
               : arena_format(step->arena, "Cannot %s with a cluster attribute %s", verb, fault);
}
