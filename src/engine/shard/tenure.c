/* tenure.c - one period of ownership: what it holds, what its callers are told, the batches it
 * writes.
 *
 * The shard record and the deletes of rows that are done ride along with batches that are written
 * anyway. The record's levels tell the next owner from where to read. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/applied_domains.h"
#include "engine/shard/feed_state.h"
#include "engine/shard/inside.h"
#include "engine/shard/metrics.h"
#include "engine/shard/outbox_state.h"
#include "engine/shard/outgoing_state.h"
#include "engine/shard/recent.h"
#include "engine/shard/reservations.h"
#include "engine/shard/wakeups.h"
#include "engine/shard/watches.h"
#include "engine/shard/workflows.h"
#include "fiber/clock.h"
#include "fiber/probe.h"
#include "store/key.h"
#include "wire/errors.h"
#include "wire/message.h"

#define SHARD_KEY       "shard"         /* of the only row of its kind */
#define RECORD_INTERVAL (60 * NS_PER_S) /* the shard record is written so often, by the way */

struct tenure *
tenure_new(struct shard *shard, uint64_t range_id)
{
    const struct shard_options *options = &shard->options;
    check(range_id > 0 && range_id < UINT64_MAX >> RANGE_BITS);
    struct tenure *tenure = memory_zalloc(1, sizeof *tenure);
    tenure->shard = shard;
    tenure->arena = arena_new(512);
    tenure->range_first = tenure->range_id = range_id;
    tenure->ids.next = (range_id << RANGE_BITS) + 1;
    tenure->ids.end = (range_id + 1) << RANGE_BITS;
    tenure->is_record_due = true;
    tenure->writer =
        writer_open(options->store, shard->partition, range_id, (unsigned)options->batches_max);
    latch_init(&tenure->users, 0);
    workflows_init(tenure, options->runs_max);
    outbox_init(tenure, options->transfers_max);
    wakeups_init(tenure, options->wakeups_max);
    visibility_init(tenure);
    recent_init(tenure, RECENT_MAX);
    replicate_init(tenure);
    reservations_init(tenure);
    markers_init(tenure);
    watches_init(tenure);
    failing_init(tenure);
    queries_init(tenure);
    return tenure;
}

/* The numbers that are left lie in the newest range, and the store has not heard of a later one. */
static void
numbers_check(const struct tenure *tenure)
{
    check(tenure->range_first > 0 && tenure->range_first <= tenure->range_id);
    check(tenure->ids.next > tenure->range_id << RANGE_BITS);
    check(tenure->ids.next <= tenure->ids.end);
    check(tenure->ids.end == (tenure->range_id + 1) << RANGE_BITS);
    check(writer_guard(tenure->writer) >= tenure->range_first);
    check(writer_guard(tenure->writer) <= tenure->range_id);
    check(tenure->outbox.entered_to <= tenure->ids.next);
    check(tenure->replicating.durable < tenure->ids.next);
}

void
tenure_check(const struct tenure *tenure)
{
    check(tenure->shard->tenure == tenure ? !tenure->is_over : tenure->shard->loop == loop_self());
    check(writer_durable(tenure->writer) <= writer_newest(tenure->writer));
    numbers_check(tenure);
    workflows_check(&tenure->workflows);
    outbox_check(&tenure->outbox);
    wakeups_check(&tenure->wakeups);
    applied_domains_check(&tenure->applied_domains);
    visibility_feed_check(&tenure->visibility_feed);
    recent_check(&tenure->recent);
    replicating_check(&tenure->replicating);
    tenure_reservations_check(&tenure->reservations);
    markers_check(&tenure->markers);
    watches_check(tenure);
    failing_check(tenure);
}

void
tenure_free(struct tenure *tenure)
{
    check(tenure->users.open == 0 && tenure->is_over && tenure->shard->tenure != tenure);
    check(list_is_empty(&tenure->reservations.poll_deliveries)); /* polls were told */
    check(tenure->outbox.cross_tasks.running == 0);
    writer_close(tenure->writer);
    workflows_free(tenure);
    outbox_free(tenure);
    wakeups_free(tenure);
    visibility_free(tenure);
    recent_free(tenure);
    replicate_free(tenure);
    markers_free(tenure);
    watches_free(tenure);
    failing_free(tenure);
    queries_free(tenure);
    applied_domains_free(tenure);
    arena_free(tenure->arena);
    memory_free(tenure);
}

static void
bury_fiber(void *argument)
{
    struct tenure *tenure = argument;
    struct shard *shard = tenure->shard;
    latch_wait(&tenure->users);
#ifdef CADENZA_FAULT_stale_cache_kept
    struct tenure *before = shard->buried;
    shard->buried = tenure;
    tenure = before;
    if (tenure != NULL)
#endif
        tenure_free(tenure);
    latch_done(&shard->busy);
}

void
tenure_end(struct tenure *tenure)
{
    struct shard *shard = tenure->shard;
    check(!tenure->is_over && shard->tenure == tenure);
    tenure_check(tenure);
    tenure->is_over = true;
    shard->tenure = NULL;
    metrics_ended(shard);
    fiber_cond_broadcast(&tenure->outbox.changed);
    fiber_cond_broadcast(&tenure->wakeups.changed);
    fiber_cond_broadcast(&tenure->visibility_feed.changed);
    latch_add(&shard->busy, 1);
    fiber_start("shard bury", bury_fiber, tenure);
    watches_lose(tenure);
    replicate_lose(tenure);
    reservations_lose(tenure);
    queries_lose(tenure);
}

