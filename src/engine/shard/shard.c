/* shard.c - the life of a shard: taken, held, lost, taken again, closed.
 *
 *   NOT OWNED --take--> OWNED --a commit fails--> NOT OWNED --take--> ...
 *
 * Taking raises the guard of the partition first, with a commit that writes nothing else: from then
 * on no older owner writes, so what is read next (the shard record, outbox, wake-up timers) stays
 * true. The record says which version of the domains was handled: an owner that has not heard of
 * that yet waits. Then a tenure begins (inside.h), and its first batch is the shard record.
 *
 * A failed commit ends the tenure at once: everything known is dropped, those who wait get the
 * writer's error, watchers hear that it is lost. The tenure is buried by a fiber when all who were
 * in it have left. A shard that nobody else may own is taken again by a fiber that does not give
 * up; else the next call takes it. When a process starts it takes all of its shards, and what fails
 * ends the start, with one exception: that the owner of the domains does not answer passes, so the
 * shard is taken once more (shard_open). Each time the guard is raised first, so a store that has
 * failed meanwhile still ends it. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/applied_domains.h"
#include "engine/shard/feed_state.h"
#include "engine/shard/inside.h"
#include "engine/shard/metrics.h"
#include "engine/shard/outbox_state.h"
#include "engine/shard/outgoing_state.h"
#include "engine/shard/reservations.h"
#include "engine/shard/wakeups.h"
#include "engine/shard/workflows.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "wire/errors.h"
#include "wire/message.h"

#define RETAKE_DELAY_MIN (10 * NS_PER_MS)
#define RETAKE_DELAY_MAX (5 * NS_PER_S)
#define RAISE_ATTEMPTS   5

struct shard *
shard_new(const struct shard_options *options)
{
    struct shard *shard = memory_zalloc(1, sizeof *shard);
    shard->options = *options;
    struct shard_options *own = &shard->options;
    own->runs_max = own->runs_max == 0 ? RUNS_MAX : own->runs_max;
    own->batches_max = own->batches_max == 0 ? BATCHES_MAX : own->batches_max;
    own->transfers_max = own->transfers_max == 0 ? TRANSFERS_MAX : own->transfers_max;
    own->wakeups_max = own->wakeups_max == 0 ? WAKEUPS_MAX : own->wakeups_max;
    check(own->transfers_max >= 2 && own->wakeups_max >= 4);
    check((own->reservations.ask == NULL) == (own->reservations.end == NULL));
    shard->loop = loop_self();
    shard->partition = PARTITION_OF_SHARD(own->number);
    random_seed(&shard->random, entropy_u64());
    fiber_mutex_init(&shard->taking);
    fiber_cond_init(&shard->changed);
    latch_init(&shard->busy, 0);
    latch_init(&shard->cross_tasks, 0);
    shard->limits = limits_new(&(struct limits_options){
        .dynamic = own->dynamic, .log = own->log, .metrics = own->metrics});
    applied_domains_listen(shard);
    shard_metrics_init(shard);
    return shard;
}

/* A tenure that is over has no owner; whatever the shard started is counted. */
void
shard_check(const struct shard *shard)
{
    const struct tenure *tenure = shard->tenure;
    check(shard->loop == loop_self());
    check(tenure == NULL || (tenure->shard == shard && !tenure->is_over));
    check(!shard->is_retaking || shard->busy.open > 0);
    check(shard->failures == 0 || shard->take_time > 0);
}

bool
shard_is_owned(const struct shard *shard)
{
    return shard->tenure != NULL;
}

uint32_t
shard_number(const struct shard *shard)
{
    return shard->options.number;
}

uint64_t
shard_range_id(const struct shard *shard)
{
    return shard->tenure == NULL ? 0 : shard->tenure->range_id;
}

/* --- losing ---- */

static void retake_fiber(void *argument);

/* The next one comes later, and later each time. */
static void
note_failed_take(struct shard *shard, const struct error *err)
{
    int64_t delay = RETAKE_DELAY_MIN << (shard->failures < 10 ? shard->failures : 10);
    shard->failures++;
    delay = delay < RETAKE_DELAY_MAX ? delay : RETAKE_DELAY_MAX;
    shard->take_time = clock_monotonic() + delay;
    log_warn(shard->options.log, "Shard could not be taken.",
             log_number("shard-id", shard->options.number), log_error(err));
}

