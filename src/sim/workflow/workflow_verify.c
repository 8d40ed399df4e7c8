/* workflow_verify.c - after the storm: did every workflow end as it should, with everything that
 * was acknowledged in its history, once? See workflow_load.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fiber/clock.h"
#include "sim/workflow/workflow_inside.h"

#define EVENT(name)  API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)
#define END_LIMIT    (12 * 3600 * NS_PER_S) /* of virtual time, until all has ended */
#define CALL_TIMEOUT (10 * NS_PER_S)
#define RUNS_MAX     64
#define TRIES_MAX    7200 /* a second apart: retries and timeouts take their time */

static void
count_name(struct audit *audit, const char *name)
{
    uintptr_t before = (uintptr_t)map_get(audit->found, slice_text(name));
    map_put(audit->found, slice_text(name), (void *)(before + 1));
}

/* The worker had not seen everything when it wanted to close: its list was void. */
static void
note_unhandled(struct audit *audit, const char *run_id, const API(HistoryEvent) *event,
               struct arena *arena)
{
    if (event->attributes_case != EVENT(DECISION_TASK_FAILED))
        return;
    const API(DecisionTaskFailedEventAttributes) *failed =
        event->decision_task_failed_event_attributes;
    if (failed->cause !=
        API_VALUE(DECISION_TASK_FAILED_CAUSE__DECISION_TASK_FAILED_CAUSE_UNHANDLED_DECISION))
        return;
    world_probe(audit->load->sim->world, "unhandled_decision");
    count_name(audit, ledger_unhandled_name(run_id, failed->started_event_id, arena));
}

/* What was lost on the way, and covered by a timeout or another attempt. */
static void
note_recovery(struct workflow_load *load, const API(HistoryEvent) *event)
{
    int kind = (int)event->attributes_case;
    struct world *world = load->sim->world;
    if (kind == EVENT(DECISION_TASK_TIMED_OUT))
        world_probe(world, "decision_timed_out");
    if (kind == EVENT(ACTIVITY_TASK_STARTED) &&
        event->activity_task_started_event_attributes->attempt > 0)
        world_probe(world, "activity_retried");
    if (kind == EVENT(WORKFLOW_EXECUTION_CONTINUED_AS_NEW))
        world_probe(world, "continued_as_new");
}

static void
count_signal(struct chain *chain, const API(HistoryEvent) *event)
{
    unsigned number = 0;
    if (event->attributes_case == EVENT(WORKFLOW_EXECUTION_SIGNALED) &&
        sscanf(event->workflow_execution_signaled_event_attributes->signal_name, "s%u", &number) ==
            1 &&
        number < WORKFLOW_SIGNALS_MAX)
        chain->signals[number]++;
}

static void
count_event(struct audit *audit, struct chain *chain, const API(HistoryEvent) *event,
            struct arena *arena)
{
    int kind = (int)event->attributes_case;
    if (kind == EVENT(MARKER_RECORDED))
        count_name(audit, event->marker_recorded_event_attributes->marker_name);
    if (kind == EVENT(ACTIVITY_TASK_COMPLETED))
        count_name(audit, workflow_payload_text(
                              arena, event->activity_task_completed_event_attributes->result));
    note_recovery(audit->load, event);
    chain->cancels += kind == EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED);
    chain->terminates += kind == EVENT(WORKFLOW_EXECUTION_TERMINATED);
}

static bool
is_close(int kind)
{
    return kind == EVENT(WORKFLOW_EXECUTION_COMPLETED) ||
           kind == EVENT(WORKFLOW_EXECUTION_CANCELED) ||
           kind == EVENT(WORKFLOW_EXECUTION_TERMINATED) ||
           kind == EVENT(WORKFLOW_EXECUTION_CONTINUED_AS_NEW) ||
           kind == EVENT(WORKFLOW_EXECUTION_FAILED) || kind == EVENT(WORKFLOW_EXECUTION_TIMED_OUT);
}

