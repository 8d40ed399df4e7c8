/* incoming.c - events that another cluster decided come into a workflow id. See incoming.h,
 * engine/replicated.h.
 *
 * It is a step like that of a command, but for what is decided: not whether, but where. Under the
 * lock of the id the histories of the run are compared with the batch; what has to be read is read;
 * then, without a yield, the step is made and submitted. What this cluster took and has not written
 * down (it is buffered behind a started decision) is written first, as a commit of its own: it may
 * be that the batch then belongs to another place. */
#include "engine/incoming/incoming.h"
#include "engine/shard/applied_domains.h"
#include "engine/shard/context.h"
#include "engine/shard/failover_state.h"
#include "engine/shard/metrics.h"
#include "engine/shard/step.h"
#include "engine/shard/step_batch.h"
#include "engine/shard/workflows.h"

#include "base/check.h"
#include "engine/run/apply.h"
#include "fiber/probe.h"
#include "wire/errors.h"

#define ATTEMPTS_MAX 3 /* of one that lost its shard before it was decided */

/* ---- before ---- */

/* The run that the last event says this one goes on as; NULL: none. */
static const char *
continued_run(const struct replicated_events *events)
{
    const API(HistoryEvent) *last = events->events[events->count - 1];
    if (last->attributes_case != EVENT_KIND(WORKFLOW_EXECUTION_CONTINUED_AS_NEW))
        return NULL;
    return last->workflow_execution_continued_as_new_event_attributes->new_execution_run_id;
}

static struct error *
read_batch(struct incoming *incoming)
{
    const struct replicated_events *events = incoming->events;
    struct replicated_batch begun;
    struct uuid uuid;
    struct error *err = replicated_batch_read(events->events, events->count, events->versions,
                                              incoming->arena, &incoming->batch);
    if (err != NULL)
        return err;
    check(incoming->batch.next_event_id - incoming->batch.first_event_id == (int64_t)events->count);
    bool is_named = uuid_parse(slice_text(events->key.run_id), &uuid);
    if (events->begun_count > 0) {
        const API(HistoryEvent) *last = events->begun_events[events->begun_count - 1];
        struct version_item item = {last->event_id, last->version};
        incoming->begun_run_id = continued_run(events);
        is_named = is_named && incoming->begun_run_id != NULL &&
                   uuid_parse(slice_text(incoming->begun_run_id), &uuid) &&
                   strcmp(incoming->begun_run_id, events->key.run_id) != 0;
        err = replicated_batch_read(events->begun_events, events->begun_count,
                                    (struct versions){&item, 1}, incoming->arena, &begun);
        is_named = is_named && (err != NULL || begun.first_event_id == 1);
    }
    if (err == NULL && !is_named)
        err = error_new(incoming->arena, ERR_BAD_REQUEST, "The batch is wrong: no such run.");
    return err;
}

static struct error *
load_run(struct incoming *incoming, const char *run_id, struct loaded_run **loaded)
{
    struct error *err =
        workflow_load_run(incoming->tenure, incoming->workflow, run_id, incoming->arena, loaded);
    if (*loaded != NULL && (*loaded)->run->core->is_deleting)
        *loaded = NULL; /* as good as gone */
    return err;
}

static struct error *
load(struct incoming *incoming)
{
    struct tenure *tenure = incoming->tenure;
    struct error *err = workflow_load_current(tenure, incoming->workflow, incoming->arena);
    if (err == NULL)
        err = load_run(incoming, incoming->events->key.run_id, &incoming->target);
    if (err == NULL && incoming->workflow->current != NULL)
        err = load_run(incoming, arena_text(incoming->arena, incoming->workflow->current->run_id),
                       &incoming->current);
    return err == NULL && tenure->is_over ? tenure_error(tenure, incoming->arena) : err;
}

