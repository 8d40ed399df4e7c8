/* rebuild.c - an open run is replaced by what its history says, at an operator's word: for the case
 * that its state is not what the events make of it (incoming/rebuild.c does it). Whatever is in no
 * history yet (buffered events, an attempt of a decision) must end before. */
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

/* Under the lock of the id, once the run is found: it is open and has the id, and nothing of it is
 * in no history. */
static void
rebuilding_check(const struct rebuilding *rebuilding)
{
    const struct run *run = rebuilding->loaded->run;
    check(rebuilding->workflow->lock.owner == fiber_self());
    check(run_is_open(run) && !run_is_zombie(run) && !run_has_buffered(run));
    check(strcmp(run->core->run_id, rebuilding->key.run_id) == 0);
    check(rebuilding->ticket == 0);
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

static struct error *
run_locked(struct rebuilding *rebuilding)
{
    struct error *err = load(rebuilding);
    if (err != NULL)
        return err;
    rebuilding_check(rebuilding);
    rebuilding->outcome->run_id = rebuilding->key.run_id;
    return incoming_rebuild(rebuilding->tenure, rebuilding->workflow, rebuilding->loaded,
                            rebuilding->arena, rebuilding->outcome, &rebuilding->ticket);
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
        if (err == NULL)
            err = tenure_wait(rebuilding.tenure, rebuilding.ticket, arena);
    }
    tenure_leave(rebuilding.tenure);
    return err;
}
