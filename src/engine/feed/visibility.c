/* visibility.c - visibility is told how a run looks after each step that it has to show.
 *
 * Such a step puts a row, in the same commit. When it is durable, what was seen of the run in that
 * step is handed over, in the order of the rows. Visibility keeps the newest row of each shard
 * together with what it was told, so nothing has to be deleted at once: rows go by ranges, with
 * batches that are written anyway, once visibility would keep them even if the machine crashed.
 *
 * Rows that visibility had no room for stay in the store (unread_from), and so do all that come
 * after them, until a scan has caught up. It hands over each run as it is by then, which is how the
 * row's step left it or newer; what is newer has a row that comes later. Taking a shard is the same
 * case: everything above what visibility has is unread. If visibility lacks rows that are gone (its
 * database was lost, or is an old copy), the shard's part of it is rebuilt: rebuild.c.
 *
 * What is handed over may get lost on its way, and visibility then refuses all that comes behind
 * it. So who has handed over something and hears of no progress for a while begins again: it asks
 * what visibility has, and reads the rest from the store.
 *
 * Invariants:
 *   1. Rows are handed over in rising order, unless visibility starts over.
 *   2. trimmed < unread_from: what was not handed over is in the store.
 *   3. While there are unread rows, none is in memory. */
#include "engine/feed/visibility.h"
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/feed_state.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define TRIM_INTERVAL NS_PER_S
#define RETRY_DELAY   (100 * NS_PER_MS)
#define PAGE_ROWS     200
#define DOUBTS_MAX    3
#define STALL_DELAY   (5 * NS_PER_S) /* visibility is fed, or says that it cannot be, much sooner */

void
visibility_feed_check(const struct visibility_feed *visibility_feed)
{
    check(visibility_feed->rebuilds_done <= visibility_feed->rebuilds_wanted);
    check(visibility_feed->unread_from == 0 || list_is_empty(&visibility_feed->undurable));
    if (!CHECK_DEEPLY)
        return;
    ticket_t ticket = 0;
    uint64_t row = 0;
    list_each(node, &visibility_feed->undurable) {
        const struct visibility_update *update = list_entry(node, struct visibility_update, node);
        check(update->ticket >= ticket && update->change.row > row); /* 1 */
        ticket = update->ticket;
        row = update->change.row;
    }
}

/* Has nothing been heard for long? */
static void
look_for_stall(struct timer *timer)
{
    struct visibility_feed *visibility_feed = container_of(timer, struct visibility_feed, stall);
    if (visibility_feed->fed >= visibility_feed->given)
        return;
    int64_t due = visibility_feed->heard + STALL_DELAY;
    if (due > clock_monotonic()) {
        timer_start(timer, due);
        return;
    }
    visibility_feed->is_stalled = true;
    fiber_cond_broadcast(&visibility_feed->changed);
}

/* Something is handed over and not fed. */
static void
watch_for_stall(struct visibility_feed *visibility_feed)
{
    if (timer_is_pending(&visibility_feed->stall))
        return;
    visibility_feed->heard = clock_monotonic();
    timer_start(&visibility_feed->stall, visibility_feed->heard + STALL_DELAY);
}

void
visibility_init(struct tenure *tenure)
{
    struct visibility_feed *visibility_feed = &tenure->visibility_feed;
    list_init(&visibility_feed->undurable);
    fiber_cond_init(&visibility_feed->changed);
    timer_init(&visibility_feed->stall, look_for_stall);
    visibility_feed->unread_from = 1;
}

static void
forget_undurable(struct visibility_feed *visibility_feed)
{
    for (struct list *node; (node = list_pop_front(&visibility_feed->undurable)) != NULL;)
        memory_free(list_entry(node, struct visibility_update, node));
}

void
visibility_free(struct tenure *tenure)
{
    forget_undurable(&tenure->visibility_feed);
    timer_stop(&tenure->visibility_feed.stall);
}

void
visibility_begin(struct tenure *tenure, const STORED(ShardRecord) *record)
{
    struct visibility_feed *visibility_feed = &tenure->visibility_feed;
    check(!visibility_feed->is_begun && visibility_feed->handed == 0); /* it comes first */
    visibility_feed->trimmed = record == NULL ? 0 : record->visible_level;
    visibility_feed->unread_from = visibility_feed->trimmed + 1;
    visibility_feed->is_without = record != NULL && !record->has_visible;
}

void
visibility_note(const struct tenure *tenure, STORED(ShardRecord) *record)
{
    record->visible_level = tenure->visibility_feed.trimmed;
#ifdef CADENZA_FAULT_visible_level_forgotten
    record->visible_level = 0;
#endif
    record->has_visible = !tenure->visibility_feed.is_without;
}