/* What the runs may look at; the applied domains are those of this moment. No yield. */
static struct error *
load_others(struct incoming *incoming)
{
    struct tenure *tenure = incoming->tenure;
    struct shard_step wanted = {
        .key = incoming->events->key, .may_be_missing = true, .ignores_activity = true};
    const struct run *run = incoming->target == NULL ? NULL : incoming->target->run;
    struct error *err = applied_domains_catch_up(tenure, incoming->arena);
    if (err == NULL)
        err = tenure_make_context(tenure, &wanted, run, incoming->arena, &incoming->context);
    if (err == NULL && !writer_has_room(tenure->writer))
        err = errors_service_busy(incoming->arena, "", "Too many changes of shard %u are waiting.",
                                  tenure->shard->options.number);
    return err;
}

/* ---- the place ---- */

static void
decide_position(struct incoming *incoming)
{
    incoming->local = (struct run_branches){0};
    if (incoming->target != NULL)
        incoming->local = branches_read(incoming->target->run->core, incoming->arena);
    incoming->verdict = batch_decide(&incoming->local, &incoming->batch);
}

static struct error *
find_position(struct incoming *incoming)
{
    decide_position(incoming);
    bool is_touched = incoming->verdict.is_current && incoming->target != NULL;
    if (!is_touched || !run_has_buffered(incoming->target->run))
        return NULL;
    struct error *err = load_others(incoming);
    if (err != NULL)
        return err;
    if (incoming_has_lost(incoming, incoming->target->run)) {
        probe("lost_buffer_found");
        incoming->drops_buffered = true;
        return NULL;
    }
    probe("flushed_before_replicated");
    incoming->ticket = tenure_write_buffered(incoming->tenure, incoming->workflow, incoming->target,
                                             run_last_version(incoming->target->run),
                                             &incoming->context.of_run, incoming->arena);
#ifndef CADENZA_FAULT_place_before_flush /* fault: the place is one among older histories */
    decide_position(incoming);
#endif
    return NULL;
}

/* ---- the step ---- */

/* Does the batch leave something that a worker has to be told? */
static bool
brings_changes(const struct replicated_events *events)
{
    for (size_t i = 0; i < events->count; i++) {
        API(HistoryEvent__AttributesCase) kind = events->events[i]->attributes_case;
        if (event_may_be_buffered(kind) || kind == EVENT_KIND(DECISION_TASK_FAILED) ||
            kind == EVENT_KIND(DECISION_TASK_TIMED_OUT))
            return true;
    }
    return false;
}

/* The run is active here: late news from the cluster that had it before is news for a worker of
 * ours. */
static void
go_on_here(struct incoming *incoming, const char *run_id, bool has_changes)
{
    struct tenure *tenure = incoming->tenure;
    struct loaded_run *loaded = workflow_find_run(incoming->workflow, run_id);
    struct shard_step wanted = {.key = incoming->events->key, .needs_run = true};
    struct step_context *context = arena_make(incoming->arena, struct step_context);
    bool is_current = loaded != NULL && run_is_open(loaded->run) &&
                      workflow_has_current(incoming->workflow, loaded->run);
    if (!is_current || !writer_has_room(tenure->writer) ||
        tenure_make_context(tenure, &wanted, loaded->run, incoming->arena, context) != NULL ||
        context->of_run.event_version <= run_last_version(loaded->run))
        return;
    bool is_idle = !run_has_pending_decision(loaded->run) && has_changes;
    if (!is_idle && !tenure_must_take_over(tenure, loaded->run, &context->of_run))
        return;
    probe("late_news_taken_over");
    incoming->ticket = tenure_take_over(tenure, incoming->workflow, loaded, &context->of_run,
                                        is_idle, incoming->arena);
}

