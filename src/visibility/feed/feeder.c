/* feeder.c - see feeder.h.
 *
 * What belongs to a loop (struct feed_loop) is touched on that loop only. The fiber of loop 0
 * visits a loop by a call: it brings the news for the shards there and takes what was gathered. A
 * loop that has something sends a message, one at a time. */
#include "visibility/feed/feeder.h"

#include <stdatomic.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/vector.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "fiber/probe.h"
#include "fiber/sync.h"

#define GATHER_DELAY (2 * NS_PER_MS) /* changes that come within it go together */
/* After a round of work the fiber rests in proportion to it. So visibility takes a bounded share of
 * a core, and the more there is to write, the more gathers for one transaction, which costs by the
 * pages that it touches; runs that begin and end within it are written once. */
#define REST_PART     20
#define REST_MAX      (100 * NS_PER_MS)
#define SYNC_INTERVAL NS_PER_S
#define RETRY_DELAY   (500 * NS_PER_MS)
#define BATCH_MAX     1000                      /* changes in one transaction */
#define BYTES_MAX     ((size_t)4 * 1024 * 1024) /* that a loop gathers */

/* Of one loop. */
struct feed_loop {
    struct loop_message message;
    struct feeder *feeder;
    struct list changes; /* struct visibility_update */
    size_t bytes;
    atomic_bool is_posted; /* the message is on its way */
    /* Of loop 0. */
    bool has_changes, has_unreported;
};

/* What visibility has of a shard. Of loop 0. */
struct feed_shard {
    uint64_t fed, safe;
    bool is_unreported; /* the shard does not know it yet */
};

struct feeder {
    struct feeder_options options;
    bool is_started;
    struct feed_loop *loops;
    struct feed_shard *shards;
    struct list waiting; /* struct visibility_update: taken, and not fed yet */
    struct latch running;
    struct fiber_cond changed;
    atomic_bool is_stopping;
    int64_t sync_time; /* monotonic: when it is due; NEVER: all is safe */
    size_t round;      /* changes that were fed in this round */
    struct counter *failed_count;
    struct histogram *delay;
};

/* --- invariants ---- */

/* Of what a loop gathers, on that loop. */
static void
feed_loop_check(const struct feed_loop *loop)
{
    size_t bytes = 0;
    check(list_is_empty(&loop->changes) == (loop->bytes == 0));
    if (!CHECK_DEEPLY)
        return;
    list_each(node, &loop->changes) {
        const struct visibility_update *update = list_entry(node, struct visibility_update, node);
        check(update->change.shard < loop->feeder->options.shard_count);
        bytes += update->size;
    }
    check(bytes == loop->bytes);
}

/* --- on the loops of shards ---- */

static void
deliver(struct loop_message *message)
{
    struct feed_loop *loop = container_of(message, struct feed_loop, message);
    atomic_store(&loop->is_posted, false);
    loop->has_changes = true;
    fiber_cond_broadcast(&loop->feeder->changed);
}

static bool
give(void *context, struct visibility_update *update)
{
    struct feeder *feeder = context;
    struct feed_loop *loop = &feeder->loops[loop_index(loop_self())];
    if (loop->bytes > BYTES_MAX || atomic_load(&feeder->is_stopping))
        return false;
    update->time = clock_monotonic();
    list_push_back(&loop->changes, &update->node);
    loop->bytes += update->size;
    bool is_posted = atomic_exchange(&loop->is_posted, true);
    if (!is_posted && !loop_post(loop_at(0), &loop->message))
        atomic_store(&loop->is_posted, false); /* the next change tries again, or the sync comes */
    return true;
}

static struct error *
level(void *context, uint32_t shard, struct arena *arena, uint64_t *row)
{
    struct feeder *feeder = context;
    return visibility_level(feeder->options.visibility, shard, arena, row);
}

struct visible_port
feeder_port(struct feeder *feeder)
{
    return (struct visible_port){.level = level, .give = give, .context = feeder};
}

struct feed_call {
    struct feeder *feeder;
    unsigned index; /* of the loop */
};

