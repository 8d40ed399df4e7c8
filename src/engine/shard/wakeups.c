/* wakeups.c - one wake-up timer per run: in the store as a row, in memory while it may fire soon.
 *
 * A run's core record names its wake-up timer (time and number of the row), so the run itself says
 * which row is to be deleted when another takes its place: rows in the store and wake-up timers in
 * memory need not agree for that. A wake-up timer that fires and is not the run's any more is
 * stale, and forgotten.
 *
 * Memory is bounded by a horizon: wake-up timers before it are in memory, later ones may be in the
 * store only and are read when memory runs low. Too many: the latest go, and the horizon comes
 * nearer. While a scan runs, new wake-up timers come into memory wherever they lie, since the scan
 * may not see them; it waits first until those of before are durable.
 *
 * A wake-up timer may fire before the step that set it is durable: its own step is behind that one
 * in the log, so what comes of it is durable later, or both are lost.
 *
 * Invariants:
 *   1. Every row before the horizon whose run names it is in memory, but for those that are not
 *      active here and were left (from `left` on).
 *   2. No row is before `level`. A row that has to be (the wall clock was set back) lowers it, and
 *      the batch that has the row has the shard record with the lower level, too. */
#include "engine/shard/wakeups.h"
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "engine/shard/metrics.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/message.h"

#define RETRY_DELAY_MIN (50 * NS_PER_MS)
#define RETRY_DELAY_MAX (10 * NS_PER_S)
/* The level stays so far behind the clock: one that is set back by less, or a next owner whose
 * clock is behind ours by less, need not lower it. */
#define LEVEL_SLACK (600 * NS_PER_S)

void
wakeups_init(struct tenure *tenure, size_t count_max)
{
    struct wakeups *wakeups = &tenure->wakeups;
    check(count_max >= 4); /* a quarter of it is used */
    wakeups->waiting = tree_new();
    wakeups->by_row = map64_new();
    wakeups->count_max = count_max;
    wakeups->left = WAKEUP_POSITION_END;
    wakeups->left_domains = map_new();
    list_init(&wakeups->delayed);
    list_init(&wakeups->held);
    list_init(&wakeups->firing);
    fiber_cond_init(&wakeups->changed);
}

void
wakeups_free(struct tenure *tenure)
{
    struct wakeups *wakeups = &tenure->wakeups;
    check(wakeups->firing_count == 0 && list_is_empty(&wakeups->firing));
    check(!wakeups->is_reading);
    size_t cursor = 0;
    void *value;
    while (map64_next(wakeups->by_row, &cursor, NULL, &value))
        memory_free(value);
    map64_free(wakeups->by_row);
    map_free(wakeups->left_domains);
    tree_free(wakeups->waiting);
}

/* --- places ---- */

static struct slice
position_key(struct wakeup_position position, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_i64(&key, position.time);
    key_u64(&key, position.row);
    return key_end(&key);
}