void
tenure_leave(struct tenure *tenure)
{
    check(tenure->users.open > 0);
    latch_done(&tenure->users);
}

void
tenure_start_fiber(struct tenure *tenure, const char *name, void (*function)(void *argument),
                   void *argument)
{
    check(!tenure->is_over); /* else it may be freed before the fiber runs */
    latch_add(&tenure->users, 1);
    fiber_start(name, function, argument);
}

/* --- what callers are told ---- */

struct error *
tenure_caller_error(const struct error *failure, struct arena *arena)
{
    if (failure->kind == ERR_DEADLINE || failure->kind == ERR_CANCELLED)
        return error_copy(arena, failure);
    if (failure->kind == ERR_FENCED)
        return errors_shard_ownership_lost(arena, "");
    return error_new(arena, ERR_UNAVAILABLE, "The shard was lost, try again: %s", failure->message);
}

struct error *
tenure_error(const struct tenure *tenure, struct arena *arena)
{
    if (tenure->failure == NULL)
        return error_new(arena, ERR_UNAVAILABLE, "The server is shutting down.");
    return tenure_caller_error(tenure->failure, arena);
}

struct error *
tenure_wait(struct tenure *tenure, ticket_t ticket, struct arena *arena)
{
    struct error *err = writer_wait(tenure->writer, ticket, arena);
    return err == NULL ? NULL : tenure_caller_error(err, arena);
}

/* --- batches ---- */

static void
next_range(struct tenure *tenure)
{
    check(tenure->range_id + 1 < UINT64_MAX >> RANGE_BITS);
    tenure->range_id++; /* the next batch raises the guard to it */
    tenure->ids.next = (tenure->range_id << RANGE_BITS) + 1;
    tenure->ids.end = (tenure->range_id + 1) << RANGE_BITS;
    tenure->is_record_due = true;
}

void
tenure_renew_range(struct tenure *tenure)
{
    if (tenure->ids.end - tenure->ids.next > RANGE_SPARE)
        return;
    probe("shard_range_renewed");
    next_range(tenure);
    check(tenure->ids.end - tenure->ids.next > RANGE_SPARE);
}

void
tenure_reserve_range(struct tenure *tenure, uint64_t *first, uint64_t *end)
{
    next_range(tenure);
    *first = tenure->ids.next;
    *end = tenure->ids.end;
    next_range(tenure);
    check(*first < *end && *end <= tenure->ids.next);
}

static void
put_record(struct tenure *tenure, struct batch *batch)
{
    STORED(ShardRecord) *record = message_new(batch->arena, STORED_TYPE(shard_record));
    check(batch->guard_next == tenure->range_id); /* the record names the range of its own commit */
    record->format = RUN_RECORD_FORMAT;
    record->range_id = tenure->range_id;
    record->timer_read_level = wakeups_raise_level(tenure);
    record->transfer_level = outbox_level(tenure);
    record->domain_version = tenure->applied_domains.handled;
    record->failovers = tenure->applied_domains.failovers;
    visibility_note(tenure, record);
    replicate_note(tenure, record, batch->arena);
    markers_note(tenure, record, batch->arena);
    record->taken_time = clock_wall();
    record->owner = (char *)tenure->shard->options.host;
    batch_put(batch, ROW_SHARD, key_of_text(SHARD_KEY, batch->arena),
              message_encode(batch->arena, &record->base));
    tenure->record_time = clock_monotonic();
    tenure->is_record_due = false;
}

struct batch *
tenure_batch(struct tenure *tenure, struct arena *arena)
{
    return batch_new(arena, tenure->shard->partition, tenure->range_id);
}

ticket_t
tenure_submit(struct tenure *tenure, struct batch *batch)
{
    check(!tenure->is_over && tenure->shard->tenure == tenure);
    check(batch->guard_next <= tenure->range_id);
    outbox_fill(tenure, batch);
    visibility_fill(tenure, batch);
    replicate_fill(tenure, batch);
    if (tenure->is_record_due || clock_monotonic() - tenure->record_time > RECORD_INTERVAL)
        put_record(tenure, batch);
    ticket_t ticket = writer_submit(tenure->writer, batch);
    tenure_check(tenure);
    return ticket;
}

/* --- reading ---- */

struct error *
tenure_read(struct tenure *tenure, struct arena *arena)
{
    struct shard *shard = tenure->shard;
    check(shard->taking.owner == fiber_self() && writer_newest(tenure->writer) == 0);
    bool found;
    struct slice value;
    STORED(ShardRecord) *record = message_new(arena, STORED_TYPE(shard_record));
    struct error *err = store_get(shard->options.store, shard->partition, ROW_SHARD,
                                  key_of_text(SHARD_KEY, arena), arena, &found, &value);
    if (err == NULL && found)
        err = message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(shard_record), value, &record);
    if (err == NULL)
        err = wakeups_begin(tenure, record->timer_read_level, arena);
    if (err == NULL)
        err = outbox_begin(tenure, record->transfer_level, arena);
    if (err == NULL)
        visibility_begin(tenure, found ? record : NULL);
    if (err == NULL)
        err = replicate_begin(tenure, record, arena);
    if (err == NULL)
        markers_begin(tenure, record);
    if (err == NULL)
        err = applied_domains_begin(tenure, record->domain_version, record->failovers,
                                    arena); /* last */
    return err;
}
