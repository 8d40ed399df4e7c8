/* lost.c - what loses is kept in mind: a row of the outbox for what clients caused, so that it
 * happens again where the workflow goes on, and a row for people. See incoming.h.
 *
 * Both are written with the commit that made the events lose, so nothing is lost in between. */
#include "base/check.h"
#include "engine/incoming/incoming.h"
#include "engine/shard/metrics.h"
#include "engine/shard/step_batch.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"
#include "wire/presence.h"

#define REASON(name) CADENZA__STORAGE__V1__DIVERGENCE_REASON__DIVERGENCE_REASON_##name

/* ---- what clients caused ---- */

bool
incoming_is_of_client(const API(HistoryEvent) *event)
{
    return event->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_SIGNALED) ||
           event->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_CANCEL_REQUESTED) ||
           event->attributes_case == EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED);
}

static bool
has_client_events(API(HistoryEvent) *const *events, size_t count)
{
    size_t i = 0;
    while (i < count && !incoming_is_of_client(events[i]))
        i++;
    return i < count;
}

/* Events of a history that lost; the second id is not included. */
static void
send_events(struct mutation *mutation, struct history_branch branch, int64_t from, int64_t to)
{
    struct arena *arena = mutation_arena(mutation);
    check(from > 0);
    if (from >= to)
        return;
#ifdef CADENZA_FAULT_lost_not_sent
    return;
#endif
    STORED(TransferRow) *row = message_new(arena, STORED_TYPE(transfer_row));
    row->type = CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_REAPPLY;
    row->schedule_id = from;
    row->next_event_id = to;
    row->branch_id = presence_make_uuid(arena, branch.branch);
    mutation_add_transfer(mutation, row);
    probe("lost_events_sent");
}

/* The newest event that two histories have in common. */
static int64_t
common_event(struct versions one, struct versions other)
{
    struct version_item common;
    bool is_common = versions_find_common(one, other, &common);
    check(is_common);
    return common.event_id;
}

/* From where on the history that was the run's is lost; the one that wins is `index`. */
static int64_t
lost_from(const struct incoming *incoming)
{
    if (incoming->verdict.place == BATCH_FORKS && incoming->verdict.branch == 0)
        return incoming->verdict.base.event_id + 1;
    check(incoming->verdict.branch > 0 && incoming->verdict.branch < incoming->local.count);
    struct versions won = incoming->local.branch[incoming->verdict.branch].versions;
    won = versions_until(won, incoming->verdict.base, incoming->arena);
    return common_event(won, incoming->local.branch[0].versions) + 1;
}

/* Does the run that wins follow the other one, by a reset or since that went on as it? Then it has
 * what it should have of it already. */
static bool
is_successor(const struct incoming *incoming, const struct incoming_step *step,
             const struct run *lost)
{
    const char *lost_id = lost->core->run_id;
    const API(HistoryEvent) *first = incoming->events->events[0];
    const struct run *target = mutation_run(step->target.mutation);
    const struct run *won = step->revived.loaded != NULL ? step->revived.loaded->run : target;
    if (strcmp(won->core->continued_execution_run_id, lost_id) == 0)
        return true;
    if (!incoming->batch.is_reset || won != target)
        return false;
    check(first->attributes_case == EVENT_KIND(DECISION_TASK_FAILED) ||
          first->attributes_case == EVENT_KIND(DECISION_TASK_TIMED_OUT));
    const char *base = first->attributes_case == EVENT_KIND(DECISION_TASK_FAILED)
                           ? first->decision_task_failed_event_attributes->base_run_id
                           : first->decision_task_timed_out_event_attributes->base_run_id;
    return strcmp(base, lost_id) == 0;
}

/* The run that gives way. */
static void
send_suppressed(struct incoming *incoming, struct incoming_step *step)
{
    struct mutation *mutation = step->suppressed.mutation;
    bool is_target = mutation == step->target.mutation; /* another history of it goes on */
    if (mutation == NULL || (!is_target && is_successor(incoming, step, mutation_run(mutation))))
        return;
    const struct run *run = mutation_run(mutation);
    size_t added; /* by its end, which is ours and not a client's */
    (void)mutation_events(mutation, &added);
    check((int64_t)added < run->core->next_event_id);
    send_events(mutation, run_branch(run), is_target ? lost_from(incoming) : 1,
                run->core->next_event_id - (int64_t)added);
}

