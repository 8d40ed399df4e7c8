/* zombies.c - a cluster that lost memory has read from the others all that they know: runs that
 * gave way meanwhile and that it wrote last are ended. See shard_end_zombies.
 *
 * While it read, such a run could not be terminated: its real end might have come from the next
 * cluster that was asked. Now nobody has more events of it, and no other cluster ends it, since it
 * is not theirs. */
#include "base/check.h"
#include "engine/shard/context.h"
#include "engine/shard/failover_state.h"
#include "engine/shard/inside.h"
#include "engine/shard/step_batch.h"
#include "engine/shard/workflows.h"
#include "fiber/clock.h"
#include "fiber/probe.h"

#define PAGE_ROWS 256
#define DETAILS   "Another run of the same workflow ID has it, as other clusters know."

/* The lock is held. No yield. */
static struct error *
end_run(struct tenure *tenure, struct workflow *workflow, struct loaded_run *loaded,
        struct arena *arena)
{
    struct shard_step wanted = {
        .key = {workflow->domain_id, workflow->workflow_id, loaded->run->core->run_id},
        .needs_run = true,
        .ignores_activity = true,
    };
    struct step_context *context = arena_make(arena, struct step_context);
    struct error *err = tenure_make_context(tenure, &wanted, loaded->run, arena, context);
    if (err == NULL && !writer_has_room(tenure->writer))
        err = error_new(arena, ERR_UNAVAILABLE, "too many changes are waiting");
    if (err != NULL)
        return err;
    context->of_run.event_version = run_last_version(loaded->run);
    struct step step = {.arena = arena,
                        .context = &context->of_run,
                        .domain_id = workflow->domain_id,
                        .workflow_id = workflow->workflow_id,
                        .current = workflow->current,
                        .mutation = mutation_begin(loaded->run, &context->of_run, arena)};
    probe("lost_zombie_ended");
    command_give_way(&step, DETAILS);
    struct step_batch batch;
    step_batch_begin(&batch, tenure, workflow, arena);
    step_batch_add(&batch, step.mutation, loaded);
    (void)step_batch_submit(&batch);
    return NULL;
}

static bool
is_to_end(const struct tenure *tenure, const struct run *run)
{
    const struct cluster_group *group = tenure->shard->options.group;
    return run_is_zombie(run) &&
           cluster_group_of_version(group, run_last_version(run)) == group->current;
}

static struct error *
end_listed(struct tenure *tenure, const struct run_key *key, struct arena *arena)
{
    struct workflow *workflow;
    struct loaded_run *loaded = NULL;
    struct error *err = workflow_lock(tenure, key, arena, &workflow);
    if (err != NULL)
        return err;
    err = workflow_load_current(tenure, workflow, arena);
    if (err == NULL)
        err = workflow_load_run(tenure, workflow, key->run_id, arena, &loaded);
    bool is_there = err == NULL && !tenure->is_over && loaded != NULL &&
                    !loaded->run->core->is_deleting && is_to_end(tenure, loaded->run);
    if (is_there) {
        NO_YIELD
        {
            err = end_run(tenure, workflow, loaded, arena);
        }
    }
    workflow_unlock(tenure, workflow);
    return err;
}

static struct error *
end_page(struct tenure *tenure, const struct rows *rows, struct arena *arena)
{
    struct error *err = NULL;
    for (size_t i = 0; err == NULL && i < rows->count && !tenure->is_over; i++) {
        scoped(arena_drop) struct arena *own = arena_new(0);
        STORED(RunRecord) *core = NULL;
        err = run_read_row(rows->row[i].key, rows->row[i].value, own, &core);
        if (err == NULL && core->state == CADENZA__STORAGE__V1__RUN_STATE__RUN_STATE_ZOMBIE)
            err = end_listed(
                tenure, &(struct run_key){core->domain_id, core->workflow_id, core->run_id}, own);
        if (err != NULL)
            return error_copy(arena, err);
    }
    return NULL;
}

struct error *
shard_end_zombies(struct shard *shard, struct arena *arena)
{
    struct tenure *tenure;
    struct scan scan = {.partition = shard->partition, .kind = ROW_RUN, .rows_max = PAGE_ROWS};
    struct rows rows = {.has_more = true};
    struct error *err = tenure_enter(shard, 0, arena, &tenure);
    if (err != NULL)
        return err;
    while (err == NULL && rows.has_more && !tenure->is_over) {
        err = store_scan(shard->options.store, &scan, arena, &rows);
        if (err == NULL && rows.count > 0) {
            err = end_page(tenure, &rows, arena);
            scan.from = key_after(rows.row[rows.count - 1].key, arena);
        }
    }
    if (err == NULL)
        err = tenure_wait(tenure, writer_newest(tenure->writer), arena);
    tenure_leave(tenure);
    return err;
}