void
shard_lose(struct tenure *tenure, const struct error *failure)
{
    struct shard *shard = tenure->shard;
    shard_check(shard);
    if (tenure->failure == NULL)
        tenure->failure = error_copy(tenure->arena, failure);
    if (tenure->is_over) /* known already, or we are closing */
        return;
    probe("shard_lost");
    log_warn(shard->options.log, "Shard was lost.", log_number("shard-id", shard->options.number),
             log_number("shard-range-id", (int64_t)tenure->range_id), log_error(failure));
    if (shard->shard_metrics.metrics != NULL)
        counter_add(shard->shard_metrics.lost, 1);
    list_each(node, &tenure->markers.due)
        metrics_marker_failed(shard);
    if (writer_durable(tenure->writer) == 0) /* somebody was faster: do not fight for it */
        note_failed_take(shard, failure);
    tenure_end(tenure);
    if (!shard->options.is_alone || shard->is_retaking || shard->is_closing)
        return;
    shard->is_retaking = true;
    latch_add(&shard->busy, 1);
    fiber_start("shard retake", retake_fiber, shard);
}

/* On the loop's own stack, in order of the tickets. */
static void
tenure_on_durable(void *context, ticket_t durable, const struct error *failure)
{
    struct tenure *tenure = context;
    check(durable <= writer_newest(tenure->writer));
    if (failure != NULL) {
        shard_lose(tenure, failure);
        return;
    }
    tenure->shard->failures = 0;
    workflows_release(tenure, durable);
    reservations_release(tenure, durable);
    outbox_release(tenure, durable);
    applied_domains_release(tenure, durable);
    visibility_release(tenure, durable);
    replicate_release(tenure, durable);
}

/* --- taking ---- */

/* From now on older owners are fenced. Yields. */
static struct error *
raise_guard(struct shard *shard, struct arena *arena, uint64_t *range_id)
{
    for (int attempt = 1;; attempt++) {
        uint64_t guard;
        struct error *err = store_guard(shard->options.store, shard->partition, arena, &guard);
        if (err != NULL)
            return err;
        struct batch *batch = batch_new(arena, shard->partition, guard + 1);
        *range_id = guard + 1;
        check(*range_id < UINT64_MAX >> RANGE_BITS); /* else numbers would begin again */
        err = store_commit(shard->options.store, batch, guard, arena);
        bool is_race = err != NULL && err->kind == ERR_FENCED; /* another host was faster */
        if (!is_race || attempt == RAISE_ATTEMPTS)
            return err;
    }
}

static struct error *
shard_begin(struct shard *shard, struct arena *arena)
{
    uint64_t range_id;
    shard->is_behind = false;
    struct error *err = raise_guard(shard, arena, &range_id);
    if (err != NULL)
        return err;
    struct tenure *tenure = tenure_new(shard, range_id);
    err = tenure_read(tenure, arena);
    if (err != NULL || shard->is_closing) {
        tenure->is_over = true;
        tenure_free(tenure);
        return err != NULL ? err
                           : error_new(arena, ERR_UNAVAILABLE, "The server is shutting down.");
    }
    check(shard->tenure == NULL && tenure->users.open == 0);
    shard->tenure = tenure;
    writer_on_durable(tenure->writer, tenure_on_durable, tenure);
    tenure_submit(tenure, tenure_batch(tenure, arena)); /* the shard record */
    markers_resume(tenure);
    tenure_start_fiber(tenure, "shard outbox", outbox_fiber, tenure);
    tenure_start_fiber(tenure, "shard wake-up timers", wakeups_fiber, tenure);
    if (shard->options.visibility.give != NULL)
        tenure_start_fiber(tenure, "shard visibility", visibility_fiber, tenure);
    if (shard->options.group != NULL && cluster_group_has_peers(shard->options.group))
        tenure_start_fiber(tenure, "shard peers", replicate_watch_fiber, tenure);
    return NULL;
}

/* The lock is held. */
static struct error *
shard_take_locked(struct shard *shard, struct arena *arena)
{
    check(shard->taking.owner == fiber_self());
    if (shard->tenure != NULL)
        return NULL;
    if (shard->is_closing)
        return error_new(arena, ERR_UNAVAILABLE, "The server is shutting down.");
    struct error *err = shard_begin(shard, arena);
    if (err != NULL) {
        note_failed_take(shard, err);
        return err;
    }
    shard->take_time = clock_monotonic(); /* an attempt that failed before says nothing any more */
    probe("shard_taken");
    log_info(shard->options.log, "Shard taken.", log_number("shard-id", shard->options.number),
             log_number("shard-range-id", (int64_t)shard->tenure->range_id));
    metrics_taken(shard);
    return NULL;
}

struct error *
shard_take(struct shard *shard, struct arena *arena)
{
    shard_check(shard);
    if (shard->tenure != NULL)
        return NULL;
    struct error *err = fiber_mutex_lock(&shard->taking, arena);
    if (err != NULL)
        return err;
    err = shard_take_locked(shard, arena);
    fiber_mutex_unlock(&shard->taking);
    return err;
}

