/* apply_decision.c - events about the decision of a run.
 *
 * A decision whose events are in the history is an ordinary one: attempt 0, whatever the event
 * says, for attempts are counted where there are no events. */
#include "engine/run/inside.h"
#include "fiber/probe.h"

static bool
is_sticky(const STORED(RunRecord) *core, const API(TaskList) *list)
{
    return core->sticky_task_list != NULL && strcmp(core->sticky_task_list->name, list->name) == 0;
}

/* The event has only the name of the list; the run knows the rest. A sticky list is polled by one
 * worker of the cluster that wrote the event, and its timeout is in no event: so a replicated
 * decision goes to the run's own list, which workers poll in every cluster. */
static API(TaskList) *
list_of(const struct mutation *mutation, const API(TaskList) *named)
{
    const STORED(RunRecord) *core = mutation->run->core;
#ifdef CADENZA_FAULT_unknown_sticky_list
    if (mutation->has_replicated_events && strcmp(core->task_list->name, named->name) != 0)
        return run_keep(mutation->run, (API(TaskList) *)named);
#endif
    if (mutation->has_replicated_events && strcmp(core->task_list->name, named->name) != 0)
        probe("decision_of_unknown_sticky_list");
    return is_sticky(core, named) ? core->sticky_task_list : core->task_list;
}

static bool
is_on_own_list(const STORED(RunRecord) *core)
{
    return strcmp(core->decision->task_list->name, core->task_list->name) == 0;
}

static uint64_t
send_decision(struct mutation *mutation, const STORED(PendingDecision) *decision)
{
    const STORED(RunRecord) *core = mutation->run->core;
    STORED(TransferRow) *transfer = message_new(mutation->arena, STORED_TYPE(transfer_row));
    transfer->type = CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_DECISION;
    transfer->schedule_id = decision->schedule_id;
    transfer->attempt = decision->attempt;
    transfer->task_list = decision->task_list;
    if (is_sticky(core, decision->task_list))
        transfer->normal_list = core->task_list->name;
    /* Nobody needs the decision once the run itself has timed out: on a list without pollers the
     * task would stay for ever. */
    transfer->expiry_time = deadline_earlier(decision->schedule_timeout_time, core->timeout_time);
    return mutation_add_transfer(mutation, transfer);
}

void
apply_decision_scheduled(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const API(DecisionTaskScheduledEventAttributes) *scheduled =
        event->decision_task_scheduled_event_attributes;
    struct run *run = mutation->run;
    STORED(RunRecord) *core = mutation_core(mutation);
    check(core->decision == NULL && run_is_open(run));
    check(event->event_id > 0 && scheduled->task_list != NULL);
    if (core->state != RUN_ZOMBIE)
        run_move(core, RUN_RUNNING, CLOSE_NONE);

    STORED(PendingDecision) *decision = message_new(run->arena, STORED_TYPE(pending_decision));
    decision->event_version = event->version;
    decision->schedule_id = event->event_id;
    decision->started_id = EVENT_NONE;
    decision->timeout = duration_seconds(scheduled->start_to_close_timeout);
    decision->scheduled_time = decision->original_scheduled_time = event_time(event);
    decision->task_list = list_of(mutation, scheduled->task_list);
    if (is_sticky(core, decision->task_list) && core->sticky_timeout > 0)
        decision->schedule_timeout_time = decision->scheduled_time + core->sticky_timeout * SECOND;
    decision->row = send_decision(mutation, decision);
    core->decision = decision;
    core->decision_attempt = 0;
    core->decision_retry_time = 0;
    core->decision_failure = presence_make_text(NULL);
    core->first_decision_time = 0;
    core->waits_for_parent = false;
}

void
apply_decision_started(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const API(DecisionTaskStartedEventAttributes) *started =
        event->decision_task_started_event_attributes;
    struct run *run = mutation->run;
    STORED(PendingDecision) *decision = mutation_change_decision(mutation);
    check(decision->schedule_id == started->scheduled_event_id);
    check(decision->started_id == EVENT_NONE && event->event_id > decision->schedule_id);
    mutation_drop_transfer(mutation, decision->row);
    decision->row = 0;
    decision->event_version = event->version;
    decision->started_id = event->event_id;
    decision->started_time = event_time(event);
    decision->schedule_timeout_time = 0;
    decision->request_id = run_keep_text(run, started->request_id);
    decision->identity = run_keep_text(run, started->identity);
}

/* Without a timeout: the list is not that of a single worker. */
static void
move_to_own_list(struct mutation *mutation, STORED(PendingDecision) *decision)
{
    decision->task_list = mutation->run->core->task_list;
    decision->schedule_timeout_time = 0;
    probe("decision_moved_to_own_list");
}

