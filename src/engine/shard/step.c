/* step.c - one step of a workflow id: lock, load, decide, adopt, submit, unlock; then wait.
 *
 * From the moment the facts are made until the batch is submitted nothing yields: the order in
 * memory is the order in the log. The lock is free before the batch is durable, so the next step of
 * the id gathers into the same group. What a caller is told, a refusal too, waits for the newest
 * ticket of the id: it was decided on that. A caller that gives up waiting undoes nothing. */
#include "base/check.h"
#include "base/memory.h"
#include "domain/active.h"
#include "engine/ndc/runs.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "wire/errors.h"
#include "wire/message.h"

#define ATTEMPTS_MAX    3                 /* of a step that lost its shard before it was decided */
#define START_LOCK_WAIT (500 * NS_PER_MS) /* of a start, for another one of the same id */

/* A step on its way. */
struct visit {
    struct tenure *tenure;
    const struct shard_step *wanted;
    struct arena *arena;
    struct workflow *workflow; /* locked */
    struct loaded_run *loaded; /* the run of the wish; NULL: none */
    struct step_facts facts;
    struct step step;
    struct claims claims;
    ticket_t ticket;  /* to wait for */
    bool is_decided;  /* `decide` was asked, and something may have been done */
    bool must_commit; /* even if the command did nothing: the alarm has rung */
};

/* --- before: lock and load ---- */

/* A start that waits long for the lock waits for another start whose reads are slow: it is told so
 * while its caller still listens. */
static struct error *
visit_lock(struct visit *visit)
{
    const struct shard_step *wanted = visit->wanted;
    int64_t deadline = fiber_deadline(), latest = clock_monotonic() + START_LOCK_WAIT;
    if (wanted->may_be_missing && latest < deadline)
        fiber_set_deadline(latest);
    struct error *err = workflow_lock(visit->tenure, &wanted->key, visit->arena, &visit->workflow);
    fiber_set_deadline(deadline);
    if (err == NULL || err->kind != ERR_DEADLINE || !wanted->may_be_missing)
        return err;
    mark("start_waited_too_long");
    return errors_service_busy(visit->arena, NULL,
                               "an outstanding start workflow request is in-progress. Failed to "
                               "acquire the resource.");
}

static struct error *
visit_load(struct visit *visit)
{
    const struct shard_step *wanted = visit->wanted;
    struct error *err = workflow_load_current(visit->tenure, visit->workflow, visit->arena);
    if (err != NULL || !wanted->needs_run)
        return err;
    const char *run_id = wanted->key.run_id;
    if (run_id[0] == '\0' && visit->workflow->current != NULL)
        run_id = arena_text(visit->arena, visit->workflow->current->run_id);
    if (run_id[0] == '\0')
        return NULL;
    err = workflow_load_run(visit->tenure, visit->workflow, run_id, visit->arena, &visit->loaded);
    if (visit->loaded != NULL && visit->loaded->run->core->is_deleting)
        visit->loaded = NULL; /* as good as gone */
    return err;
}

static struct error *
not_found(const struct run_key *key, struct arena *arena)
{
    if (key->run_id[0] == '\0')
        return errors_entity_not_exists(
            arena, NULL, "Workflow execution not found.  WorkflowId: %s", key->workflow_id);
    return errors_entity_not_exists(arena, NULL,
                                    "Workflow execution not found.  WorkflowId: %s, RunId: %s",
                                    key->workflow_id, key->run_id);
}

/* What is read from the store must have all that is in memory, and what is in memory must be all:
 * a refusal says what the run has not, and an owner that was overtaken cannot know. */
static struct error *
visit_prepare(struct visit *visit)
{
    struct tenure *tenure = visit->tenure;
    struct shard_reader reader = {tenure, visit->workflow, visit->arena};
    struct error *err = tenure_wait(tenure, visit->workflow->newest, visit->arena);
    if (err == NULL)
        err = tenure_check_owned(tenure, visit->arena);
    if (err == NULL)
        err = visit->wanted->prepare(visit->wanted->context, &reader);
    return err == NULL && tenure->is_over ? tenure_error(tenure, visit->arena) : err;
}

