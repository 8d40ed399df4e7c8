/* ndc_runs.c - which run has the workflow id once events of another cluster are applied. See ndc.h,
 * ndc/runs.h.
 *
 * The run with the newer history has it. The one that had it is ended by the cluster that wrote its
 * last event, with that event's version, and this replicates; elsewhere, and where the newer one
 * goes on where it ended, it is a zombie until its end is heard of. A run that loses before it is
 * ever current begins as a zombie. */
#include "base/check.h"
#include "domain/active.h"
#include "engine/shard/ndc.h"
#include "fiber/mark.h"

static bool
is_ours(const struct incoming *incoming, const struct run *run)
{
    const struct cluster_group *group = incoming->tenure->shard->options.group;
    return cluster_group_of_version(group, run_last_version(run)) == group->current;
}

/* Is it for this cluster to end the run that had the id? Not if the next one goes on where it
 * ended, under a later version: then its end is on the way, from whoever wrote that. (An end of an
 * earlier version is on a history that lost: the run is open in the one that won.) */
static bool
is_ours_to_end(const struct incoming *incoming, const struct run *current, const struct run *next)
{
    const STORED(RunRecord) *core = next->core;
    bool goes_on = strcmp(core->continued_execution_run_id, current->core->run_id) == 0;
    bool is_later =
        core->n_versions > 0 && core->versions[0]->event_version > run_last_version(current);
    return !(goes_on && is_later) && is_ours(incoming, current);
}

/* Why the run that came has the id now, for who finds the other one ended. */
static const char *
explain(const struct incoming *incoming, const struct run *winner)
{
    const struct cluster_group *group = incoming->tenure->shard->options.group;
    const struct cluster *writer = cluster_group_of_version(group, run_last_version(winner));
    struct cluster_attribute mine =
        cluster_attribute_of(incoming->current->run->core->active_cluster_selection_policy);
    struct cluster_attribute theirs =
        cluster_attribute_of(winner->core->active_cluster_selection_policy);
    bool is_same = cluster_attribute_equals(&mine, &theirs);
    return arena_format(incoming->arena, "Run %s of the same workflow ID, active in cluster %s, %s",
                        winner->core->run_id, writer == NULL ? "" : writer->name,
                        is_same ? "has a newer failover version." : "was started later.");
}

/* The run that had the id gives way. Its end has the version of its last event. */
static void
suppress(struct incoming *incoming, struct incoming_step *step, enum run_fate fate)
{
    if (fate == RUN_STAYS)
        return;
    struct loaded_run *current = incoming->current;
    struct facts *facts = arena_make(incoming->arena, struct facts);
    *facts = incoming->facts.of_begun;
    facts->event_version = run_last_version(current->run);
    struct mutation *mutation = mutation_begin(current->run, facts, incoming->arena);
    step->suppressed = (struct incoming_run){mutation, current};
    struct step give_way = incoming_step_of(incoming, mutation);
    if (fate == RUN_IS_TERMINATED) {
        mark("conflict_terminated");
        command_give_way(&give_way, explain(incoming, mutation_run(step->target.mutation)));
    } else {
        mark("run_becomes_zombie");
        command_drop_transient(&give_way);
        mutation_become_zombie(mutation);
    }
}

static void
revive(struct incoming *incoming, struct mutation *mutation)
{
    if (!mutation_revive(mutation))
        return;
    mark("zombie_revived");
    struct step refresh = incoming_step_of(incoming, mutation);
    struct error *err = command_refresh(&refresh);
    check(err == NULL);
}

struct run_contest
incoming_judge(const struct incoming *incoming, const struct incoming_step *step)
{
    const struct run *run = mutation_run(step->target.mutation);
    const struct loaded_run *current = incoming->current;
    const STORED(RunRecord) *record = current == NULL ? NULL : current->run->core;
    return run_decide_current(run->core, record,
                              current != NULL && is_ours_to_end(incoming, current->run, run));
}

static void
contest_target(struct incoming *incoming, struct incoming_step *step)
{
    struct mutation *mutation = step->target.mutation;
    struct run *run = mutation_run(mutation);
    const struct loaded_run *current = incoming->current;
    struct run_contest contest = incoming_judge(incoming, step);
    step->target_is_current = contest.is_current;
    if (!contest.is_current) {
        if (run_is_open(run))
            mark("zombie_applied");
        mutation_become_zombie(mutation);
        return;
    }
    step->holder = run;
    revive(incoming, mutation);
    if (current != incoming->target)
        suppress(incoming, step, contest.fate);
}

/* The run that the target goes on as: it has the id if the target had it. */
static void
contest_begun(struct incoming_step *step)
{
    struct mutation *mutation = step->begun.mutation;
    if (mutation == NULL)
        return;
    if (step->target_is_current) {
        step->holder = mutation_run(mutation);
        return;
    }
    mark("zombie_continued");
    mutation_become_zombie(mutation);
}

void
incoming_contest(struct incoming *incoming, struct incoming_step *step)
{
    if (!step->is_side)
        contest_target(incoming, step);
    contest_begun(step);
}