void
mutation_resend_decision(struct mutation *mutation)
{
    const STORED(RunRecord) *core = mutation->run->core;
    STORED(PendingDecision) *decision = mutation_change_decision(mutation);
    check(decision->started_id == EVENT_NONE);
    if (!is_on_own_list(core) && !is_sticky(core, decision->task_list))
        move_to_own_list(mutation, decision);
    mutation_drop_transfer(mutation, decision->row);
    decision->row = send_decision(mutation, decision);
}

bool
run_decision_is_elsewhere(const struct run *run)
{
#ifdef CADENZA_FAULT_unknown_sticky_list
    return false;
#endif
    return run_has_pending_decision(run) && !run_has_started_decision(run) &&
           !is_on_own_list(run->core);
}

/* Removes the decision that an event ends. A replicated history may end one that is not pending
 * here (fits.c): then the pending one goes, whichever it is. */
static void
end_decision(struct mutation *mutation, int64_t schedule_id)
{
    STORED(RunRecord) *core = mutation_core(mutation);
    if (core->decision == NULL && mutation->has_replicated_events)
        return;
    check(core->decision != NULL);
    check_that(core->decision->schedule_id == schedule_id || mutation->has_replicated_events,
               "decision %lld ends, %lld is pending", (long long)schedule_id,
               (long long)core->decision->schedule_id);
    mutation_drop_transfer(mutation, core->decision->row);
    core->decision = NULL;
}

void
apply_decision_completed(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const API(DecisionTaskCompletedEventAttributes) *completed =
        event->decision_task_completed_event_attributes;
    STORED(RunRecord) *core = mutation_core(mutation);
    check(mutation->has_replicated_events ||
          (run_has_started_decision(mutation->run) &&
           core->decision->started_id == completed->started_event_id));
    end_decision(mutation, completed->scheduled_event_id);
    core->decision_attempt = 0;
    core->previous_started_event_id = completed->started_event_id;
    core->execution_context = presence_make_bytes(
        run_keep_bytes(mutation->run, presence_read_bytes(completed->execution_context)));
    reset_points_add(mutation, event);
}

static int32_t
attempt_of(const STORED(RunRecord) *core)
{
    return core->decision != NULL ? core->decision->attempt : core->decision_attempt;
}

void
mutation_clear_sticky(struct mutation *mutation)
{
    STORED(RunRecord) *core = mutation_core(mutation);
    core->sticky_task_list = NULL;
    core->sticky_timeout = core->sticky_time = 0;
    core->client_library_version = presence_make_text(NULL);
    core->client_feature_version = presence_make_text(NULL);
    core->client_name = presence_make_text(NULL);
}

void
apply_decision_failed(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const API(DecisionTaskFailedEventAttributes) *failed =
        event->decision_task_failed_event_attributes;
    STORED(RunRecord) *core = mutation_core(mutation);
    check(mutation->has_replicated_events || run_has_started_decision(mutation->run));
    int32_t attempt = attempt_of(core) + 1;
    end_decision(mutation, failed->scheduled_event_id);
    mutation_clear_sticky(mutation); /* a worker that fails is not trusted to remember the run */
    /* A reset does not count as an attempt. Nor does a decision that a failover closed, once it is
     * scheduled again; but until then the cluster that takes over must see that one is due. */
    bool is_reset =
        failed->cause ==
        API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_RESET_WORKFLOW);
    core->decision_attempt = is_reset ? 0 : attempt;
    apply_reset(mutation, event);
}

void
apply_decision_timed_out(struct mutation *mutation, const API(HistoryEvent) *event)
{
    const API(DecisionTaskTimedOutEventAttributes) *timed_out =
        event->decision_task_timed_out_event_attributes;
    STORED(RunRecord) *core = mutation_core(mutation);
    bool is_unstarted =
        timed_out->timeout_type == API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_START);
    bool is_reset = timed_out->cause ==
                    API_VALUE(DECISION_TASK_TIMED_OUT_CAUSE__DECISION_TASK_TIMED_OUT_CAUSE_RESET);
    /* That nobody polls a sticky list says nothing about the decision. */
    bool is_innocent = is_reset || (is_unstarted && core->sticky_task_list != NULL);
    check(mutation->has_replicated_events ||
          (core->decision != NULL && is_unstarted != run_has_started_decision(mutation->run)));
    int32_t attempt = attempt_of(core) + 1;
    end_decision(mutation, timed_out->scheduled_event_id);
    mutation_clear_sticky(mutation);
    core->decision_attempt = is_innocent ? 0 : attempt;
    apply_reset(mutation, event);
}
