/* rounds.c - the fiber that feeds what shards handed over and tells them how far visibility is. */
#include "base/check.h"
#include "base/memory.h"
#include "base/vector.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "visibility/feed/inside.h"

/* After a round of work the fiber rests in proportion to it. So visibility takes a bounded share of
 * a core, and the more there is to write, the more gathers for one transaction, which costs by the
 * pages that it touches; runs that begin and end within it are written once. */
#define REST_PART     20
#define REST_MAX      (100 * NS_PER_MS)
#define SYNC_INTERVAL NS_PER_S
#define RETRY_DELAY   (500 * NS_PER_MS)
#define BATCH_MAX     1000 /* changes in one transaction */

/* --- telling ---- */

static void
note_level(struct feeder *feeder, uint32_t number)
{
    struct feed_shard *shard = feeder_shard(feeder, number);
    struct feed_source *source = &feeder->sources[route_place_of(owner_of_shard(number))];
    if (!list_is_empty(&shard->node))
        return;
    list_push_back(&source->unreported, &shard->node);
    source->unreported_count++;
}

static void
report_to(struct feeder *feeder, unsigned place)
{
    struct feed_source *source = &feeder->sources[place];
    struct visibility_levels *levels = visibility_levels_new(source->unreported_count);
    size_t count = 0;
    for (struct list *node; (node = list_pop_front(&source->unreported)) != NULL;) {
        const struct feed_shard *shard = list_entry(node, struct feed_shard, node);
        levels->level[count++] = (struct visibility_level){
            .shard = (uint32_t)(shard - feeder->shards), .fed = shard->fed, .safe = shard->safe};
    }
    check(count == levels->count);
    levels->done = source->reported = source->done;
    source->unreported_count = 0;
    route_tell_surely(owner_at_place(place), &feeder->service, &visibility_levels_notice,
                      &levels->value);
}

static bool
has_news(const struct feed_source *source)
{
    return source->unreported_count > 0 || source->reported != source->done;
}

static void
report(struct feeder *feeder)
{
    for (unsigned i = 0; i < route_place_count(); i++)
        if (has_news(&feeder->sources[i]))
            report_to(feeder, i);
}

/* --- feeding ---- */

struct transaction {
    struct visibility_change *items;
    size_t count, capacity;
};

static struct visibility_batch *
first_batch(const struct feeder *feeder)
{
    return list_entry(feeder->waiting.next, struct visibility_batch, node);
}

/* Batches in front that have nothing to feed any more are done. */
static void
drop_done(struct feeder *feeder)
{
    while (!list_is_empty(&feeder->waiting)) {
        struct visibility_batch *batch = first_batch(feeder);
        if (!list_is_empty(&batch->updates))
            return;
        struct feed_source *source = &feeder->sources[batch->place];
        check(batch->bytes == 0);
        source->done = batch->end > source->done ? batch->end : source->done;
        list_remove(&batch->node);
        visibility_batch_free(batch);
    }
}

static const struct visible_change *
change_of(const struct list *node)
{
    return &list_entry(node, struct visibility_update, node)->change;
}

/* As many changes of a batch as go into the transaction. False: no more do. */
static bool
fill_from(const struct visibility_batch *batch, struct transaction *changes, struct arena *arena)
{
    list_each(node, &batch->updates) {
        const struct visible_change *change = change_of(node);
        if (changes->count == BATCH_MAX || change->is_beginning)
            return false;
        struct visibility_change next = {.shard = change->shard,
                                         .row = change->row,
                                         .domain_id = change->domain_id,
                                         .workflow_id = change->workflow_id,
                                         .run_id = change->run_id,
                                         .info = change->info,
                                         .num_clusters = change->num_clusters};
        vector_push_in(changes, arena, next);
    }
    return true;
}

static void
fill_transaction(const struct feeder *feeder, struct transaction *changes, struct arena *arena)
{
    list_each(node, &feeder->waiting) {
        if (!fill_from(list_entry(node, struct visibility_batch, node), changes, arena))
            return;
    }
}

static void
drop_first(struct feeder *feeder, int64_t now)
{
    drop_done(feeder);
    struct visibility_batch *batch = first_batch(feeder);
    struct list *node = list_pop_front(&batch->updates);
    check(node != NULL); /* only what waits was fed */
    struct visibility_update *fed = list_entry(node, struct visibility_update, node);
    batch->bytes -= fed->size;
    feeder->waiting_bytes -= fed->size;
    struct feed_shard *shard = feeder_shard(feeder, fed->change.shard);
    check(shard->waiting > 0 && shard->beginnings_waiting >= fed->change.is_beginning);
    shard->waiting--;
    shard->beginnings_waiting -= fed->change.is_beginning;
    shard->fed = fed->change.row;
    note_level(feeder, fed->change.shard);
    if (feeder->delay != NULL)
        histogram_observe(feeder->delay, now - fed->time);
    memory_free(fed);
}

