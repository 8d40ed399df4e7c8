/* start_decision.c - a poller gets the decision task: recorded before it leaves. */
#include "base/check.h"
#include "engine/command/inside.h"
#include "wire/errors.h"
#include "wire/message.h"
#include "wire/presence.h"

/* The two events that a transient decision's worker sees, as they will be if it completes. */
static void
fill_transient(const struct mutation *mutation, struct decision_start *start)
{
    struct arena *arena = mutation_arena(mutation);
    const STORED(PendingDecision) *decision = mutation_run(mutation)->core->decision;
    check(decision->started_id == decision->schedule_id + 1);
    API(HistoryEvent) *scheduled = message_new(arena, API_TYPE(history_event));
    scheduled->event_id = decision->schedule_id;
    scheduled->version = decision->event_version;
    scheduled->task_id = EVENT_TRANSIENT;
    scheduled->event_time = presence_make_timestamp(arena, decision->scheduled_time);
    scheduled->attributes_case = EVENT_KIND(DECISION_TASK_SCHEDULED);
    scheduled->decision_task_scheduled_event_attributes =
        message_new(arena, API_TYPE(decision_task_scheduled_event_attributes));
    scheduled->decision_task_scheduled_event_attributes->task_list =
        command_name_list(decision->task_list, arena);
    scheduled->decision_task_scheduled_event_attributes->start_to_close_timeout =
        presence_make_duration(arena, decision->timeout);
    scheduled->decision_task_scheduled_event_attributes->attempt = decision->attempt;

    API(HistoryEvent) *started = message_new(arena, API_TYPE(history_event));
    started->event_id = decision->started_id;
    started->version = decision->event_version;
    started->task_id = EVENT_TRANSIENT;
    started->event_time = presence_make_timestamp(arena, decision->started_time);
    started->attributes_case = EVENT_KIND(DECISION_TASK_STARTED);
    started->decision_task_started_event_attributes =
        message_new(arena, API_TYPE(decision_task_started_event_attributes));
    started->decision_task_started_event_attributes->scheduled_event_id = decision->schedule_id;
    started->decision_task_started_event_attributes->identity =
        arena_text(arena, decision->identity);
    started->decision_task_started_event_attributes->request_id =
        arena_text(arena, decision->request_id);
    start->transient_scheduled = scheduled;
    start->transient_started = started;
}

void
decision_fill_start(const struct mutation *mutation, struct decision_start *start)
{
    struct arena *arena = mutation_arena(mutation);
    const struct run *run = mutation_run(mutation);
    const STORED(RunRecord) *core = run->core;
    const STORED(PendingDecision) *decision = core->decision;
    check(decision != NULL && decision->started_id != EVENT_NONE);
    API(WorkflowType) *type = message_new(arena, API_TYPE(workflow_type));
    type->name = arena_text(arena, core->workflow_type->name);
    bool is_sticky = core->sticky_task_list != NULL;
    *start = (struct decision_start){
        .schedule_id = decision->schedule_id,
        .started_id = decision->started_id,
        .previous_started_id = core->previous_started_event_id,
        .attempt = decision->attempt,
        .next_event_id = core->next_event_id,
        .first_event_id = is_sticky ? core->previous_started_event_id + 1 : 1,
        .scheduled_time = decision->scheduled_time,
        .started_time = decision->started_time,
        .is_sticky = is_sticky,
        .history_bytes = core->history_bytes,
        .workflow_type = type,
        .task_list = command_copy_list(core->task_list, arena),
        .run_id = arena_text(arena, core->run_id),
        .lineage = run_lineage(run, mutation_arena(mutation)),
    };
    check(start->first_event_id >= 1 && start->first_event_id <= start->next_event_id);
    check(start->previous_started_id < start->schedule_id);
    if (decision->attempt > 0)
        fill_transient(mutation, start);
}

struct error *
command_start_decision(struct step *step, const struct task_name *task, const char *request_id,
                       const char *identity, struct decision_start *start)
{
    struct mutation *mutation = step->mutation;
    if (mutation == NULL || !run_is_open(mutation_run(mutation)))
        return errors_entity_not_exists(step->arena, NULL, "workflow execution already completed");
    const STORED(PendingDecision) *decision = mutation_run(mutation)->core->decision;
    /* A repeat is the same start, even if starting it gave it another id. */
    bool is_repeat = decision != NULL && decision->started_id != EVENT_NONE &&
                     strcmp(decision->request_id, request_id) == 0;
#ifdef CADENZA_FAULT_started_for_anybody
    is_repeat = decision != NULL && decision->started_id != EVENT_NONE;
#endif
    if (!is_repeat) {
        if (decision == NULL || decision->schedule_id != task->schedule_id ||
            decision->attempt != task->attempt)
            return errors_entity_not_exists(step->arena, NULL, "Decision task not found.");
        if (decision->started_id != EVENT_NONE)
            return error_new(step->arena, ERR_EVENT_ALREADY_STARTED,
                             "Decision task already started.");
        decision_start(mutation, request_id, identity);
    }
    check(run_has_started_decision(mutation_run(mutation)));
    decision_fill_start(mutation, start);
    return NULL;
}
