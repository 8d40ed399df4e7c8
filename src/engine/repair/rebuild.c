/* rebuild.c - an open run is replaced by what its history says, at an operator's word: for the case
 * that its state is not what the events make of it.
 *
 * As a switch to another history (apply.c), but to its own: every record is written again, rows
 * of the old one go, its tasks are sent, its wake-up timer is set. What no event tells is kept
 * where it says how the run came about, and lost where it says how far attempts were: they start
 * again. Whatever is in no history yet (buffered events, an attempt of a decision) must end before.
 */
#include "engine/run/rebuild.h"
#include "base/check.h"
#include "engine/branches/branches.h"
#include "engine/incoming/incoming.h"
#include "engine/shard/applied_domains.h"
#include "engine/shard/context.h"
#include "engine/shard/inside.h"
#include "engine/shard/step_batch.h"
#include "engine/shard/workflows.h"
#include "fiber/probe.h"
#include "wire/errors.h"

#define PAGE_BYTES ((size_t)1 << 20)

struct rebuilding {
    struct tenure *tenure;
    struct run_key key;
    struct arena *arena;
    struct workflow *workflow; /* locked */
    struct loaded_run *loaded;
    struct run *rebuilt; /* NULL: none yet, or the workflow has it */
    struct run_rebuilt *outcome;
    ticket_t ticket; /* 0: it is not replaced yet */
};

static struct error *
check_replaceable(const struct rebuilding *rebuilding)
{
    const struct run *run = rebuilding->loaded->run;
    const STORED(PendingDecision) *decision = run->core->decision;
    if (!run_is_open(run) || run_is_zombie(run))
        return error_new(rebuilding->arena, ERR_BAD_REQUEST,
                         "The run is closed or not the current one, so it is not rebuilt.");
    if (run_has_buffered(run) || (decision != NULL && decision->attempt > 0))
        return error_new(rebuilding->arena, ERR_SERVICE_BUSY,
                         "The run has something that is in no history yet: try again when its "
                         "decision is done.");
    return NULL;
}

/* Under the lock of the id, once the run is found: it is open and has the id, nothing of it is in
 * no history, and what is rebuilt is another run of its name. */
static void
rebuilding_check(const struct rebuilding *rebuilding)
{
    const struct run *run = rebuilding->loaded->run, *rebuilt = rebuilding->rebuilt;
    check(rebuilding->workflow->lock.owner == fiber_self());
    check(run_is_open(run) && !run_is_zombie(run) && !run_has_buffered(run));
    check(strcmp(run->core->run_id, rebuilding->key.run_id) == 0);
    check(rebuilding->ticket == 0);
    check(rebuilt == NULL ||
          (rebuilt != run && strcmp(rebuilt->core->run_id, rebuilding->key.run_id) == 0));
}

static struct error *
load(struct rebuilding *rebuilding)
{
    struct tenure *tenure = rebuilding->tenure;
    struct workflow *workflow = rebuilding->workflow;
    struct error *err = workflow_load_current(tenure, workflow, rebuilding->arena);
    if (err != NULL)
        return err;
    if (rebuilding->key.run_id[0] == '\0' && workflow->current != NULL)
        rebuilding->key.run_id = arena_text(rebuilding->arena, workflow->current->run_id);
    if (rebuilding->key.run_id[0] != '\0')
        err = workflow_load_run(tenure, workflow, rebuilding->key.run_id, rebuilding->arena,
                                &rebuilding->loaded);
    bool is_gone =
        err == NULL && (rebuilding->loaded == NULL || rebuilding->loaded->run->core->is_deleting);
    if (is_gone)
        return errors_entity_not_exists(rebuilding->arena, NULL,
                                        "Workflow execution not found.  WorkflowId: %s, RunId: %s",
                                        rebuilding->key.workflow_id, rebuilding->key.run_id);
    if (err == NULL)
        err = check_replaceable(rebuilding);
    if (err == NULL) /* what is read from the store must have all that is in memory */
        err = tenure_wait(tenure, workflow->newest, rebuilding->arena);
    return err != NULL ? err : tenure_check_owned(tenure, rebuilding->arena);
}

/* How the run came about, beyond its first event. */
static void
keep_origin(struct run *rebuilt, const STORED(RunRecord) *old)
{
    STORED(RunRecord) *core = rebuilt->core;
    core->create_request_id = run_keep_text(rebuilt, old->create_request_id);
    core->chain_request_id = run_keep_text(rebuilt, old->chain_request_id);
    core->reset_request_id = run_keep_text(rebuilt, old->reset_request_id);
    core->reset_run_id = run_keep_text(rebuilt, old->reset_run_id);
    core->jitter_start = old->jitter_start;
    core->waits_for_parent = old->waits_for_parent;
    core->ask_parent_time = old->ask_parent_time;
}

