/* current_run.c - which run has the workflow id once events of another cluster are applied. See
 * incoming.h, branches/runs.h.
 *
 * The candidates for the id are in the current-run record; the run of the batch, and the one
 * that it goes on as, join them. The leader then has the id: one of these, the run that had it,
 * or a third one (the run that came belongs to an attribute that leads now, but is not the newest
 * of it). The one that had it is ended by the cluster that wrote its last event, with that event's
 * version, and this replicates; elsewhere, and if the newer run continues it, it stays a
 * zombie until its end arrives. A run that loses before it is ever current begins as a zombie.
 */
#include "base/check.h"
#include "domain/active.h"
#include "engine/branches/runs.h"
#include "engine/incoming/incoming.h"
#include "engine/shard/workflows.h"
#include "fiber/probe.h"

/* ---- before ---- */

/* What a run belongs to, as its first event says; false: another event is first. */
static bool
read_attribute(API(HistoryEvent) *const *events, size_t count,
               const API(ClusterAttribute) **attribute)
{
    if (count == 0 || events[0]->attributes_case != EVENT_KIND(WORKFLOW_EXECUTION_STARTED))
        return false;
    const API(ActiveClusterSelectionPolicy) *policy =
        events[0]->workflow_execution_started_event_attributes->active_cluster_selection_policy;
    *attribute = policy == NULL ? NULL : policy->cluster_attribute;
    return true;
}

static const API(ClusterAttribute) *
attribute_of(const struct run *run)
{
    const API(ActiveClusterSelectionPolicy) *policy = run->core->active_cluster_selection_policy;
    return policy == NULL ? NULL : policy->cluster_attribute;
}

static struct error *
load_candidate(struct incoming *incoming, const API(ClusterAttribute) *attribute,
               struct loaded_run **candidate)
{
    struct candidates candidates = candidates_read(incoming->workflow->current, incoming->arena);
    const STORED(Contender) *newest = candidates_find(&candidates, attribute);
    if (newest == NULL)
        return NULL;
    struct error *err =
        workflow_load_run(incoming->tenure, incoming->workflow,
                          arena_text(incoming->arena, newest->run_id), incoming->arena, candidate);
    if (*candidate != NULL && (*candidate)->run->core->is_deleting)
        *candidate = NULL; /* as good as gone */
    return err;
}

struct error *
incoming_load_candidates(struct incoming *incoming)
{
    const struct replicated_events *events = incoming->events;
    const API(ClusterAttribute) *attribute = NULL;
    struct error *err = NULL;
    check(incoming->candidates[0] == NULL && incoming->candidates[1] == NULL);
    if (incoming->current == NULL || incoming->workflow->current->n_contenders == 0)
        return NULL; /* but the run that has the id */
    if (incoming->target != NULL)
        err =
            load_candidate(incoming, attribute_of(incoming->target->run), &incoming->candidates[0]);
    else if (incoming->rebuilt != NULL)
        err = load_candidate(incoming, attribute_of(incoming->rebuilt), &incoming->candidates[0]);
    else if (read_attribute(events->events, events->count, &attribute))
        err = load_candidate(incoming, attribute, &incoming->candidates[0]);
    if (err == NULL && read_attribute(events->begun_events, events->begun_count, &attribute))
        err = load_candidate(incoming, attribute, &incoming->candidates[1]);
    return err;
}

/* ---- the run that had the id ---- */

static bool
is_ours(const struct incoming *incoming, const struct run *run)
{
    const struct cluster_group *group = incoming->tenure->shard->options.group;
    return cluster_group_of_version(group, run_last_version(run)) == group->current;
}

bool
incoming_has_lost(const struct incoming *incoming, const struct run *run)
{
    return domain_has_lost(incoming->context.of_begun.domain, run_last_version(run),
                           incoming->tenure->shard->options.group);
}

/* Is it for this cluster to end the run that had the id? Not if the next one goes on where it
 * ended, under a later version: then its end is on the way, from the cluster that wrote that. (An
 * end of an earlier version is on a history that lost: the run is open in the one that won.) */
static bool
is_ours_to_end(const struct incoming *incoming, const struct run *current, const struct run *next)
{
    const STORED(RunRecord) *core = next->core;
    bool goes_on = strcmp(core->continued_execution_run_id, current->core->run_id) == 0;
    bool is_later =
        core->n_versions > 0 && core->versions[0]->event_version > run_last_version(current);
    return !(goes_on && is_later) && is_ours(incoming, current) &&
           !incoming->context.of_begun.domain->is_recovering; /* then later: failover/zombies.c */
}

/* Why another run has the id now, for who finds this one ended. */
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

const struct run_context *
incoming_context_to_end(const struct incoming *incoming, const struct run *run)
{
    struct run_context *context = arena_make(incoming->arena, struct run_context);
    *context = incoming->context.of_begun;
    context->event_version = run_last_version(run);
    return context;
}

/* The run that had the id gives way, if it is open. A batch that went to another history of that
 * very run has begun a mutation of it. */