static int64_t
earlier(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

static struct wakeup_position
wakeup_position(const struct wakeup *wakeup)
{
    return (struct wakeup_position){wakeup->time, wakeup->row};
}

static bool
is_before(struct wakeup_position one, struct wakeup_position other)
{
    return one.time != other.time ? one.time < other.time : one.row < other.row;
}

/* --- invariants ---- */

/* One list: how many there are, their state, and that none is before the level. */
static void
wakeup_list_check(const struct wakeups *wakeups, const struct list *list, enum wakeup_state state,
                  size_t count)
{
    list_each(node, list) {
        const struct wakeup *wakeup = list_entry(node, struct wakeup, node);
        const struct wakeup *known = map64_get(wakeups->by_row, wakeup->row);
        check(wakeup->state == state && wakeup->time >= wakeups->level); /* 2 */
        check(wakeup->is_gone ? known != wakeup : known == wakeup);
        check(!wakeup->is_gone || state == WAKEUP_FIRING);
        check(count-- > 0);
    }
    check(count == 0);
}

static void
waiting_check(const struct wakeups *wakeups)
{
    for (struct tree_row *row = tree_first(wakeups->waiting); row != NULL; row = tree_next(row)) {
        const struct wakeup *wakeup = row->value;
        check(wakeup->state == WAKEUP_WAITING && list_is_empty(&wakeup->node));
        check(wakeup->time >= wakeups->level); /* 2 */
        check(map64_get(wakeups->by_row, wakeup->row) == wakeup);
    }
}

void
wakeups_check(const struct wakeups *wakeups)
{
    size_t known = map64_count(wakeups->by_row), waiting = tree_count(wakeups->waiting);
    size_t listed = waiting + wakeups->delayed_count + wakeups->held_count;
    check(known >= listed && known <= listed + wakeups->firing_count); /* some fire and are gone */
    check(wakeups->held_count <= wakeups->count_max);
    check(wakeups->is_reading || waiting <= wakeups->count_max);
    check(wakeups->horizon.time >= wakeups->level && wakeups->left.time >= wakeups->level);
    if (!CHECK_DEEPLY || known > CHECK_ROWS_MAX)
        return;
    const struct tree_row *last = tree_last(wakeups->waiting);
    check(last == NULL || wakeups->is_reading ||
          is_before(wakeup_position(last->value), wakeups->horizon)); /* 1 */
    waiting_check(wakeups);
    wakeup_list_check(wakeups, &wakeups->delayed, WAKEUP_DELAYED, wakeups->delayed_count);
    wakeup_list_check(wakeups, &wakeups->held, WAKEUP_HELD, wakeups->held_count);
    wakeup_list_check(wakeups, &wakeups->firing, WAKEUP_FIRING, wakeups->firing_count);
}

/* --- wake-up timers in memory ---- */

static struct wakeup *
wakeup_new(struct tenure *tenure, struct wakeup_position position, const struct run_key *key)
{
    size_t domain_size = strlen(key->domain_id) + 1, id_size = strlen(key->workflow_id) + 1;
    size_t run_size = strlen(key->run_id) + 1;
    check(position.row != 0);
    struct wakeup *wakeup = memory_zalloc(1, sizeof *wakeup + domain_size + id_size + run_size);
    char *text = (char *)(wakeup + 1);
    wakeup->key.domain_id = memcpy(text, key->domain_id, domain_size);
    wakeup->key.workflow_id = memcpy(text + domain_size, key->workflow_id, id_size);
    wakeup->key.run_id = memcpy(text + domain_size + id_size, key->run_id, run_size);
    wakeup->tenure = tenure;
    wakeup->time = position.time;
    wakeup->row = position.row;
    list_init(&wakeup->node);
    return wakeup;
}

static void
wakeup_wait(struct wakeup *wakeup)
{
    struct arena *arena = arena_new(128);
    check(list_is_empty(&wakeup->node));
    wakeup->state = WAKEUP_WAITING;
    struct wakeup *before = tree_put(wakeup->tenure->wakeups.waiting,
                                     position_key(wakeup_position(wakeup), arena), wakeup);
    check(before == NULL);
    arena_free(arena);
}

void
wakeup_stop_waiting(struct wakeup *wakeup)
{
    struct arena *arena = arena_new(128);
    check(wakeup->state == WAKEUP_WAITING);
    struct wakeup *removed =
        tree_remove(wakeup->tenure->wakeups.waiting, position_key(wakeup_position(wakeup), arena));
    check(removed == wakeup);
    arena_free(arena);
}

void
wakeup_delay(struct wakeup *wakeup)
{
    struct wakeups *wakeups = &wakeup->tenure->wakeups;
    check(list_is_empty(&wakeup->node) && !wakeup->is_gone);
    check(wakeup->state == WAKEUP_FIRING);
    int64_t delay = RETRY_DELAY_MIN << (wakeup->attempts < 8 ? wakeup->attempts : 8);
    wakeup->attempts++;
    wakeup->state = WAKEUP_DELAYED;
    wakeup->retry_time = clock_monotonic() + earlier(delay, RETRY_DELAY_MAX);
    list_push_back(&wakeups->delayed, &wakeup->node);
    wakeups->delayed_count++;
    fiber_cond_signal(&wakeups->changed);
    probe("wakeup_delayed");
}

/* Takes a wake-up timer out of memory, wherever it is. */
static void
wakeup_forget(struct wakeup *wakeup)
{
    struct wakeup *removed = map64_remove(wakeup->tenure->wakeups.by_row, wakeup->row);
    check(removed == wakeup && !wakeup->is_gone);
    if (wakeup->state == WAKEUP_FIRING) {
        wakeup->is_gone = true;
        return;
    }
    if (wakeup->state == WAKEUP_WAITING)
        wakeup_stop_waiting(wakeup);
    if (wakeup->state == WAKEUP_DELAYED)
        wakeup->tenure->wakeups.delayed_count--;
    if (wakeup->state == WAKEUP_HELD)
        wakeup->tenure->wakeups.held_count--;
    list_remove(&wakeup->node);
    memory_free(wakeup);
}

/* The latest quarter goes; the horizon comes nearer. */
static void
wakeups_trim(struct tenure *tenure)
{
    struct wakeups *wakeups = &tenure->wakeups;
    if (wakeups->is_reading || tree_count(wakeups->waiting) <= wakeups->count_max)
        return;
    probe("wakeups_beyond_memory");
    while (tree_count(wakeups->waiting) > wakeups->count_max - wakeups->count_max / 4) {
        struct wakeup *wakeup = tree_last(wakeups->waiting)->value;
        if (is_before(wakeup_position(wakeup), wakeups->horizon))
            wakeups->horizon = wakeup_position(wakeup);
        wakeup_forget(wakeup);
    }
    check(tree_count(wakeups->waiting) <= wakeups->count_max);
}

static void
wakeups_add(struct tenure *tenure, struct wakeup_position position, const struct run_key *key)
{
    struct wakeups *wakeups = &tenure->wakeups;
    if (!is_before(position, wakeups->horizon) && !wakeups->is_reading)
        return; /* the store has it */
    struct wakeup *wakeup = wakeup_new(tenure, position, key);
    struct wakeup *before = map64_put(wakeups->by_row, position.row, wakeup);
    check(before == NULL && position.time >= wakeups->level); /* 2 */
    wakeup_wait(wakeup);
    if (tree_first(wakeups->waiting)->value == wakeup)
        fiber_cond_signal(&wakeups->changed);
    wakeups_trim(tenure);
}

/* --- rows ---- */

static struct slice
wakeup_row_value(const struct run *run, int64_t time, struct arena *arena)
{
    const STORED(RunRecord) *core = run->core;
    STORED(TimerRow) *row = message_new(arena, STORED_TYPE(timer_row));
    row->format = RUN_RECORD_FORMAT;
    row->domain_id = core->domain_id;
    row->workflow_id = core->workflow_id;
    row->run_id = core->run_id;
    if (core->n_versions > 0)
        row->event_version = core->versions[core->n_versions - 1]->event_version;
    row->due_time = time;
    return message_encode(arena, &row->base);
}

/* The row goes with the batch, and is forgotten. */
static void
wakeups_delete(struct tenure *tenure, struct wakeup_position position, struct batch *batch)
{
#ifndef CADENZA_FAULT_wakeup_row_stays
    batch_delete(batch, ROW_TIMER, position_key(position, batch->arena));
#endif
    struct wakeup *wakeup = map64_get(tenure->wakeups.by_row, position.row);
    if (wakeup != NULL)
        wakeup_forget(wakeup);
}

void
wakeups_drop(struct tenure *tenure, const struct run *run, struct batch *batch)
{
    struct wakeup_position position = {run->core->alarm_time, run->core->alarm_row};
    check(position.row != 0);
    wakeups_delete(tenure, position, batch);
}

/* Nothing is before the old level, so there is nothing to read; and the horizon is behind it, so
 * that the wake-up timer comes into memory. */
static void
wakeups_lower_level(struct tenure *tenure, int64_t time)
{
    struct wakeups *wakeups = &tenure->wakeups;
    struct shard *shard = tenure->shard;
    int64_t now = clock_wall(), before = wakeups->level;
    probe("wakeup_level_lowered");
    wakeups->level = earlier(time, now - LEVEL_SLACK);
#ifndef CADENZA_FAULT_lowered_level_not_stored
    tenure->is_record_due = true; /* with the batch that has the wake-up timer */
#endif
    metrics_level_lowered(shard);
    log_warn(shard->options.log,
             "The wall clock is behind the timers of a shard: it was set back, or was ahead when "
             "they were set. Timers that are set now fire in time, older ones at their wall time.",
             log_number("shard", shard->options.number),
             log_number("seconds-behind", (before - now) / NS_PER_S));
}

void
wakeups_put(struct tenure *tenure, const struct run *run, const struct effects *effects,
            struct batch *batch)
{
    struct wakeups *wakeups = &tenure->wakeups;
    if (effects->alarm_row_old != 0)
        wakeups_delete(tenure,
                       (struct wakeup_position){effects->alarm_time_old, effects->alarm_row_old},
                       batch);
    if (effects->alarm_row == 0)
        return;
    check(effects->alarm_row != effects->alarm_row_old && effects->alarm_row < tenure->ids.next);
    if (effects->alarm_time < wakeups->level) /* 2 */
        wakeups_lower_level(tenure, effects->alarm_time);
    struct wakeup_position position = {effects->alarm_time, effects->alarm_row};
    struct run_key key = {run->core->domain_id, run->core->workflow_id, run->core->run_id};
    batch_put(batch, ROW_TIMER, position_key(position, batch->arena),
              wakeup_row_value(run, position.time, batch->arena));
    wakeups_add(tenure, position, &key);
}

int64_t
wakeups_time_min(const struct tenure *tenure)
{
#ifdef CADENZA_FAULT_wakeups_wait_for_level
    return tenure->wakeups.level;
#else
    return earlier(tenure->wakeups.level, clock_wall());
#endif
}

int64_t
wakeups_raise_level(struct tenure *tenure)
{
    struct wakeups *wakeups = &tenure->wakeups;
    int64_t level = clock_wall() - LEVEL_SLACK;
    struct tree_row *first = tree_first(wakeups->waiting);
    if (first != NULL)
        level = earlier(level, ((struct wakeup *)first->value)->time);
    struct list *others[] = {&wakeups->delayed, &wakeups->held, &wakeups->firing};
    for (size_t i = 0; i < array_length(others); i++) {
        list_each(node, others[i])
            level = earlier(level, list_entry(node, struct wakeup, node)->time);
    }
    level = earlier(level, earlier(wakeups->horizon.time, wakeups->left.time));
    wakeups->level = level > wakeups->level ? level : wakeups->level;
    return wakeups->level;
}

/* --- reading ---- */

static struct error *
wakeups_take_row(struct tenure *tenure, const struct row *row, struct arena *arena)
{
    struct wakeups *wakeups = &tenure->wakeups;
    struct slice key = row->key;
    struct wakeup_position position;
    STORED(TimerRow) *stored = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(timer_row), row->value, &stored);
    if (err != NULL)
        return err;
    if (!key_take_i64(&key, &position.time) || !key_take_u64(&key, &position.row))
        return error_new(arena, ERR_CORRUPT, "shard %u: a row of a wake-up timer cannot be read",
                         tenure->shard->options.number);
    struct run_key run = {stored->domain_id, stored->workflow_id, stored->run_id};
    if (map64_get(wakeups->by_row, position.row) == NULL)
        wakeups_add(tenure, position, &run);
    wakeups->horizon = (struct wakeup_position){position.time, position.row + 1};
    return NULL;
}