/* Reads a run until it is closed. False: it does not end, or cannot be read. */
static bool
await_close(struct audit *audit, const char *workflow_id, const char *run_id, struct arena *arena,
            struct history_seen *seen)
{
    struct error *err = NULL;
    for (int try = 0; try < TRIES_MAX && audit->load->verdict.violation == NULL; try++) {
        struct load_call call = {
            .clients = audit->clients, .host = workflow_any_host(audit->load), .arena = arena};
        fiber_set_deadline(clock_monotonic() + CALL_TIMEOUT);
        err = workflow_read_history(audit->load, &call, workflow_id, run_id, seen);
        fiber_set_deadline(NEVER);
        if (err == NULL && seen->count > 0 &&
            is_close((int)seen->events[seen->count - 1]->attributes_case))
            return true;
        scoped(arena_drop) struct arena *sleep = arena_new(0);
        if (fiber_sleep(NS_PER_S, sleep) != NULL)
            return false;
    }
    verdict_violate(&audit->load->verdict, "%s/%s does not end: %s, %zu events", workflow_id,
                    run_id, err == NULL ? "" : err->message, seen->count);
    return false;
}

static int64_t
event_time_of(const API(HistoryEvent) *event)
{
    return event->event_time->seconds * NS_PER_S + event->event_time->nanos;
}

static bool
audit_run(struct audit *audit, struct chain *chain, const char *run_id, struct arena *arena)
{
    struct history_seen seen;
    if (!await_close(audit, chain->entry->id, run_id, arena, &seen))
        return false;
    if (chain->runs == 0)
        chain->first = seen;
    ledger_check_history(audit->load, run_id, &seen);
    ledger_see(audit->load, run_id, seen.events, seen.count);
    for (size_t i = 0; i < seen.count; i++) {
        count_signal(chain, seen.events[i]);
        if (seen.events[i]->event_id < chain->counted_from)
            continue;
        count_event(audit, chain, seen.events[i], arena);
        note_unhandled(audit, run_id, seen.events[i], arena);
    }
    chain_check_begin(audit->load, chain, &seen);
    const API(HistoryEvent) *last = seen.events[seen.count - 1];
    audit->events += seen.count;
    chain->close_time = event_time_of(last);
    chain->newest = seen;
    chain->reset_time =
        chain->counted_from == 0 ? 0 : event_time_of(seen.events[chain->counted_from - 1]);
    chain->counted_from = 0; /* later runs have nothing from others */
    chain->runs++;
    chain->close_kind = (int)last->attributes_case;
    chain->last_run_id = run_id;
    chain->next_run_id = NULL;
    if (chain->close_kind == EVENT(WORKFLOW_EXECUTION_CONTINUED_AS_NEW))
        chain->next_run_id =
            last->workflow_execution_continued_as_new_event_attributes->new_execution_run_id;
    return true;
}

bool
audit_chain(struct audit *audit, struct chain *chain, struct arena *arena)
{
    while (chain->next_run_id != NULL && chain->runs < RUNS_MAX)
        if (!audit_run(audit, chain, chain->next_run_id, arena))
            return false;
    return true;
}

static void
judge_chain(struct audit *audit, const struct workflow_entry *entry, const struct chain *chain)
{
    struct verdict *verdict = &audit->load->verdict;
    for (unsigned i = 0; i < WORKFLOW_SIGNALS_MAX; i++) {
        if (entry->is_signal_acknowledged[i] && chain->signals[i] != 1)
            verdict_violate(verdict, "%s: signal %u was acknowledged and is there %u times",
                            entry->id, i, chain->signals[i]);
        if (chain->signals[i] > 1)
            verdict_violate(verdict, "%s: signal %u is there %u times", entry->id, i,
                            chain->signals[i]);
    }
    bool is_reset = entry->reset_run_id[0] != '\0'; /* it may have been over before that */
    if (!is_reset && entry->gone_time != 0 && chain->close_time > entry->gone_time)
        verdict_violate(verdict, "%s: its client was told that it is over before it was",
                        entry->id);
    if (chain->cancels > 1 || chain->terminates > 1)
        verdict_violate(verdict, "%s: ended more than once", entry->id);
    bool is_planned = chain->close_kind == EVENT(WORKFLOW_EXECUTION_COMPLETED);
    if (entry->fate == FATE_COMPLETE &&
        (!is_planned || chain->runs != chain_length(&entry->workload)))
        verdict_violate(verdict, "%s: ended with kind %d after %u runs", entry->id,
                        chain->close_kind, chain->runs);
    if (entry->fate == FATE_TERMINATE && entry->is_end_acknowledged && chain->terminates != 1)
        verdict_violate(verdict, "%s: its termination was acknowledged and is not there",
                        entry->id);
    if (entry->fate == FATE_CANCEL && entry->is_end_acknowledged && chain->cancels != 1)
        verdict_violate(verdict, "%s: its cancel request was acknowledged and is not there",
                        entry->id);
}

