/* workflow_observer.c - who looks at workflows at any host while all goes on. See workflow_load.h.
 *
 * A read or a refusal tells what is durable only. What an observer saw goes into the ledger, also
 * of a run whose start nobody has been told of yet: it is asked for by the workflow id alone. */
#include "base/check.h"
#include "fiber/clock.h"
#include "sim/workflow/workflow_inside.h"
#include "wire/message.h"

#define EVENT(name)  API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)
#define CALL_TIMEOUT (5 * NS_PER_S)

/* One of the latest workflows: they change most. NULL: there is none yet. */
static struct workflow_entry *
any_recent(struct workflow_load *load)
{
    unsigned count = load->entry_count, recent = 2 * load->client_count;
    if (count == 0)
        return NULL;
    return &load->entries[count - 1 - entropy_below(count < recent ? count : recent)];
}

/* The run to which a history belongs: a run that a reset made has the first event of another one,
 * and the decision that the reset ended names it. */
static const char *
run_of(const struct history_seen *seen)
{
    const char *run_id =
        seen->events[0]->workflow_execution_started_event_attributes->original_execution_run_id;
    for (size_t i = 1; i < seen->count; i++) {
        const API(HistoryEvent) *event = seen->events[i];
        const char *made = "";
        if (event->attributes_case == EVENT(DECISION_TASK_FAILED))
            made = event->decision_task_failed_event_attributes->new_run_id;
        else if (event->attributes_case == EVENT(DECISION_TASK_TIMED_OUT))
            made = event->decision_task_timed_out_event_attributes->new_run_id;
        if (made[0] != '\0')
            run_id = made;
    }
    return run_id;
}

static void
read_once(struct workflow_load *load, struct load_call *call, const char *workflow_id)
{
    struct history_seen seen;
    struct error *err = workflow_read_history(load, call, workflow_id, "", &seen);
    if (err != NULL || seen.count == 0)
        return;
    const char *run_id = run_of(&seen);
    ledger_check_history(load, run_id, &seen);
    ledger_see(load, run_id, seen.events, seen.count);
    world_probe(load->sim->world, "history_observed");
}

/* A call that is always refused, and by the refusal says whether the workflow is over: no run
 * belongs to the chain that it names. */
static void
try_refused(struct workflow_load *load, struct load_call *call, struct workflow_entry *entry)
{
    struct arena *arena = call->arena;
    API(TerminateWorkflowExecutionRequest) *request =
        API_NEW(arena, terminate_workflow_execution_request, .domain = WORKFLOW_DOMAIN,
                .workflow_execution = workflow_execution(arena, entry->id, ""),
                .first_execution_run_id = "00000000-0000-4000-8000-000000000000");
    struct error *err = workflow_call(load, call, request, NULL);
    if (err == NULL)
        verdict_violate(&load->verdict, "%s: a run of another chain was terminated", entry->id);
    if (err != NULL)
        ledger_note_refusal(load, entry, err);
}

/* Where somebody ends a workflow: that is not durable yet. Or, at any host, a child of it, whose
 * shard that host has to take: the call that starts or ends the child comes late. */
static void
observe_ending(struct workflow_load *load, struct load_call *call)
{
    struct workflow_entry *entry = load->ending;
    if (entry->workload.children > 0 && entropy_below(2) == 0) {
        read_once(load, call, arena_format(call->arena, "%s-c0", entry->id));
        return;
    }
    call->host = load->ending_host;
    try_refused(load, call, entry);
}

static void
observe_once(struct workflow_load *load, struct load_call *call)
{
    struct workflow_entry *entry = any_recent(load);
    if (entry == NULL)
        return;
    if (load->ending != NULL && entropy_below(2) == 0)
        observe_ending(load, call);
    else if (entropy_below(3) != 0)
        read_once(load, call, entry->id);
    else
        try_refused(load, call, entry);
}

void
workflow_observer_main(void *argument)
{
    struct workflow_part *part = argument;
    struct workflow_load *load = part->load;
    struct load_clients *clients = load_clients_new(load->sim);
    while (load->clients_running > 0 && load->verdict.violation == NULL) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        struct load_call call = {
            .clients = clients, .host = workflow_any_host(load), .arena = arena};
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        observe_once(load, &call);
        fiber_set_deadline(NEVER);
        struct error *err =
            fiber_sleep((int64_t)entropy_below((uint64_t)load->think_max / 4), arena);
        check(err == NULL);
    }
    load_clients_free(clients);
    load->observers_running--;
}
