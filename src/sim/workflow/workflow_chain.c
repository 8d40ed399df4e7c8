/* workflow_chain.c - runs that follow each other: does each begin when it must? See
 * workflow_load.h.
 *
 * The first event of a run has the moment at which the run before it ended, and says how long its
 * first decision waits. What that must be follows from the first event of the run before: the
 * policy and the attempt, or the schedule and when that run itself was due. Fires are counted one
 * by one here, where the server jumps. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cron.h"
#include "fiber/clock.h"
#include "sim/workflow/workflow_inside.h"

#define EVENT(name)     API_VALUE(HISTORY_EVENT__ATTRIBUTES_##name##_EVENT_ATTRIBUTES)
#define INITIATOR(name) API_VALUE(CONTINUE_AS_NEW_INITIATOR__CONTINUE_AS_NEW_INITIATOR_##name)
#define BUFFER_ONE      API_VALUE(CRON_OVERLAP_POLICY__CRON_OVERLAP_POLICY_BUFFER_ONE)

typedef API(WorkflowExecutionStartedEventAttributes) started_t;

static const started_t *
started_of(const API(HistoryEvent) *event)
{
    return event->workflow_execution_started_event_attributes;
}

static int64_t
time_of(const API(HistoryEvent) *event)
{
    return event->event_time->seconds * NS_PER_S + event->event_time->nanos;
}

static int64_t
wait_of(const API(HistoryEvent) *first)
{
    const GOOGLE(Duration) *wait = started_of(first)->first_decision_task_backoff;
    return wait == NULL ? 0 : wait->seconds;
}

/* Seconds that a run waits which begins at `now` and follows one that was due at `due` (ns). */
static int64_t
wait_for_fire(const struct cron *cron, bool is_buffered, int64_t due, int64_t now)
{
    int64_t next = cron_next(cron, due / NS_PER_S);
    bool is_missed = next * NS_PER_S < now;
    if (is_missed && is_buffered)
        return 0;
    while (next * NS_PER_S < now)
        next = cron_next(cron, next);
    return (next * NS_PER_S - now + NS_PER_S - 1) / NS_PER_S;
}

static void
check_fire(struct workflow_load *load, const struct workflow_entry *entry, int64_t due,
           const API(HistoryEvent) *first)
{
    struct arena *arena = arena_new(0);
    struct cron cron;
    const char *fault = cron_parse(entry->schedule, arena, &cron);
    int64_t wait = wait_of(first), least = 0;
    if (fault == NULL)
        least = wait_for_fire(&cron, entry->is_buffered, due, time_of(first));
    if (fault != NULL || wait < least || wait > least + entry->jitter)
        verdict_violate(&load->verdict, "%s: a run waits %" PRId64 " s for the fire in %" PRId64,
                        entry->id, wait, least);
    world_probe(load->sim->world, "cron_fired");
    arena_free(arena);
}

static void
check_retry(struct workflow_load *load, const struct workflow_entry *entry, const started_t *before,
            const API(HistoryEvent) *first)
{
    static const int64_t waits[] = {1, 2, 3, 3}; /* 1 s, doubled, at most 3 s */
    const started_t *started = started_of(first);
    if (started->attempt != before->attempt + 1 ||
        (unsigned)started->attempt > entry->workload.failures)
        verdict_violate(&load->verdict, "%s: attempt %d follows attempt %d", entry->id,
                        started->attempt, before->attempt);
    else if (wait_of(first) != waits[before->attempt])
        verdict_violate(&load->verdict, "%s: attempt %d waits %" PRId64 " s", entry->id,
                        started->attempt, wait_of(first));
    if (started->continued_failure == NULL ||
        strcmp(started->continued_failure->reason, "not yet") != 0)
        verdict_violate(&load->verdict, "%s: an attempt does not know why", entry->id);
    world_probe(load->sim->world, "run_tried_again");
}