/* --- steps ---- */

/* What visibility has of a run: not the points to reset it to, which nobody looks for there. */
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
    struct visibility_update *update = visibility_update_new(change);
    check(tenure->visibility_feed.unread_from == 0 && change->row < tenure->ids.next);
    update->ticket = writer_newest(tenure->writer) + 1;
    list_push_back(&tenure->visibility_feed.undurable, &update->node);
}

/* Is the row, which the batch that is being made has, to be left to the store? */
static bool
is_left(struct tenure *tenure, uint64_t row)
{
    struct visibility_feed *visibility_feed = &tenure->visibility_feed;
    if (visibility_feed->unread_from == 0)
        return false;
    check(row >= visibility_feed->unread_from);
    visibility_feed->unread_ticket = writer_newest(tenure->writer) + 1;
    return true;
}

void
visibility_enter(struct tenure *tenure, const struct run *run, const struct domain *domain,
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
visibility_put_gone(struct tenure *tenure, const struct run_key *key, struct batch *batch)
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
visibility_leave_from(struct tenure *tenure, uint64_t row)
{
    struct visibility_feed *visibility_feed = &tenure->visibility_feed;
    check(row != 0); /* 0 says that none is left */
    forget_undurable(visibility_feed);
    visibility_feed->unread_from = row;
    visibility_feed->unread_ticket = writer_newest(tenure->writer);
}

bool
visibility_hand_over(struct tenure *tenure, struct visibility_update *update)
{
    const struct visible_port *port = &tenure->shard->options.visibility;
    struct visibility_feed *visibility_feed = &tenure->visibility_feed;
    uint64_t row = update->change.row;
    check(row > visibility_feed->given || update->change.is_beginning); /* 1 */
    update->after = visibility_feed->given;
    if (!port->give(port->context, update))
        return false;
    if (visibility_feed->fed >= visibility_feed->given)
        visibility_feed->heard = clock_monotonic(); /* this one waits from now on */
    visibility_feed->given = row;
    visibility_feed->handed = row > visibility_feed->handed ? row : visibility_feed->handed;
    watch_for_stall(visibility_feed);
    return true;
}

void
visibility_release(struct tenure *tenure, ticket_t durable)
{
    struct visibility_feed *visibility_feed = &tenure->visibility_feed;
    check(durable <= writer_durable(tenure->writer)); /* visibility shows what cannot get lost */
    while (!list_is_empty(&visibility_feed->undurable)) {
        struct visibility_update *update =
            list_entry(visibility_feed->undurable.next, struct visibility_update, node);
        if (update->ticket > durable)
            return;
        list_remove(&update->node);
        if (visibility_hand_over(tenure, update))
            continue;
        probe("visibility_without_room");
        visibility_leave_from(tenure, update->change.row);
        memory_free(update);
        fiber_cond_broadcast(&visibility_feed->changed);
    }
}

bool
visibility_give(struct tenure *tenure, const struct run_key *key, const STORED(RunRecord) *core,
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
    struct visibility_update *update = visibility_update_new(&change);
    bool has_room = visibility_hand_over(tenure, update);
    if (!has_room)
        memory_free(update);
    return has_room;
}

/* --- deleting ---- */

void
visibility_fill(struct tenure *tenure, struct batch *batch)
{
    struct visibility_feed *visibility_feed = &tenure->visibility_feed;
    uint64_t safe = visibility_feed->safe;
    int64_t now = clock_monotonic();
    if (safe <= visibility_feed->trimmed || now < visibility_feed->trim_time)
        return;
    check(visibility_feed->unread_from == 0 || safe < visibility_feed->unread_from); /* 2 */
    batch_delete_range(batch, ROW_VISIBLE, visible_key(visibility_feed->trimmed + 1, batch->arena),
                       visible_key(safe + 1, batch->arena));
    visibility_feed->trimmed = safe;
    visibility_feed->trim_time = now + TRIM_INTERVAL;
    tenure->is_record_due = true;
    probe("visible_rows_trimmed");
}

static void
note_stored(struct visibility_feed *visibility_feed, uint64_t fed, uint64_t safe)
{
    /* What a tenure before this one handed over may be told late, and is below what we read. */
    if (fed > visibility_feed->fed) {
        visibility_feed->fed = fed;
        visibility_feed->heard = clock_monotonic();
        visibility_feed->is_stalled = false;
        if (fed < visibility_feed->given)
            watch_for_stall(visibility_feed);
    }
    visibility_feed->safe = safe > visibility_feed->safe ? safe : visibility_feed->safe;
    if (visibility_feed->unread_from != 0 && visibility_feed->safe >= visibility_feed->unread_from)
        visibility_feed->safe = visibility_feed->unread_from - 1;
    fiber_cond_broadcast(&visibility_feed->changed);
}

void
shard_visibility_stored(struct shard *shard, uint64_t fed, uint64_t safe)
{
    struct tenure *tenure = shard->tenure;
    shard_check(shard);
    if (tenure == NULL)
        return;
    note_stored(&tenure->visibility_feed, fed, safe);
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
        return error_new(arena, ERR_CORRUPT, "the key of a row for visibility cannot be read");
    struct run_key run = {stored->domain_id, stored->workflow_id, stored->run_id};
    err = load_core(tenure, &run, arena, &core);
    if (err != NULL || tenure->is_over)
        return err;
    check(number >= tenure->visibility_feed.unread_from);
    *has_room = visibility_give(tenure, &run, core, number, arena);
    if (*has_room)
        tenure->visibility_feed.unread_from = number + 1;
    return NULL;
}

/* One page; *has_room: all of it was taken. Yields. */
static struct error *
read_page(struct tenure *tenure, struct arena *arena, bool *has_room)
{
    struct visibility_feed *visibility_feed = &tenure->visibility_feed;
    ticket_t ticket = visibility_feed->unread_ticket;
    check(visibility_feed->unread_from != 0 && visibility_feed->is_begun);
    check(*has_room);
    struct error *err = tenure_wait(tenure, ticket, arena);
    if (err != NULL)
        return err;
    struct rows rows;
    struct scan scan = {.partition = tenure->shard->partition,
                        .kind = ROW_VISIBLE,
                        .from = visible_key(visibility_feed->unread_from, arena),
                        .rows_max = PAGE_ROWS};
    err = store_scan(tenure->shard->options.store, &scan, arena, &rows);
    for (size_t i = 0; err == NULL && *has_room && i < rows.count && !tenure->is_over; i++)
        err = read_row(tenure, &rows.row[i], arena, has_room);
    if (rows.count > 0)
        probe("visible_rows_read_back");
    bool is_all = err == NULL && *has_room && !rows.has_more && !tenure->is_over;
    if (is_all && ticket == visibility_feed->unread_ticket)
        visibility_feed->unread_from = 0; /* none was left meanwhile */
    return err;
}

/* --- the fiber ---- */

/* Something that was handed over may have got lost: what visibility does not show yet is left to
 * the store, until it is known again what it has. */
static void
begin_again(struct tenure *tenure)
{
    struct visibility_feed *visibility_feed = &tenure->visibility_feed;
    uint64_t level = visibility_feed->fed;
    level = level < visibility_feed->trimmed ? visibility_feed->trimmed : level; /* 2 */
    visibility_feed->is_stalled = false;
    if (visibility_feed->fed >= visibility_feed->given) /* it has come meanwhile */
        return;
    probe("visibility_begun_again");
    visibility_feed->is_begun = false;
    if (visibility_feed->unread_from == 0 || visibility_feed->unread_from > level + 1)
        visibility_leave_from(tenure, level + 1);
}

/* Visibility lacks rows that are gone. But they were handed over by this tenure, a rebuild of many
 * runs among them: only after a while they count as lost. */
static bool
may_come_yet(const struct visibility_feed *visibility_feed, const struct visible_level *level)
{
    return level->newest < visibility_feed->trimmed &&
           visibility_feed->handed >= visibility_feed->trimmed &&
           visibility_feed->doubts < DOUBTS_MAX;
}

/* Finds out what visibility has. Yields. */
static struct error *
begin(struct tenure *tenure, struct arena *arena)
{
    struct visibility_feed *visibility_feed = &tenure->visibility_feed;
    const struct visible_port *port = &tenure->shard->options.visibility;
    check(!visibility_feed->is_begun && visibility_feed->unread_from != 0);
    struct visible_level level;
    struct error *err = port->level(port->context, tenure->shard->options.number, arena, &level);
    if (err != NULL || tenure->is_over)
        return err;
    if (may_come_yet(visibility_feed, &level)) {
        visibility_feed->doubts++;
        return error_new(arena, ERR_BUSY, "what was handed over is on its way to visibility");
    }
    visibility_feed->is_begun = true;
    visibility_feed->doubts = 0;
    /* If visibility has numbers of ours that we did not hand over, it has them from an owner that
     * overtook us. If nobody can, the store is a copy from before: it shows a time that has not
     * been. */
    uint64_t own = (tenure->range_first << RANGE_BITS) + 1;
    own = own <= visibility_feed->handed ? visibility_feed->handed + 1 : own;
    bool is_ahead = level.newest >= own && tenure->shard->options.is_alone;
    if (level.newest < visibility_feed->trimmed || visibility_feed->is_without || is_ahead) {
        visibility_feed->rebuilds_wanted++;
        return NULL;
    }
    visibility_feed->given = level.newest < own ? level.newest : own - 1;
    visibility_feed->unread_from = visibility_feed->given + 1;
    note_stored(visibility_feed, level.fed, level.safe);
    if (visibility_feed->fed < visibility_feed->given)
        watch_for_stall(visibility_feed);
    return NULL;
}

static bool
has_work(const struct visibility_feed *visibility_feed)
{
    return visibility_feed->unread_from != 0 || visibility_feed->is_stalled ||
           visibility_feed->rebuilds_wanted > visibility_feed->rebuilds_done;
}

/* *next: when there is something to do again at the latest. */
static struct error *
work(struct tenure *tenure, struct arena *arena, int64_t *next)
{
    struct visibility_feed *visibility_feed = &tenure->visibility_feed;
    if (visibility_feed->is_stalled)
        begin_again(tenure);
    struct error *err = visibility_feed->is_begun ? NULL : begin(tenure, arena);
    if (err == NULL && visibility_feed->rebuilds_wanted > visibility_feed->rebuilds_done &&
        !tenure->is_over)
        err = visibility_rebuild(tenure, arena);
    bool has_room = true;
    if (err == NULL && visibility_feed->unread_from != 0 && !tenure->is_over)
        err = read_page(tenure, arena, &has_room);
    *next =
        has_work(visibility_feed) ? clock_monotonic() : NEVER; /* some may have come meanwhile */
    bool is_lost = !visibility_feed->is_begun && visibility_feed->given > 0; /* begin_again */
    if (err != NULL || !has_room)
        *next = clock_monotonic() + (is_lost ? STALL_DELAY : RETRY_DELAY);
    return err;
}

void
visibility_fiber(void *argument)
{
    struct tenure *tenure = argument;
    struct visibility_feed *visibility_feed = &tenure->visibility_feed;
    struct arena *arena = arena_new(0);
    enum wake wake = WAKE_READY;
    while (!tenure->is_over && wake != WAKE_CANCELLED) {
        int64_t next = 0;
        struct error *err = work(tenure, arena, &next);
        if (err != NULL && !tenure->is_over)
            log_warn(tenure->shard->options.log,
                     "Visibility of a shard cannot be brought up to date.",
                     log_number("shard-id", tenure->shard->options.number), log_error(err));
        fiber_cond_broadcast(&visibility_feed->changed);
        arena_reset(arena);
        do {
            if (!tenure->is_over && next > clock_monotonic())
                wake = fiber_cond_wait(&visibility_feed->changed, next);
        } while (!tenure->is_over && wake == WAKE_READY && !has_work(visibility_feed));
    }
    arena_free(arena);
    tenure_leave(tenure);
}

/* --- those who wait ---- */

/* Waits for news of visibility. Yields. */
static struct error *
wait_change(struct tenure *tenure, struct arena *arena)
{
    enum wake wake = fiber_cond_wait(&tenure->visibility_feed.changed, NEVER);
    return tenure->is_over ? tenure_error(tenure, arena)
                           : wake_error(wake, arena, "waiting for visibility");
}

static struct error *
wait_for_all(struct tenure *tenure, struct arena *arena)
{
    struct visibility_feed *visibility_feed = &tenure->visibility_feed;
    uint64_t newest = tenure->ids.next - 1;
    struct error *err = tenure_wait(tenure, writer_newest(tenure->writer), arena);
    if (err == NULL)
        err = tenure_check_owned(tenure, arena);
    while (err == NULL && visibility_feed->unread_from != 0 &&
           visibility_feed->unread_from <= newest)
        err = wait_change(tenure, arena);
    uint64_t given = visibility_feed->given;
    while (err == NULL && visibility_feed->fed < given)
        err = wait_change(tenure, arena);
    return err;
}

struct error *
shard_visibility_wait(struct shard *shard, struct arena *arena)
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
shard_visibility_rebuild(struct shard *shard, struct arena *arena, uint64_t *runs)
{
    struct tenure *tenure;
    struct error *err = tenure_enter(shard, 0, arena, &tenure);
    if (err != NULL)
        return err;
    struct visibility_feed *visibility_feed = &tenure->visibility_feed;
    uint64_t wanted = ++visibility_feed->rebuilds_wanted;
    fiber_cond_broadcast(&visibility_feed->changed);
    while (err == NULL && visibility_feed->rebuilds_done < wanted)
        err = wait_change(tenure, arena);
    *runs = visibility_feed->rebuilt_runs;
    if (err == NULL)
        err = wait_for_all(tenure, arena);
    tenure_leave(tenure);
    return err;
}