/* What was before the reset has ended, by the reset or before it. Then the workflow is what the
 * reset made of it. */
static bool
audit_before_reset(struct audit *audit, const struct workflow_entry *entry, struct chain *chain,
                   struct arena *arena)
{
    if (!audit_chain(audit, chain, arena))
        return false;
    bool is_ended = chain->close_kind == EVENT(WORKFLOW_EXECUTION_TERMINATED) ||
                    chain->close_kind == EVENT(WORKFLOW_EXECUTION_COMPLETED);
    if (!is_ended)
        verdict_violate(&audit->load->verdict, "%s: ended with kind %d before its reset", entry->id,
                        chain->close_kind);
    world_probe(audit->load->sim->world, chain->runs > 1 ? "reset_of_a_chain" : "reset_of_a_run");
    *chain = (struct chain){
        .entry = entry, .next_run_id = entry->reset_run_id, .counted_from = entry->fork};
    return true;
}

static void
audit_entry(struct audit *audit, const struct workflow_entry *entry)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct chain chain = {.entry = entry, .next_run_id = entry->run_id};
    bool is_reset = entry->reset_run_id[0] != '\0';
    if (is_reset && !audit_before_reset(audit, entry, &chain, arena))
        return;
    if (!audit_chain(audit, &chain, arena))
        return;
    judge_chain(audit, entry, &chain);
    audit_children(audit, entry, &chain, arena);
}

static bool
is_void(struct audit *audit, const struct reported *reported)
{
    bool is_closing = reported->unhandled[0] != '\0';
    return is_closing && (reported->is_transient ||
                          map_get(audit->found, slice_text(reported->unhandled)) != NULL);
}

/* Whatever somebody saw is in the history of a run that was audited, and that was noted too. */
static void
judge_events(struct audit *audit)
{
    if (map_count(audit->load->events) != audit->events)
        verdict_violate(&audit->load->verdict, "%zu events were seen, the histories have %zu",
                        map_count(audit->load->events), audit->events);
}

/* Every name that a worker was acknowledged stands in some history, once; none twice. */
static void
judge_names(struct audit *audit)
{
    struct slice name;
    void *value;
    for (size_t cursor = 0; map_next(audit->load->reported, &cursor, &name, &value);) {
        const struct reported *reported = value;
        uintptr_t count = (uintptr_t)map_get(audit->found, name);
        bool is_missing = reported->is_acknowledged && count == 0 && !is_void(audit, reported);
        if (count > 1 || is_missing)
            verdict_violate(&audit->load->verdict, "%.*s is %" PRIuPTR " times in a history%s",
                            SLICE_ARG(name), count,
                            reported->is_acknowledged ? ", and was acknowledged" : "");
    }
}

void
workflow_audit(struct workflow_load *load)
{
    struct audit audit = {.load = load, .clients = load_clients_new(load->sim), .found = map_new()};
    for (unsigned i = 0; i < load->entry_count && load->verdict.violation == NULL; i++) {
        if (load->entries[i].run_id[0] != '\0')
            audit_entry(&audit, &load->entries[i]);
    }
    if (load->verdict.violation == NULL)
        judge_names(&audit);
    if (load->verdict.violation == NULL)
        judge_events(&audit);
    map_free(audit.found);
    load_clients_free(audit.clients);
}

static bool
all_is_over(void *context)
{
    const struct workflow_load *load = context;
    return load->is_audited && load->workers_running == 0;
}

const char *
workflow_load_verify(struct workflow_load *load)
{
    load->is_over = true;
    if (!world_run_until(load->sim->world, all_is_over, load, END_LIMIT))
        verdict_violate(&load->verdict, "%u clients and %u workers hang", load->clients_running,
                        load->workers_running);
    return load->verdict.violation;
}
