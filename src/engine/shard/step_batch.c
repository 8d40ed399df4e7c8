/* step_batch.c - all that one step means, as one batch: its runs, the current-run record, rows,
 * wake-up timers.
 *
 * Each run of the step is finished into the batch; then the batch is submitted, and memory learns
 * what it needs to know once the batch is durable. No yields. */
#include "engine/shard/step_batch.h"
#include "base/check.h"
#include "engine/branches/runs.h"
#include "engine/shard/feed_state.h"
#include "engine/shard/inside.h"
#include "engine/shard/outbox_state.h"
#include "engine/shard/outgoing_state.h"
#include "engine/shard/recent.h"
#include "engine/shard/wakeups.h"
#include "engine/shard/watches.h"
#include "engine/shard/workflows.h"
#include "fiber/probe.h"
#include "wire/message.h"

/* Each run is in it once, as the workflow has it or in the place of what it has. */
void
step_batch_check(const struct step_batch *step_batch)
{
    check(step_batch->workflow->lock.owner == fiber_self());
    check(step_batch->count <= STEP_RUNS_MAX && !step_batch->tenure->is_over);
    for (size_t i = 0; i < step_batch->count; i++) {
        const struct step_batch_run *part = &step_batch->runs[i];
        const char *run_id = part->run->core->run_id;
        check(part->loaded == NULL || strcmp(part->loaded->run->core->run_id, run_id) == 0);
        for (size_t j = 0; j < i; j++)
            check(step_batch->runs[j].run != part->run);
    }
}

void
step_batch_begin(struct step_batch *step_batch, struct tenure *tenure, struct workflow *workflow,
                 struct arena *arena)
{
    *step_batch = (struct step_batch){.tenure = tenure,
                                      .workflow = workflow,
                                      .arena = arena,
                                      .batch = tenure_batch(tenure, arena)};
}

void
step_batch_add(struct step_batch *step_batch, struct mutation *mutation, struct loaded_run *loaded)
{
    struct tenure *tenure = step_batch->tenure;
    const struct run *run = mutation_run(mutation);
    check(mutation_context(mutation)->ids == &tenure->ids);
    check(step_batch->count < STEP_RUNS_MAX);
    struct step_batch_run *part = &step_batch->runs[step_batch->count++];
    *part = (struct step_batch_run){.loaded = loaded,
                                    .run = mutation_run(mutation),
                                    .domain = mutation_context(mutation)->domain};
    struct effects *effects = &part->effects;
    mutation_finish(mutation, step_batch->batch, effects);
    check(effects->alarm_row < tenure->ids.next && effects->visible_row < tenure->ids.next);
    wakeups_put(tenure, run, effects, step_batch->batch);
    failing_note(tenure, run, part->domain);
    if (effects->visible_row != 0)
        visibility_enter(tenure, run, mutation_context(mutation)->domain, effects->visible_row,
                         step_batch->arena);
    for (size_t i = 0; i < effects->dropped_count; i++)
        outbox_drop(tenure, effects->dropped[i], step_batch->batch);
}

/* The current-run record that a run means. */
static void
fill_current(const struct run *run, STORED(CurrentRecord) *record)
{
    const STORED(RunRecord) *core = run->core;
    cadenza__storage__v1__current_record__init(record);
    record->format = RUN_RECORD_FORMAT;
    record->run_id = core->run_id;
    record->create_request_id = core->create_request_id;
    if (core->chain_request_id[0] != '\0') {
        record->chain_request_id = core->chain_request_id;
        record->chain_run_id = core->first_execution_run_id;
    }
    record->state = core->state;
    record->close_status = core->close_status;
    record->start_time = core->start_time;
    if (core->n_versions > 0) {
        record->start_version = core->versions[0]->event_version;
        record->last_write_version = core->versions[core->n_versions - 1]->event_version;
    }
    record->last_event_task_id = core->last_event_task_id;
    if (core->active_cluster_selection_policy != NULL)
        record->cluster_attribute = core->active_cluster_selection_policy->cluster_attribute;
}

static bool
current_equals(const STORED(CurrentRecord) *one, const STORED(CurrentRecord) *other)
{
    return one != NULL && strcmp(one->run_id, other->run_id) == 0 &&
           strcmp(one->create_request_id, other->create_request_id) == 0 &&
           one->state == other->state && one->close_status == other->close_status &&
           one->start_version == other->start_version &&
           one->last_write_version == other->last_write_version &&
           one->start_time == other->start_time && candidates_equal(one, other);
}