static struct error *
wakeups_scan(struct tenure *tenure, struct arena *arena)
{
    struct wakeups *wakeups = &tenure->wakeups;
    struct error *err = tenure_wait(tenure, writer_newest(tenure->writer), arena);
    if (err != NULL)
        return err;
    struct rows rows;
    struct scan scan = {.partition = tenure->shard->partition,
                        .kind = ROW_TIMER,
                        .from = position_key(wakeups->horizon, arena),
                        .rows_max = wakeups->count_max / 2 + 1};
    err = store_scan(tenure->shard->options.store, &scan, arena, &rows);
    if (err != NULL || tenure->is_over)
        return err;
    for (size_t i = 0; err == NULL && i < rows.count; i++)
        err = wakeups_take_row(tenure, &rows.row[i], arena);
    if (err == NULL && !rows.has_more)
        wakeups->horizon = WAKEUP_POSITION_END;
    return err;
}

bool
wakeups_may_read(const struct wakeups *wakeups)
{
    return is_before(wakeups->horizon, WAKEUP_POSITION_END) &&
           tree_count(wakeups->waiting) <= wakeups->count_max / 4;
}

/* What came into memory while a scan ran and lies beyond its end goes: it would fill memory, and
 * keep nearer rows from being read, until its time comes. The next scan sees it. */
