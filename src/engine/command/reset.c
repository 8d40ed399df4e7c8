/* reset.c - a run begins again from one of its decisions: what came after is undone.
 *
 * The run that begins has the events of the base run before the fork (rebuild.h); here it gets what
 * is new: the decision at the fork has failed or timed out, activities that somebody works on have
 * failed, signals that came after the fork come again, and a decision is due. The current run, if
 * it is open, ends in the same step. Request ids of signals are kept: a client that repeats a
 * signal across a reset still signals once. */
#include <stdlib.h>

#include "base/check.h"
#include "engine/command/start.h"
#include "engine/run/apply.h"
#include "fiber/probe.h"
#include "wire/message.h"
#include "wire/presence.h"

/* ---- what is asked before anything is read ---- */

const char *
reset_find_repeat(const struct run *current, const API(ResetWorkflowExecutionRequest) *request)
{
    const STORED(RunRecord) *core = current->core;
    if (request->request_id[0] == '\0')
        return NULL;
    if (strcmp(core->create_request_id, request->request_id) == 0)
        return core->run_id;
    return strcmp(core->reset_request_id, request->request_id) == 0 ? core->reset_run_id : NULL;
}

struct error *
reset_check_base(const struct run *base, const API(ResetWorkflowExecutionRequest) *request,
                 struct arena *arena)
{
    const STORED(RunRecord) *core = base->core;
    bool has_decision = core->decision != NULL || core->previous_started_event_id != 0 ||
                        core->decision_attempt > 0;
    if (!has_decision && run_is_open(base)) /* of a closed run the event at the fork tells */
        return error_new(arena, ERR_BAD_REQUEST,
                         "Cannot reset workflow without a decision task schedule.");
    int64_t fork = request->decision_finish_event_id;
    if (fork <= 1 || fork > core->next_event_id)
        return error_new(arena, ERR_BAD_REQUEST,
                         "Decision finish ID must be > 1 && <= workflow next event ID.");
    bool is_in_history = core->decision != NULL && core->decision->attempt == 0;
    if (fork == core->next_event_id && !is_in_history) /* else: to the decision that is pending */
        return error_new(arena, ERR_BAD_REQUEST,
                         "reset event ID %lld not found in the history events", (long long)fork);
    return NULL;
}

struct error *
reset_check_event(const API(HistoryEvent) *event, struct arena *arena)
{
    switch (event->attributes_case) {
    case EVENT_KIND(DECISION_TASK_STARTED):
    case EVENT_KIND(DECISION_TASK_TIMED_OUT):
    case EVENT_KIND(DECISION_TASK_FAILED):
    case EVENT_KIND(DECISION_TASK_COMPLETED):
        return NULL;
    default:
        return error_new(arena, ERR_BAD_REQUEST,
                         "reset event must be of type DecisionTaskStarted, DecisionTaskTimedOut, "
                         "DecisionTaskFailed, or DecisionTaskCompleted. Attempting to reset on "
                         "event type: %s",
                         event_name(event->attributes_case));
    }
}

struct run *
reset_new_run(const struct run *base, const struct run_context *context)
{
    struct run *run = run_new();
    struct uuid id = run_context_uuid(context), branch = run_context_uuid(context);
    char text[UUID_TEXT_LENGTH + 1];
    uuid_format(&id, text);
    STORED(RunRecord) *core = run->core;
    core->format = RUN_RECORD_FORMAT;
    core->domain_id = run_keep_text(run, base->core->domain_id);
    core->workflow_id = run_keep_text(run, base->core->workflow_id);
    core->run_id = run_keep_text(run, text);
    struct history_branch of_base = run_branch(base);
    core->tree_id = presence_make_bytes(run_keep_bytes(run, slice_of(of_base.tree.bytes, 16)));
    core->branch_id = presence_make_bytes(run_keep_bytes(run, slice_of(branch.bytes, 16)));
    return run;
}