/* Yields. */
static struct error *
read_history(struct rebuilding *rebuilding)
{
    struct shard *shard = rebuilding->tenure->shard;
    const STORED(RunRecord) *old = rebuilding->loaded->run->core;
    struct run_context context;
    rebuilding_check(rebuilding);
    check(rebuilding->rebuilt == NULL);
    struct error *err = tenure_read_context(rebuilding->tenure, rebuilding->key.domain_id,
                                            rebuilding->arena, &context);
    if (err != NULL)
        return err;
    struct run_branches all = branches_read(old, rebuilding->arena);
    struct run *run = rebuilding->rebuilt = incoming_name_run(&rebuilding->key);
    branches_store(&(struct run_branches){all.branch, 1}, run->core, run->arena);
    run->core->n_versions = 0; /* they come with the events */
    err = run_rebuild(shard->options.store, shard->partition, old->next_event_id, PAGE_BYTES,
                      &context, run, rebuilding->arena);
    if (err != NULL)
        return err;
    branches_store(&all, run->core, run->arena);
    keep_origin(run, old);
    rebuilding->outcome->before = run_checksum(rebuilding->loaded->run);
    rebuilding->outcome->after = run_checksum(run);
    return rebuilding->tenure->is_over ? tenure_error(rebuilding->tenure, rebuilding->arena) : NULL;
}

/* No yield. */
static struct error *
replace(struct rebuilding *rebuilding)
{
    struct tenure *tenure = rebuilding->tenure;
    struct shard_step wanted = {
        .key = rebuilding->key, .needs_run = true, .ignores_activity = true};
    struct step_context *context = arena_make(rebuilding->arena, struct step_context);
    struct error *err = applied_domains_catch_up(tenure, rebuilding->arena);
    if (err == NULL)
        err = tenure_make_context(tenure, &wanted, rebuilding->loaded->run, rebuilding->arena,
                                  context);
    if (err == NULL && !writer_has_room(tenure->writer))
        err =
            errors_service_busy(rebuilding->arena, "", "Too many changes of shard %u are waiting.",
                                tenure->shard->options.number);
    if (err != NULL)
        return err;
    rebuilding_check(rebuilding);
    check(!tenure->is_over && rebuilding->rebuilt != NULL);
    struct mutation *mutation = mutation_begin_replacing(
        rebuilding->rebuilt, rebuilding->loaded->run, &context->of_run, rebuilding->arena);
    struct step refresh = {.arena = rebuilding->arena,
                           .context = mutation_context(mutation),
                           .domain_id = rebuilding->workflow->domain_id,
                           .workflow_id = rebuilding->workflow->workflow_id,
                           .current = rebuilding->workflow->current,
                           .mutation = mutation};
    err = command_refresh(&refresh);
    check(err == NULL);
    struct step_batch batch;
    step_batch_begin(&batch, tenure, rebuilding->workflow, rebuilding->arena);
    step_batch_add(&batch, mutation, rebuilding->loaded);
    rebuilding->ticket = step_batch_submit(&batch);
    rebuilding->rebuilt = NULL; /* the workflow has it */
    probe("run_rebuilt");
    return NULL;
}

static struct error *
run_locked(struct rebuilding *rebuilding)
{
    struct error *err = load(rebuilding);
    if (err == NULL)
        err = read_history(rebuilding);
    if (err != NULL)
        return err;
    rebuilding->outcome->run_id = rebuilding->key.run_id;
    NO_YIELD
    {
        err = replace(rebuilding);
    }
    return err;
}

struct error *
shard_rebuild(struct shard *shard, const struct run_key *key, struct arena *arena,
              struct run_rebuilt *outcome)
{
    struct rebuilding rebuilding = {.key = *key, .arena = arena, .outcome = outcome};
    struct error *err = tenure_enter(shard, 0, arena, &rebuilding.tenure);
    if (err != NULL)
        return err;
    err = workflow_lock(rebuilding.tenure, key, arena, &rebuilding.workflow);
    if (err == NULL) {
        err = run_locked(&rebuilding);
        workflow_unlock(rebuilding.tenure, rebuilding.workflow);
        run_free(rebuilding.rebuilt);
        if (err == NULL)
            err = tenure_wait(rebuilding.tenure, rebuilding.ticket, arena);
    }
    tenure_leave(rebuilding.tenure);
    return err;
}
