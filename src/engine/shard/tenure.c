/* tenure.c - one time of ownership: what it holds, what its callers are told, the batches it
 * writes.
 *
 * The shard record and the deletes of rows that are done ride along with batches that are written
 * anyway. The record's levels tell the next owner from where to read. */
#include "base/check.h"
#include "base/memory.h"
#include "engine/shard/inside.h"
#include "fiber/clock.h"
#include "fiber/mark.h"
#include "wire/errors.h"
#include "wire/message.h"

#define RECORD_INTERVAL (60 * NS_PER_S) /* the shard record is written so often, by the way */

struct tenure *
tenure_new(struct shard *shard, uint64_t range_id)
{
    const struct shard_options *options = &shard->options;
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
    alarms_init(tenure, options->alarms_max);
    visible_init(tenure);
    recent_init(tenure, RECENT_MAX);
    replicate_init(tenure);
    claims_init(tenure);
    markers_init(tenure);
    watches_init(tenure);
    failing_init(tenure);
    queries_init(tenure);
    return tenure;
}

void
tenure_free(struct tenure *tenure)
{
    check(tenure->users.open == 0);
    writer_close(tenure->writer);
    workflows_free(tenure);
    outbox_free(tenure);
    alarms_free(tenure);
    visible_free(tenure);
    recent_free(tenure);
    replicate_free(tenure);
    markers_free(tenure);
    watches_free(tenure);
    failing_free(tenure);
    queries_free(tenure);
    view_free(tenure);
    arena_free(tenure->arena);
    memory_free(tenure);
}

static void
bury_fiber(void *argument)
{
    struct tenure *tenure = argument;
    struct shard *shard = tenure->shard;
    latch_wait(&tenure->users);
#ifdef CADENZA_PLANT_stale_cache_kept
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
    tenure->is_over = true;
    shard->tenure = NULL;
    figures_ended(shard);
    fiber_cond_broadcast(&tenure->outbox.changed);
    fiber_cond_broadcast(&tenure->alarms.changed);
    fiber_cond_broadcast(&tenure->visible.changed);
    latch_add(&shard->busy, 1);
    fiber_start("shard bury", bury_fiber, tenure);
    watches_lose(tenure);
    replicate_lose(tenure);
    claims_lose(tenure);
    queries_lose(tenure);
}

void
tenure_leave(struct tenure *tenure)
{
    latch_done(&tenure->users);
}

void
tenure_start_fiber(struct tenure *tenure, const char *name, void (*function)(void *argument),
                   void *argument)
{
    latch_add(&tenure->users, 1);
    fiber_start(name, function, argument);
}

/* --- what callers are told ---- */

struct error *
tenure_told_error(const struct error *failure, struct arena *arena)
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
    return tenure_told_error(tenure->failure, arena);
}

struct error *
tenure_wait(struct tenure *tenure, ticket_t ticket, struct arena *arena)
{
    struct error *err = writer_wait(tenure->writer, ticket, arena);
    return err == NULL ? NULL : tenure_told_error(err, arena);
}

/* --- batches ---- */

static void
next_range(struct tenure *tenure)
{
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
    mark("shard_range_renewed");
    next_range(tenure);
}

void
tenure_reserve_range(struct tenure *tenure, uint64_t *first, uint64_t *end)
{
    next_range(tenure);
    *first = tenure->ids.next;
    *end = tenure->ids.end;
    next_range(tenure);
}

static struct slice
record_key(struct arena *arena)
{
    struct key_writer key;
    key_begin(&key, arena);
    key_text(&key, slice_text("shard"));
    return key_end(&key);
}

static void
put_record(struct tenure *tenure, struct batch *batch)
{
    STORED(ShardRecord) *record = message_new(batch->arena, STORED_TYPE(shard_record));
    record->format = RUN_RECORD_FORMAT;
    record->range_id = tenure->range_id;
    record->timer_read_level = alarms_raise_level(tenure);
    record->transfer_level = outbox_level(tenure);
    record->domain_version = tenure->view.handled;
    record->failovers = tenure->view.failovers;
    visible_note(tenure, record);
    replicate_note(tenure, record, batch->arena);
    markers_note(tenure, record, batch->arena);
    record->taken_time = clock_wall();
    record->owner = (char *)tenure->shard->options.host;
    batch_put(batch, ROW_SHARD, record_key(batch->arena),
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
    check(!tenure->is_over);
    outbox_fill(tenure, batch);
    visible_fill(tenure, batch);
    replicate_fill(tenure, batch);
    if (tenure->is_record_due || clock_monotonic() - tenure->record_time > RECORD_INTERVAL)
        put_record(tenure, batch);
    return writer_submit(tenure->writer, batch);
}

/* --- reading ---- */

struct error *
tenure_read(struct tenure *tenure, struct arena *arena)
{
    struct shard *shard = tenure->shard;
    bool found;
    struct slice value;
    STORED(ShardRecord) *record = message_new(arena, STORED_TYPE(shard_record));
    struct error *err = store_get(shard->options.store, shard->partition, ROW_SHARD,
                                  record_key(arena), arena, &found, &value);
    if (err == NULL && found)
        err = message_decode_as(arena, ERR_CORRUPT, STORED_TYPE(shard_record), value, &record);
    if (err == NULL)
        err = alarms_begin(tenure, record->timer_read_level, arena);
    if (err == NULL)
        err = outbox_begin(tenure, record->transfer_level, arena);
    if (err == NULL)
        visible_begin(tenure, found ? record : NULL);
    if (err == NULL)
        err = replicate_begin(tenure, record, arena);
    if (err == NULL)
        markers_begin(tenure, record);
    if (err == NULL)
        err = view_begin(tenure, record->domain_version, record->failovers, arena); /* last */
    return err;
}
