/* repair.c - a run goes at an operator's word, if what is stored of it cannot be right (E-077).
 *
 * Corrupt is: its records cannot be read, or contradict each other; its history lacks its first
 * event or another one, or does not fit together; it is open, and no record says that it is the
 * current one; it is the current one, and is not there. All of it is found and deleted under the
 * lock of its workflow id, in one batch, so a run that is well is never touched. Its parent and
 * children are not notified: what a corrupt run would have told is not known. Rows that name it
 * find nobody and go.
 */
#include "base/check.h"
#include "engine/branches/branches.h"
#include "engine/incoming/incoming.h"
#include "engine/run/rebuild.h"
#include "engine/shard/context.h"
#include "engine/shard/feed_state.h"
#include "engine/shard/inside.h"
#include "engine/shard/recent.h"
#include "engine/shard/wakeups.h"
#include "engine/shard/workflows.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "store/key.h"

#define PAGE_BYTES   ((size_t)1 << 20)
#define ROWS_AT_ONCE 100
#define PAUSE_FIRST  (5 * NS_PER_MS) /* doubled each time */
#define PAUSE_MOST   (200 * NS_PER_MS)

struct repair {
    struct tenure *tenure;
    struct run_key key; /* with the run that is meant; "": there is none */
    struct arena *arena;
    struct workflow *workflow; /* locked */
    struct loaded_run *loaded; /* NULL: cannot be read, or is not there */
    STORED(RunRecord) *record; /* the same, if at least that can be read; NULL: no */
    bool is_current;           /* the current-run record names it, or nobody */
    bool is_corrupt;
    bool is_tree_shared; /* nobody knows which histories of its tree are its own */
};

/* Under the lock of the id, in every phase. */
static void
repair_check(const struct repair *repair)
{
    const struct loaded_run *loaded = repair->loaded;
    check(repair->workflow->lock.owner == fiber_self());
    check(loaded == NULL || strcmp(loaded->run->core->run_id, repair->key.run_id) == 0);
    check(loaded == NULL || repair->record == NULL);
    /* Only of a run that nobody can read it is asked whose the tree is. */
    check(!repair->is_tree_shared || (loaded == NULL && repair->record == NULL));
    check(!repair->is_corrupt || repair->is_current || repair->key.run_id[0] != '\0');
}

/* --- what is wrong ---- */

/* Takes note of bytes that are not what they should be; other errors remain. */
static struct error *
note_damage(struct repair *repair, struct error *err)
{
    if (err == NULL || err->kind != ERR_CORRUPT)
        return err;
    repair->is_corrupt = true;
    return NULL;
}

static struct error *
look_at_current(struct repair *repair)
{
    struct workflow *workflow = repair->workflow;
    struct error *err = workflow_load_current(repair->tenure, workflow, repair->arena);
    err = note_damage(repair, err);
    if (err != NULL)
        return err;
    const STORED(CurrentRecord) *current = repair->is_corrupt ? NULL : workflow->current;
    if (repair->key.run_id[0] == '\0' && current != NULL)
        repair->key.run_id = arena_text(repair->arena, current->run_id);
    repair->is_current =
        repair->is_corrupt || (current != NULL && strcmp(current->run_id, repair->key.run_id) == 0);
    return NULL;
}

/* Makes the run again from its history. Yields. */
static struct error *
look_at_history(struct repair *repair)
{
    struct shard *shard = repair->tenure->shard;
    const struct run *run = repair->loaded->run;
    struct run_context context;
    struct error *err =
        tenure_read_context(repair->tenure, repair->key.domain_id, repair->arena, &context);
    if (err != NULL)
        return err;
    struct run_branches all = branches_read(run->core, repair->arena);
    struct run *again = incoming_name_run(&repair->key);
    check(!repair->is_corrupt && all.count > 0);
    branches_store(&(struct run_branches){all.branch, 1}, again->core, again->arena);
    again->core->n_versions = 0; /* they come with the events */
    err = run_rebuild(shard->options.store, shard->partition, run->core->next_event_id, PAGE_BYTES,
                      &context, again, repair->arena);
    run_free(again);
    return note_damage(repair, err);
}

