/* alarms.c - one alarm per run: in the store as a row, in memory while it may ring soon.
 *
 * A run's core record names its alarm (time and number of the row), so the run itself says which
 * row is to be deleted when another takes its place: rows in the store and alarms in memory need
 * not agree for that. An alarm that rings and is not the run's any more is stale, and forgotten.
 *
 * Memory is bounded by a horizon: alarms before it are in memory, later ones may be in the store
 * only and are read when memory runs low. Too many: the latest go, and the horizon comes nearer.
 * While a scan runs, new alarms come into memory wherever they lie, since the scan may not see
 * them; it waits first until those of before are durable.
 *
 * An alarm may ring before the step that set it is durable: its own step is behind that one in the
 * log, so what comes of it is durable later, or both are lost.
 *
 * Invariants:
 *   1. Every row before the horizon whose run names it is in memory, but for those that are not
 *      active here and were left (from `left` on).
 *   2. No row is before `level`. A row that has to be (the wall clock was set back) lowers it, and
 *      the batch that has the row has the shard record with the lower level, too. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "wire/message.h"

#define RETRY_DELAY_MIN (50 * NS_PER_MS)
#define RETRY_DELAY_MAX (10 * NS_PER_S)
/* The level stays so far behind the clock: one that is set back by less, or a next owner whose
 * clock is behind ours by less, need not lower it. */
#define LEVEL_SLACK (600 * NS_PER_S)

void
alarms_init(struct tenure *tenure, size_t count_max)
{
    struct alarms *alarms = &tenure->alarms;
    alarms->waiting = tree_new();
    alarms->by_row = map64_new();
    alarms->count_max = count_max;
    alarms->left = ALARM_PLACE_END;
    alarms->left_domains = map_new();
    list_init(&alarms->delayed);
    list_init(&alarms->held);
    list_init(&alarms->ringing);
    fiber_cond_init(&alarms->changed);
}

void
alarms_free(struct tenure *tenure)
{
    struct alarms *alarms = &tenure->alarms;
    check(alarms->ringing_count == 0);
    size_t cursor = 0;
    void *value;
    while (map64_next(alarms->by_row, &cursor, NULL, &value))
        memory_free(value);
    map64_free(alarms->by_row);
    map_free(alarms->left_domains);
    tree_free(alarms->waiting);
}

/* --- places ---- */

static struct slice
place_key(struct alarm_place place, struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_i64(&key, place.time);
    key_u64(&key, place.row);
    return key_end(&key);
}