/* On the loop: news for its shards, then what was gathered. Loop 0 waits meanwhile. No yield. */
static void
feed_call_on_loop(void *argument)
{
    struct feed_call *feed_call = argument;
    struct feeder *feeder = feed_call->feeder;
    struct feed_loop *loop = &feeder->loops[feed_call->index];
    check(loop_index(loop_self()) == feed_call->index);
    feed_loop_check(loop);
    for (uint32_t i = feed_call->index; i < feeder->options.shard_count; i += loop_count()) {
        struct feed_shard *shard = &feeder->shards[i];
        if (shard->is_unreported)
            feeder->options.on_fed(feeder->options.context, i, shard->fed, shard->safe);
        shard->is_unreported = false;
    }
    list_splice_back(&feeder->waiting, &loop->changes);
    loop->bytes = 0;
}

/* --- the fiber of loop 0 ---- */

static void
call_loops(struct feeder *feeder, bool is_all, struct arena *arena)
{
    for (unsigned i = 0; i < loop_count(); i++) {
        struct feed_loop *loop = &feeder->loops[i];
        if (!is_all && !loop->has_changes && !loop->has_unreported)
            continue;
        loop->has_changes = loop->has_unreported = false;
        struct feed_call feed_call = {.feeder = feeder, .index = i};
        if (loop_call(loop_at(i), feed_call_on_loop, &feed_call, arena) != NULL)
            loop->has_unreported = true; /* its mailbox is full: once more */
    }
}

static void
note_fed(struct feeder *feeder, const struct visible_change *change)
{
    check(change->shard < feeder->options.shard_count);
    struct feed_shard *shard = &feeder->shards[change->shard];
    shard->fed = change->row;
    shard->is_unreported = true;
    feeder->loops[change->shard % loop_count()].has_unreported = true;
}

struct transaction {
    struct visibility_change *items;
    size_t count, capacity;
};

/* As many changes as go into one transaction. */
static void
fill_transaction(struct feeder *feeder, struct transaction *changes, struct arena *arena)
{
    list_each(node, &feeder->waiting) {
        const struct visible_change *change =
            &list_entry(node, struct visibility_update, node)->change;
        if (changes->count == BATCH_MAX || change->is_beginning)
            break;
        struct visibility_change next = {.shard = change->shard,
                                         .row = change->row,
                                         .domain_id = change->domain_id,
                                         .workflow_id = change->workflow_id,
                                         .run_id = change->run_id,
                                         .info = change->info,
                                         .num_clusters = change->num_clusters};
        vector_push_in(changes, arena, next);
    }
}

static void
drop_fed(struct feeder *feeder, size_t count)
{
    int64_t now = clock_monotonic();
    feeder->round += count;
    for (size_t i = 0; i < count; i++) {
        struct list *node = list_pop_front(&feeder->waiting);
        check(node != NULL); /* only what waits was fed */
        struct visibility_update *fed = list_entry(node, struct visibility_update, node);
        note_fed(feeder, &fed->change);
        if (feeder->delay != NULL)
            histogram_observe(feeder->delay, now - fed->time);
        memory_free(fed);
    }
    if (feeder->sync_time == NEVER)
        feeder->sync_time = now + SYNC_INTERVAL;
}

