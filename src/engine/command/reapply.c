/* reapply.c - signals, cancel requests and terminations in a history that lost are done again to
 * the current run.
 *
 * Each signal is named by the run, the event id and the version that it had first. The signal that
 * is applied again has that name as its request id: so the name is in the history itself, and
 * neither a second divergence nor a rebuild applies it twice. Events of the version that wrote the
 * current run last are not applied: the same cluster wrote both, and knew what it did. Cancel
 * requests and terminations were meant for one run: they count only if it is this one. */
#include "base/check.h"
#include "engine/command/inside.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define NAME_PREFIX "reapplied:"

const char *
reapply_name(const char *run_id, const API(HistoryEvent) *event, struct arena *arena)
{
    if (event->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED)) {
        const char *name = event->workflow_execution_signaled_event_attributes->request_id;
        if (strncmp(name, NAME_PREFIX, strlen(NAME_PREFIX)) == 0)
            return name; /* it came again before: the first one names it */
    }
    return arena_format(arena, NAME_PREFIX "%s:%lld:%lld", run_id, (long long)event->event_id,
                        (long long)event->version);
}

/* Is it a signal that the run has not taken? */
static bool
is_wanted(const struct step *step, const struct reapply_command *command,
          const API(HistoryEvent) *event)
{
    const struct run *run = mutation_run(step->mutation);
    if (event->attributes_case != EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED) ||
        event->version == command->last_version)
        return false;
    const char *client = event->workflow_execution_signaled_event_attributes->request_id;
#ifdef CADENZA_FAULT_reapplied_twice
    return true;
#endif
    return !run_has_signal_request(run, client) &&
           !run_has_signal_request(run, reapply_name(command->run_id, event, step->arena));
}

static size_t
count_wanted(const struct step *step, const struct reapply_command *command)
{
    size_t count = 0;
    for (size_t i = 0; i < command->count; i++)
        count += is_wanted(step, command, command->events[i]);
    return count;
}

static void
add_signal(struct step *step, const struct reapply_command *command, const API(HistoryEvent) *event)
{
    const API(WorkflowExecutionSignaledEventAttributes) *signal =
        event->workflow_execution_signaled_event_attributes;
    const char *name = reapply_name(command->run_id, event, step->arena);
#ifdef CADENZA_FAULT_reapplied_twice
    name = "";
#endif
    probe("signal_reapplied");
    run_add_signal(step->mutation, signal->signal_name, signal->input, signal->identity, name);
}

/* Was it a client who asked for the end of this run? */
static bool
is_own_end(const struct reapply_command *command, const API(HistoryEvent) *event,
           const STORED(RunRecord) *core)
{
    if (event->attributes_case != EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED) ||
        strcmp(command->run_id, core->run_id) != 0 || event->version == command->last_version)
        return false;
    const char *identity = event->workflow_execution_terminated_event_attributes->identity;
    return strcmp(identity, HISTORY_SERVICE) != 0 && strcmp(identity, "worker-service") != 0;
}

static bool
is_own_cancel(const struct reapply_command *command, const API(HistoryEvent) *event,
              const STORED(RunRecord) *core)
{
    return event->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_CANCEL_REQUESTED) &&
           strcmp(command->run_id, core->run_id) == 0 && !core->is_cancel_requested &&
           event->version != command->last_version;
}

static void
add_cancel(struct mutation *mutation, const API(HistoryEvent) *event)
{
    API(HistoryEvent) *again =
        mutation_new_event(mutation, EVENT_KIND(WORKFLOW_EXECUTION_CANCEL_REQUESTED));
    *again->workflow_execution_cancel_requested_event_attributes =
        *event->workflow_execution_cancel_requested_event_attributes;
    probe("cancel_reapplied");
    mutation_add_event(mutation, again);
    check(mutation_run(mutation)->core->is_cancel_requested);
}

static void
add_event(struct step *step, const struct reapply_command *command, const API(HistoryEvent) *event)
{
    struct mutation *mutation = step->mutation;
    const STORED(RunRecord) *core = mutation_run(mutation)->core;
    if (is_wanted(step, command, event)) {
        add_signal(step, command, event);
    } else if (is_own_cancel(command, event, core)) {
        add_cancel(mutation, event);
    } else if (is_own_end(command, event, core)) {
        const API(WorkflowExecutionTerminatedEventAttributes) *ended =
            event->workflow_execution_terminated_event_attributes;
        probe("termination_reapplied");
        run_terminate(mutation, ended->reason, ended->details, ended->identity);
    }
}

struct error *
command_reapply(struct step *step, const struct reapply_command *command,
                struct reapply_answer *answer)
{
    struct mutation *mutation = step->mutation;
    check(mutation != NULL);
    const struct run *run = mutation_run(mutation);
    *answer = (struct reapply_answer){.run_id = arena_text(step->arena, run->core->run_id)};
    if (!run_is_open(run)) {
        size_t wanted = count_wanted(step, command);
        int64_t started_id = run->core->previous_started_event_id;
        answer->is_dropped = wanted > 0 && started_id == 0;
        answer->reset_event_id = wanted > 0 && started_id > 0 ? started_id + 1 : 0;
        check(!answer->is_dropped || answer->reset_event_id == 0);
        check(answer->reset_event_id < run->core->next_event_id);
        return NULL;
    }
    for (size_t i = 0; i < command->count && run_is_open(run); i++)
        add_event(step, command, command->events[i]);
    if (!mutation_is_empty(mutation))
        decision_schedule_if_needed(mutation);
    return NULL;
}
