/* feeder.c - see feeder.h.
 *
 * Shards hand over at their places (place.c), which send what they gathered; here it waits for the
 * next round of a fiber, which feeds it and tells the places how far the shards are.
 *
 * Updates of a shard are fed in rising order of their rows and without a gap: one whose
 * predecessor is missing is dropped, and so is what came before. */
#include "visibility/feed/feeder.h"

#include "base/check.h"
#include "base/memory.h"
#include "cadenza/internal/v1/visibility.pb-c.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/probe.h"
#include "route/ask.h"
#include "visibility/feed/inside.h"
#include "wire/names.h"

/* --- invariants ---- */

void
feeder_check(const struct feeder *feeder)
{
    check(route_is_here(owner_of_domains()));
    if (!CHECK_DEEPLY)
        return;
    size_t bytes = 0;
    list_each(node, &feeder->arrived)
        bytes += list_entry(node, struct visibility_batch, node)->bytes;
    list_each(node, &feeder->waiting)
        bytes += list_entry(node, struct visibility_batch, node)->bytes;
    check(bytes == feeder->waiting_bytes);
}

/* --- taking ---- */

struct feed_shard *
feeder_shard(struct feeder *feeder, uint32_t number)
{
    check(number < feeder->options.shard_count);
    return &feeder->shards[number];
}

/* Does it come next? A beginning always does, but once: what is behind it must not go. */
static bool
take_update(struct feed_shard *shard, const struct visibility_update *update)
{
    const struct visible_change *change = &update->change;
    bool is_next = change->is_beginning
                       ? change->row > shard->beginning
                       : change->row > shard->taken && update->after <= shard->taken;
#ifdef CADENZA_FAULT_visibility_gap_ignored
    is_next = change->is_beginning ? is_next : change->row > shard->taken;
#endif
    if (!is_next)
        return false;
    shard->taken = change->row;
    shard->waiting++;
    shard->beginnings_waiting += change->is_beginning;
    if (change->is_beginning)
        shard->beginning = change->row;
    return true;
}

void
feeder_take_updates(void *context, struct route_value *value)
{
    struct feeder *feeder = context;
    struct visibility_batch *batch = container_of(value, struct visibility_batch, value);
    feeder_check(feeder);
    check(batch->place < route_place_count());
    if (feeder->waiting_bytes > BYTES_MAX * route_place_count()) { /* more than any place may */
        probe("visibility_updates_dropped");
        visibility_batch_free(batch);
        return;
    }
    list_each_safe(node, &batch->updates) {
        struct visibility_update *update = list_entry(node, struct visibility_update, node);
        if (take_update(feeder_shard(feeder, update->change.shard), update))
            continue;
        probe("visibility_update_not_next");
        batch->bytes -= update->size;
        list_remove(node);
        memory_free(update);
    }
    feeder->waiting_bytes += batch->bytes;
    list_push_back(&feeder->arrived, &batch->node);
    fiber_cond_broadcast(&feeder->changed);
}

/* --- being asked ---- */

/* What visibility has of a shard, and with what waits for it. Another host may have been the owner
 * of the shard since we fed it. Yields. */
static struct error *
read_level(struct feeder *feeder, uint32_t number, struct arena *arena, uint64_t *level)
{
    struct feed_shard *shard = feeder_shard(feeder, number);
    uint64_t fed;
    do {
        fed = shard->fed;
        struct error *err = visibility_level(feeder->options.visibility, number, arena, level);
        if (err != NULL)
            return err;
    } while (fed != shard->fed); /* it was fed meanwhile */
    if (shard->waiting == 0 || (*level > shard->taken && shard->beginnings_waiting == 0))
        shard->taken = *level;
    return NULL;
}

static struct error *
serve_level(void *context, struct owner owner, const void *argument, struct arena *arena,
            void *result)
{
    struct feeder *feeder = context;
    const INTERNAL(VisibilityLevelRequest) *request = argument;
    INTERNAL(VisibilityLevelAnswer) *answer = result;
    feeder_check(feeder);
    uint64_t level = 0;
    struct error *err = read_level(feeder, request->shard, arena, &level);
    const struct feed_shard *shard = feeder_shard(feeder, request->shard);
    answer->newest = shard->taken;
    answer->fed = level;
    answer->safe = shard->safe < level ? shard->safe : level;
    return err;
}