/* Yields. Error also: ERR_BUSY, it is being written. */
static struct error *
look_at_run(struct repair *repair)
{
    struct workflow *workflow = repair->workflow;
    struct error *err = workflow_load_run(repair->tenure, workflow, repair->key.run_id,
                                          repair->arena, &repair->loaded);
    bool was_corrupt = repair->is_corrupt;
    repair->is_corrupt = false;
    err = note_damage(repair, err);
    bool is_unreadable = repair->is_corrupt;
    repair->is_corrupt = was_corrupt || is_unreadable;
    if (err != NULL || is_unreadable)
        return err;
    if (repair->loaded == NULL) {
        repair->is_corrupt = repair->is_current;
        return NULL;
    }
    const struct run *run = repair->loaded->run;
    if (run->core->is_deleting) { /* on its way out, as it should be */
        repair->is_corrupt = false;
        return NULL;
    }
    err = tenure_wait(repair->tenure, workflow->newest, repair->arena);
    if (err == NULL && repair->loaded->undurable != 0)
        err = error_new(repair->arena, ERR_BUSY, "run %s is in use", repair->key.run_id);
    if (err != NULL)
        return err;
    if (run_is_open(run) && !run_is_zombie(run) && !was_corrupt && workflow->current == NULL)
        repair->is_corrupt = true;
    return repair->is_corrupt ? NULL : look_at_history(repair);
}

/* --- its rows ---- */

/* Has another run of the workflow id the same tree, as those have that a reset made? Or may it?
 * Yields. */
static struct error *
look_at_tree(struct repair *repair, const struct uuid *tree)
{
    struct shard *shard = repair->tenure->shard;
    struct slice own = run_row_key(&repair->key, repair->arena);
    /* what the rows of all runs of the id begin with */
    struct slice prefix =
        current_key(repair->key.domain_id, repair->key.workflow_id, repair->arena);
    struct rows rows = {.has_more = true};
    struct scan scan = {.partition = shard->partition,
                        .kind = ROW_RUN,
                        .from = prefix,
                        .to = key_after_prefix(prefix, repair->arena),
                        .rows_max = ROWS_AT_ONCE};
    while (rows.has_more && !repair->is_tree_shared) {
        struct error *err = store_scan(shard->options.store, &scan, repair->arena, &rows);
        if (err != NULL)
            return err;
        check(rows.count > 0 || !rows.has_more); /* it comes to an end */
        for (size_t i = 0; i < rows.count; i++) {
            STORED(RunRecord) *core = NULL;
            if (slice_equal(rows.row[i].key, own))
                continue;
            err = run_read_row(rows.row[i].key, rows.row[i].value, repair->arena, &core);
            if (err != NULL || slice_equal(slice_of(core->tree_id.data, core->tree_id.len),
                                           slice_of(tree->bytes, sizeof tree->bytes)))
                repair->is_tree_shared = true;
        }
        if (rows.count > 0)
            scan.from = key_after(rows.row[rows.count - 1].key, repair->arena);
    }
    return NULL;
}

/* What says where its history is, where the run as a whole cannot be read. Yields. */
static struct error *
read_record(struct repair *repair)
{
    struct shard *shard = repair->tenure->shard;
    bool found;
    struct slice value;
    struct slice row_key = run_row_key(&repair->key, repair->arena);
    struct error *err = store_get(shard->options.store, shard->partition, ROW_RUN, row_key,
                                  repair->arena, &found, &value);
    if (err != NULL)
        return err;
    if (found)
        err = run_read_row(row_key, value, repair->arena, &repair->record);
    if (found && err == NULL && repair->record->tree_id.len == sizeof(struct uuid) &&
        repair->record->branch_id.len == sizeof(struct uuid))
        return NULL;
    struct uuid tree;
    repair->record = NULL;
    return uuid_parse(slice_text(repair->key.run_id), &tree) ? look_at_tree(repair, &tree) : NULL;
}

/* Of a record that nobody can read the history is in the tree that begins with the run. */
static void
put_tree(struct repair *repair, struct batch *batch)
{
    struct uuid tree;
    struct key_writer key;
    if (repair->is_tree_shared || !uuid_parse(slice_text(repair->key.run_id), &tree))
        return;
    key_begin(&key, repair->arena);
    key_uuid(&key, tree);
    struct slice prefix = key_end(&key);
    batch_delete_range(batch, ROW_HISTORY, prefix, key_after_prefix(prefix, repair->arena));
}

static void
put_history(struct repair *repair, struct batch *batch)
{
    const STORED(RunRecord) *core =
        repair->loaded != NULL ? repair->loaded->run->core : repair->record;
    if (core == NULL) {
        put_tree(repair, batch);
        return;
    }
    struct run_branches all = branches_read(core, repair->arena);
    for (size_t i = 0; i < all.count; i++) {
        struct history_branch own = history_lineage_own(&all.branch[i].lineage);
        batch_delete_nodes(batch, &own, 1);
        recent_forget(repair->tenure, &own);
    }
}

