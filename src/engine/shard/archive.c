/* archive.c - a closed run goes into the archive before it is deleted, if its domain wants that.
 *
 * The run is looked at under the lock, and archived without it: archives may be slow. What was
 * looked at is remembered and compared when the run is deleted, so that only what is durable there
 * goes. An archive that fails must not hold up anything else, for however long: the run's wake-up
 * timer is moved to a later time, in the store, so that neither the memory nor the slots of wake-up
 * timers that fire are full of them. Few at a time are archived, and what is too much waits its
 * turn.
 *
 * How late: half as long again as it has waited, so that nobody counts attempts. */
#include "base/check.h"
#include "engine/shard/inside.h"
#include "engine/shard/retain.h"
#include "engine/shard/wakeups.h"
#include "engine/shard/workflows.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/errors.h"
#include "wire/message.h"

#define ARCHIVING_MAX  4   /* runs of a shard at a time */
#define DELAYED_MAX    256 /* wake-up timers that may wait in memory for their turn */
#define PAGE_BYTES     (1u * 1024 * 1024)
#define PUT_OFF_MIN    (30 * NS_PER_S)
#define PUT_OFF_MAX    (3600 * NS_PER_S)
#define LOG_INTERVAL   (60 * NS_PER_S)
#define IS_ENABLED(it) ((it) == API_VALUE(ARCHIVAL_STATUS__ARCHIVAL_STATUS_ENABLED))

/* One run on its way. */
struct preservation {
    struct tenure *tenure;
    const struct run_key *key;
    uint64_t row; /* of the wake-up timer that fires */
    struct arena *arena;
    struct workflow *workflow; /* locked */
    struct loaded_run *loaded;
    struct history_branch branch;
    struct archive_run run;
};

static int64_t
version_of(const STORED(RunRecord) *core)
{
    return core->n_versions == 0 ? 0 : core->versions[core->n_versions - 1]->event_version;
}

bool
archived_is_all(const struct archived *archived, const struct run *run)
{
    const STORED(RunRecord) *core = run->core;
    return !archived->is_needed || core->is_deleting ||
           (archived->next_event_id == core->next_event_id &&
            archived->event_version == version_of(core));
}

/* --- looking ---- */

/* What the domain wants; false: nothing. */
static bool
is_wanted(struct preservation *preservation)
{
    const struct shard_options *options = &preservation->tenure->shard->options;
    const struct domain *domain = domains_find_id(options->domains, preservation->key->domain_id);
    if (domain == NULL)
        return false;
    const API(Domain) *record = domain->record->domain;
    struct arena *arena = preservation->arena;
    preservation->run.domain_name = arena_text(arena, domain->name);
    if (IS_ENABLED(record->history_archival_status))
        preservation->run.history_uri = arena_text(arena, record->history_archival_uri);
    if (IS_ENABLED(record->visibility_archival_status))
        preservation->run.visibility_uri = arena_text(arena, record->visibility_archival_uri);
    return preservation->run.history_uri != NULL || preservation->run.visibility_uri != NULL;
}

/* The run, if the wake-up timer still is its own and it waits to be deleted; NULL: it does not. */
static struct error *
load_closed(struct preservation *preservation)
{
    struct tenure *tenure = preservation->tenure;
    struct error *err = workflow_load_run(tenure, preservation->workflow, preservation->key->run_id,
                                          preservation->arena, &preservation->loaded);
    if (err != NULL || preservation->loaded == NULL)
        return err;
    const struct run *run = preservation->loaded->run;
    if (run_is_open(run) || run->core->alarm_row != preservation->row || run->core->is_deleting ||
        run->core->delete_time > clock_wall())
        preservation->loaded = NULL;
    else if (preservation->loaded->undurable > 0)
        err = error_new(preservation->arena, ERR_BUSY, "run %s is still in use",
                        preservation->key->run_id);
    return err;
}

static void
copy_run(struct preservation *preservation)
{
    const struct run *run = preservation->loaded->run;
    struct archive_run *copy = &preservation->run;
    copy->domain_id = preservation->key->domain_id;
    copy->workflow_id = preservation->key->workflow_id;
    copy->run_id = preservation->key->run_id;
    copy->event_version = version_of(run->core);
    copy->next_event_id = run->core->next_event_id;
    copy->info =
        message_encode(preservation->arena, &run_info(run->core, preservation->arena)->base);
    copy->shard = preservation->tenure->shard->options.number;
    copy->range_id = preservation->tenure->range_id;
    preservation->branch = run_branch(run);
}

/* Yields. *is_found: there is something to archive. */
static struct error *
look_at_run(struct preservation *preservation, bool *is_found)
{
    struct tenure *tenure = preservation->tenure;
    struct error *err =
        workflow_lock(tenure, preservation->key, preservation->arena, &preservation->workflow);
    if (err != NULL)
        return err;
    err = load_closed(preservation);
    *is_found = err == NULL && preservation->loaded != NULL;
    if (*is_found)
        copy_run(preservation);
    workflow_unlock(tenure, preservation->workflow);
    return err;
}

/* --- putting off ---- */

