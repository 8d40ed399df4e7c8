/* visible.c - lists of runs are told how a run looks after each step that they have to show.
 *
 * Such a step puts a row, in the same commit. When it is durable, what was seen of the run in that
 * step is handed over, in the order of the rows. The lists keep, together with what they were told,
 * the newest row of each shard, so nothing has to be deleted at once: rows go by ranges, with
 * batches that are written anyway, once the lists would keep them even if the machine crashed.
 *
 * Rows that the lists had no room for stay in the store (unread_from), and so do all that come
 * after them, until a scan has caught up. It hands over each run as it is by then, which is how the
 * row's step left it or newer; what is newer has a row that comes later. Taking a shard is the same
 * case: everything above what the lists have is unread. If they lack rows that are gone (the
 * database was lost, or is an old copy) they are made anew: visible_rebuild.c.
 *
 * Invariants:
 *   1. Rows are handed over in rising order, unless the lists begin anew.
 *   2. trimmed < unread_from: what was not handed over is in the store. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "wire/message.h"

#define TRIM_INTERVAL NS_PER_S
#define RETRY_DELAY   (100 * NS_PER_MS)
#define PAGE_ROWS     200

void
visible_init(struct tenure *tenure)
{
    struct visible *visible = &tenure->visible;
    list_init(&visible->undurable);
    fiber_cond_init(&visible->changed);
    visible->unread_from = 1;
}

static void
forget_undurable(struct visible *visible)
{
    for (struct list *node; (node = list_pop_front(&visible->undurable)) != NULL;)
        memory_free(list_entry(node, struct visible_parcel, node));
}

void
visible_free(struct tenure *tenure)
{
    forget_undurable(&tenure->visible);
}

void
visible_begin(struct tenure *tenure, const STORED(ShardRecord) *record)
{
    struct visible *visible = &tenure->visible;
    visible->trimmed = record == NULL ? 0 : record->visible_level;
    visible->unread_from = visible->trimmed + 1;
    visible->is_without = record != NULL && !record->has_visible;
}

void
visible_note(const struct tenure *tenure, STORED(ShardRecord) *record)
{
    record->visible_level = tenure->visible.trimmed;
#ifdef CADENZA_PLANT_visible_level_forgotten
    record->visible_level = 0;
#endif
    record->has_visible = !tenure->visible.is_without;
}

/* --- steps ---- */

/* What lists have of a run: not the points to reset it to, which nobody looks for there. */
static struct slice
listed_info(const STORED(RunRecord) *core, struct arena *arena)
{
    API(WorkflowExecutionInfo) *info = run_info(core, arena);
    info->auto_reset_points = NULL;
    return message_encode(arena, &info->base);
}

static int32_t
count_clusters(const struct domain *domain)
{
    size_t count = domain == NULL ? 0 : domain->record->domain->n_clusters;
    return count == 0 ? 1 : (int32_t)count;
}

/* Keeps a change until the batch that is being made is durable. */
static void
keep(struct tenure *tenure, const struct visible_change *change)
{
    struct visible_parcel *parcel = visible_pack(change);
    parcel->ticket = writer_newest(tenure->writer) + 1;
    list_push_back(&tenure->visible.undurable, &parcel->node);
}

/* Is the row, which the batch that is being made has, to be left to the store? */
static bool
is_left(struct tenure *tenure, uint64_t row)
{
    struct visible *visible = &tenure->visible;
    if (visible->unread_from == 0)
        return false;
    check(row >= visible->unread_from);
    visible->unread_ticket = writer_newest(tenure->writer) + 1;
    return true;
}

void
visible_enter(struct tenure *tenure, const struct run *run, const struct domain *domain,
              uint64_t row, struct arena *arena)
{
    if (is_left(tenure, row))
        return;
    struct visible_change change = {
        .shard = tenure->shard->options.number,
        .row = row,
        .domain_id = run->core->domain_id,
        .workflow_id = run->core->workflow_id,
        .run_id = run->core->run_id,
        .info = listed_info(run->core, arena),
        .num_clusters = count_clusters(domain),
    };
    keep(tenure, &change);
}

