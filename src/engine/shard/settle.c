/* settle.c - a run that another failover version wrote last goes on here: what was begun with it is
 * settled first. See command_settle. */
#include "base/check.h"
#include "domain/active.h"
#include "engine/shard/inside.h"
#include "fiber/mark.h"

/* A mutation of the run under a version of its own, for commands. */
static struct step
begin_step(const struct workflow *workflow, struct loaded_run *loaded, const struct facts *facts,
           struct arena *arena)
{
    return (struct step){.arena = arena,
                         .facts = facts,
                         .domain_id = workflow->domain_id,
                         .workflow_id = workflow->workflow_id,
                         .current = workflow->current,
                         .mutation = mutation_begin(loaded->run, facts, arena)};
}

static ticket_t
submit_step(struct tenure *tenure, struct workflow *workflow, struct loaded_run *loaded,
            const struct step *step)
{
    struct step_batch batch;
    step_batch_begin(&batch, tenure, workflow, step->arena);
    step_batch_add(&batch, step->mutation, loaded);
    if (workflow_has_current(workflow, loaded->run))
        step_batch_put_current(&batch, loaded->run);
    return step_batch_submit(&batch);
}

ticket_t
tenure_write_buffered(struct tenure *tenure, struct workflow *workflow, struct loaded_run *loaded,
                      const struct facts *facts, struct arena *arena)
{
    struct facts *own = arena_make(arena, struct facts);
    *own = *facts;
    own->event_version = run_last_version(loaded->run);
    struct step step = begin_step(workflow, loaded, own, arena);
    command_close_decision(&step);
    return submit_step(tenure, workflow, loaded, &step);
}

/* A run without an attribute, of an active-active domain, that was written here last. */
static bool
has_stayed(const struct tenure *tenure, const struct run *run, const struct facts *facts)
{
    const struct cluster_group *group = tenure->shard->options.group;
#ifdef CADENZA_PLANT_everybody_settled
    return false;
#endif
    return cluster_attribute_of(run->core->active_cluster_selection_policy).scope == NULL &&
           domain_is_active_active(facts->domain) &&
           cluster_group_of_version(group, run_last_version(run)) == group->current;
}

bool
tenure_must_settle(const struct tenure *tenure, const struct run *run, const struct facts *facts)
{
    return run_is_open(run) && run_last_version(run) < facts->event_version &&
           settle_is_needed(run) && !has_stayed(tenure, run, facts);
}

/* What this cluster took under its last version and did not write yet is written with that one: it
 * may be no more than what the next cluster has heard of already. Where a marker was put there is
 * nothing of the kind. */
ticket_t
tenure_settle(struct tenure *tenure, struct workflow *workflow, struct loaded_run *loaded,
              const struct facts *facts, bool has_news, struct arena *arena)
{
    const struct cluster_group *group = tenure->shard->options.group;
    struct facts *own = arena_make(arena, struct facts);
    struct run *run = loaded->run;
    *own = *facts;
    struct step step = begin_step(workflow, loaded, own, arena);
    const struct cluster *writer = cluster_group_of_version(group, run_last_version(run));
    bool was_ours = run_has_buffered(run) && writer == group->current;
    if (was_ours) {
        own->event_version = run_last_version(run);
        command_close_decision(&step);
        own->event_version = facts->event_version;
    }
    command_settle(&step, was_ours || has_news);
    mark("run_settled");
    return submit_step(tenure, workflow, loaded, &step);
}