/* The candidates for the id, with what this step made of them. */
static void
put_candidates(const struct step_batch *step_batch, const struct run *holder,
               STORED(CurrentRecord) *record)
{
    const STORED(CurrentRecord) *before = step_batch->workflow->current;
    bool is_known = before != NULL && before->n_contenders == 0 && step_batch->count == 1 &&
                    step_batch->runs[0].run == holder &&
                    strcmp(before->run_id, holder->core->run_id) == 0;
    if (is_known)
        return; /* most steps: no other run was ever heard of that counts */
    struct candidates candidates = candidates_read(before, step_batch->arena);
    for (size_t i = 0; i < step_batch->count; i++)
        candidates_add(&candidates, step_batch->runs[i].run->core, step_batch->arena);
    candidates_add(&candidates, holder->core, step_batch->arena);
    const char *leader = candidates_leader(&candidates);
    if (leader == NULL || strcmp(leader, holder->core->run_id) != 0)
        probe("current_run_does_not_lead"); /* no step may mean that */
    candidates_store(&candidates, record);
}

void
step_batch_put_current(struct step_batch *step_batch, const struct run *run)
{
    struct workflow *workflow = step_batch->workflow;
    check(workflow->has_current && strcmp(run->core->workflow_id, workflow->workflow_id) == 0);
    STORED(CurrentRecord) record;
    fill_current(run, &record);
    put_candidates(step_batch, run, &record);
    if (current_equals(workflow->current, &record))
        return;
    batch_put(step_batch->batch, ROW_CURRENT,
              current_key(workflow->domain_id, workflow->workflow_id, step_batch->arena),
              message_encode(step_batch->arena, &record.base));
    workflow_set_current(workflow, &record);
}

bool
workflow_has_current(const struct workflow *workflow, const struct run *run)
{
    return workflow->current != NULL && strcmp(run->core->run_id, workflow->current->run_id) == 0;
}

/* The outbox learns of the rows of all runs in rising order. They were numbered as the runs were
 * changed, and a run that gives way is changed last, and comes first in the batch. */
static void
enter_rows(const struct step_batch *step_batch, ticket_t ticket)
{
    struct effects all = {0};
    for (size_t i = 0; i < step_batch->count; i++)
        all.added_count += step_batch->runs[i].effects.added_count;
    all.added = arena_zalloc(step_batch->arena, all.added_count + 1, sizeof *all.added);
    size_t count = 0;
    for (size_t i = 0; i < step_batch->count; i++) {
        const struct effects *effects = &step_batch->runs[i].effects;
        for (size_t j = 0; j < effects->added_count; j++) {
            size_t place = count++;
#ifndef CADENZA_FAULT_rows_enter_by_run /* fault: whatever their numbers */
            for (; place > 0 && all.added[place - 1].row > effects->added[j].row; place--)
                all.added[place] = all.added[place - 1];
            check(place == 0 || all.added[place - 1].row < effects->added[j].row);
#endif
            all.added[place] = effects->added[j];
        }
    }
    check(count == all.added_count);
    outbox_enter(step_batch->tenure, &all, ticket);
}

ticket_t
step_batch_submit(struct step_batch *step_batch)
{
    struct tenure *tenure = step_batch->tenure;
    struct workflow *workflow = step_batch->workflow;
    check(step_batch->count > 0);
    step_batch_check(step_batch);
    replicate_put(step_batch);
    ticket_t ticket = tenure_submit(tenure, step_batch->batch);
    struct aftermath *aftermath = workflow_add_aftermath(tenure, workflow, ticket);
    enter_rows(step_batch, ticket);
    for (size_t i = 0; i < step_batch->count; i++) {
        struct step_batch_run *part = &step_batch->runs[i];
        struct history_branch branch = run_branch(part->run);
        if (run_is_open(part->run))
            recent_add(tenure, &branch, part->effects.nodes, part->effects.node_count, ticket);
        else
            recent_forget(tenure, &branch); /* no decision will ask for it */
        if (part->loaded == NULL)
            part->loaded = workflow_add_run(tenure, workflow, part->run);
        else if (part->loaded->run != part->run)
            workflow_replace_run(part->loaded, part->run);
        aftermath_add_run(aftermath, part->loaded);
    }
    return ticket;
}