/* Fires that were good so far, as the last result says. */
static int
fires_of(const started_t *started, struct arena *arena)
{
    int fires = 0;
    if (started->last_completion_result != NULL)
        (void)sscanf(workflow_payload_text(arena, started->last_completion_result), "%d", &fires);
    return fires;
}

static void
check_results(struct workflow_load *load, const struct workflow_entry *entry,
              const started_t *before, const started_t *started)
{
    struct arena *arena = arena_new(0);
    int had = fires_of(before, arena), has = fires_of(started, arena);
    int wanted = started->initiator == INITIATOR(CRON_SCHEDULE) ? had + 1 : had;
    if (started->initiator != INITIATOR(DECIDER) && has != wanted)
        verdict_violate(&load->verdict, "%s: the last result is %d, not %d", entry->id, has,
                        wanted);
    if (strcmp(before->first_execution_run_id, started->first_execution_run_id) != 0)
        verdict_violate(&load->verdict, "%s: the chain began twice", entry->id);
    arena_free(arena);
}

/* Nothing decides before its time, but what was asked to end. */
static void
check_not_early(struct workflow_load *load, const struct workflow_entry *entry,
                const struct history_seen *seen)
{
    int64_t due = time_of(seen->events[0]) + wait_of(seen->events[0]) * NS_PER_S;
    for (size_t i = 1; i < seen->count; i++) {
        if (seen->events[i]->attributes_case == EVENT(WORKFLOW_EXECUTION_CANCEL_REQUESTED))
            return;
        if (seen->events[i]->attributes_case != EVENT(DECISION_TASK_SCHEDULED))
            continue;
        if (time_of(seen->events[i]) < due)
            verdict_violate(&load->verdict, "%s: a run decides %" PRId64 " ms before its time",
                            entry->id, (int64_t)((due - time_of(seen->events[i])) / NS_PER_MS));
        return;
    }
}

/* When the newest run was due: it has waited, or a reset made it begin at once. */
static int64_t
due_of(const struct chain *chain)
{
    const API(HistoryEvent) *first = chain->newest.events[0];
    return chain->reset_time != 0 ? chain->reset_time : time_of(first) + wait_of(first) * NS_PER_S;
}

static void
check_follows(struct workflow_load *load, const struct chain *chain, const API(HistoryEvent) *first)
{
    const struct workflow_entry *entry = chain->entry;
    const started_t *started = started_of(first), *before = started_of(chain->newest.events[0]);
    int64_t due = due_of(chain);
    if (time_of(first) < due)
        verdict_violate(&load->verdict, "%s: a run ended before it was due", entry->id);
    if ((before->parent_execution_info == NULL) != (started->parent_execution_info == NULL))
        verdict_violate(&load->verdict, "%s: a run has forgotten its parent", entry->id);
    check_results(load, entry, before, started);
    if (started->initiator == INITIATOR(CRON_SCHEDULE))
        check_fire(load, entry, due, first);
    else if (started->initiator == INITIATOR(RETRY_POLICY))
        check_retry(load, entry, before, first);
    else if (wait_of(first) != 0 || started->attempt != 0)
        verdict_violate(&load->verdict, "%s: a run that the worker began waits", entry->id);
    if (started->initiator == INITIATOR(CRON_SCHEDULE) && chain->reset_time != 0)
        world_probe(load->sim->world, "cron_after_reset");
}

void
chain_check_begin(struct workflow_load *load, const struct chain *chain,
                  const struct history_seen *seen)
{
    const API(HistoryEvent) *first = seen->events[0];
    check_not_early(load, chain->entry, seen);
    if (chain->runs > 0)
        check_follows(load, chain, first);
    else if (chain->entry->workload.fires > 0)
        check_fire(load, chain->entry, time_of(first), first);
}

unsigned
chain_length(const struct workload *workload)
{
    unsigned attempts = workload->failures + 1;
    /* Each fire has its attempts; so has the run that gets rid of the schedule. */
    return workload->fires == 0 ? attempts + workload->runs
                                : (workload->fires + 1) * attempts + 1 + workload->runs;
}
