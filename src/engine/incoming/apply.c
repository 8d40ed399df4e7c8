/* apply.c - a batch of another cluster becomes part of a history of its run. See incoming.h.
 *
 *   the run begins                  a run of its own, in a branch of its own
 *   it extends the run's history    the events are applied, as those of a command are
 *   it goes to another history      the batch is stored there, the state stays
 *   that history wins               the run is replaced by what was rebuilt from it
 *
 * A run that was replaced has its tasks sent and its wake-up timer set again; then the events of
 * the batch are applied to it. */
#include "base/check.h"
#include "engine/incoming/incoming.h"
#include "engine/run/replicated.h"
#include "engine/shard/step.h"
#include "engine/shard/step_batch.h"
#include "fiber/probe.h"
#include "wire/message.h"

static const struct run_context *
context_of(const struct incoming *incoming)
{
    return incoming->target == NULL ? &incoming->context.of_begun : &incoming->context.of_run;
}

struct step
incoming_step_of(const struct incoming *incoming, struct mutation *mutation)
{
    return (struct step){.arena = incoming->arena,
                         .context = mutation_context(mutation),
                         .domain_id = incoming->workflow->domain_id,
                         .workflow_id = incoming->workflow->workflow_id,
                         .current = incoming->workflow->current,
                         .mutation = mutation};
}

/* The tree has the id of the run. */
static struct mutation *
begin_run(struct incoming *incoming, const char *run_id)
{
    const struct run_context *context = context_of(incoming);
    struct run_key key = {incoming->workflow->domain_id, incoming->workflow->workflow_id, run_id};
    struct history_branch branch = {.branch = run_context_uuid(context)};
    struct run *run = incoming_name_run(&key);
    bool is_uuid = uuid_parse(slice_text(run_id), &branch.tree);
    check_that(is_uuid, "run id %s", run_id);
    incoming_name_branch(run, &branch);
    run->core->next_event_id = 1;
    return mutation_begin(run, context, incoming->arena);
}

/* ---- the run itself ---- */

/* The histories with the batch; a fork gets a branch. */
static struct run_branches
grow(const struct incoming *incoming)
{
    struct history_branch fresh = {.branch = run_context_uuid(context_of(incoming))};
    probe(incoming->verdict.place == BATCH_FORKS ? "history_forked" : "side_history_extended");
    return batch_accept(&incoming->local, &incoming->batch, &incoming->verdict, &fresh,
                        incoming->arena);
}

static void
apply_side(struct incoming *incoming, struct incoming_step *step)
{
    struct run *run = incoming->target->run;
    check(!incoming->verdict.is_switch && incoming->rebuilt == NULL);
    struct run_branches grown = grow(incoming);
    size_t index =
        incoming->verdict.place == BATCH_FORKS ? grown.count - 1 : incoming->verdict.branch;
    check(index > 0 && index < grown.count); /* the first one is the run's own */
    check(versions_last(grown.branch[index].versions).event_id + 1 ==
          incoming->batch.next_event_id);
    step->is_side = true;
    step->branch = history_lineage_own(&grown.branch[index].lineage);
    /* Its own history does not grow, unless it gives way to the run that the batch begins. */
    const struct run_context *context = incoming->begun_run_id == NULL
                                            ? context_of(incoming)
                                            : incoming_context_to_end(incoming, run);
    step->target.mutation = mutation_begin(run, context, incoming->arena);
    branches_store(&grown, mutation_core(step->target.mutation), run->arena);
}

/* The run as it was rebuilt, with its tasks and its histories. */
static struct mutation *
begin_switched(struct incoming *incoming)
{
    struct run *run = incoming->rebuilt, *old = incoming->target->run;
    check(run != NULL && run != old && strcmp(run->core->run_id, old->core->run_id) == 0);
    check(!run_has_buffered(old) || incoming->drops_buffered);
    struct run_branches grown = grow(incoming);
    STORED(VersionItem) **versions = run->core->versions;
    size_t count = run->core->n_versions;
    branches_store(&grown, run->core, run->arena);
    run->core->versions = versions; /* those of the batch come with it */
    run->core->n_versions = count;
    struct mutation *mutation =
        mutation_begin_replacing(run, old, context_of(incoming), incoming->arena);
    struct step refresh = incoming_step_of(incoming, mutation);
    struct error *err = command_refresh(&refresh);
    check(err == NULL);
    probe(incoming->verdict.is_switch ? "history_switched" : "lost_buffer_dropped");
    return mutation;
}