void
incoming_send_lost(struct incoming *incoming, struct incoming_step *step)
{
    struct mutation *target = step->target.mutation;
    const struct replicated_events *events = incoming->events;
    bool has_any = has_client_events(events->events, events->count);
    int64_t first = incoming->batch.first_event_id, next = incoming->batch.next_event_id;
    if (step->is_side && has_any)
        send_events(target, step->branch, first, next);
    if (incoming->verdict.is_switch) {
        const struct run_branch *old = &incoming->local.branch[0];
        send_events(target, history_lineage_own(&old->lineage), lost_from(incoming),
                    versions_last(old->versions).event_id + 1);
    }
    if (!step->is_side && !step->target_is_current && has_any)
        send_events(target, run_branch(mutation_run(target)), first, next);
    if (step->begun.mutation != NULL && step->holder != mutation_run(step->begun.mutation) &&
        has_client_events(events->begun_events, events->begun_count))
        send_events(step->begun.mutation, run_branch(mutation_run(step->begun.mutation)), 1,
                    (int64_t)events->begun_count + 1);
    send_suppressed(incoming, step);
}

/* ---- for people ---- */

static void
put_divergence(const struct run *run, struct history_branch branch, int64_t from,
               STORED(DivergenceReason) reason, struct step_batch *batch)
{
    struct arena *arena = batch->arena;
    const STORED(RunRecord) *core = run->core;
    struct run_key key = {core->domain_id, core->workflow_id, core->run_id};
    check(from > 0);
    STORED(DivergenceRow) *row = message_new(arena, STORED_TYPE(divergence_row));
    row->format = RUN_RECORD_FORMAT;
    row->domain_id = core->domain_id;
    row->workflow_id = core->workflow_id;
    row->run_id = core->run_id;
    row->branch_id = presence_make_uuid(arena, branch.branch);
    row->from_event_id = from;
    row->reason = reason;
    row->time = clock_wall();
    batch_put(batch->batch, ROW_DIVERGENCE, divergence_key(&key, branch.branch, arena),
              message_encode(arena, &row->base));
    probe("divergence_noted");
    metrics_incoming(batch->tenure->shard, METRIC_LOST);
}

/* The history that won may have lost before; then the one that it beats has its place. */
static void
put_switched(const struct incoming *incoming, const struct run *run, struct step_batch *batch)
{
    const struct run_branch *old = &incoming->local.branch[0];
    put_divergence(run, history_lineage_own(&old->lineage), lost_from(incoming), REASON(BRANCH),
                   batch);
    if (incoming->verdict.place != BATCH_EXTENDS)
        return;
    const struct run_branch *won = &incoming->local.branch[incoming->verdict.branch];
    struct history_branch own = history_lineage_own(&won->lineage);
    batch_delete(batch->batch, ROW_DIVERGENCE,
                 divergence_key(&incoming->events->key, own.branch, batch->arena));
}

/* A run that came late and behind the one that has the id: nothing of it is lost if it ended by
 * itself, or if it has the id now. */
static void
delete_divergence(const struct run *run, struct step_batch *batch)
{
    const STORED(RunRecord) *core = run->core;
    struct run_key key = {core->domain_id, core->workflow_id, core->run_id};
    batch_delete(batch->batch, ROW_DIVERGENCE,
                 divergence_key(&key, run_branch(run).branch, batch->arena));
    probe("divergence_taken_back");
}

/* Had the run that the batch is for lost before, and has it stopped losing? */
static bool
is_taken_back(const struct incoming *incoming, const struct incoming_step *step)
{
    const struct replicated_events *events = incoming->events;
    const struct run *run = mutation_run(step->target.mutation);
#ifdef CADENZA_FAULT_late_run_stays_lost
    return false; /* fault: what came late is reported as lost for ever */
#endif
    if (!incoming->target_was_zombie || step->is_side)
        return false;
    return run_is_open(run) ? step->holder == run
                            : !command_event_gives_way(events->events[events->count - 1]);
}

void
incoming_put_lost(const struct incoming *incoming, const struct incoming_step *step,
                  struct step_batch *batch)
{
    const struct run *run = mutation_run(step->target.mutation);
    if (step->is_side && incoming->verdict.place == BATCH_FORKS)
        put_divergence(run, step->branch, incoming->batch.first_event_id, REASON(BRANCH), batch);
    if (incoming->verdict.is_switch)
        put_switched(incoming, run, batch);
    if (!step->is_side && !step->target_is_current && run_is_open(run))
        put_divergence(run, run_branch(run), 1, REASON(RUN), batch);
    if (step->suppressed.mutation != NULL)
        put_divergence(step->suppressed.loaded->run, run_branch(step->suppressed.loaded->run), 1,
                       REASON(RUN), batch);
    if (is_taken_back(incoming, step))
        delete_divergence(run, batch);
    if (step->revived.mutation != NULL)
        delete_divergence(step->revived.loaded->run, batch);
}