static void
wakeups_cut(struct tenure *tenure)
{
    struct wakeups *wakeups = &tenure->wakeups;
    struct tree_row *last;
    while ((last = tree_last(wakeups->waiting)) != NULL &&
           !is_before(wakeup_position(last->value), wakeups->horizon))
        wakeup_forget(last->value);
}

void
wakeup_leave(struct wakeup *wakeup)
{
    struct wakeups *wakeups = &wakeup->tenure->wakeups;
    check(list_is_empty(&wakeup->node) && !wakeup->is_gone);
    probe("wakeup_left_in_store");
    if (is_before(wakeup_position(wakeup), wakeups->left))
        wakeups->left = wakeup_position(wakeup);
    map_put(wakeups->left_domains, slice_text(wakeup->key.domain_id), wakeups);
    map64_remove(wakeups->by_row, wakeup->row);
    memory_free(wakeup);
}

/* The horizon comes back to the first of them. Not while a scan runs, which moves it. */
void
wakeups_return(struct tenure *tenure)
{
    struct wakeups *wakeups = &tenure->wakeups;
    if (!wakeups->is_left_due || wakeups->is_reading)
        return;
    probe("wakeups_returned");
    if (is_before(wakeups->left, wakeups->horizon))
        wakeups->horizon = wakeups->left;
    wakeups->left = WAKEUP_POSITION_END;
    map_free(wakeups->left_domains);
    wakeups->left_domains = map_new();
    wakeups->is_left_due = false;
    wakeups_cut(tenure);
    fiber_cond_signal(&wakeups->changed);
}

struct error *
wakeups_read(struct tenure *tenure, struct arena *arena)
{
    check(!tenure->wakeups.is_reading); /* one scan at a time */
    tenure->wakeups.is_reading = true;
    struct error *err = wakeups_scan(tenure, arena);
    tenure->wakeups.is_reading = false;
    wakeups_return(tenure);
    wakeups_cut(tenure);
    wakeups_trim(tenure);
    return err;
}

struct error *
wakeups_begin(struct tenure *tenure, int64_t level, struct arena *arena)
{
    check(map64_count(tenure->wakeups.by_row) == 0);
    tenure->wakeups.level = level;
    tenure->wakeups.horizon = (struct wakeup_position){.time = level};
    return wakeups_read(tenure, arena);
}