/* --- deciding: no yields ---- */

static struct error *
refuse_without_room(struct visit *visit)
{
    mark("shard_without_room");
    visit->ticket = 0; /* says nothing about the id */
    return errors_service_busy(visit->arena, "", "Too many changes of shard %u are waiting.",
                               visit->tenure->shard->options.number);
}

/* A run that lost its workflow id is changed by events of other clusters alone (E-043). */
static struct error *
check_zombie(const struct visit *visit)
{
    if (visit->loaded == NULL || !run_is_zombie(visit->loaded->run) ||
        visit->wanted->ignores_activity) /* that is one of those */
        return NULL;
    mark("zombie_refused");
    if (visit->wanted->task != NULL)
        return not_found(&visit->wanted->key, visit->arena); /* its task is void */
    return error_new(visit->arena, ERR_ALREADY_COMPLETED, "workflow execution already completed");
}

/* Does the run that a start begins belong to the same as the one that has the id? */
static bool
belongs_to_same(const struct visit *visit)
{
    const API(ClusterAttribute) *has = visit->workflow->current->cluster_attribute;
    struct cluster_attribute wanted = cluster_attribute_of(visit->wanted->policy);
    struct cluster_attribute current = {0};
    if (has != NULL)
        current = (struct cluster_attribute){has->scope, has->name};
    return cluster_attribute_equals(&wanted, &current);
}

static bool
is_open_state(STORED(RunState) state)
{
    return state == CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_CREATED ||
           state == CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_RUNNING;
}

/* A run of another attribute than the current one's is to have the id: it begins after all of that
 * one's (the clocks of clusters differ), and no run of its own has a later version: else every
 * cluster would give the id to another run (ndc/runs.h). */
static struct error *
check_rivals(struct visit *visit, bool begins)
{
    const API(ActiveClusterSelectionPolicy) *policy = visit->wanted->policy;
    struct facts *facts = &visit->facts.of_begun;
    struct contenders contenders = contenders_read(visit->workflow->current, visit->arena);
    int64_t latest = contenders_latest_start(&contenders);
    if (facts->now <= latest)
        facts->now = latest + 1;
    const STORED(Contender) *newest =
        contenders_find(&contenders, policy == NULL ? NULL : policy->cluster_attribute);
    if (newest == NULL || !begins)
        return NULL;
    return tenure_check_newest(visit->tenure, newest->last_write_version, facts, visit->arena);
}

/* What a later version wrote may not be changed, nor followed by another run (E-002, G-026). Runs
 * that belong to different attributes are not compared: the versions of each count for themselves.
 */
static struct error *
check_newest(struct visit *visit)
{
    struct step_facts *facts = &visit->facts;
    const struct shard_step *wanted = visit->wanted;
    const STORED(CurrentRecord) *current = visit->workflow->current;
    if (wanted->ignores_activity)
        return NULL;
    bool is_changed = !wanted->may_be_missing || wanted->may_signal || wanted->may_terminate;
    is_changed = is_changed && visit->loaded != NULL &&
                 (wanted->begins_anew || run_is_open(visit->loaded->run));
    struct error *err = NULL;
    if (is_changed)
        err = tenure_check_newest(visit->tenure, run_last_version(visit->loaded->run),
                                  &facts->of_run, visit->arena);
    if (err != NULL || !wanted->may_be_missing || current == NULL)
        return err;
    if (!belongs_to_same(visit))
        return check_rivals(visit, wanted->may_terminate || !is_open_state(current->state));
    if (is_changed)
        return NULL;
    return tenure_check_newest(visit->tenure, current->last_write_version, &facts->of_begun,
                               visit->arena);
}