void
visible_put_gone(struct tenure *tenure, const struct run_key *key, struct batch *batch)
{
    check(tenure->ids.next < tenure->ids.end);
    uint64_t row = tenure->ids.next++;
    visible_put_row(batch, key, row);
    if (is_left(tenure, row))
        return;
    struct visible_change change = {
        .shard = tenure->shard->options.number,
        .row = row,
        .domain_id = key->domain_id,
        .workflow_id = key->workflow_id,
        .run_id = key->run_id,
    };
    keep(tenure, &change);
}

void
visible_leave_from(struct tenure *tenure, uint64_t row)
{
    struct visible *visible = &tenure->visible;
    forget_undurable(visible);
    visible->unread_from = row;
    visible->unread_ticket = writer_newest(tenure->writer);
}

bool
visible_hand_over(struct tenure *tenure, struct visible_parcel *parcel)
{
    const struct visible_port *port = &tenure->shard->options.lists;
    uint64_t row = parcel->change.row;
    check(row > tenure->visible.given || parcel->change.is_beginning); /* 1 */
    if (!port->give(port->context, parcel))
        return false;
    tenure->visible.given = row;
    return true;
}

void
visible_release(struct tenure *tenure, ticket_t durable)
{
    struct visible *visible = &tenure->visible;
    while (!list_is_empty(&visible->undurable)) {
        struct visible_parcel *parcel =
            list_entry(visible->undurable.next, struct visible_parcel, node);
        if (parcel->ticket > durable)
            return;
        list_remove(&parcel->node);
        if (visible_hand_over(tenure, parcel))
            continue;
        mark("lists_without_room");
        visible_leave_from(tenure, parcel->change.row);
        memory_free(parcel);
        fiber_cond_broadcast(&visible->changed);
    }
}

bool
visible_give(struct tenure *tenure, const struct run_key *key, const STORED(RunRecord) *core,
             uint64_t row, struct arena *arena)
{
    const struct shard_options *options = &tenure->shard->options;
    struct visible_change change = {
        .shard = options->number,
        .row = row,
        .domain_id = key->domain_id,
        .workflow_id = key->workflow_id,
        .run_id = key->run_id,
        .num_clusters = count_clusters(domains_find_id(options->domains, key->domain_id)),
    };
    if (core != NULL)
        change.info = listed_info(core, arena);
    struct visible_parcel *parcel = visible_pack(&change);
    bool has_room = visible_hand_over(tenure, parcel);
    if (!has_room)
        memory_free(parcel);
    return has_room;
}

/* --- deleting ---- */

void
visible_fill(struct tenure *tenure, struct batch *batch)
{
    struct visible *visible = &tenure->visible;
    uint64_t safe = visible->safe;
    int64_t now = clock_monotonic();
    if (safe <= visible->trimmed || now < visible->trim_time)
        return;
    check(visible->unread_from == 0 || safe < visible->unread_from); /* 2 */
    batch_delete_range(batch, ROW_VISIBLE, visible_key(visible->trimmed + 1, batch->arena),
                       visible_key(safe + 1, batch->arena));
    visible->trimmed = safe;
    visible->trim_time = now + TRIM_INTERVAL;
    tenure->is_record_due = true;
    mark("visible_rows_trimmed");
}

void
shard_visible_told(struct shard *shard, uint64_t fed, uint64_t safe)
{
    struct tenure *tenure = shard->tenure;
    if (tenure == NULL)
        return;
    struct visible *visible = &tenure->visible;
    /* What a tenure before this one handed over may be told late, and is below what we read. */
    visible->fed = fed > visible->fed ? fed : visible->fed;
    visible->safe = safe > visible->safe ? safe : visible->safe;
    if (visible->unread_from != 0 && visible->safe >= visible->unread_from)
        visible->safe = visible->unread_from - 1;
    fiber_cond_broadcast(&visible->changed);
}