void
reset_hand_down(const struct mutation *mutation, struct mutation *begun)
{
    const STORED(RunRecord) *from = mutation_run(mutation)->core;
    STORED(RunRecord) *core = mutation_core(begun);
    core->reset_request_id = run_keep_text(mutation_run(begun), from->reset_request_id);
    core->reset_run_id = run_keep_text(mutation_run(begun), from->reset_run_id);
}

/* ---- the decision at the fork ---- */

static void
write_failed(struct mutation *mutation, const struct reset_command *command)
{
    const STORED(RunRecord) *core = mutation_run(mutation)->core;
    check(core->decision->attempt == 0); /* what is rebuilt is in the history */
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(DECISION_TASK_FAILED));
    API(DecisionTaskFailedEventAttributes) *attributes =
        event->decision_task_failed_event_attributes;
    attributes->scheduled_event_id = core->decision->schedule_id;
    attributes->started_event_id = core->decision->started_id;
    attributes->cause = FAILED_CAUSE(RESET_WORKFLOW);
    attributes->failure = message_new(mutation_arena(mutation), API_TYPE(failure));
    attributes->failure->reason = command->request->reason;
    attributes->identity = (char *)HISTORY_SERVICE;
    attributes->base_run_id = (char *)command->base_run_id;
    attributes->new_run_id = core->run_id;
    attributes->fork_event_version = command->fork_version;
    attributes->request_id = command->request->request_id;
    mutation_add_event(mutation, event);
}

static void
write_timed_out(struct mutation *mutation, const struct reset_command *command)
{
    const STORED(RunRecord) *core = mutation_run(mutation)->core;
    check(core->decision->attempt == 0 && core->decision->started_id == EVENT_NONE);
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(DECISION_TASK_TIMED_OUT));
    API(DecisionTaskTimedOutEventAttributes) *attributes =
        event->decision_task_timed_out_event_attributes;
    attributes->scheduled_event_id = core->decision->schedule_id;
    attributes->timeout_type = API_VALUE(TIMEOUT_TYPE__TIMEOUT_TYPE_SCHEDULE_TO_START);
    attributes->cause =
        API_VALUE(DECISION_TASK_TIMED_OUT_CAUSE__DECISION_TASK_TIMED_OUT_CAUSE_RESET);
    attributes->reason = command->request->reason;
    attributes->base_run_id = (char *)command->base_run_id;
    attributes->new_run_id = core->run_id;
    attributes->fork_event_version = command->fork_version;
    attributes->request_id = command->request->request_id;
    mutation_add_event(mutation, event);
}

/* ---- activities at the fork ---- */

static void
fail_activity(struct mutation *mutation, const STORED(PendingActivity) *activity,
              const char *reason)
{
    check(activity->started_id > activity->schedule_id);
    API(HistoryEvent) *event = mutation_new_event(mutation, EVENT_KIND(ACTIVITY_TASK_FAILED));
    API(ActivityTaskFailedEventAttributes) *attributes =
        event->activity_task_failed_event_attributes;
    attributes->scheduled_event_id = activity->schedule_id;
    attributes->started_event_id = activity->started_id;
    attributes->failure = message_new(mutation_arena(mutation), API_TYPE(failure));
    attributes->failure->reason = (char *)reason;
    attributes->identity = activity->identity;
    mutation_add_event(mutation, event);
}