static struct error *
check_visit(struct visit *visit)
{
    const struct shard_step *wanted = visit->wanted;
    if (wanted->needs_run && !wanted->may_be_missing && visit->loaded == NULL)
        return not_found(&wanted->key, visit->arena);
    const struct run *run = visit->loaded == NULL ? NULL : visit->loaded->run;
    struct error *err = check_zombie(visit);
    if (err != NULL)
        return err;
    err = tenure_make_facts(visit->tenure, wanted, run, visit->arena, &visit->facts);
    if (err == NULL)
        err = check_newest(visit);
    bool has_room = writer_has_room(visit->tenure->writer);
    bool is_kept = facts_say_inactive(err) && wanted->task != NULL;
    if (is_kept && has_room)
        visit->ticket = tenure_keep_task(visit->tenure, wanted->task, run, visit->arena);
    if (err != NULL && (has_room || !is_kept))
        return err;
    return has_room ? NULL : refuse_without_room(visit);
}

/* The run comes from another version: what was begun with it is settled first, in a commit of its
 * own, which stays whatever becomes of the wish. */
static struct error *
visit_settle(struct visit *visit)
{
    struct loaded_run *loaded = visit->loaded;
    if (loaded == NULL || visit->wanted->ignores_activity ||
        !tenure_must_settle(visit->tenure, loaded->run, &visit->facts.of_run))
        return NULL;
    visit->ticket = tenure_settle(visit->tenure, visit->workflow, loaded, &visit->facts.of_run,
                                  false, visit->arena);
    return writer_has_room(visit->tenure->writer) ? NULL : refuse_without_room(visit);
}

/* Takes everything back. */
static void
visit_cancel(struct visit *visit)
{
    if (visit->step.mutation != NULL)
        mutation_cancel(visit->step.mutation);
    if (visit->step.begun == NULL)
        return;
    struct run *run = mutation_run(visit->step.begun);
    mutation_cancel(visit->step.begun);
    run_free(run);
}

/* --- adopting: no yields ---- */

/* Writes the current-run record if the step changed it. */
static void
visit_put_current(struct visit *visit, const struct run *begun, struct step_batch *commit)
{
    const struct run *run = begun;
#ifdef CADENZA_PLANT_current_not_moved
    run = visit->loaded == NULL ? begun : NULL;
#endif
    if (run == NULL && visit->loaded != NULL &&
        workflow_has_current(visit->workflow, visit->loaded->run))
        run = visit->loaded->run;
    if (run != NULL)
        step_batch_put_current(commit, run);
}

/* One batch of all that the step means. The ticket to wait for is left in the visit. */
static void
visit_submit(struct visit *visit)
{
    struct tenure *tenure = visit->tenure;
    struct mutation *changed = visit->step.mutation, *begun = visit->step.begun;
    if (changed != NULL && !visit->must_commit && mutation_is_empty(changed)) {
        mutation_cancel(changed);
        changed = NULL;
    }
    if (changed == NULL && begun == NULL)
        return; /* nothing to do: a repeat */
    struct step_batch commit;
    step_batch_begin(&commit, tenure, visit->workflow, visit->arena);
    if (changed != NULL)
        step_batch_add(&commit, changed, visit->loaded);
    if (begun != NULL) {
        struct history_branch branch = run_branch(mutation_run(begun));
        tenure_add_nodes(tenure, &branch, visit->step.nodes, visit->step.node_count, commit.batch);
        step_batch_add(&commit, begun, NULL);
    }
    visit_put_current(visit, begun == NULL ? NULL : mutation_run(begun), &commit);
    const struct task *started = visit->wanted->task;
    if (started != NULL && started->row != 0) /* it may have another row than the run knows */
        outbox_drop(tenure, started->row, commit.batch);
    visit->ticket = step_batch_submit(&commit);
}