/* --- what is in the store only ---- */

/* The record of the row's run as it is now; NULL: the run is gone. Yields. */
static struct error *
load_core(struct tenure *tenure, const struct run_key *key, struct arena *arena,
          STORED(RunRecord) **core)
{
    struct shard *shard = tenure->shard;
    bool found;
    struct slice value;
    *core = NULL;
    struct slice row_key = run_row_key(key, arena);
    struct error *err =
        store_get(shard->options.store, shard->partition, ROW_RUN, row_key, arena, &found, &value);
    if (err != NULL || !found)
        return err;
    err = run_read_row(row_key, value, arena, core);
    if (err == NULL && (*core)->is_deleting)
        *core = NULL; /* as good as gone */
    return err;
}

/* Hands one over. *has_room: it was taken. Yields. */
static struct error *
read_row(struct tenure *tenure, const struct row *row, struct arena *arena, bool *has_room)
{
    struct slice key = row->key;
    uint64_t number;
    STORED(VisibleRow) *stored = NULL;
    STORED(RunRecord) *core;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(visible_row), row->value, &stored);
    if (err != NULL)
        return err;
    if (!key_take_u64(&key, &number))
        return error_new(arena, ERR_CORRUPT, "the key of a row for the lists cannot be read");
    struct run_key run = {stored->domain_id, stored->workflow_id, stored->run_id};
    err = load_core(tenure, &run, arena, &core);
    if (err != NULL || tenure->is_over)
        return err;
    *has_room = visible_give(tenure, &run, core, number, arena);
    if (*has_room)
        tenure->visible.unread_from = number + 1;
    return NULL;
}

/* One page; *has_room: all of it was taken. Yields. */
static struct error *
read_page(struct tenure *tenure, struct arena *arena, bool *has_room)
{
    struct visible *visible = &tenure->visible;
    ticket_t ticket = visible->unread_ticket;
    struct error *err = tenure_wait(tenure, ticket, arena);
    if (err != NULL)
        return err;
    struct rows rows;
    struct scan scan = {.partition = tenure->shard->partition,
                        .kind = ROW_VISIBLE,
                        .from = visible_key(visible->unread_from, arena),
                        .rows_max = PAGE_ROWS};
    err = store_scan(tenure->shard->options.store, &scan, arena, &rows);
    for (size_t i = 0; err == NULL && *has_room && i < rows.count && !tenure->is_over; i++)
        err = read_row(tenure, &rows.row[i], arena, has_room);
    if (rows.count > 0)
        mark("visible_rows_read_back");
    bool is_all = err == NULL && *has_room && !rows.has_more && !tenure->is_over;
    if (is_all && ticket == visible->unread_ticket)
        visible->unread_from = 0; /* none was left meanwhile */
    return err;
}

/* --- the fiber ---- */

/* Finds out what the lists have. Yields. */
static struct error *
begin(struct tenure *tenure, struct arena *arena)
{
    struct visible *visible = &tenure->visible;
    const struct visible_port *port = &tenure->shard->options.lists;
    uint64_t level;
    struct error *err = port->level(port->context, tenure->shard->options.number, arena, &level);
    if (err != NULL || tenure->is_over)
        return err;
    visible->is_begun = true;
    /* Lists that have numbers of ours have them from whoever overtook us. If nobody can, the store
     * is a copy from before: they show a time that has not been. */
    uint64_t own = (tenure->range_first << RANGE_BITS) + 1;
    bool is_ahead = level >= own && tenure->shard->options.is_alone;
    if (level < visible->trimmed || visible->is_without || is_ahead) {
        visible->rebuilds_wanted++;
        return NULL;
    }
    visible->unread_from = level < own ? level + 1 : own;
    return NULL;
}