/* How far visibility is with a shard. It changes nothing; a shard that hears nothing asks again. */
static const struct route_question ask_level = {
    .name = "visibility.level",
    .request = INTERNAL_TYPE(visibility_level_request),
    .answer = INTERNAL_TYPE(visibility_level_answer),
    .serve = serve_level,
    .may_come_twice = true,
};

static struct error *
level(void *context, uint32_t shard, struct arena *arena, struct visible_level *level)
{
    struct feeder *feeder = context;
    INTERNAL(VisibilityLevelRequest) request = INTERNAL_VALUE(VISIBILITY_LEVEL_REQUEST__INIT);
    INTERNAL(VisibilityLevelAnswer) answer = INTERNAL_VALUE(VISIBILITY_LEVEL_ANSWER__INIT);
    request.shard = shard;
    struct error *err =
        route_ask(owner_of_domains(), &feeder->service, &ask_level, &request, arena, &answer);
    *level = (struct visible_level){answer.newest, answer.fed, answer.safe};
    return err;
}

struct visible_port
feeder_port(struct feeder *feeder)
{
    return (struct visible_port){.level = level, .give = place_give, .context = feeder};
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
    feeder->service.context = feeder;
    feeder->places = memory_zalloc(route_place_count(), sizeof feeder->places[0]);
    feeder->sources = memory_zalloc(route_place_count(), sizeof feeder->sources[0]);
    feeder->shards = memory_zalloc(options->shard_count, sizeof feeder->shards[0]);
    feeder->sync_time = NEVER;
    list_init(&feeder->arrived);
    list_init(&feeder->waiting);
    latch_init(&feeder->running, 0);
    fiber_cond_init(&feeder->changed);
    for (unsigned i = 0; i < route_place_count(); i++) {
        place_init(&feeder->places[i], feeder);
        list_init(&feeder->sources[i].unreported);
    }
    for (uint32_t i = 0; i < options->shard_count; i++)
        list_init(&feeder->shards[i].node);
    open_metrics(feeder);
    return feeder;
}

void
feeder_start(struct feeder *feeder)
{
    feeder_check(feeder);
    check(!feeder->is_started);
    feeder->is_started = true;
    latch_add(&feeder->running, 1);
    fiber_start("feeder", rounds_fiber, feeder);
}

/* Until nothing is on its way. */
static void
wait_arrived(struct feeder *feeder)
{
    while (atomic_load(&feeder->service.on_the_way) > 0)
        fiber_yield();
}

void
feeder_stop(struct feeder *feeder)
{
    feeder_check(feeder);
    atomic_store(&feeder->is_stopping, true);
    for (unsigned i = 0; i < route_place_count(); i++) {
        struct visibility_flush *flush = memory_zalloc(1, sizeof *flush);
        route_tell_surely(owner_at_place(i), &feeder->service, &visibility_flush_notice,
                          &flush->value);
    }
    wait_arrived(feeder);
    feeder->is_ending = true;
    fiber_cond_broadcast(&feeder->changed);
    latch_wait(&feeder->running);
    wait_arrived(feeder); /* the shards know before they close */
}

static void
drop_batches(struct list *batches)
{
    for (struct list *node; (node = list_pop_front(batches)) != NULL;)
        visibility_batch_free(list_entry(node, struct visibility_batch, node));
}

void
feeder_free(struct feeder *feeder)
{
    check(feeder->running.open == 0); /* feeder_stop has returned */
    check(atomic_load(&feeder->service.on_the_way) == 0);
    for (unsigned i = 0; i < route_place_count(); i++)
        place_free(&feeder->places[i]);
    drop_batches(&feeder->arrived);
    drop_batches(&feeder->waiting);
    memory_free(feeder->places);
    memory_free(feeder->sources);
    memory_free(feeder->shards);
    memory_free(feeder);
}