static struct mutation *
begin_target(struct incoming *incoming)
{
    if (incoming->verdict.is_switch || incoming->drops_buffered)
        return begin_switched(incoming);
    check((incoming->verdict.place == BATCH_EXTENDS) == (incoming->target != NULL));
    if (incoming->verdict.place == BATCH_BEGINS)
        return begin_run(incoming, incoming->events->key.run_id);
    check((incoming->verdict.place == BATCH_BEGINS_AT_RESET) == (incoming->rebuilt != NULL));
    if (incoming->verdict.place == BATCH_BEGINS_AT_RESET) {
        struct mutation *mutation =
            mutation_begin_new(incoming->rebuilt, context_of(incoming), incoming->arena);
        struct step refresh = incoming_step_of(incoming, mutation);
        struct error *err = command_refresh(&refresh);
        check(err == NULL);
        return mutation;
    }
    struct mutation *mutation =
        mutation_begin(incoming->target->run, context_of(incoming), incoming->arena);
    struct step drop = incoming_step_of(incoming, mutation);
    if (run_is_open(incoming->target->run))
        command_drop_transient(&drop);
    return mutation;
}

static struct error *
add_events(const struct incoming *incoming, struct mutation *mutation,
           API(HistoryEvent) *const *events, size_t count)
{
    const char *misfit = mutation_add_replicated(mutation, events, count);
    return misfit == NULL
               ? NULL
               : error_new(incoming->arena, ERR_BAD_REQUEST, "The batch does not fit: %s.", misfit);
}

/* ---- the run that it goes on as ---- */

static struct error *
apply_begun(struct incoming *incoming, struct incoming_step *step)
{
    if (incoming->begun_run_id == NULL || incoming->has_begun_run)
        return NULL;
    check(incoming->events->begun_count > 0);
    step->begun.mutation = begin_run(incoming, incoming->begun_run_id);
    return add_events(incoming, step->begun.mutation, incoming->events->begun_events,
                      incoming->events->begun_count);
}

/* ---- all of it ---- */

struct error *
incoming_apply(struct incoming *incoming, struct incoming_step *step)
{
    const struct replicated_events *events = incoming->events;
    struct error *err = NULL;
    *step = (struct incoming_step){.target = {.loaded = incoming->target}};
    check(incoming->workflow->lock.owner == fiber_self() && !incoming->tenure->is_over);
    check(events->count > 0 && incoming->batch.first_event_id > 0);
    if (incoming->verdict.is_current) {
        step->target.mutation = begin_target(incoming);
        /* Of a reset it follows from what the base run's history has in the store. */
        check(incoming->verdict.place == BATCH_BEGINS_AT_RESET ||
              mutation_run(step->target.mutation)->core->next_event_id ==
                  incoming->batch.first_event_id);
        err = add_events(incoming, step->target.mutation, events->events, events->count);
    } else {
        apply_side(incoming, step);
    }
    return err != NULL ? err : apply_begun(incoming, step);
}

static void
cancel_run(struct incoming *incoming, struct incoming_run *part)
{
    if (part->mutation == NULL)
        return;
    struct run *run = mutation_run(part->mutation);
    bool is_stored = part->loaded != NULL && part->loaded->run == run;
    mutation_cancel(part->mutation);
    if (!is_stored && run != incoming->rebuilt) /* run_once frees that one */
        run_free(run);
}

void
incoming_cancel(struct incoming *incoming, struct incoming_step *step)
{
    cancel_run(incoming, &step->target);
    cancel_run(incoming, &step->begun);
    check(step->suppressed.mutation == NULL && step->revived.mutation == NULL);
}

void
incoming_put_side(const struct incoming *incoming, const struct incoming_step *step,
                  struct step_batch *batch)
{
    if (!step->is_side)
        return;
    API(History) history;
    uber__cadence__api__v1__history__init(&history);
    history.n_events = incoming->events->count;
    history.events = (API(HistoryEvent) **)incoming->events->events;
    struct history_node node = {.first_event_id = incoming->batch.first_event_id,
                                .next_event_id = incoming->batch.next_event_id,
                                .events = message_encode(incoming->arena, &history.base)};
    tenure_add_nodes(incoming->tenure, &step->branch, &node, 1, batch->batch);
}
