/* ndc_apply.c - a batch of another cluster becomes part of a history of its run. See ndc.h.
 *
 *   the run begins                  a run of its own, in a branch of its own
 *   it extends the run's history    the events are applied, as those of a command are
 *   it goes to another history      the batch is stored there, the state stays
 *   that history wins               the run that was rebuilt from it takes the place of the old
 * one, its tasks and alarm are made anew, then the events are applied */
#include "base/check.h"
#include "engine/run/foreign.h"
#include "engine/shard/ndc.h"
#include "fiber/mark.h"
#include "wire/message.h"

static const struct facts *
facts_of(const struct incoming *incoming)
{
    return incoming->target == NULL ? &incoming->facts.of_begun : &incoming->facts.of_run;
}

struct step
incoming_step_of(const struct incoming *incoming, struct mutation *mutation)
{
    return (struct step){.arena = incoming->arena,
                         .facts = mutation_facts(mutation),
                         .domain_id = incoming->workflow->domain_id,
                         .workflow_id = incoming->workflow->workflow_id,
                         .current = incoming->workflow->current,
                         .mutation = mutation};
}

/* The tree has the id of the run. */
static struct mutation *
begin_run(struct incoming *incoming, const char *run_id)
{
    const struct facts *facts = facts_of(incoming);
    struct run_key key = {incoming->workflow->domain_id, incoming->workflow->workflow_id, run_id};
    struct history_branch branch = {.branch = facts_uuid(facts)};
    struct run *run = incoming_name_run(&key);
    bool is_uuid = uuid_parse(slice_text(run_id), &branch.tree);
    check_that(is_uuid, "run id %s", run_id);
    incoming_name_branch(run, &branch);
    run->core->next_event_id = 1;
    return mutation_begin(run, facts, incoming->arena);
}

/* ---- the run itself ---- */

/* The histories with the batch; a fork gets a branch. */
static struct run_branches
grow(const struct incoming *incoming)
{
    struct history_branch fresh = {.branch = facts_uuid(facts_of(incoming))};
    mark(incoming->verdict.place == BATCH_FORKS ? "history_forked" : "side_history_extended");
    return batch_accept(&incoming->local, &incoming->batch, &incoming->verdict, &fresh,
                        incoming->arena);
}

static void
apply_side(struct incoming *incoming, struct incoming_step *step)
{
    struct run *run = incoming->target->run;
    struct run_branches grown = grow(incoming);
    size_t index =
        incoming->verdict.place == BATCH_FORKS ? grown.count - 1 : incoming->verdict.branch;
    step->is_side = true;
    step->branch = history_line_own(&grown.branch[index].line);
    /* Its own history does not grow, unless it gives way to the run that the batch begins. */
    const struct facts *facts =
        incoming->begun_run_id == NULL ? facts_of(incoming) : incoming_facts_to_end(incoming, run);
    step->target.mutation = mutation_begin(run, facts, incoming->arena);
    branches_store(&grown, mutation_core(step->target.mutation), run->arena);
}

/* The run as it was rebuilt, with its tasks and its histories. */
static struct mutation *
begin_switched(struct incoming *incoming)
{
    struct run *run = incoming->rebuilt, *old = incoming->target->run;
    struct run_branches grown = grow(incoming);
    STORED(VersionItem) **versions = run->core->versions;
    size_t count = run->core->n_versions;
    branches_store(&grown, run->core, run->arena);
    run->core->versions = versions; /* those of the batch come with it */
    run->core->n_versions = count;
    struct mutation *mutation =
        mutation_begin_replacing(run, old, facts_of(incoming), incoming->arena);
    struct step refresh = incoming_step_of(incoming, mutation);
    struct error *err = command_refresh(&refresh);
    check(err == NULL);
    mark("history_switched");
    return mutation;
}

static struct mutation *
begin_target(struct incoming *incoming)
{
    if (incoming->verdict.is_switch)
        return begin_switched(incoming);
    if (incoming->verdict.place == BATCH_BEGINS)
        return begin_run(incoming, incoming->events->key.run_id);
    if (incoming->verdict.place == BATCH_BEGINS_AT_RESET) {
        struct mutation *mutation =
            mutation_begin_new(incoming->rebuilt, facts_of(incoming), incoming->arena);
        struct step refresh = incoming_step_of(incoming, mutation);
        struct error *err = command_refresh(&refresh);
        check(err == NULL);
        return mutation;
    }
    struct mutation *mutation =
        mutation_begin(incoming->target->run, facts_of(incoming), incoming->arena);
    struct step drop = incoming_step_of(incoming, mutation);
    if (run_is_open(incoming->target->run))
        command_drop_transient(&drop);
    return mutation;
}

static struct error *
add_events(const struct incoming *incoming, struct mutation *mutation,
           API(HistoryEvent) *const *events, size_t count)
{
    const char *misfit = mutation_add_foreign(mutation, events, count);
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
    step->begun.mutation = begin_run(incoming, incoming->begun_run_id);
    return add_events(incoming, step->begun.mutation, incoming->events->begun_events,
                      incoming->events->begun_count);
}

/* ---- all of it ---- */

struct error *
incoming_apply(struct incoming *incoming, struct incoming_step *step)
{
    const struct foreign_events *events = incoming->events;
    struct error *err = NULL;
    *step = (struct incoming_step){.target = {.loaded = incoming->target}};
    if (incoming->verdict.is_current) {
        step->target.mutation = begin_target(incoming);
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
    if (!is_stored && run != incoming->rebuilt) /* that one goes with the visit */
        run_free(run);
}

void
incoming_cancel(struct incoming *incoming, struct incoming_step *step)
{
    cancel_run(incoming, &step->target);
    cancel_run(incoming, &step->begun);
    check(step->suppressed.mutation == NULL);
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
