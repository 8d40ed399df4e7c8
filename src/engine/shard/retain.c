/* retain.c - a closed run is deleted when its wake-up timer fires, after the retention of its
 * domain.
 *
 * Its rows go in portions, each a batch of its own, so that a long run does not stop the shard. The
 * first portion says in the core record that the run is going, which hides it from everybody, and
 * takes the current-run record along if the run is still the current one. The last takes the core
 * record and the wake-up timer's row. So a crash in between leaves a run that nobody sees and a
 * wake-up timer that fires again, and a run that fits into one portion goes in one commit.
 *
 * Not while a step of the run is undurable or somebody waits for news of it: the wake-up timer is
 * tried again later. And not before it is in the archive, if its domain wants it there (archive.c),
 * nor before its children were ended as it wanted, for which its records are needed: their domain,
 * or its own, may be active elsewhere for longer than the retention. Then it gets another wake-up
 * timer, which need not be in memory until then. */
#include "engine/shard/retain.h"
#include "base/check.h"
#include "engine/branches/branches.h"
#include "engine/branches/runs.h"
#include "engine/shard/feed_state.h"
#include "engine/shard/inside.h"
#include "engine/shard/outbox_state.h"
#include "engine/shard/recent.h"
#include "engine/shard/wakeups.h"
#include "engine/shard/watches.h"
#include "engine/shard/workflows.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/errors.h"
#include "wire/message.h"

#define PORTION    1000              /* events, or pending rows, that go at a time */
#define LOOK_AGAIN (3600 * NS_PER_S) /* while its children are not ended */

/* One portion of a deletion on its way. */
struct deletion {
    struct tenure *tenure;
    const struct run_key *key;
    struct arena *arena;
    struct workflow *workflow; /* locked */
    struct loaded_run *loaded;
    struct archived archived;
    struct slice pending_to; /* pending rows before this go with the portion; empty: all */
    bool is_last;
    bool is_forced; /* whenever it should have gone */
};

/* --- what is in the way ---- */

static bool
has_children_to_end(const struct deletion *deletion)
{
    uint64_t row = deletion->loaded->run->core->children_row;
#ifdef CADENZA_FAULT_parent_goes_first
    return false;
#endif
    return row != 0 && outbox_may_have(&deletion->tenure->outbox, row);
}

static struct error *
check_idle(const struct deletion *deletion)
{
    struct tenure *tenure = deletion->tenure;
    const STORED(RunRecord) *core = deletion->loaded->run->core;
    bool is_time =
        deletion->is_forced || (core->delete_time <= clock_wall() &&
                                archived_is_all(&deletion->archived, deletion->loaded->run));
    bool are_relatives_notified = !deletion->is_forced || !has_children_to_end(deletion);
    if (is_time && are_relatives_notified && deletion->loaded->undurable == 0 &&
        !watches_has(tenure, core->run_id) && writer_has_room(tenure->writer))
        return NULL;
    probe("deletion_put_off");
    return error_new(deletion->arena, ERR_BUSY, "run %s is still in use", deletion->key->run_id);
}

/* --- the rows ---- */

/* How far the portion reaches into what is pending. Yields. */
static struct error *
find_pending(struct deletion *deletion)
{
    struct shard *shard = deletion->tenure->shard;
    struct slice prefix = run_row_key(deletion->key, deletion->arena);
    struct rows rows;
    struct scan scan = {.partition = shard->partition,
                        .kind = ROW_PENDING,
                        .from = prefix,
                        .to = key_after_prefix(prefix, deletion->arena),
                        .rows_max = PORTION};
    struct error *err = store_scan(shard->options.store, &scan, deletion->arena, &rows);
    if (err != NULL)
        return err;
    deletion->pending_to =
        rows.has_more ? key_after(rows.row[rows.count - 1].key, deletion->arena) : scan.to;
    deletion->is_last = !rows.has_more;
    return NULL;
}

/* Behind the last event of the longest history. */
static int64_t
find_end(const struct run_branches *branches)
{
    int64_t end = 0;
    for (size_t i = 0; i < branches->count; i++) {
        int64_t last = versions_last(branches->branch[i].versions).event_id;
        end = last < end ? end : last + 1;
    }
    return end;
}