static int
compare_ids(const void *one, const void *other)
{
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

/* The keys of a map, in order. */
static int64_t *
sorted_ids(const struct mutation *mutation, const struct map64 *map, size_t *count)
{
    size_t cursor = 0;
    int64_t *ids = arena_zalloc(mutation_arena(mutation), map64_count(map) + 1, sizeof *ids);
    uint64_t key;
    *count = 0;
    while (map64_next(map, &cursor, &key, NULL))
        ids[(*count)++] = (int64_t)key;
    qsort(ids, *count, sizeof *ids, compare_ids);
    return ids;
}

static void
restart_activities(struct mutation *mutation, const char *reason)
{
    const struct run *run = mutation_run(mutation);
    size_t count;
    int64_t *ids = sorted_ids(mutation, run->activities, &count);
    for (size_t i = 0; i < count; i++) {
        const STORED(PendingActivity) *activity = run_find_activity(run, ids[i]);
        if (activity->started_id == EVENT_NONE)
            activity_dispatch(mutation, ids[i]);
        else
            fail_activity(mutation, activity, reason);
    }
}

/* Signals and cancel requests that were on their way at the fork: whether they came is not known
 * here, they go once more. */
static void
send_externals(struct mutation *mutation)
{
    size_t count;
    int64_t *ids = sorted_ids(mutation, mutation_run(mutation)->externals, &count);
    for (size_t i = 0; i < count; i++)
        run_send_external(mutation, ids[i]);
}

/* ---- all of it ---- */

static void
set_names(struct run *run, const struct reset_command *command)
{
    STORED(RunRecord) *core = run->core;
    core->chain_request_id = run_keep_text(run, command->chain_request_id);
    core->jitter_start = command->jitter_start;
}

static void
signal_again(struct mutation *mutation, const struct reset_command *command)
{
    for (size_t i = 0; i < command->signal_count; i++) {
        const API(WorkflowExecutionSignaledEventAttributes) *signal = command->signals[i];
        if (run_has_signal_request(mutation_run(mutation), signal->request_id))
            continue; /* a repeat that reached two runs of the chain */
        probe("reset_signal_reapplied");
        run_add_signal(mutation, signal->signal_name, signal->input, signal->identity,
                       signal->request_id);
    }
}

/* May it begin? The run that is reset may belong to another attribute than the current one. */
static struct error *
check_rebuilt(struct step *step, const struct reset_command *command)
{
    const STORED(RunRecord) *core = command->rebuilt->core;
    const STORED(RunRecord) *current = mutation_run(step->mutation)->core;
    check(core->n_versions > 0);
    if (core->versions[core->n_versions - 1]->event_version > step->context->event_version)
        return error_new(step->arena, ERR_INTERNAL, "workflowResetter encounter version mismatch.");
    if (command->children > 0)
        return error_new(step->arena, ERR_BAD_REQUEST,
                         "Can not reset workflow with pending child workflows");
    const char *fault = start_move_attribute(step, current->active_cluster_selection_policy,
                                             core->active_cluster_selection_policy, "reset");
    if (fault != NULL)
        return error_new(step->arena, ERR_BAD_REQUEST, "%s", fault);
    return NULL;
}

struct error *
command_reset(struct step *step, struct reset_command *command, const char **run_id)
{
    check(step->mutation != NULL && step->begun == NULL && command->rebuilt != NULL);
    check(run_is_open(command->rebuilt) && !run_has_buffered(command->rebuilt));
    struct error *err = check_rebuilt(step, command);
    if (err != NULL)
        return err;
    const char *reason = command->request->reason;
    struct run *run = command->rebuilt;
    command->rebuilt = NULL; /* the step's from now on */
    struct mutation *begun = mutation_begin_new(run, step->context, step->arena);
    step->begun = begun;
    if (run_is_open(mutation_run(step->mutation)))
        run_terminate(step->mutation, reason, NULL, HISTORY_SERVICE);

    set_names(run, command);
    if (run_has_started_decision(run))
        write_failed(begun, command);
    else if (run_has_pending_decision(run))
        write_timed_out(begun, command);
    check(run->core->decision == NULL);
    run->core->decision_attempt = 0;
    restart_activities(begun, reason);
    send_externals(begun);
    signal_again(begun, command);
    decision_schedule(begun, 0);
    check(!run_is_open(mutation_run(step->mutation)));
    step_check(step);
    probe("run_reset");
    *run_id = arena_text(step->arena, run->core->run_id);
    return NULL;
}