static void
submit(struct incoming *incoming, struct incoming_step *step)
{
    struct tenure *tenure = incoming->tenure;
    struct step_batch batch;
    incoming_step_check(incoming, step);
    step_batch_begin(&batch, tenure, incoming->workflow, incoming->arena);
    incoming_put_side(incoming, step, &batch);
    if (incoming->nodes.count > 0) {
        struct history_branch branch = run_branch(mutation_run(step->target.mutation));
        tenure_add_nodes(tenure, &branch, incoming->nodes.items, incoming->nodes.count,
                         batch.batch);
    }
    incoming_put_lost(incoming, step, &batch);
    if (step->suppressed.mutation != NULL && step->suppressed.mutation != step->target.mutation)
        step_batch_add(&batch, step->suppressed.mutation, step->suppressed.loaded);
    if (step->revived.mutation != NULL)
        step_batch_add(&batch, step->revived.mutation, step->revived.loaded);
    step_batch_add(&batch, step->target.mutation, step->target.loaded);
    if (step->begun.mutation != NULL)
        step_batch_add(&batch, step->begun.mutation, step->begun.loaded);
    if (step->holder != NULL)
        step_batch_put_current(&batch, step->holder);
    incoming->ticket = step_batch_submit(&batch);
    incoming->rebuilt = NULL; /* the workflow has it */
}

static void
count_applied(const struct incoming *incoming, const struct incoming_step *step)
{
    struct shard *shard = incoming->tenure->shard;
    metrics_incoming(shard, METRIC_APPLIED);
    if (incoming->verdict.place == BATCH_FORKS) {
        probe("history_forked");
        metrics_incoming(shard, METRIC_FORKED);
    }
    if (incoming->verdict.is_switch)
        metrics_incoming(shard, METRIC_SWITCHED);
    if (step->suppressed.mutation != NULL || (!step->is_side && !step->target_is_current))
        metrics_incoming(shard, METRIC_ZOMBIES);
}

/* Would the run that has the id give way with something buffered that this cluster must not write,
 * since it lost memory? */
static bool
has_to_forget_current(const struct incoming *incoming, const struct incoming_step *step)
{
    const struct loaded_run *current = incoming->current;
    return current != NULL && current != incoming->target && run_is_open(current->run) &&
           run_has_buffered(current->run) && incoming_has_lost(incoming, current->run) &&
           incoming_gives_way(incoming, step);
}

static struct error *
apply(struct incoming *incoming)
{
    struct incoming_step step;
    struct error *err = load_others(incoming);
    if (err != NULL)
        return err;
    incoming_check(incoming);
    incoming->target_was_zombie = incoming->target != NULL && run_is_zombie(incoming->target->run);
    err = incoming_apply(incoming, &step);
    if (err != NULL || incoming_lacks_end(incoming, &step)) {
        incoming_cancel(incoming, &step);
        return err;
    }
    if (has_to_forget_current(incoming, &step)) {
        incoming->forgets_current = true;
        incoming_cancel(incoming, &step);
        return NULL;
    }
    incoming_contest(incoming, &step);
    incoming_send_lost(incoming, &step);
    submit(incoming, &step);
    probe("replicated_applied");
    count_applied(incoming, &step);
    if (step.revived.mutation != NULL)
        go_on_here(incoming, step.revived.loaded->run->core->run_id, true);
    else
        go_on_here(incoming, incoming->events->key.run_id, brings_changes(incoming->events));
    return NULL;
}

/* Says what came of it, where nothing is to be done. */
static bool
is_answered(struct incoming *incoming, struct error **err)
{
    const struct batch_verdict *verdict = &incoming->verdict;
    check(*err == NULL);
    if (verdict->place == BATCH_IS_WRONG)
        *err =
            error_new(incoming->arena, ERR_BAD_REQUEST, "The batch is wrong: %s.", verdict->fault);
    else if (verdict->place == BATCH_LACKS_EVENTS)
        *incoming->outcome = (struct replicated_outcome){
            REPLICATED_LACKS,
            {.key = {arena_text(incoming->arena, incoming->events->key.domain_id),
                     arena_text(incoming->arena, incoming->events->key.workflow_id),
                     arena_text(incoming->arena, incoming->events->key.run_id)},
             .base = verdict->base,
             .end = verdict->end}};
    else if (verdict->place == BATCH_IS_KNOWN)
        *incoming->outcome = (struct replicated_outcome){.place = REPLICATED_KNOWN};
    else
        return false;
    if (*err == NULL)
        metrics_incoming(incoming->tenure->shard,
                         verdict->place == BATCH_IS_KNOWN ? METRIC_KNOWN : METRIC_LACKING);
    probe(verdict->place == BATCH_IS_KNOWN       ? "replicated_known"
          : verdict->place == BATCH_LACKS_EVENTS ? "replicated_gap"
                                                 : "replicated_wrong");
    return true;
}