static int64_t
earlier(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

static struct alarm_place
alarm_place(const struct alarm *alarm)
{
    return (struct alarm_place){alarm->time, alarm->row};
}

static bool
is_before(struct alarm_place one, struct alarm_place other)
{
    return one.time != other.time ? one.time < other.time : one.row < other.row;
}

/* --- alarms in memory ---- */

static struct alarm *
alarm_new(struct tenure *tenure, struct alarm_place place, const struct run_key *key)
{
    size_t domain_size = strlen(key->domain_id) + 1, id_size = strlen(key->workflow_id) + 1;
    size_t run_size = strlen(key->run_id) + 1;
    struct alarm *alarm = memory_zalloc(1, sizeof *alarm + domain_size + id_size + run_size);
    char *text = (char *)(alarm + 1);
    alarm->key.domain_id = memcpy(text, key->domain_id, domain_size);
    alarm->key.workflow_id = memcpy(text + domain_size, key->workflow_id, id_size);
    alarm->key.run_id = memcpy(text + domain_size + id_size, key->run_id, run_size);
    alarm->tenure = tenure;
    alarm->time = place.time;
    alarm->row = place.row;
    list_init(&alarm->node);
    return alarm;
}

static void
alarm_wait(struct alarm *alarm)
{
    struct arena *arena = arena_new(128);
    alarm->state = ALARM_WAITING;
    struct alarm *before =
        tree_put(alarm->tenure->alarms.waiting, place_key(alarm_place(alarm), arena), alarm);
    check(before == NULL);
    arena_free(arena);
}

void
alarm_stop_waiting(struct alarm *alarm)
{
    struct arena *arena = arena_new(128);
    struct alarm *removed =
        tree_remove(alarm->tenure->alarms.waiting, place_key(alarm_place(alarm), arena));
    check(removed == alarm);
    arena_free(arena);
}

void
alarm_delay(struct alarm *alarm)
{
    struct alarms *alarms = &alarm->tenure->alarms;
    int64_t delay = RETRY_DELAY_MIN << (alarm->attempts < 8 ? alarm->attempts : 8);
    alarm->attempts++;
    alarm->state = ALARM_DELAYED;
    alarm->retry_time = clock_monotonic() + earlier(delay, RETRY_DELAY_MAX);
    list_push_back(&alarms->delayed, &alarm->node);
    alarms->delayed_count++;
    fiber_cond_signal(&alarms->changed);
    mark("alarm_delayed");
}

/* Takes an alarm out of memory, wherever it is. */
static void
alarm_forget(struct alarm *alarm)
{
    map64_remove(alarm->tenure->alarms.by_row, alarm->row);
    if (alarm->state == ALARM_RINGING) {
        alarm->is_gone = true;
        return;
    }
    if (alarm->state == ALARM_WAITING)
        alarm_stop_waiting(alarm);
    if (alarm->state == ALARM_DELAYED)
        alarm->tenure->alarms.delayed_count--;
    if (alarm->state == ALARM_HELD)
        alarm->tenure->alarms.held_count--;
    list_remove(&alarm->node);
    memory_free(alarm);
}

/* The latest quarter goes; the horizon comes nearer. */
static void
alarms_trim(struct tenure *tenure)
{
    struct alarms *alarms = &tenure->alarms;
    if (alarms->is_reading || tree_count(alarms->waiting) <= alarms->count_max)
        return;
    mark("alarms_beyond_memory");
    while (tree_count(alarms->waiting) > alarms->count_max - alarms->count_max / 4) {
        struct alarm *alarm = tree_last(alarms->waiting)->value;
        if (is_before(alarm_place(alarm), alarms->horizon))
            alarms->horizon = alarm_place(alarm);
        alarm_forget(alarm);
    }
}

static void
alarms_add(struct tenure *tenure, struct alarm_place place, const struct run_key *key)
{
    struct alarms *alarms = &tenure->alarms;
    if (!is_before(place, alarms->horizon) && !alarms->is_reading)
        return; /* the store has it */
    struct alarm *alarm = alarm_new(tenure, place, key);
    struct alarm *before = map64_put(alarms->by_row, place.row, alarm);
    check(before == NULL);
    alarm_wait(alarm);
    if (tree_first(alarms->waiting)->value == alarm)
        fiber_cond_signal(&alarms->changed);
    alarms_trim(tenure);
}

/* --- rows ---- */

static struct slice
alarm_row_value(const struct run *run, int64_t time, struct arena *arena)
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
alarms_delete(struct tenure *tenure, struct alarm_place place, struct batch *batch)
{
#ifndef CADENZA_PLANT_alarm_row_stays
    batch_delete(batch, ROW_TIMER, place_key(place, batch->arena));
#endif
    struct alarm *alarm = map64_get(tenure->alarms.by_row, place.row);
    if (alarm != NULL)
        alarm_forget(alarm);
}

void
alarms_drop(struct tenure *tenure, const struct run *run, struct batch *batch)
{
    struct alarm_place place = {run->core->alarm_time, run->core->alarm_row};
    check(place.row != 0);
    alarms_delete(tenure, place, batch);
}

/* Nothing is before the old level, so there is nothing to read; and the horizon is behind it, so
 * that the alarm comes into memory. */
static void
alarms_lower_level(struct tenure *tenure, int64_t time)
{
    struct alarms *alarms = &tenure->alarms;
    struct shard *shard = tenure->shard;
    int64_t now = clock_wall(), before = alarms->level;
    mark("alarm_level_lowered");
    alarms->level = earlier(time, now - LEVEL_SLACK);
#ifndef CADENZA_PLANT_lowered_level_not_stored
    tenure->is_record_due = true; /* with the batch that has the alarm */
#endif
    figures_level_lowered(shard);
    log_warn(shard->options.log,
             "The wall clock is behind the timers of a shard: it was set back, or was ahead when "
             "they were set. Timers that are set now ring in time, older ones at their wall time.",
             log_number("shard", shard->options.number),
             log_number("seconds-behind", (before - now) / NS_PER_S));
}

void
alarms_put(struct tenure *tenure, const struct run *run, const struct effects *effects,
           struct batch *batch)
{
    struct alarms *alarms = &tenure->alarms;
    if (effects->alarm_row_old != 0)
        alarms_delete(tenure, (struct alarm_place){effects->alarm_time_old, effects->alarm_row_old},
                      batch);
    if (effects->alarm_row == 0)
        return;
    if (effects->alarm_time < alarms->level) /* 2 */
        alarms_lower_level(tenure, effects->alarm_time);
    struct alarm_place place = {effects->alarm_time, effects->alarm_row};
    struct run_key key = {run->core->domain_id, run->core->workflow_id, run->core->run_id};
    batch_put(batch, ROW_TIMER, place_key(place, batch->arena),
              alarm_row_value(run, place.time, batch->arena));
    alarms_add(tenure, place, &key);
}

int64_t
alarms_time_min(const struct tenure *tenure)
{
#ifdef CADENZA_PLANT_alarms_wait_for_level
    return tenure->alarms.level;
#else
    return earlier(tenure->alarms.level, clock_wall());
#endif
}

int64_t
alarms_raise_level(struct tenure *tenure)
{
    struct alarms *alarms = &tenure->alarms;
    int64_t level = clock_wall() - LEVEL_SLACK;
    struct tree_row *first = tree_first(alarms->waiting);
    if (first != NULL)
        level = earlier(level, ((struct alarm *)first->value)->time);
    struct list *others[] = {&alarms->delayed, &alarms->held, &alarms->ringing};
    for (size_t i = 0; i < array_length(others); i++) {
        list_each(node, others[i])
            level = earlier(level, list_entry(node, struct alarm, node)->time);
    }
    level = earlier(level, earlier(alarms->horizon.time, alarms->left.time));
    alarms->level = level > alarms->level ? level : alarms->level;
    return alarms->level;
}

/* --- reading ---- */

static struct error *
alarms_take_row(struct tenure *tenure, const struct row *row, struct arena *arena)
{
    struct alarms *alarms = &tenure->alarms;
    struct slice key = row->key;
    struct alarm_place place;
    STORED(TimerRow) *stored = NULL;
    struct error *err =
        message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(timer_row), row->value, &stored);
    if (err != NULL)
        return err;
    if (!key_take_i64(&key, &place.time) || !key_take_u64(&key, &place.row))
        return error_new(arena, ERR_CORRUPT, "shard %u: a row of an alarm cannot be read",
                         tenure->shard->options.number);
    struct run_key run = {stored->domain_id, stored->workflow_id, stored->run_id};
    if (map64_get(alarms->by_row, place.row) == NULL)
        alarms_add(tenure, place, &run);
    alarms->horizon = (struct alarm_place){place.time, place.row + 1};
    return NULL;
}