static bool
has_work(const struct visible *visible)
{
    return visible->unread_from != 0 || visible->rebuilds_wanted > visible->rebuilds_done;
}

/* *next: when there is something to do again at the latest. */
static struct error *
work(struct tenure *tenure, struct arena *arena, int64_t *next)
{
    struct visible *visible = &tenure->visible;
    struct error *err = visible->is_begun ? NULL : begin(tenure, arena);
    if (err == NULL && visible->rebuilds_wanted > visible->rebuilds_done && !tenure->is_over)
        err = visible_rebuild(tenure, arena);
    bool has_room = true;
    if (err == NULL && visible->unread_from != 0 && !tenure->is_over)
        err = read_page(tenure, arena, &has_room);
    *next = has_work(visible) ? clock_monotonic() : NEVER; /* some may have come meanwhile */
    if (err != NULL || !has_room)
        *next = clock_monotonic() + RETRY_DELAY;
    return err;
}

void
visible_fiber(void *argument)
{
    struct tenure *tenure = argument;
    struct visible *visible = &tenure->visible;
    struct arena *arena = arena_new(0);
    enum wake wake = WAKE_READY;
    while (!tenure->is_over && wake != WAKE_CANCELLED) {
        int64_t next = 0;
        struct error *err = work(tenure, arena, &next);
        if (err != NULL && !tenure->is_over)
            log_warn(tenure->shard->options.log, "The lists of runs cannot be brought up to date.",
                     log_number("shard-id", tenure->shard->options.number), log_error(err));
        fiber_cond_broadcast(&visible->changed);
        arena_reset(arena);
        do {
            if (!tenure->is_over && next > clock_monotonic())
                wake = fiber_cond_wait(&visible->changed, next);
        } while (!tenure->is_over && wake == WAKE_READY && !has_work(visible));
    }
    arena_free(arena);
    tenure_leave(tenure);
}

/* --- those who wait ---- */

/* Waits for news of the lists. Yields. */
static struct error *
wait_news(struct tenure *tenure, struct arena *arena)
{
    enum wake wake = fiber_cond_wait(&tenure->visible.changed, NEVER);
    return tenure->is_over ? tenure_error(tenure, arena)
                           : wake_error(wake, arena, "waiting for the lists of runs");
}

static struct error *
wait_for_all(struct tenure *tenure, struct arena *arena)
{
    struct visible *visible = &tenure->visible;
    uint64_t newest = tenure->ids.next - 1;
    struct error *err = tenure_wait(tenure, writer_newest(tenure->writer), arena);
    if (err == NULL)
        err = tenure_check_owned(tenure, arena);
    while (err == NULL && visible->unread_from != 0 && visible->unread_from <= newest)
        err = wait_news(tenure, arena);
    uint64_t given = visible->given;
    while (err == NULL && visible->fed < given)
        err = wait_news(tenure, arena);
    return err;
}

struct error *
shard_visible_wait(struct shard *shard, struct arena *arena)
{
    struct tenure *tenure;
    struct error *err = tenure_enter(shard, 0, arena, &tenure);
    if (err != NULL)
        return err;
    err = wait_for_all(tenure, arena);
    tenure_leave(tenure);
    return err;
}

struct error *
shard_visible_rebuild(struct shard *shard, struct arena *arena, uint64_t *runs)
{
    struct tenure *tenure;
    struct error *err = tenure_enter(shard, 0, arena, &tenure);
    if (err != NULL)
        return err;
    struct visible *visible = &tenure->visible;
    uint64_t wanted = ++visible->rebuilds_wanted;
    fiber_cond_broadcast(&visible->changed);
    while (err == NULL && visible->rebuilds_done < wanted)
        err = wait_news(tenure, arena);
    *runs = visible->rebuilt_runs;
    if (err == NULL)
        err = wait_for_all(tenure, arena);
    tenure_leave(tenure);
    return err;
}
