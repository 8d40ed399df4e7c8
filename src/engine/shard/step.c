/* step.c - one step of a workflow id: lock, load, decide, adopt, submit, unlock; then wait.
 *
 * From the moment the step context is made until the batch is submitted nothing yields: the order
 * in memory is the order in the log. The lock is free before the batch is durable, so the next step
 * of the id gathers into the same group. What a caller is told, a refusal too, waits for the newest
 * ticket of the id: it was decided on that. A caller that gives up waiting undoes nothing. */
#include "engine/shard/step.h"
#include "base/check.h"
#include "base/memory.h"
#include "domain/active.h"
#include "engine/branches/runs.h"
#include "engine/shard/applied_domains.h"
#include "engine/shard/context.h"
#include "engine/shard/failover_state.h"
#include "engine/shard/inside.h"
#include "engine/shard/outbox_state.h"
#include "engine/shard/reservations.h"
#include "engine/shard/step_batch.h"
#include "engine/shard/workflows.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/errors.h"
#include "wire/message.h"

#define ATTEMPTS_MAX    3                 /* of a step that lost its shard before it was decided */
#define START_LOCK_WAIT (500 * NS_PER_MS) /* of a start, for another one of the same id */

/* A step on its way. */
struct step_call {
    struct tenure *tenure;
    const struct shard_step *wanted;
    struct arena *arena;
    struct workflow *workflow; /* locked */
    struct loaded_run *loaded; /* the run of the request; NULL: none */
    struct step_context context;
    struct step step;
    struct reservations reservations;
    ticket_t ticket;  /* to wait for */
    bool is_decided;  /* `decide` was asked, and something may have been done */
    bool must_commit; /* even if the command did nothing: the wake-up timer has fired */
};

/* --- before: lock and load ---- */

/* A start that waits long for the lock waits for another start whose reads are slow: it is told so
 * while its caller still listens. */
static struct error *
step_call_lock(struct step_call *step_call)
{
    const struct shard_step *wanted = step_call->wanted;
    int64_t deadline = fiber_deadline(), latest = clock_monotonic() + START_LOCK_WAIT;
    if (wanted->may_be_missing && latest < deadline)
        fiber_set_deadline(latest);
    struct error *err =
        workflow_lock(step_call->tenure, &wanted->key, step_call->arena, &step_call->workflow);
    fiber_set_deadline(deadline);
    if (err == NULL || err->kind != ERR_DEADLINE || !wanted->may_be_missing)
        return err;
    probe("start_waited_too_long");
    return errors_service_busy(step_call->arena, NULL,
                               "an outstanding start workflow request is in-progress. Failed to "
                               "acquire the resource.");
}

