/* take_over.c - a run that another failover version wrote last goes on here: what was begun with it
 * is taken over first. See command_take_over. */
#include "base/check.h"
#include "domain/active.h"
#include "engine/shard/failover_state.h"
#include "engine/shard/inside.h"
#include "engine/shard/step_batch.h"
#include "engine/shard/workflows.h"
#include "fiber/probe.h"

/* A mutation of the run under a version of its own, for commands. */
static struct step
begin_step(const struct workflow *workflow, struct loaded_run *loaded,
           const struct run_context *context, struct arena *arena)
{
    check(workflow->lock.owner == fiber_self() && run_is_open(loaded->run));
    return (struct step){.arena = arena,
                         .context = context,
                         .domain_id = workflow->domain_id,
                         .workflow_id = workflow->workflow_id,
                         .current = workflow->current,
                         .mutation = mutation_begin(loaded->run, context, arena)};
}

static ticket_t
submit_step(struct tenure *tenure, struct workflow *workflow, struct loaded_run *loaded,
            const struct step *step)
{
    struct step_batch batch;
    check(mutation_run(step->mutation) == loaded->run); /* it is changed, not replaced */
    step_batch_begin(&batch, tenure, workflow, step->arena);
    step_batch_add(&batch, step->mutation, loaded);
    if (workflow_has_current(workflow, loaded->run))
        step_batch_put_current(&batch, loaded->run);
    return step_batch_submit(&batch);
}

ticket_t
tenure_write_buffered(struct tenure *tenure, struct workflow *workflow, struct loaded_run *loaded,
                      int64_t version, const struct run_context *context, struct arena *arena)
{
    struct run_context *own = arena_make(arena, struct run_context);
    check(run_has_buffered(loaded->run));
    *own = *context;
    own->event_version = version;
    check(version >= run_last_version(loaded->run));
    struct step step = begin_step(workflow, loaded, own, arena);
    command_close_decision(&step);
    return submit_step(tenure, workflow, loaded, &step);
}

/* A run without an attribute, of an active-active domain, that was written here last. */
static bool
has_stayed(const struct tenure *tenure, const struct run *run, const struct run_context *context)
{
    const struct cluster_group *group = tenure->shard->options.group;
#ifdef CADENZA_FAULT_everybody_takes_over
    return false;
#endif
    return cluster_attribute_of(run->core->active_cluster_selection_policy).scope == NULL &&
           domain_is_active_active(context->domain) &&
           cluster_group_of_version(group, run_last_version(run)) == group->current &&
           !domain_has_lost(context->domain, run_last_version(run), group);
}

bool
tenure_must_take_over(const struct tenure *tenure, const struct run *run,
                      const struct run_context *context)
{
    return run_is_open(run) && run_last_version(run) < context->event_version &&
           take_over_is_needed(run) && !has_stayed(tenure, run, context);
}

/* What this cluster took under its last version and did not write yet is written with that one: it
 * may be no more than what the next cluster has heard of already. Where a marker was put there is
 * nothing of the kind. After memory was lost all of it gets the new version. */
ticket_t
tenure_take_over(struct tenure *tenure, struct workflow *workflow, struct loaded_run *loaded,
                 const struct run_context *context, bool has_changes, struct arena *arena)
{
    const struct cluster_group *group = tenure->shard->options.group;
    struct run_context *own = arena_make(arena, struct run_context);
    struct run *run = loaded->run;
    check(run_last_version(run) < context->event_version); /* it comes from an earlier one */
    *own = *context;
    struct step step = begin_step(workflow, loaded, own, arena);
    const struct cluster *writer = cluster_group_of_version(group, run_last_version(run));
    bool was_ours = run_has_buffered(run) && writer == group->current &&
                    !domain_has_lost(context->domain, run_last_version(run), group);
    if (was_ours) {
        own->event_version = run_last_version(run);
        command_close_decision(&step);
        own->event_version = context->event_version;
    }
    command_take_over(&step, was_ours || has_changes);
    probe("run_taken_over");
    return submit_step(tenure, workflow, loaded, &step);
}