/* All histories of the run go from their ends. Each branch of the store is the own one of one. */
static void
put_history(struct deletion *deletion, struct batch *batch)
{
    STORED(RunRecord) *core = deletion->loaded->run->core;
    struct run_branches branches = branches_read(core, deletion->arena);
    int64_t end = core->deleted_from == 0 ? find_end(&branches) : core->deleted_from;
    int64_t from = end > PORTION ? end - PORTION : 1;
    for (size_t i = 0; i < branches.count; i++) {
        struct history_branch own = history_lineage_own(&branches.branch[i].lineage);
        batch_delete_nodes(batch, &own, from);
        recent_forget(deletion->tenure, &own);
    }
    deletion->is_last = deletion->is_last && from == 1;
    core->deleted_from = from;
}

/* A run that is gone is no longer a candidate for its id. */
static void
put_candidates(const struct deletion *deletion, struct batch *batch)
{
    struct workflow *workflow = deletion->workflow;
    struct candidates candidates = candidates_read(workflow->current, deletion->arena);
    size_t count = candidates.count;
    candidates_drop(&candidates, deletion->key->run_id);
    if (candidates.count == count)
        return;
    STORED(CurrentRecord) record = *workflow->current;
    candidates_store(&candidates, &record);
    batch_put(batch, ROW_CURRENT,
              current_key(workflow->domain_id, workflow->workflow_id, deletion->arena),
              message_encode(deletion->arena, &record.base));
    workflow_set_current(workflow, &record);
}

static void
put_current(const struct deletion *deletion, struct batch *batch)
{
    struct workflow *workflow = deletion->workflow;
    const STORED(CurrentRecord) *current = workflow->current;
    if (current == NULL || strcmp(current->run_id, deletion->key->run_id) != 0) {
        put_candidates(deletion, batch);
        return;
    }
    batch_delete(batch, ROW_CURRENT,
                 current_key(workflow->domain_id, workflow->workflow_id, deletion->arena));
    workflow_set_current(workflow, NULL);
}

static void
put_core(const struct deletion *deletion, struct batch *batch)
{
    const struct run *run = deletion->loaded->run;
    if (deletion->is_last) {
        struct slice key = run_row_key(deletion->key, deletion->arena);
        batch_delete_range(batch, ROW_DIVERGENCE, key, key_after_prefix(key, deletion->arena));
        batch_delete(batch, ROW_RUN, key);
        wakeups_drop(deletion->tenure, run, batch);
    } else {
        run_put_row(batch, run);
    }
}

/* Submits the portion. No yield. */
static ticket_t
delete_portion(struct deletion *deletion)
{
    struct tenure *tenure = deletion->tenure;
    check(!run_is_open(deletion->loaded->run) && deletion->loaded->undurable == 0);
    check(deletion->workflow->lock.owner == fiber_self() && !tenure->is_over);
    check(deletion->pending_to.length > 0);
    tenure_renew_range(tenure);
    struct batch *batch = tenure_batch(tenure, deletion->arena);
    struct slice prefix = run_row_key(deletion->key, deletion->arena);
    if (!deletion->loaded->run->core->is_deleting)
        visibility_put_gone(tenure, deletion->key, batch); /* nobody finds it from here on */
#ifndef CADENZA_FAULT_half_deleted_is_seen
    deletion->loaded->run->core->is_deleting = true;
#endif
    batch_delete_range(batch, ROW_PENDING, prefix, deletion->pending_to);
    put_history(deletion, batch);
    put_current(deletion, batch);
    put_core(deletion, batch);
    ticket_t ticket = tenure_submit(tenure, batch);
    struct aftermath *aftermath = workflow_add_aftermath(tenure, deletion->workflow, ticket);
    aftermath_add_run(aftermath, deletion->loaded);
    probe(deletion->is_last ? "run_deleted" : "run_deleted_in_part");
    return ticket;
}

/* --- not yet ---- */