static void
suppress(struct incoming *incoming, struct incoming_step *step, const struct run *winner)
{
    struct loaded_run *current = incoming->current;
    check(step->suppressed.mutation == NULL && winner != current->run);
    if (!run_is_open(current->run))
        return;
    struct mutation *mutation = step->target.mutation;
    if (current != incoming->target)
        mutation = mutation_begin(current->run, incoming_context_to_end(incoming, current->run),
                                  incoming->arena);
    step->suppressed = (struct incoming_run){mutation, current};
    struct step give_way = incoming_step_of(incoming, mutation);
    if (is_ours_to_end(incoming, current->run, winner)) {
        probe("conflict_terminated");
        command_give_way(&give_way, explain(incoming, winner));
        return;
    }
    probe("run_becomes_zombie");
    if (run_has_buffered(current->run) && incoming_has_lost(incoming, current->run))
        mutation_drop_buffered(mutation);    /* the others know better, if anybody does */
    else if (run_has_buffered(current->run)) /* that is ours, and is not lost */
        command_close_decision(&give_way);
    command_drop_transient(&give_way);
    mutation_become_zombie(mutation);
}

/* ---- the run that has it now ---- */

static void
revive(struct incoming *incoming, struct mutation *mutation)
{
    if (!mutation_revive(mutation))
        return;
    probe("zombie_revived");
    struct step refresh = incoming_step_of(incoming, mutation);
    struct error *err = command_refresh(&refresh);
    check(err == NULL);
}

/* A third run has the id. */
static void
revive_candidate(struct incoming *incoming, struct incoming_step *step,
                 struct loaded_run *candidate)
{
    probe("third_run_has_id");
    check(step->revived.loaded == NULL && candidate != incoming->target);
    check(candidate != incoming->current && candidate->run == step->holder);
    step->revived = (struct incoming_run){NULL, candidate};
    if (!run_is_zombie(candidate->run))
        return;
    step->revived.mutation = mutation_begin(
        candidate->run, incoming_context_to_end(incoming, candidate->run), incoming->arena);
    revive(incoming, step->revived.mutation);
}

static struct loaded_run *
find_candidate(const struct incoming *incoming, const char *run_id)
{
    for (size_t i = 0; i < array_length(incoming->candidates); i++) {
        struct loaded_run *candidate = incoming->candidates[i];
        if (candidate != NULL && strcmp(candidate->run->core->run_id, run_id) == 0)
            return candidate;
    }
    return NULL;
}

/* The run that leads, of those that are here; NULL: the only one has not begun. */
static struct run *
find_winner(const struct incoming *incoming, const struct incoming_step *step,
            struct loaded_run **candidate)
{
    struct run *target = mutation_run(step->target.mutation);
    struct run *begun = step->begun.mutation == NULL ? NULL : mutation_run(step->begun.mutation);
    struct run *current = incoming->current == NULL ? NULL : incoming->current->run;
    struct candidates candidates = {0};
    if (current != NULL) {
#ifndef CADENZA_FAULT_runs_compared_in_pairs
        candidates = candidates_read(incoming->workflow->current, incoming->arena);
#endif
        candidates_add(&candidates, current->core, incoming->arena);
    }
    candidates_add(&candidates, target->core, incoming->arena);
    if (begun != NULL)
        candidates_add(&candidates, begun->core, incoming->arena);
    const char *run_id;
    *candidate = NULL;
    while ((run_id = candidates_leader(&candidates)) != NULL) {
        if (strcmp(run_id, target->core->run_id) == 0)
            return target;
        if (begun != NULL && strcmp(run_id, begun->core->run_id) == 0)
            return begun;
        if (current != NULL && strcmp(run_id, current->core->run_id) == 0)
            return current;
        *candidate = find_candidate(incoming, run_id);
        if (*candidate != NULL)
            return (*candidate)->run;
        candidates_drop(&candidates, run_id); /* it is gone */
    }
    return current; /* written before this was looked at */
}

bool
incoming_gives_way(const struct incoming *incoming, const struct incoming_step *step)
{
    struct loaded_run *candidate;
    const struct loaded_run *current = incoming->current;
    return current != NULL && current != incoming->target && run_is_open(current->run) &&
           find_winner(incoming, step, &candidate) != current->run;
}

/* The runs of the batch are zombies, unless they have the id. */
static void
place_target(struct incoming *incoming, struct incoming_step *step, bool has_id)
{
    if (has_id) {
        revive(incoming, step->target.mutation);
        return;
    }
    if (run_is_open(mutation_run(step->target.mutation)))
        probe("zombie_applied");
    mutation_become_zombie(step->target.mutation);
}

static void
place_begun(struct incoming_step *step, bool has_id)
{
    if (step->begun.mutation == NULL || has_id)
        return;
    probe("zombie_continued");
    mutation_become_zombie(step->begun.mutation);
}

void
incoming_contest(struct incoming *incoming, struct incoming_step *step)
{
    struct loaded_run *candidate;
    check(step->holder == NULL && step->suppressed.mutation == NULL);
    struct run *winner = find_winner(incoming, step, &candidate);
    struct run *target = mutation_run(step->target.mutation);
    bool begun_has_id =
        step->begun.mutation != NULL && winner == mutation_run(step->begun.mutation);
    step->holder = winner;
    step->target_is_current = winner == target || begun_has_id;
    if (!step->is_side)
        place_target(incoming, step, winner == target);
    place_begun(step, begun_has_id);
    if (candidate != NULL)
        revive_candidate(incoming, step, candidate);
    /* The target that had the id and is not open any more need not give way. */
    const struct loaded_run *current = incoming->current;
    bool may_give_way =
        current != NULL && winner != NULL && (current != incoming->target || step->is_side);
    if (may_give_way && winner != current->run)
        suppress(incoming, step, begun_has_id && !step->is_side ? target : winner);
}