static struct error *
visit_decide(struct visit *visit)
{
    struct tenure *tenure = visit->tenure;
    struct error *err = view_catch_up(tenure, visit->arena);
    if (err != NULL)
        return err;
    visit->ticket = visit->workflow->newest;
    if (visit->ticket < tenure->view.ticket)
        visit->ticket = tenure->view.ticket; /* what it is told stands on the view too */
    err = check_visit(visit);
    if (err == NULL)
        err = visit_settle(visit);
    if (err != NULL)
        return err;
    visit->is_decided = true;
    visit->step = (struct step){.arena = visit->arena,
                                .facts = &visit->facts.of_begun,
                                .domain_id = visit->workflow->domain_id,
                                .workflow_id = visit->workflow->workflow_id,
                                .current = visit->workflow->current};
    if (visit->loaded != NULL)
        visit->step.mutation =
            mutation_begin(visit->loaded->run, &visit->facts.of_run, visit->arena);
    struct error *refusal = visit->wanted->decide(visit->wanted->context, &visit->step);
    if (refusal != NULL) {
        visit_cancel(visit);
    } else {
        claims_start(tenure, &visit->step, &visit->claims);
        visit_submit(visit);
    }
    visit->is_decided = refusal == NULL;
    return refusal;
}

/* --- all of it ---- */

static struct error *
visit_run(struct visit *visit)
{
    struct tenure *tenure = visit->tenure;
    struct error *err = visit_lock(visit);
    if (err != NULL)
        return err;
    struct error *refusal = NULL;
    err = visit_load(visit);
    if (err == NULL && visit->wanted->prepare != NULL)
        err = visit_prepare(visit);
    if (err == NULL)
        claims_ask(tenure, visit->wanted, visit->loaded == NULL ? NULL : visit->loaded->run,
                   visit->workflow, &visit->claims);
    if (err == NULL && tenure->is_over)
        err = tenure_error(tenure, visit->arena);
    if (err == NULL) {
        NO_YIELD
        {
            refusal = visit_decide(visit);
        }
    }
    claims_settle(tenure, &visit->claims, visit->ticket);
    workflow_unlock(tenure, visit->workflow); /* others queue behind us in the same group */
#ifdef CADENZA_PLANT_step_before_durable
    visit->ticket = refusal == NULL ? 0 : visit->ticket;
#endif
#ifdef CADENZA_PLANT_refusal_before_durable
    visit->ticket = refusal != NULL ? 0 : visit->ticket;
#endif
    if (err == NULL)
        err = tenure_wait(tenure, visit->ticket, visit->arena);
    /* A refusal writes nothing, so it does not notice that the owner was overtaken: what the run
     * has not, the next owner may have given it. */
    if (err == NULL && refusal != NULL)
        err = tenure_check_owned(tenure, visit->arena);
    return err != NULL ? err : refusal;
}

struct error *
shard_step(struct shard *shard, const struct shard_step *wanted, struct arena *arena)
{
    struct error *refusal = wanted->is_call ? shard_admit(shard, &wanted->key, arena) : NULL;
    if (refusal != NULL)
        return refusal;
    for (int attempt = 1;; attempt++) {
        struct visit visit = {.wanted = wanted, .arena = arena};
        struct error *err = tenure_enter(shard, wanted->range_id, arena, &visit.tenure);
        if (err != NULL)
            return err;
        err = visit_run(&visit);
        bool is_lost = visit.tenure->is_over;
        tenure_leave(visit.tenure);
        bool may_try = is_lost && !visit.is_decided && wanted->range_id == 0 && !shard->is_closing;
        if (err == NULL || !may_try || attempt == ATTEMPTS_MAX)
            return err;
        mark("step_tried_again");
    }
}

/* --- alarms ---- */

struct wake_wish {
    struct visit *visit;
    uint64_t row;
    bool is_stale;
    bool is_reset_due; /* because of a bad binary */
    struct auto_reset reset;
};