static void
log_failure(struct preservation *preservation, const struct error *failure)
{
    struct shard *shard = preservation->tenure->shard;
    probe("archive_put_off");
    if (clock_monotonic() < shard->archive_log_time)
        return;
    shard->archive_log_time = clock_monotonic() + LOG_INTERVAL;
    log_warn(shard->options.log, "A run cannot be archived; it is kept and tried again later.",
             log_text("domain", preservation->run.domain_name),
             log_text("workflow-id", preservation->key->workflow_id),
             log_text("run-id", preservation->key->run_id), log_error(failure));
}

static int64_t
later_time(const STORED(RunRecord) *core)
{
    int64_t now = clock_wall(), delay = (now - core->delete_time) / 2;
    delay = delay < PUT_OFF_MIN ? PUT_OFF_MIN : delay > PUT_OFF_MAX ? PUT_OFF_MAX : delay;
    return now + delay;
}

/* Submits the later wake-up timer. No yield. */
static ticket_t
move_wakeup(struct preservation *preservation)
{
    struct tenure *tenure = preservation->tenure;
    struct run *run = preservation->loaded->run;
    check(!run_is_open(run) && run->core->alarm_row == preservation->row);
    check(preservation->loaded->undurable == 0);
    STORED(RunRecord) *core = run->core;
    tenure_renew_range(tenure);
    struct batch *batch = tenure_batch(tenure, preservation->arena);
    struct effects effects = {.alarm_time_old = core->alarm_time,
                              .alarm_row_old = core->alarm_row,
                              .alarm_time = later_time(core),
                              .alarm_row = tenure->ids.next++};
    core->alarm_time = effects.alarm_time;
    core->alarm_row = effects.alarm_row;
    wakeups_put(tenure, run, &effects, batch);
    run_put_row(batch, run);
    ticket_t ticket = tenure_submit(tenure, batch);
    struct aftermath *aftermath = workflow_add_aftermath(tenure, preservation->workflow, ticket);
    aftermath_add_run(aftermath, preservation->loaded);
    return ticket;
}

/* Yields. Errors: the wake-up timer is tried again as any other. */
static struct error *
put_off(struct preservation *preservation)
{
    struct tenure *tenure = preservation->tenure;
    struct arena *arena = preservation->arena;
    ticket_t ticket = 0;
    struct error *err = workflow_lock(tenure, preservation->key, arena, &preservation->workflow);
    if (err != NULL)
        return err;
    err = load_closed(preservation);
    if (err == NULL && tenure->is_over)
        err = tenure_error(tenure, arena);
    if (err == NULL && !writer_has_room(tenure->writer))
        err = error_new(arena, ERR_BUSY, "no room for a commit");
    if (err == NULL && preservation->loaded != NULL) {
        NO_YIELD
        {
            ticket = move_wakeup(preservation);
        }
    }
    workflow_unlock(tenure, preservation->workflow);
    return err == NULL && ticket != 0 ? tenure_wait(tenure, ticket, arena) : err;
}

/* --- all of it ---- */

static struct error *
read_batches(void *context, int64_t from_event_id, struct arena *arena, struct history_page *page)
{
    const struct preservation *preservation = context;
    const struct shard *shard = preservation->tenure->shard;
    return store_read_history_on(shard->options.store, shard->partition, &preservation->branch,
                                 from_event_id, preservation->run.next_event_id, PAGE_BYTES, arena,
                                 page);
}

/* Yields. */
static struct error *
put_run(struct preservation *preservation)
{
    struct shard *shard = preservation->tenure->shard;
    const struct archive_port *port = &shard->options.archive;
    if (shard->archiving >= ARCHIVING_MAX)
        return error_new(preservation->arena, ERR_BUSY, "enough runs are being archived");
    preservation->run.read = read_batches;
    preservation->run.context = preservation;
    shard->archiving++;
    struct error *err = port->put(port->context, &preservation->run, preservation->arena);
    check(shard->archiving > 0 && shard->archiving <= ARCHIVING_MAX);
    shard->archiving--;
#ifdef CADENZA_FAULT_deleted_unarchived
    err = NULL;
#endif
    return err;
}

/* Is it to be tried again soon, by the wake-up timer that fired? */
static bool
is_passing(const struct tenure *tenure, const struct error *err)
{
    return tenure->is_over || err->kind == ERR_CANCELLED ||
           (err->kind == ERR_BUSY && tenure->wakeups.delayed_count < DELAYED_MAX);
}

struct error *
tenure_archive(struct tenure *tenure, const struct run_key *key, uint64_t row, struct arena *arena,
               struct archived *archived)
{
    struct preservation preservation = {.tenure = tenure, .key = key, .row = row, .arena = arena};
    bool is_found = false;
    *archived = (struct archived){0};
    if (tenure->shard->options.archive.put == NULL || !is_wanted(&preservation))
        return NULL;
    struct error *err = look_at_run(&preservation, &is_found);
    if (err != NULL || !is_found)
        return err;
    archived->is_needed = true;
    err = put_run(&preservation);
    if (err == NULL) {
        archived->next_event_id = preservation.run.next_event_id;
        archived->event_version = preservation.run.event_version;
        probe("run_archived");
        return NULL;
    }
    if (is_passing(tenure, err))
        return err;
    log_failure(&preservation, err);
    archived->is_put_off = true;
    return put_off(&preservation);
}
