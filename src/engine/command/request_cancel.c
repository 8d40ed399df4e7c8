/* request_cancel.c - the run is asked to end; its code decides how. */
#include "base/check.h"
#include "engine/command/inside.h"
#include "wire/message.h"
#include "wire/presence.h"

/* Is it the request that was taken already? */
static bool
cancel_is_repeat(const struct run *run, const char *request_id)
{
    const STORED(RunRecord) *core = run->core;
    return core->is_cancel_requested && request_id[0] != '\0' &&
           strcmp(core->cancel_request_id, request_id) == 0;
}

static bool
cancel_closed_run(const struct run *run)
{
    return run->core->close_status ==
           API_VALUE(WORKFLOW_EXECUTION_CLOSE_STATUS__WORKFLOW_EXECUTION_CLOSE_STATUS_CANCELED);
}

/* Who asked, if it was another workflow's decision. */
static API(ExternalExecutionInfo) *
cancel_origin(const struct origin *origin, struct arena *arena)
{
    if (origin == NULL)
        return NULL;
    API(ExternalExecutionInfo) *info = message_new(arena, API_TYPE(external_execution_info));
    info->workflow_execution = message_new(arena, API_TYPE(workflow_execution));
    info->workflow_execution->workflow_id = presence_make_text(origin->workflow_id);
    info->workflow_execution->run_id = presence_make_text(origin->run_id);
    info->initiated_id = origin->initiated_id;
    return info;
}

static void
cancel_add(struct mutation *mutation, const API(RequestCancelWorkflowExecutionRequest) *request,
           const struct origin *origin)
{
    check(!mutation_run(mutation)->core->is_cancel_requested);
    API(HistoryEvent) *event =
        mutation_new_event(mutation, EVENT_KIND(WORKFLOW_EXECUTION_CANCEL_REQUESTED));
    API(WorkflowExecutionCancelRequestedEventAttributes) *attributes =
        event->workflow_execution_cancel_requested_event_attributes;
    attributes->cause = presence_make_text(request->cause);
    attributes->identity = presence_make_text(request->identity);
    attributes->request_id = presence_make_text(request->request_id);
    attributes->external_execution_info = cancel_origin(origin, mutation_arena(mutation));
    mutation_add_event(mutation, event);
    check(mutation_run(mutation)->core->is_cancel_requested); /* even if the event is buffered */
}

struct error *
command_request_cancel(struct step *step, const API(RequestCancelWorkflowExecutionRequest) *request)
{
    return command_request_cancel_from(step, request, NULL);
}

struct error *
command_request_cancel_from(struct step *step,
                            const API(RequestCancelWorkflowExecutionRequest) *request,
                            const struct origin *origin)
{
    const struct run *run = step->mutation == NULL ? NULL : mutation_run(step->mutation);
    if (run != NULL && !run_is_open(run) && cancel_closed_run(run) &&
        cancel_is_repeat(run, request->request_id))
        return NULL; /* it did what was asked */
    struct mutation *mutation;
    struct error *err = step_open_run(step, &mutation);
    if (err == NULL)
        err = run_check_chain(mutation, request->first_execution_run_id);
    if (err == NULL)
        err = run_check_parent(mutation, origin);
    if (err != NULL)
        return err;
    if (cancel_is_repeat(run, request->request_id))
        return NULL;
    if (run->core->is_cancel_requested)
        return error_new(step->arena, ERR_CANCELLATION_ALREADY_REQUESTED,
                         "cancellation already requested for this workflow execution");
    cancel_add(mutation, request, origin);
    /* Does not wait for a delayed first decision: there is no point in starting work later. */
    if (!run_has_pending_decision(run))
        decision_schedule(mutation, 0);
    else
        decision_schedule_if_needed(mutation);
    check(run_has_pending_decision(run));
    return NULL;
}