/* ---- all of it ---- */

static struct error *
run_locked(struct incoming *incoming)
{
    struct error *err = load(incoming);
    if (err != NULL)
        return err;
    NO_YIELD
    {
        err = find_position(incoming);
    }
    if (err != NULL || is_answered(incoming, &err))
        return err;
    incoming_check(incoming);
    check(incoming->rebuilt == NULL && incoming->nodes.count == 0);
    err = incoming_read(incoming);
    if (err != NULL || incoming_lacks_origin(incoming) || is_answered(incoming, &err))
        return err;
    *incoming->outcome = (struct replicated_outcome){.place = REPLICATED_APPLIED};
    NO_YIELD
    {
        err = apply(incoming);
    }
    return err;
}

/* Nothing of the batch is applied yet; the run that is to give way becomes what its history says.
 */
static struct error *
forget_current(struct incoming *incoming)
{
    struct tenure *tenure = incoming->tenure;
    struct loaded_run *current = incoming->current;
    run_free(incoming->rebuilt);
    *incoming = (struct incoming){.tenure = tenure, /* all that was loaded is read once more */
                                  .events = incoming->events,
                                  .arena = incoming->arena,
                                  .outcome = incoming->outcome,
                                  .batch = incoming->batch,
                                  .begun_run_id = incoming->begun_run_id,
                                  .workflow = incoming->workflow,
                                  .ticket = incoming->ticket};
    probe("lost_buffer_of_current_dropped");
    struct error *err = tenure_wait(tenure, incoming->workflow->newest, incoming->arena);
    if (err == NULL && tenure->is_over)
        err = tenure_error(tenure, incoming->arena);
    return err != NULL ? err
                       : incoming_rebuild(tenure, incoming->workflow, current, incoming->arena,
                                          NULL, &incoming->ticket);
}

static struct error *
run_once(struct incoming *incoming)
{
    struct tenure *tenure = incoming->tenure;
    struct error *err =
        workflow_lock(tenure, &incoming->events->key, incoming->arena, &incoming->workflow);
    if (err != NULL)
        return err;
    err = run_locked(incoming);
    if (err == NULL && incoming->forgets_current) {
        err = forget_current(incoming);
        if (err == NULL)
            err = run_locked(incoming);
    }
    if (incoming->ticket < incoming->workflow->newest)
        incoming->ticket = incoming->workflow->newest; /* what it is told stands on that */
    workflow_unlock(tenure, incoming->workflow);
    run_free(incoming->rebuilt);
    incoming->rebuilt = NULL;
    struct error *lost = tenure_wait(tenure, incoming->ticket, incoming->arena);
    return err != NULL ? err : lost;
}

struct error *
shard_apply_replicated(struct shard *shard, const struct replicated_events *events,
                       struct arena *arena, struct replicated_outcome *outcome)
{
    for (int attempt = 1;; attempt++) {
        struct incoming incoming = {.events = events, .arena = arena, .outcome = outcome};
        struct error *err = read_batch(&incoming);
        if (err == NULL)
            err = tenure_enter(shard, 0, arena, &incoming.tenure);
        if (err != NULL)
            return err;
        err = run_once(&incoming);
        bool may_try = incoming.tenure->is_over && !shard->is_closing;
        tenure_leave(incoming.tenure);
        if (err == NULL || !may_try || attempt == ATTEMPTS_MAX)
            return err; /* what was done is known when it comes again */
        probe("replicated_retried");
    }
}