/* Another wake-up timer. No yield. */
static ticket_t
put_off(struct deletion *deletion)
{
    struct tenure *tenure = deletion->tenure;
    struct run *run = deletion->loaded->run;
    check(!run_is_open(run) && !deletion->is_forced);
    tenure_renew_range(tenure);
    struct effects effects = {.alarm_row_old = run->core->alarm_row,
                              .alarm_time_old = run->core->alarm_time,
                              .alarm_row = tenure->ids.next++,
                              .alarm_time = clock_wall() + LOOK_AGAIN};
    run->core->alarm_row = effects.alarm_row;
    run->core->alarm_time = effects.alarm_time;
    struct batch *batch = tenure_batch(tenure, deletion->arena);
    wakeups_put(tenure, run, &effects, batch);
    run_put_row(batch, run);
    ticket_t ticket = tenure_submit(tenure, batch);
    struct aftermath *aftermath = workflow_add_aftermath(tenure, deletion->workflow, ticket);
    aftermath_add_run(aftermath, deletion->loaded);
    probe("deletion_waits_for_children");
    return ticket;
}

/* --- all of it ---- */

/* Is it a closed run that has to go by this wake-up timer? *is_closed is said for others too. */
static bool
is_due(const struct deletion *deletion, uint64_t row, bool *is_closed)
{
    const struct run *run = deletion->loaded == NULL ? NULL : deletion->loaded->run;
    *is_closed = run == NULL || !run_is_open(run);
    bool is_wakeup = deletion->is_forced || (run != NULL && run->core->alarm_row == row);
    return run != NULL && *is_closed && is_wakeup;
}

/* Under the lock. *ticket: of the portion, 0: none is left. Yields. */
static struct error *
delete_locked(struct deletion *deletion, uint64_t row, bool *is_closed, ticket_t *ticket)
{
    struct tenure *tenure = deletion->tenure;
    check(!deletion->is_last && deletion->workflow->lock.owner == fiber_self());
    *ticket = 0;
    struct error *err = workflow_load_current(tenure, deletion->workflow, deletion->arena);
    if (err == NULL)
        err = workflow_load_run(tenure, deletion->workflow, deletion->key->run_id, deletion->arena,
                                &deletion->loaded);
    if (err != NULL || !is_due(deletion, row, is_closed))
        return err;
    err = check_idle(deletion);
    if (err == NULL)
        err = find_pending(deletion);
    if (err == NULL && tenure->is_over)
        err = tenure_error(tenure, deletion->arena);
    if (err == NULL)
        err = check_idle(deletion); /* the scan let others run */
    if (err == NULL) {
        NO_YIELD
        {
            *ticket = has_children_to_end(deletion) ? put_off(deletion) : delete_portion(deletion);
        }
    }
    return err;
}

static struct error *
delete_all(struct deletion *deletion, uint64_t row, bool *is_closed)
{
    struct tenure *tenure = deletion->tenure;
    while (!deletion->is_last) {
        ticket_t ticket;
        struct error *err =
            workflow_lock(tenure, deletion->key, deletion->arena, &deletion->workflow);
        if (err != NULL)
            return err;
        err = delete_locked(deletion, row, is_closed, &ticket);
        workflow_unlock(tenure, deletion->workflow); /* others go on between two portions */
        if (err == NULL && ticket != 0)
            err = tenure_wait(tenure, ticket, deletion->arena);
        if (err != NULL || ticket == 0)
            return err;
    }
    return NULL;
}

struct error *
tenure_delete_closed(struct tenure *tenure, const struct run_key *key, uint64_t row,
                     struct arena *arena, bool *is_closed)
{
    struct deletion deletion = {.tenure = tenure, .key = key, .arena = arena};
    struct error *err = tenure_archive(tenure, key, row, arena, &deletion.archived);
    *is_closed = err == NULL && deletion.archived.is_put_off;
    if (err != NULL || *is_closed)
        return err;
    return delete_all(&deletion, row, is_closed);
}

struct error *
tenure_delete_now(struct tenure *tenure, const struct run_key *key, struct arena *arena)
{
    struct deletion deletion = {.tenure = tenure, .key = key, .arena = arena, .is_forced = true};
    bool is_closed = false;
    struct error *err = delete_all(&deletion, 0, &is_closed);
    if (err == NULL && !is_closed)
        err = error_new(arena, ERR_BUSY, "run %s is open", key->run_id);
    return err;
}
