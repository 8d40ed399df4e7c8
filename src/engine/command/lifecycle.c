/* lifecycle.c - how a run begins, what reaches it from outside, and how it is closed by force. */
#include "base/check.h"
#include "engine/command/inside.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

void
run_begin(struct mutation *mutation, const struct run_birth *birth)
{
    struct run *run = mutation_run(mutation);
    check(run->core->next_event_id == 1);
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(WORKFLOW_EXECUTION_STARTED));
    *event->workflow_execution_started_event_attributes = *birth->attributes;
    mutation_add_event(mutation, event);

    STORED(RunRecord) *core = mutation_core(mutation);
    core->create_request_id = run_keep_text(run, birth->create_request_id);
    if (birth->chain_request_id != NULL)
        core->chain_request_id = run_keep_text(run, birth->chain_request_id);
    core->jitter_start = birth->jitter_start;
    check(core->timeout_time > core->start_time);
    check((core->first_decision_time != 0) ==
          (command_seconds(birth->attributes->first_decision_task_backoff) > 0));
    if (birth->has_first_decision)
        decision_schedule_if_needed(mutation); /* or it waits for first_decision_time */
    check(run_is_open(run));
    check(!birth->has_first_decision || run_has_pending_decision(run) ||
          core->first_decision_time != 0 || core->waits_for_parent);
}

void
run_force_close_decision(struct mutation *mutation)
{
    if (run_has_started_decision(mutation_run(mutation)))
        decision_fail(mutation, &(struct decision_failure){
                                    .cause = FAILED_CAUSE(FORCE_CLOSE_DECISION),
                                    .identity = HISTORY_SERVICE,
                                });
    mutation_flush_buffered(mutation); /* what was taken is in the history, before the close */
    check(!run_has_started_decision(mutation_run(mutation)));
}

void
run_terminate(struct mutation *mutation, const char *reason, const API(Payload) *details,
              const char *identity)
{
    check(run_is_open(mutation_run(mutation)));
    run_force_close_decision(mutation);
    API(HistoryEvent) *event =
        mutation_new_event(mutation, EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED));
    API(WorkflowExecutionTerminatedEventAttributes) *attributes =
        event->workflow_execution_terminated_event_attributes;
    attributes->reason = presence_make_text(reason);
    attributes->details = (API(Payload) *)details;
    attributes->identity = presence_make_text(identity);
    mutation_add_event(mutation, event);
    check(!run_is_open(mutation_run(mutation)));
}

/* ---- signals ---- */

struct error *
run_check_signals(const struct mutation *mutation)
{
    int64_t limit = run_context_integer(mutation_context(mutation), DYNAMIC_SIGNALS_MAX);
    if (limit <= 0 || mutation_run(mutation)->core->signal_count < limit)
        return NULL;
    return error_new(mutation_arena(mutation), ERR_LIMIT_EXCEEDED,
                     "exceeded workflow execution limit for signal events");
}

bool
run_has_signal_request(const struct run *run, const char *request_id)
{
#ifdef CADENZA_FAULT_signal_request_forgotten
    return false;
#endif
    return request_id != NULL && request_id[0] != '\0' &&
           map_get(run->signal_requests, slice_text(request_id)) != NULL;
}

void
run_add_signal(struct mutation *mutation, const char *name, const API(Payload) *input,
               const char *identity, const char *request_id)
{
    check(!run_has_signal_request(mutation_run(mutation), request_id));
    check(run_is_open(mutation_run(mutation)));
    if (request_id != NULL && request_id[0] != '\0')
        mutation_put_signal_request(mutation, request_id);
    API(HistoryEvent) *event =
        mutation_new_event(mutation, EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED));
    API(WorkflowExecutionSignaledEventAttributes) *attributes =
        event->workflow_execution_signaled_event_attributes;
    attributes->signal_name = presence_make_text(name);
    attributes->input = (API(Payload) *)input;
    attributes->identity = presence_make_text(identity);
    attributes->request_id = presence_make_text(request_id);
    mutation_add_event(mutation, event);
}

struct error *
run_check_chain(const struct mutation *mutation, const char *first_run_id)
{
    const STORED(RunRecord) *core = mutation_run(mutation)->core;
    if (first_run_id == NULL || first_run_id[0] == '\0' ||
        strcmp(first_run_id, core->first_execution_run_id) == 0)
        return NULL;
    return errors_entity_not_exists(mutation_arena(mutation), NULL, "Workflow execution not found");
}
