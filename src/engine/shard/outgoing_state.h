/* outgoing_state.h - what goes to other clusters, as a tenure has it, and what shard/ asks
 * of outgoing/, which stands above it and does the work. */
#ifndef CADENZA_ENGINE_SHARD_OUTGOING_STATE_H
#define CADENZA_ENGINE_SHARD_OUTGOING_STATE_H

#include "base/list.h"
#include "base/map.h"
#include "base/vector.h"
#include "engine/shard/shard.h"
#include "fiber/sync.h"

struct step_batch;
struct tenure;

/* --- rows for other clusters (replicate.c) ---- */

struct replicating {
    struct list recent; /* struct replica, rows rising: all from memory_from on that one needs */
    size_t bytes, bytes_max;
    uint64_t memory_from;
    uint64_t durable; /* rows up to this are in the store, if they are at all */
    struct replication_peer *peers;
    uint64_t handed;                     /* the highest of all */
    uint64_t trimmed;                    /* rows up to this are gone; the shard record says so */
    int64_t trim_time;                   /* monotonic: not before */
    vector_of(uint64_t) deletes;         /* single ones above that, not yet in a batch */
    struct map *activities;              /* run id and schedule id → the newest struct replica */
    struct list watches;                 /* struct replication_watch */
    uint64_t index_next;                 /* of the next row */
    struct fiber_mutex dead_letter_lock; /* one dead letter at a time */
    bool are_dead_letters_counted;       /* none was kept or forgotten since */
    struct fiber_cond over;              /* for replicate_watch_fiber */
};

void replicate_init(struct tenure *tenure);
void replicate_free(struct tenure *tenure);
/* What the shard record says (yields; errors: the store's); and the other way. */
must_use struct error *replicate_begin(struct tenure *tenure, const STORED(ShardRecord) *record,
                                       struct arena *arena);
void replicate_note(const struct tenure *tenure, STORED(ShardRecord) *record, struct arena *arena);
/* Rows of a step that is about to be submitted go into its batch. */
void replicate_put(const struct step_batch *step_batch);
void replicate_release(struct tenure *tenure, ticket_t durable);
/* Deletes by the way what nobody needs any more. */
void replicate_fill(struct tenure *tenure, struct batch *batch);
/* The tenure is over. */
void replicate_lose(struct tenure *tenure);
/* Looks now and then how far clusters are behind; drops what is too much (lag.c). */
void replicate_watch_fiber(void *tenure);

#endif
