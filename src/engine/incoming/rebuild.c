/* rebuild.c - an open run is replaced by what its history says. See incoming_rebuild.
 *
 * As a switch to another history (apply.c), but to its own: every record is written again, rows
 * of the old one go, its tasks are sent, its wake-up timer is set. What no event tells is kept
 * where it says how the run came about, and lost where it says how far attempts were, or what was
 * buffered: they start again. */
#include "engine/run/rebuild.h"
#include "base/check.h"
#include "engine/branches/branches.h"
#include "engine/incoming/incoming.h"
#include "engine/shard/applied_domains.h"
#include "fiber/probe.h"
#include "wire/errors.h"

#define PAGE_BYTES ((size_t)1 << 20)

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
read_history(struct tenure *tenure, const struct run_key *key, const STORED(RunRecord) *old,
             struct run *rebuilt, struct arena *arena)
{
    struct shard *shard = tenure->shard;
    struct run_context context;
    struct error *err = tenure_read_context(tenure, key->domain_id, arena, &context);
    if (err != NULL)
        return err;
    struct run_branches all = branches_read(old, arena);
    branches_store(&(struct run_branches){all.branch, 1}, rebuilt->core, rebuilt->arena);
    rebuilt->core->n_versions = 0; /* they come with the events */
    err = run_rebuild(shard->options.store, shard->partition, old->next_event_id, PAGE_BYTES,
                      &context, rebuilt, arena);
    if (err != NULL)
        return err;
    branches_store(&all, rebuilt->core, rebuilt->arena);
    keep_origin(rebuilt, old);
    return tenure->is_over ? tenure_error(tenure, arena) : NULL;
}

/* No yield. */
static struct error *
replace(struct tenure *tenure, struct workflow *workflow, struct loaded_run *loaded,
        const struct run_key *key, struct run *rebuilt, struct arena *arena, ticket_t *ticket)
{
    struct shard_step wanted = {.key = *key, .needs_run = true, .ignores_activity = true};
    struct step_context *context = arena_make(arena, struct step_context);
    struct error *err = applied_domains_catch_up(tenure, arena);
    if (err == NULL)
        err = tenure_make_context(tenure, &wanted, loaded->run, arena, context);
    if (err == NULL && !writer_has_room(tenure->writer))
        err = errors_service_busy(arena, "", "Too many changes of shard %u are waiting.",
                                  tenure->shard->options.number);
    if (err != NULL)
        return err;
    struct mutation *mutation =
        mutation_begin_replacing(rebuilt, loaded->run, &context->of_run, arena);
    struct step refresh = {.arena = arena,
                           .context = mutation_context(mutation),
                           .domain_id = workflow->domain_id,
                           .workflow_id = workflow->workflow_id,
                           .current = workflow->current,
                           .mutation = mutation};
    err = command_refresh(&refresh);
    check(err == NULL);
    struct step_batch batch;
    step_batch_begin(&batch, tenure, workflow, arena);
    step_batch_add(&batch, mutation, loaded);
    *ticket = step_batch_submit(&batch);
    probe("run_rebuilt");
    return NULL;
}

struct error *
incoming_rebuild(struct tenure *tenure, struct workflow *workflow, struct loaded_run *loaded,
                 struct arena *arena, struct run_rebuilt *outcome, ticket_t *ticket)
{
    const struct run *old = loaded->run;
    struct run_key key = {workflow->domain_id, workflow->workflow_id,
                          arena_text(arena, old->core->run_id)};
    check(workflow->lock.owner == fiber_self());
    check(run_is_open(old) && !run_is_zombie(old) && !tenure->is_over);
    struct run *rebuilt = incoming_name_run(&key);
    struct error *err = read_history(tenure, &key, old->core, rebuilt, arena);
    if (err == NULL && outcome != NULL) {
        outcome->before = run_checksum(old);
        outcome->after = run_checksum(rebuilt);
    }
    if (err == NULL) {
        NO_YIELD
        {
            err = replace(tenure, workflow, loaded, &key, rebuilt, arena, ticket);
        }
    }
    if (err != NULL) /* else the workflow has it */
        run_free(rebuilt);
    return err;
}