struct error *
shard_open(struct shard *shard, struct arena *arena)
{
    for (;;) {
        scoped(arena_drop) struct arena *attempt = arena_new(0);
        struct error *err = shard_take(shard, attempt);
        if (err == NULL)
            return NULL;
        if (!shard->is_behind)
            return error_copy(arena, err);
        probe("shard_opening_waits");
        int64_t pause = shard->take_time - clock_monotonic();
        struct error *end = fiber_sleep(pause > 0 ? pause : 0, arena);
        if (end != NULL)
            return error_wrap(end, "%s", err->message);
    }
}

static void
retake_fiber(void *argument)
{
    struct shard *shard = argument;
    struct arena *arena = arena_new(0);
    enum wake wake = WAKE_READY;
    while (shard->tenure == NULL && !shard->is_closing && wake != WAKE_CANCELLED) {
        if (clock_monotonic() < shard->take_time) {
            wake = fiber_cond_wait(&shard->changed, shard->take_time);
            continue;
        }
        struct error *err = shard_take(shard, arena);
        if (err == NULL)
            probe("shard_taken_again");
        arena_reset(arena);
    }
    arena_free(arena);
    check(shard->is_retaking);
    shard->is_retaking = false;
    latch_done(&shard->busy);
}

/* For a call: does not wait for a shard that cannot be taken just now. */
static struct error *
shard_take_for_call(struct shard *shard, struct arena *arena)
{
    if (shard->tenure == NULL && clock_monotonic() < shard->take_time)
        return error_new(arena, ERR_UNAVAILABLE, "Shard %u cannot be taken, try again.",
                         shard->options.number);
    struct error *err = shard_take(shard, arena);
    return err == NULL ? NULL : tenure_caller_error(err, arena);
}

struct error *
tenure_enter(struct shard *shard, uint64_t range_id, struct arena *arena, struct tenure **entered)
{
    shard_check(shard);
    if (range_id == 0) {
        struct error *err = shard_take_for_call(shard, arena);
        if (err != NULL)
            return err;
    }
    struct tenure *tenure = shard->tenure;
    bool is_ours =
        tenure != NULL &&
        (range_id == 0 || (range_id >= tenure->range_first && range_id <= tenure->range_id));
    if (!is_ours)
        return errors_shard_ownership_lost(arena, "");
    latch_add(&tenure->users, 1);
    *entered = tenure;
    return NULL;
}

/* --- closing ---- */

/* Rows that are done go now: the next owner need not offer them again. */
static void
flush_deletes(struct tenure *tenure)
{
    if (tenure->outbox.deletes.count == 0 || !writer_has_room(tenure->writer))
        return;
    struct arena *arena = arena_new(0);
    tenure_submit(tenure, tenure_batch(tenure, arena));
    arena_free(arena);
}

void
shard_close(struct shard *shard)
{
    shard_check(shard);
    check(!shard->is_closing);
    shard->is_closing = true;
    domains_unlisten(&shard->listener);
    shard->runs_cross_tasks = false;
    fiber_cond_broadcast(&shard->changed);
    if (shard->tenure != NULL) {
        flush_deletes(shard->tenure);
        tenure_end(shard->tenure);
    }
    latch_wait(&shard->busy);
    check(shard->tenure == NULL && shard->taking.owner == NULL);
    check(!shard->is_retaking && shard->cross_tasks.open == 0 && shard->archiving == 0);
#ifdef CADENZA_FAULT_stale_cache_kept
    if (shard->buried != NULL)
        tenure_free(shard->buried);
#endif
    limits_free(shard->limits);
    shard_metrics_free(shard);
    memory_free(shard);
}

/* --- asked by operators ---- */

static size_t
count_held(const struct outbox *outbox)
{
    size_t count = 0;
    list_each(node, &outbox->held)
        count++;
    return count;
}

struct shard_state
shard_state(const struct shard *shard)
{
    const struct tenure *tenure = shard->tenure;
    shard_check(shard);
    if (tenure == NULL)
        return (struct shard_state){0};
    return (struct shard_state){
        .is_owned = true,
        .range_id = tenure->range_id,
        .runs = tenure->workflows.weight,
        .transfers = map64_count(tenure->outbox.known),
        .transfers_held = count_held(&tenure->outbox),
        .has_unread_transfers = tenure->outbox.unread_from != 0,
        .wakeups = map64_count(tenure->wakeups.by_row),
        .wakeups_held = tenure->wakeups.held_count,
        .wakeup_level = tenure->wakeups.level,
    };
}

void
shard_give_up(struct shard *shard)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    shard_check(shard);
    if (shard->tenure != NULL)
        shard_lose(shard->tenure, error_new(arena, ERR_UNAVAILABLE, "an operator closed shard %u",
                                            shard->options.number));
}