static void
put_run(struct repair *repair, struct batch *batch)
{
    struct slice prefix = run_row_key(&repair->key, repair->arena);
    struct slice to = key_after_prefix(prefix, repair->arena);
    visibility_put_gone(repair->tenure, &repair->key, batch);
    batch_delete_range(batch, ROW_PENDING, prefix, to);
    batch_delete_range(batch, ROW_DIVERGENCE, prefix, to);
    batch_delete(batch, ROW_RUN, prefix);
    put_history(repair, batch);
    if (repair->loaded == NULL)
        return;
    if (repair->loaded->run->core->alarm_row != 0)
        wakeups_drop(repair->tenure, repair->loaded->run, batch);
    repair->loaded->run->core->is_deleting = true;
}

/* Submits it. No yield. */
static ticket_t
put_all(struct repair *repair)
{
    struct tenure *tenure = repair->tenure;
    struct workflow *workflow = repair->workflow;
    check(repair->is_corrupt && !tenure->is_over);
    repair_check(repair);
    check(workflow->lock.owner == fiber_self());
    check(repair->loaded == NULL || repair->loaded->undurable == 0);
    tenure_renew_range(tenure);
    struct batch *batch = tenure_batch(tenure, repair->arena);
    if (repair->key.run_id[0] != '\0')
        put_run(repair, batch);
    if (repair->is_current) {
        batch_delete(batch, ROW_CURRENT,
                     current_key(workflow->domain_id, workflow->workflow_id, repair->arena));
        workflow_set_current(workflow, NULL);
    }
    ticket_t ticket = tenure_submit(tenure, batch);
    struct aftermath *aftermath = workflow_add_aftermath(tenure, workflow, ticket);
    if (repair->loaded != NULL)
        aftermath_add_run(aftermath, repair->loaded);
    probe("corrupt_run_removed");
    return ticket;
}

/* --- all of it ---- */

/* Under the lock. *ticket is 0: nothing was wrong. Yields. */
static struct error *
repair_locked(struct repair *repair, ticket_t *ticket)
{
    struct tenure *tenure = repair->tenure;
    *ticket = 0;
    struct error *err = look_at_current(repair);
    if (err == NULL && repair->key.run_id[0] != '\0')
        err = look_at_run(repair);
    if (err == NULL && repair->is_corrupt && repair->loaded == NULL)
        err = read_record(repair);
    if (err == NULL)
        err = tenure_check_owned(tenure, repair->arena);
    if (err != NULL || !repair->is_corrupt)
        return err;
    if (!writer_has_room(tenure->writer))
        return error_new(repair->arena, ERR_BUSY, "the shard is busy");
    NO_YIELD
    {
        *ticket = put_all(repair);
    }
    return NULL;
}

static struct error *
repair_once(struct shard *shard, const struct run_key *key, struct arena *arena,
            struct shard_repaired *repaired, bool *may_try)
{
    struct repair repair = {.key = *key, .arena = arena};
    ticket_t ticket = 0;
    *repaired = (struct shard_repaired){0};
    *may_try = false;
    struct error *err = tenure_enter(shard, 0, arena, &repair.tenure);
    if (err != NULL)
        return err;
    err = workflow_lock(repair.tenure, key, arena, &repair.workflow);
    if (err == NULL) {
        err = repair_locked(&repair, &ticket);
        workflow_unlock(repair.tenure, repair.workflow);
    }
    if (err == NULL && ticket != 0)
        err = tenure_wait(repair.tenure, ticket, arena);
    if (err == NULL && ticket != 0)
        *repaired =
            (struct shard_repaired){.was_corrupt = true, .is_history_left = repair.is_tree_shared};
    bool is_lost = repair.tenure->is_over && !shard->is_closing;
    *may_try = err != NULL && (err->kind == ERR_BUSY || is_lost);
    tenure_leave(repair.tenure);
    return err;
}

struct error *
shard_repair(struct shard *shard, const struct run_key *key, struct arena *arena,
             struct shard_repaired *repaired)
{
    int64_t pause = PAUSE_FIRST;
    for (;;) {
        bool may_try;
        struct error *err = repair_once(shard, key, arena, repaired, &may_try);
        if (!may_try)
            return err;
        err = fiber_sleep(pause, arena);
        if (err != NULL)
            return err;
        pause = pause * 2 < PAUSE_MOST ? pause * 2 : PAUSE_MOST;
    }
}