/* One transaction, or the beginning of a shard again. Yields. */
static struct error *
feed_some(struct feeder *feeder, struct arena *arena)
{
    struct visibility *visibility = feeder->options.visibility;
    struct transaction changes = {0};
    check(!list_is_empty(&feeder->waiting));
    fill_transaction(feeder, &changes, arena);
    size_t count = changes.count;
    check(count <= BATCH_MAX);
    struct error *err;
    if (count > 0) {
        err = visibility_feed(visibility, changes.items, count,
                              registry_set(feeder->options.registry), arena);
    } else {
        const struct visible_change *first =
            &list_entry(feeder->waiting.next, struct visibility_update, node)->change;
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
    while (err == NULL && !list_is_empty(&feeder->waiting)) {
        struct arena *arena = arena_new(0);
        err = feed_some(feeder, arena);
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
        shard->is_unreported = true;
        feeder->loops[i % loop_count()].has_unreported = true;
    }
    return NULL;
}

static bool
has_work(const struct feeder *feeder)
{
    for (unsigned i = 0; i < loop_count(); i++)
        if (feeder->loops[i].has_changes || feeder->loops[i].has_unreported)
            return true;
    return !list_is_empty(&feeder->waiting) || atomic_load(&feeder->is_stopping) ||
           feeder->sync_time <= clock_monotonic();
}

/* Everything that is there. Returns when to look again at the latest. */
static int64_t
round_of_work(struct feeder *feeder, struct arena *arena)
{
    int64_t began = clock_monotonic();
    bool is_sync_due = feeder->sync_time <= began;
    feeder->round = 0;
    if (list_is_empty(&feeder->waiting)) /* else there is no room for more */
        call_loops(feeder, is_sync_due, arena);
    if (feed_all(feeder) != NULL)
        return clock_monotonic() + RETRY_DELAY;
    if (is_sync_due && sync_lists(feeder, arena) == NULL)
        probe("visibility_synced");
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

static void
feeder_fiber(void *argument)
{
    struct feeder *feeder = argument;
    struct arena *arena = arena_new(0);
    enum wake wake = WAKE_READY;
    while (!atomic_load(&feeder->is_stopping) && wake != WAKE_CANCELLED) {
        if (!has_work(feeder)) {
            wake = fiber_cond_wait(&feeder->changed, feeder->sync_time);
            pause_until(clock_monotonic() + GATHER_DELAY);
            continue;
        }
        int64_t next = round_of_work(feeder, arena);
        arena_reset(arena);
        if (!atomic_load(&feeder->is_stopping))
            pause_until(next);
    }
    call_loops(feeder, true, arena);
    if (feed_all(feeder) == NULL && sync_lists(feeder, arena) == NULL)
        call_loops(feeder, true, arena);
    arena_free(arena);
    latch_done(&feeder->running);
}

/* --- life ---- */

static void
open_metrics(struct feeder *feeder)
{
    struct metrics *metrics = feeder->options.metrics;
    if (metrics == NULL)
        return;
    feeder->failed_count =
        metrics_counter(metrics, "cadenza_visibility_feeds_failed_total",
                        "Writes of visibility that failed and are retried.", NULL);
    feeder->delay =
        metrics_histogram(metrics, "cadenza_visibility_feed_latency",
                          "From the commit of a change until visibility shows it.", NULL);
}

struct feeder *
feeder_new(const struct feeder_options *options)
{
    struct feeder *feeder = memory_zalloc(1, sizeof *feeder);
    feeder->options = *options;
    feeder->loops = memory_zalloc(loop_count(), sizeof feeder->loops[0]);
    feeder->shards = memory_zalloc(options->shard_count, sizeof feeder->shards[0]);
    feeder->sync_time = NEVER;
    list_init(&feeder->waiting);
    latch_init(&feeder->running, 0);
    fiber_cond_init(&feeder->changed);
    for (unsigned i = 0; i < loop_count(); i++) {
        feeder->loops[i].feeder = feeder;
        feeder->loops[i].message.deliver = deliver;
        list_init(&feeder->loops[i].message.node);
        list_init(&feeder->loops[i].changes);
    }
    open_metrics(feeder);
    return feeder;
}

void
feeder_start(struct feeder *feeder)
{
    check(loop_index(loop_self()) == 0 && !feeder->is_started);
    feeder->is_started = true;
    latch_add(&feeder->running, 1);
    fiber_start("feeder", feeder_fiber, feeder);
}

void
feeder_stop(struct feeder *feeder)
{
    atomic_store(&feeder->is_stopping, true);
    fiber_cond_broadcast(&feeder->changed);
    latch_wait(&feeder->running);
}

static void
drop_changes(struct list *changes)
{
    for (struct list *node; (node = list_pop_front(changes)) != NULL;)
        memory_free(list_entry(node, struct visibility_update, node));
}

/* A message may still be on its way to loop 0: it has arrived once every loop has answered a call.
 */
static void
pass(void *argument)
{
}

void
feeder_free(struct feeder *feeder)
{
    check(feeder->running.open == 0); /* feeder_stop has returned */
    loop_call_every(pass, NULL);
    for (unsigned i = 0; i < loop_count(); i++)
        drop_changes(&feeder->loops[i].changes);
    drop_changes(&feeder->waiting);
    memory_free(feeder->loops);
    memory_free(feeder->shards);
    memory_free(feeder);
}