static struct error *
alarms_scan(struct tenure *tenure, struct arena *arena)
{
    struct alarms *alarms = &tenure->alarms;
    struct error *err = tenure_wait(tenure, writer_newest(tenure->writer), arena);
    if (err != NULL)
        return err;
    struct rows rows;
    struct scan scan = {.partition = tenure->shard->partition,
                        .kind = ROW_TIMER,
                        .from = place_key(alarms->horizon, arena),
                        .rows_max = alarms->count_max / 2 + 1};
    err = store_scan(tenure->shard->options.store, &scan, arena, &rows);
    if (err != NULL || tenure->is_over)
        return err;
    for (size_t i = 0; err == NULL && i < rows.count; i++)
        err = alarms_take_row(tenure, &rows.row[i], arena);
    if (err == NULL && !rows.has_more)
        alarms->horizon = ALARM_PLACE_END;
    return err;
}

bool
alarms_may_read(const struct alarms *alarms)
{
    return is_before(alarms->horizon, ALARM_PLACE_END) &&
           tree_count(alarms->waiting) <= alarms->count_max / 4;
}

/* What came into memory while a scan ran and lies beyond its end goes: it would fill memory, and
 * keep nearer rows from being read, until its time comes. The next scan sees it. */
static void
alarms_cut(struct tenure *tenure)
{
    struct alarms *alarms = &tenure->alarms;
    struct tree_row *last;
    while ((last = tree_last(alarms->waiting)) != NULL &&
           !is_before(alarm_place(last->value), alarms->horizon))
        alarm_forget(last->value);
}

void
alarm_leave(struct alarm *alarm)
{
    struct alarms *alarms = &alarm->tenure->alarms;
    mark("alarm_left_in_store");
    if (is_before(alarm_place(alarm), alarms->left))
        alarms->left = alarm_place(alarm);
    map_put(alarms->left_domains, slice_text(alarm->key.domain_id), alarms);
    map64_remove(alarms->by_row, alarm->row);
    memory_free(alarm);
}

/* The horizon comes back to the first of them. Not while a scan runs, which moves it. */
void
alarms_return(struct tenure *tenure)
{
    struct alarms *alarms = &tenure->alarms;
    if (!alarms->is_left_due || alarms->is_reading)
        return;
    mark("alarms_returned");
    if (is_before(alarms->left, alarms->horizon))
        alarms->horizon = alarms->left;
    alarms->left = ALARM_PLACE_END;
    map_free(alarms->left_domains);
    alarms->left_domains = map_new();
    alarms->is_left_due = false;
    alarms_cut(tenure);
    fiber_cond_signal(&alarms->changed);
}

struct error *
alarms_read(struct tenure *tenure, struct arena *arena)
{
    tenure->alarms.is_reading = true;
    struct error *err = alarms_scan(tenure, arena);
    tenure->alarms.is_reading = false;
    alarms_return(tenure);
    alarms_cut(tenure);
    alarms_trim(tenure);
    return err;
}

struct error *
alarms_begin(struct tenure *tenure, int64_t level, struct arena *arena)
{
    tenure->alarms.level = level;
    tenure->alarms.horizon = (struct alarm_place){.time = level};
    return alarms_read(tenure, arena);
}