static struct error *
step_call_load(struct step_call *step_call)
{
    const struct shard_step *wanted = step_call->wanted;
    struct error *err =
        workflow_load_current(step_call->tenure, step_call->workflow, step_call->arena);
    if (err != NULL || !wanted->needs_run)
        return err;
    const char *run_id = wanted->key.run_id;
    if (run_id[0] == '\0' && step_call->workflow->current != NULL)
        run_id = arena_text(step_call->arena, step_call->workflow->current->run_id);
    if (run_id[0] == '\0')
        return NULL;
    err = workflow_load_run(step_call->tenure, step_call->workflow, run_id, step_call->arena,
                            &step_call->loaded);
    if (step_call->loaded != NULL && step_call->loaded->run->core->is_deleting)
        step_call->loaded = NULL; /* as good as gone */
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
step_call_prepare(struct step_call *step_call)
{
    struct tenure *tenure = step_call->tenure;
    struct shard_reader reader = {tenure, step_call->workflow, step_call->arena};
    check(step_call->workflow->has_current);
    struct error *err = tenure_wait(tenure, step_call->workflow->newest, step_call->arena);
    if (err == NULL)
        err = tenure_check_owned(tenure, step_call->arena);
    if (err == NULL)
        err = step_call->wanted->prepare(step_call->wanted->context, &reader);
    return err == NULL && tenure->is_over ? tenure_error(tenure, step_call->arena) : err;
}

/* --- deciding: no yields ---- */

static struct error *
refuse_without_room(struct step_call *step_call)
{
    probe("shard_without_room");
    step_call->ticket = 0; /* says nothing about the id */
    return errors_service_busy(step_call->arena, "", "Too many changes of shard %u are waiting.",
                               step_call->tenure->shard->options.number);
}

/* A run that lost its workflow id is changed by events of other clusters alone (E-043). */
static struct error *
check_zombie(const struct step_call *step_call)
{
    if (step_call->loaded == NULL || !run_is_zombie(step_call->loaded->run) ||
        step_call->wanted->ignores_activity) /* that is one of those */
        return NULL;
    probe("zombie_refused");
    if (step_call->wanted->task != NULL)
        return not_found(&step_call->wanted->key, step_call->arena); /* its task is void */
    return error_new(step_call->arena, ERR_ALREADY_COMPLETED,
                     "workflow execution already completed");
}

/* Does the run that a start begins belong to the same as the one that has the id? */
static bool
belongs_to_same(const struct step_call *step_call)
{
    const API(ClusterAttribute) *has = step_call->workflow->current->cluster_attribute;
    struct cluster_attribute wanted = cluster_attribute_of(step_call->wanted->policy);
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
 * cluster would give the id to another run (branches/runs.h). */
static struct error *
check_candidates(struct step_call *step_call, bool begins)
{
    const API(ActiveClusterSelectionPolicy) *policy = step_call->wanted->policy;
    struct run_context *context = &step_call->context.of_begun;
    struct candidates candidates = candidates_read(step_call->workflow->current, step_call->arena);
    int64_t latest = candidates_latest_start(&candidates);
    if (context->now <= latest)
        context->now = latest + 1;
    const STORED(Contender) *newest =
        candidates_find(&candidates, policy == NULL ? NULL : policy->cluster_attribute);
    if (newest == NULL || !begins)
        return NULL;
    return tenure_check_newest(step_call->tenure, newest->last_write_version, context,
                               step_call->arena);
}

/* What a later version wrote may not be changed, nor followed by another run (E-002, G-026). Runs
 * that belong to different attributes are not compared: the versions of each count for themselves.
 */
static struct error *
check_newest(struct step_call *step_call)
{
    struct step_context *context = &step_call->context;
    const struct shard_step *wanted = step_call->wanted;
    const STORED(CurrentRecord) *current = step_call->workflow->current;
    if (wanted->ignores_activity)
        return NULL;
    bool is_changed = !wanted->may_be_missing || wanted->may_signal || wanted->may_terminate;
    is_changed = is_changed && step_call->loaded != NULL &&
                 (wanted->begins_again || run_is_open(step_call->loaded->run));
    struct error *err = NULL;
    if (is_changed)
        err = tenure_check_newest(step_call->tenure, run_last_version(step_call->loaded->run),
                                  &context->of_run, step_call->arena);
    if (err != NULL || !wanted->may_be_missing || current == NULL)
        return err;
    if (!belongs_to_same(step_call))
        return check_candidates(step_call, wanted->may_terminate || !is_open_state(current->state));
    if (is_changed)
        return NULL;
    return tenure_check_newest(step_call->tenure, current->last_write_version, &context->of_begun,
                               step_call->arena);
}

static struct error *
step_call_check(struct step_call *step_call)
{
    const struct shard_step *wanted = step_call->wanted;
    if (wanted->needs_run && !wanted->may_be_missing && step_call->loaded == NULL)
        return not_found(&wanted->key, step_call->arena);
    const struct run *run = step_call->loaded == NULL ? NULL : step_call->loaded->run;
    struct error *err = check_zombie(step_call);
    if (err != NULL)
        return err;
    err =
        tenure_make_context(step_call->tenure, wanted, run, step_call->arena, &step_call->context);
    if (err == NULL)
        err = check_newest(step_call);
    bool has_room = writer_has_room(step_call->tenure->writer);
    bool is_kept = is_inactive_error(err) && wanted->task != NULL;
    check(!is_kept || run != NULL);
    if (is_kept && has_room)
        step_call->ticket =
            tenure_keep_task(step_call->tenure, wanted->task, run, step_call->arena);
    if (err != NULL && (has_room || !is_kept))
        return err;
    return has_room ? NULL : refuse_without_room(step_call);
}

/* The run comes from another version: what was begun with it is taken over first, in a commit of
 * its own, which stays whatever becomes of the request. */
static struct error *
step_take_over(struct step_call *step_call)
{
    struct loaded_run *loaded = step_call->loaded;
    if (loaded == NULL || step_call->wanted->ignores_activity ||
        !tenure_must_take_over(step_call->tenure, loaded->run, &step_call->context.of_run))
        return NULL;
    step_call->ticket = tenure_take_over(step_call->tenure, step_call->workflow, loaded,
                                         &step_call->context.of_run, false, step_call->arena);
    return writer_has_room(step_call->tenure->writer) ? NULL : refuse_without_room(step_call);
}

/* Takes everything back. */
static void
step_call_cancel(struct step_call *step_call)
{
    if (step_call->step.mutation != NULL)
        mutation_cancel(step_call->step.mutation);
    if (step_call->step.begun == NULL)
        return;
    struct run *run = mutation_run(step_call->step.begun);
    mutation_cancel(step_call->step.begun);
    run_free(run);
}

/* --- adopting: no yields ---- */

/* Writes the current-run record if the step changed it. */
static void
step_call_put_current(struct step_call *step_call, const struct run *begun,
                      struct step_batch *step_batch)
{
    const struct run *run = begun;
#ifdef CADENZA_FAULT_current_not_moved
    run = step_call->loaded == NULL ? begun : NULL;
#endif
    if (run == NULL && step_call->loaded != NULL &&
        workflow_has_current(step_call->workflow, step_call->loaded->run))
        run = step_call->loaded->run;
    if (run != NULL)
        step_batch_put_current(step_batch, run);
}

/* One batch of all that the step means. The ticket to wait for is stored in the call. */
static void
step_call_submit(struct step_call *step_call)
{
    struct tenure *tenure = step_call->tenure;
    struct mutation *changed = step_call->step.mutation, *begun = step_call->step.begun;
    check(changed == NULL || mutation_run(changed) == step_call->loaded->run);
    check(begun == NULL || begun != changed);
    if (changed != NULL && !step_call->must_commit && mutation_is_empty(changed)) {
        mutation_cancel(changed);
        changed = NULL;
    }
    if (changed == NULL && begun == NULL)
        return; /* nothing to do: a repeat */
    struct step_batch step_batch;
    step_batch_begin(&step_batch, tenure, step_call->workflow, step_call->arena);
    if (changed != NULL)
        step_batch_add(&step_batch, changed, step_call->loaded);
    if (begun != NULL) {
        struct history_branch branch = run_branch(mutation_run(begun));
        tenure_add_nodes(tenure, &branch, step_call->step.nodes, step_call->step.node_count,
                         step_batch.batch);
        step_batch_add(&step_batch, begun, NULL);
    }
    step_call_put_current(step_call, begun == NULL ? NULL : mutation_run(begun), &step_batch);
    const struct task *started = step_call->wanted->task;
    if (started != NULL && started->row != 0) /* it may have another row than the run knows */
        outbox_drop(tenure, started->row, step_batch.batch);
    step_call->ticket = step_batch_submit(&step_batch);
}

static struct error *
step_call_decide(struct step_call *step_call)
{
    struct tenure *tenure = step_call->tenure;
    struct error *err = applied_domains_catch_up(tenure, step_call->arena);
    if (err != NULL)
        return err;
    step_call->ticket = step_call->workflow->newest;
    if (step_call->ticket < tenure->applied_domains.ticket)
        step_call->ticket =
            tenure->applied_domains.ticket; /* what it is told rests on the applied domains too */
    err = step_call_check(step_call);
    if (err == NULL)
        err = step_take_over(step_call);
    if (err != NULL)
        return err;
    check(!step_call->is_decided && step_call->step.mutation == NULL);
    step_call->is_decided = true;
    step_call->step = (struct step){.arena = step_call->arena,
                                    .context = &step_call->context.of_begun,
                                    .domain_id = step_call->workflow->domain_id,
                                    .workflow_id = step_call->workflow->workflow_id,
                                    .current = step_call->workflow->current};
    if (step_call->loaded != NULL)
        step_call->step.mutation =
            mutation_begin(step_call->loaded->run, &step_call->context.of_run, step_call->arena);
    struct error *refusal = step_call->wanted->decide(step_call->wanted->context, &step_call->step);
    if (refusal != NULL) {
        step_call_cancel(step_call);
    } else {
        reservations_start(tenure, &step_call->step, &step_call->reservations);
        step_call_submit(step_call);
    }
    step_call->is_decided = refusal == NULL;
    return refusal;
}

/* --- all of it ---- */

static struct error *
step_call_run(struct step_call *step_call)
{
    struct tenure *tenure = step_call->tenure;
    struct error *err = step_call_lock(step_call);
    if (err != NULL)
        return err;
    struct error *refusal = NULL;
    err = step_call_load(step_call);
    if (err == NULL && step_call->wanted->prepare != NULL)
        err = step_call_prepare(step_call);
    if (err == NULL)
        reservations_ask(tenure, step_call->wanted,
                         step_call->loaded == NULL ? NULL : step_call->loaded->run,
                         step_call->workflow, &step_call->reservations);
    if (err == NULL && tenure->is_over)
        err = tenure_error(tenure, step_call->arena);
    if (err == NULL) {
        NO_YIELD
        {
            refusal = step_call_decide(step_call);
        }
    }
    reservations_resolve(tenure, &step_call->reservations, step_call->ticket);
    workflow_unlock(tenure, step_call->workflow); /* others queue behind us in the same group */
#ifdef CADENZA_FAULT_step_before_durable
    step_call->ticket = refusal == NULL ? 0 : step_call->ticket;
#endif
#ifdef CADENZA_FAULT_refusal_before_durable
    step_call->ticket = refusal != NULL ? 0 : step_call->ticket;
#endif
    if (err == NULL)
        err = tenure_wait(tenure, step_call->ticket, step_call->arena);
    /* A refusal writes nothing, so it does not notice that the owner was overtaken: what the run
     * has not, the next owner may have given it. */
    if (err == NULL && refusal != NULL)
        err = tenure_check_owned(tenure, step_call->arena);
    return err != NULL ? err : refusal;
}

struct error *
shard_step(struct shard *shard, const struct shard_step *wanted, struct arena *arena)
{
    check(wanted->decide != NULL);
    /* A task names its run, and a row of its shard unless its list had stored it. */
    check(wanted->task == NULL || (wanted->needs_run && !wanted->may_be_missing));
    check(wanted->task == NULL || wanted->task->row == 0 || wanted->range_id != 0);
    /* Only a start makes room, signals in its place, or belongs to something. */
    check(wanted->may_be_missing || (!wanted->may_terminate && !wanted->may_signal));
    check(wanted->may_be_missing || (wanted->policy == NULL && wanted->parent_version == 0));
    struct error *refusal = wanted->is_call ? shard_admit(shard, &wanted->key, arena) : NULL;
    if (refusal != NULL)
        return refusal;
    for (int attempt = 1;; attempt++) {
        struct step_call step_call = {.wanted = wanted, .arena = arena};
        struct error *err = tenure_enter(shard, wanted->range_id, arena, &step_call.tenure);
        if (err != NULL)
            return err;
        err = step_call_run(&step_call);
        bool is_lost = step_call.tenure->is_over;
        tenure_leave(step_call.tenure);
        bool may_try =
            is_lost && !step_call.is_decided && wanted->range_id == 0 && !shard->is_closing;
        if (err == NULL || !may_try || attempt == ATTEMPTS_MAX)
            return err;
        probe("step_tried_again");
    }
}

/* --- wake-up timers ---- */

struct wakeup_request {
    struct step_call *step_call;
    uint64_t row;
    bool is_stale;
    bool is_reset_due; /* because of a bad binary */
    struct auto_reset reset;
};

static struct error *
decide_wake(void *context, struct step *step)
{
    struct wakeup_request *wake = context;
    STORED(RunRecord) *core = mutation_core(step->mutation);
    check(wake->row != 0);
    wake->is_stale = core->alarm_row != wake->row;
    if (wake->is_stale)
        return NULL;
    wake->is_reset_due = command_wake_resets(step, &wake->reset);
    command_wake(step);
    if (mutation_is_empty(step->mutation))
        probe("wakeup_rearmed");
    core->alarm_row = 0; /* it has fired: the end of the step sets another if the run needs one */
    core->alarm_time = 0;
    wake->step_call->must_commit = true;
    return NULL;
}

struct error *
tenure_wake(struct tenure *tenure, const struct run_key *key, uint64_t row, struct arena *arena,
            bool *is_stale)
{
    struct step_call step_call = {.tenure = tenure, .arena = arena};
    struct wakeup_request wake = {.step_call = &step_call, .row = row};
    struct shard_step wanted = {
        .key = *key, .needs_run = true, .decide = decide_wake, .context = &wake};
    step_call.wanted = &wanted;
    struct error *err = step_call_run(&step_call);
    /* That its domain is not known here (yet) does not make it void. */
    bool is_gone = err != NULL && err->kind == ERR_ENTITY_NOT_EXISTS && step_call.loaded == NULL;
    *is_stale = wake.is_stale || is_gone;
    if (err == NULL && wake.is_reset_due &&
        tenure_auto_reset(tenure, key, &wake.reset, arena) != NULL)
        probe("auto_reset_put_off"); /* the step above has set another time for it */
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
    struct step_call step_call = {.tenure = tenure, .wanted = &wanted, .arena = arena};
    struct error *err = workflow_lock(tenure, key, arena, &step_call.workflow);
    if (err != NULL)
        return err;
    err = step_call_load(&step_call);
    step_call.ticket = step_call.workflow->newest;
#ifdef CADENZA_FAULT_look_before_durable
    step_call.ticket = 0;
#endif
    if (err == NULL && step_call.loaded != NULL) {
        check(step_call.workflow->lock.owner == fiber_self());
        NO_YIELD
        {
            look(context, step_call.loaded->run, step_call.workflow->current);
        }
    }
    workflow_unlock(tenure, step_call.workflow);
    if (err == NULL)
        err = tenure_wait(tenure, step_call.ticket, arena);
    if (err == NULL && step_call.loaded == NULL)
        err = not_found(key, arena);
    return err;
}

/* Looks; if it must be `sure`, the owner confirms afterwards that it still was one: what it saw was
 * then all there was when it looked. */
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
        probe("look_tried_again");
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