static struct error *
decide_wake(void *context, struct step *step)
{
    struct wake_wish *wish = context;
    STORED(RunRecord) *core = mutation_core(step->mutation);
    wish->is_stale = core->alarm_row != wish->row;
    if (wish->is_stale)
        return NULL;
    wish->is_reset_due = command_wake_resets(step, &wish->reset);
    command_wake(step);
    if (mutation_is_empty(step->mutation))
        mark("alarm_rearmed");
    core->alarm_row = 0; /* it has rung: the end of the step sets another if the run needs one */
    core->alarm_time = 0;
    wish->visit->must_commit = true;
    return NULL;
}

struct error *
tenure_wake(struct tenure *tenure, const struct run_key *key, uint64_t row, struct arena *arena,
            bool *is_stale)
{
    struct visit visit = {.tenure = tenure, .arena = arena};
    struct wake_wish wish = {.visit = &visit, .row = row};
    struct shard_step wanted = {
        .key = *key, .needs_run = true, .decide = decide_wake, .context = &wish};
    visit.wanted = &wanted;
    struct error *err = visit_run(&visit);
    /* That its domain is not known here (yet) does not make it void. */
    bool is_gone = err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS && visit.loaded == NULL;
    *is_stale = wish.is_stale || is_gone;
    if (err == NULL && wish.is_reset_due &&
        tenure_auto_reset(tenure, key, &wish.reset, arena) != NULL)
        mark("auto_reset_put_off"); /* the step above has set another time for it */
    return err;
}

/* --- looking ---- */

typedef void look_function(void *context, const struct run *run,
                           const STORED(CurrentRecord) *current);

static struct error *
tenure_look(struct tenure *tenure, const struct run_key *key,
            void (*look)(void *context, const struct run *run,
                         const STORED(CurrentRecord) *current),
            void *context, struct arena *arena)
{
    struct shard_step wanted = {.key = *key, .needs_run = true};
    struct visit visit = {.tenure = tenure, .wanted = &wanted, .arena = arena};
    struct error *err = workflow_lock(tenure, key, arena, &visit.workflow);
    if (err != NULL)
        return err;
    err = visit_load(&visit);
    visit.ticket = visit.workflow->newest;
#ifdef CADENZA_PLANT_look_before_durable
    visit.ticket = 0;
#endif
    if (err == NULL && visit.loaded != NULL) {
        NO_YIELD
        {
            look(context, visit.loaded->run, visit.workflow->current);
        }
    }
    workflow_unlock(tenure, visit.workflow);
    if (err == NULL)
        err = tenure_wait(tenure, visit.ticket, arena);
    if (err == NULL && visit.loaded == NULL)
        err = not_found(key, arena);
    return err;
}

/* Looks; if it must be `sure`, the store says afterwards whether the owner still was one: what it
 * saw was then all there was when it looked. */
static struct error *
look_until_owned(struct shard *shard, const struct run_key *key, look_function *look, void *context,
                 bool is_sure, struct arena *arena)
{
    for (int attempt = 1;; attempt++) {
        struct tenure *tenure;
        struct error *err = tenure_enter(shard, 0, arena, &tenure);
        if (err != NULL)
            return err;
        err = tenure_look(tenure, key, look, context, arena);
        bool is_answer = err == NULL || err->kind == ERR_ENTITY_NOT_EXISTS;
        if (is_answer && is_sure) {
            struct error *lost = tenure_check_owned(tenure, arena);
            err = lost != NULL ? lost : err;
        }
        bool may_try = tenure->is_over && !shard->is_closing;
        tenure_leave(tenure);
        if (err == NULL || !may_try || attempt == ATTEMPTS_MAX)
            return err;
        mark("look_tried_again");
    }
}

struct error *
shard_look(struct shard *shard, const struct run_key *key,
           void (*look)(void *context, const struct run *run, const STORED(CurrentRecord) *current),
           void *context, struct arena *arena)
{
    return look_until_owned(shard, key, look, context, false, arena);
}

struct error *
shard_look_surely(struct shard *shard, const struct run_key *key,
                  void (*look)(void *context, const struct run *run,
                               const STORED(CurrentRecord) *current),
                  void *context, struct arena *arena)
{
    return look_until_owned(shard, key, look, context, true, arena);
}
