/* mend.c - a run goes at an operator's word, if what is stored of it cannot be right (E-077).
 *
 * Corrupt is: its records cannot be read, or contradict each other; its history lacks its first
 * event or another one, or does not fit together; it is open, and no record says that it is the
 * current one; it is the current one, and is not there. All of it is found and deleted under the
 * lock of its workflow id, in one batch, so a run that is well is never touched. Its family hears
 * nothing: what a corrupt run would have told is not known. Rows that name it find nobody and go.
 */
#include "base/check.h"
#include "engine/ndc/branches.h"
#include "engine/run/rebuild.h"
#include "engine/shard/inside.h"
#include "engine/shard/ndc.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "store/key.h"

#define PAGE_BYTES   ((size_t)1 << 20)
#define ROWS_AT_ONCE 100
#define PAUSE_FIRST  (5 * NS_PER_MS) /* doubled each time */
#define PAUSE_MOST   (200 * NS_PER_MS)

struct mending {
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

/* --- what is wrong ---- */

/* Takes note of bytes that are not what they should be; other errors remain. */
static struct error *
note_damage(struct mending *mending, struct error *err)
{
    if (err == NULL || err->kind != ERR_CORRUPT)
        return err;
    mending->is_corrupt = true;
    return NULL;
}

static struct error *
look_at_current(struct mending *mending)
{
    struct workflow *workflow = mending->workflow;
    struct error *err = workflow_load_current(mending->tenure, workflow, mending->arena);
    err = note_damage(mending, err);
    if (err != NULL)
        return err;
    const STORED(CurrentRecord) *current = mending->is_corrupt ? NULL : workflow->current;
    if (mending->key.run_id[0] == '\0' && current != NULL)
        mending->key.run_id = arena_text(mending->arena, current->run_id);
    mending->is_current = mending->is_corrupt ||
                          (current != NULL && strcmp(current->run_id, mending->key.run_id) == 0);
    return NULL;
}

/* Makes the run again from its history. Yields. */
static struct error *
look_at_history(struct mending *mending)
{
    struct shard *shard = mending->tenure->shard;
    const struct run *run = mending->loaded->run;
    struct facts facts;
    struct error *err =
        tenure_read_facts(mending->tenure, mending->key.domain_id, mending->arena, &facts);
    if (err != NULL)
        return err;
    struct run_branches all = branches_read(run->core, mending->arena);
    struct run *again = incoming_name_run(&mending->key);
    branches_store(&(struct run_branches){all.branch, 1}, again->core, again->arena);
    again->core->n_versions = 0; /* they come with the events */
    err = run_rebuild(shard->options.store, shard->partition, run->core->next_event_id, PAGE_BYTES,
                      &facts, again, mending->arena);
    run_free(again);
    return note_damage(mending, err);
}

/* Yields. Error also: ERR_BUSY, it is being written. */
static struct error *
look_at_run(struct mending *mending)
{
    struct workflow *workflow = mending->workflow;
    struct error *err = workflow_load_run(mending->tenure, workflow, mending->key.run_id,
                                          mending->arena, &mending->loaded);
    bool was_corrupt = mending->is_corrupt;
    mending->is_corrupt = false;
    err = note_damage(mending, err);
    bool is_unreadable = mending->is_corrupt;
    mending->is_corrupt = was_corrupt || is_unreadable;
    if (err != NULL || is_unreadable)
        return err;
    if (mending->loaded == NULL) {
        mending->is_corrupt = mending->is_current;
        return NULL;
    }
    const struct run *run = mending->loaded->run;
    if (run->core->is_deleting) { /* on its way out, as it should be */
        mending->is_corrupt = false;
        return NULL;
    }
    err = tenure_wait(mending->tenure, workflow->newest, mending->arena);
    if (err == NULL && mending->loaded->undurable != 0)
        err = error_new(mending->arena, ERR_BUSY, "run %s is in use", mending->key.run_id);
    if (err != NULL)
        return err;
    if (run_is_open(run) && !run_is_zombie(run) && !was_corrupt && workflow->current == NULL)
        mending->is_corrupt = true;
    return mending->is_corrupt ? NULL : look_at_history(mending);
}

/* --- its rows ---- */

/* Has another run of the workflow id the same tree, as those have that a reset made? Or may it?
 * Yields. */
static struct error *
look_at_tree(struct mending *mending, const struct uuid *tree)
{
    struct shard *shard = mending->tenure->shard;
    struct slice own = run_row_key(&mending->key, mending->arena);
    /* what the rows of all runs of the id begin with */
    struct slice prefix =
        current_key(mending->key.domain_id, mending->key.workflow_id, mending->arena);
    struct rows rows = {.has_more = true};
    struct scan scan = {.partition = shard->partition,
                        .kind = ROW_RUN,
                        .from = prefix,
                        .to = key_after_prefix(prefix, mending->arena),
                        .rows_max = ROWS_AT_ONCE};
    while (rows.has_more && !mending->is_tree_shared) {
        struct error *err = store_scan(shard->options.store, &scan, mending->arena, &rows);
        if (err != NULL)
            return err;
        for (size_t i = 0; i < rows.count; i++) {
            STORED(RunRecord) *core = NULL;
            if (slice_equal(rows.row[i].key, own))
                continue;
            err = run_read_row(rows.row[i].key, rows.row[i].value, mending->arena, &core);
            if (err != NULL || slice_equal(slice_of(core->tree_id.data, core->tree_id.len),
                                           slice_of(tree->bytes, sizeof tree->bytes)))
                mending->is_tree_shared = true;
        }
        if (rows.count > 0)
            scan.from = key_after(rows.row[rows.count - 1].key, mending->arena);
    }
    return NULL;
}

/* What says where its history is, where the run as a whole cannot be read. Yields. */
static struct error *
read_record(struct mending *mending)
{
    struct shard *shard = mending->tenure->shard;
    bool found;
    struct slice value;
    struct slice row_key = run_row_key(&mending->key, mending->arena);
    struct error *err = store_get(shard->options.store, shard->partition, ROW_RUN, row_key,
                                  mending->arena, &found, &value);
    if (err != NULL)
        return err;
    if (found)
        err = run_read_row(row_key, value, mending->arena, &mending->record);
    if (found && err == NULL && mending->record->tree_id.len == sizeof(struct uuid) &&
        mending->record->branch_id.len == sizeof(struct uuid))
        return NULL;
    struct uuid tree;
    mending->record = NULL;
    return uuid_parse(slice_text(mending->key.run_id), &tree) ? look_at_tree(mending, &tree) : NULL;
}

/* Of a record that nobody can read the history is in the tree that begins with the run. */
static void
put_tree(struct mending *mending, struct batch *batch)
{
    struct uuid tree;
    struct key_writer key;
    if (mending->is_tree_shared || !uuid_parse(slice_text(mending->key.run_id), &tree))
        return;
    key_begin(&key, mending->arena);
    key_uuid(&key, tree);
    struct slice prefix = key_end(&key);
    batch_delete_range(batch, ROW_HISTORY, prefix, key_after_prefix(prefix, mending->arena));
}

static void
put_history(struct mending *mending, struct batch *batch)
{
    const STORED(RunRecord) *core =
        mending->loaded != NULL ? mending->loaded->run->core : mending->record;
    if (core == NULL) {
        put_tree(mending, batch);
        return;
    }
    struct run_branches all = branches_read(core, mending->arena);
    for (size_t i = 0; i < all.count; i++) {
        struct history_branch own = history_line_own(&all.branch[i].line);
        batch_delete_nodes(batch, &own, 1);
        recent_forget(mending->tenure, &own);
    }
}

static void
put_run(struct mending *mending, struct batch *batch)
{
    struct slice prefix = run_row_key(&mending->key, mending->arena);
    struct slice to = key_after_prefix(prefix, mending->arena);
    visible_put_gone(mending->tenure, &mending->key, batch);
    batch_delete_range(batch, ROW_PENDING, prefix, to);
    batch_delete_range(batch, ROW_DIVERGENCE, prefix, to);
    batch_delete(batch, ROW_RUN, prefix);
    put_history(mending, batch);
    if (mending->loaded == NULL)
        return;
    if (mending->loaded->run->core->alarm_row != 0)
        alarms_drop(mending->tenure, mending->loaded->run, batch);
    mending->loaded->run->core->is_deleting = true;
}

/* Submits it. No yield. */
static ticket_t
put_all(struct mending *mending)
{
    struct tenure *tenure = mending->tenure;
    struct workflow *workflow = mending->workflow;
    check(mending->is_corrupt);
    check(mending->loaded == NULL || mending->loaded->undurable == 0);
    tenure_renew_range(tenure);
    struct batch *batch = tenure_batch(tenure, mending->arena);
    if (mending->key.run_id[0] != '\0')
        put_run(mending, batch);
    if (mending->is_current) {
        batch_delete(batch, ROW_CURRENT,
                     current_key(workflow->domain_id, workflow->workflow_id, mending->arena));
        workflow_set_current(workflow, NULL);
    }
    ticket_t ticket = tenure_submit(tenure, batch);
    struct aftermath *aftermath = workflow_add_aftermath(tenure, workflow, ticket);
    if (mending->loaded != NULL)
        aftermath_add_run(aftermath, mending->loaded);
    mark("corrupt_run_removed");
    return ticket;
}

/* --- all of it ---- */

/* Under the lock. *ticket is 0: nothing was wrong. Yields. */
static struct error *
mend_locked(struct mending *mending, ticket_t *ticket)
{
    struct tenure *tenure = mending->tenure;
    *ticket = 0;
    struct error *err = look_at_current(mending);
    if (err == NULL && mending->key.run_id[0] != '\0')
        err = look_at_run(mending);
    if (err == NULL && mending->is_corrupt && mending->loaded == NULL)
        err = read_record(mending);
    if (err == NULL)
        err = tenure_check_owned(tenure, mending->arena);
    if (err != NULL || !mending->is_corrupt)
        return err;
    if (!writer_has_room(tenure->writer))
        return error_new(mending->arena, ERR_BUSY, "the shard is busy");
    NO_YIELD
    {
        *ticket = put_all(mending);
    }
    return NULL;
}

static struct error *
mend_once(struct shard *shard, const struct run_key *key, struct arena *arena,
          struct shard_mended *mended, bool *may_try)
{
    struct mending mending = {.key = *key, .arena = arena};
    ticket_t ticket = 0;
    *mended = (struct shard_mended){0};
    *may_try = false;
    struct error *err = tenure_enter(shard, 0, arena, &mending.tenure);
    if (err != NULL)
        return err;
    err = workflow_lock(mending.tenure, key, arena, &mending.workflow);
    if (err == NULL) {
        err = mend_locked(&mending, &ticket);
        workflow_unlock(mending.tenure, mending.workflow);
    }
    if (err == NULL && ticket != 0)
        err = tenure_wait(mending.tenure, ticket, arena);
    if (err == NULL && ticket != 0)
        *mended =
            (struct shard_mended){.was_corrupt = true, .is_history_left = mending.is_tree_shared};
    bool is_lost = mending.tenure->is_over && !shard->is_closing;
    *may_try = err != NULL && (err->kind == ERR_BUSY || is_lost);
    tenure_leave(mending.tenure);
    return err;
}

struct error *
shard_mend(struct shard *shard, const struct run_key *key, struct arena *arena,
           struct shard_mended *mended)
{
    int64_t pause = PAUSE_FIRST;
    for (;;) {
        bool may_try;
        struct error *err = mend_once(shard, key, arena, mended, &may_try);
        if (!may_try)
            return err;
        err = fiber_sleep(pause, arena);
        if (err != NULL)
            return err;
        pause = pause * 2 < PAUSE_MOST ? pause * 2 : PAUSE_MOST;
    }
}