static void
drop_fed(struct feeder *feeder, size_t count)
{
    int64_t now = clock_monotonic();
    feeder->round += count;
    for (size_t i = 0; i < count; i++)
        drop_first(feeder, now);
    drop_done(feeder);
    if (feeder->sync_time == NEVER)
        feeder->sync_time = now + SYNC_INTERVAL;
}

/* One transaction, or the beginning of a shard again. Yields. */
static struct error *
feed_some(struct feeder *feeder, struct arena *arena)
{
    struct visibility *visibility = feeder->options.visibility;
    struct transaction changes = {0};
    check(!list_is_empty(&first_batch(feeder)->updates));
    fill_transaction(feeder, &changes, arena);
    size_t count = changes.count;
    check(count <= BATCH_MAX);
    struct error *err;
    if (count > 0) {
        err = visibility_feed(visibility, changes.items, count,
                              registry_set(feeder->options.registry), arena);
    } else {
        const struct visible_change *first = change_of(first_batch(feeder)->updates.next);
        err = visibility_forget(visibility, first->shard, first->row, arena);
        count = 1;
    }
    if (err == NULL)
        drop_fed(feeder, count);
    return err;
}

static struct error *
feed_all(struct feeder *feeder)
{
    struct error *err = NULL;
    for (drop_done(feeder); err == NULL && !list_is_empty(&feeder->waiting);) {
        struct arena *arena = arena_new(0);
        err = feed_some(feeder, arena);
        report(feeder); /* a round may be long; who hears nothing takes it for lost */
        if (err != NULL) {
            probe("visibility_not_fed");
            log_warn(feeder->options.log, "Visibility could not be written; will retry.",
                     log_error(err));
            if (feeder->failed_count != NULL)
                counter_add(feeder->failed_count, 1);
        }
        arena_free(arena);
    }
    return err;
}

/* What was fed until now survives any crash. Yields. */
static struct error *
sync_lists(struct feeder *feeder, struct arena *arena)
{
    struct error *err = visibility_sync(feeder->options.visibility, arena);
    if (err != NULL) {
        log_warn(feeder->options.log, "Visibility could not be synced; will retry.",
                 log_error(err));
        feeder->sync_time = clock_monotonic() + SYNC_INTERVAL;
        return err;
    }
    feeder->sync_time = NEVER;
    for (uint32_t i = 0; i < feeder->options.shard_count; i++) {
        struct feed_shard *shard = &feeder->shards[i];
        if (shard->safe == shard->fed)
            continue;
        shard->safe = shard->fed;
        note_level(feeder, i);
    }
    return NULL;
}

static bool
has_work(const struct feeder *feeder)
{
    return !list_is_empty(&feeder->arrived) || !list_is_empty(&feeder->waiting) ||
           feeder->is_ending || feeder->sync_time <= clock_monotonic();
}

/* Everything that is there. Returns when to look again at the latest. */
static int64_t
round_of_work(struct feeder *feeder)
{
    int64_t began = clock_monotonic();
    bool is_sync_due = feeder->sync_time <= began;
    feeder->round = 0;
    list_splice_back(&feeder->waiting, &feeder->arrived);
    struct error *err = feed_all(feeder);
    scoped(arena_drop) struct arena *arena = arena_new(0);
    if (err == NULL && is_sync_due && sync_lists(feeder, arena) == NULL)
        probe("visibility_synced");
    report(feeder);
    if (err != NULL)
        return clock_monotonic() + RETRY_DELAY;
    if (feeder->round == 0)
        return 0;
    int64_t now = clock_monotonic(), rest = (now - began) * REST_PART;
    return now + (rest < REST_MAX ? rest : REST_MAX);
}

static void
pause_until(int64_t time)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    int64_t rest = time - clock_monotonic();
    if (rest > 0 && fiber_sleep(rest, arena) != NULL)
        return; /* cancelled with the loop: what is left is read from the store at the next start */
}

/* The last round. */
static void
finish(struct feeder *feeder)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    list_splice_back(&feeder->waiting, &feeder->arrived);
    if (feed_all(feeder) == NULL && sync_lists(feeder, arena) == NULL)
        report(feeder);
}

void
rounds_fiber(void *argument)
{
    struct feeder *feeder = argument;
    enum wake wake = WAKE_READY;
    while (!feeder->is_ending && wake != WAKE_CANCELLED) {
        if (!has_work(feeder)) {
            wake = fiber_cond_wait(&feeder->changed, feeder->sync_time);
            pause_until(clock_monotonic() + GATHER_DELAY);
            continue;
        }
        int64_t next = round_of_work(feeder);
        if (!feeder->is_ending)
            pause_until(next);
    }
    finish(feeder);
    latch_done(&feeder->running);
}
