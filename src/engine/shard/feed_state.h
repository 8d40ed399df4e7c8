/* feed_state.h - what visibility is fed of the runs, as a tenure has it, and what shard/ asks of
 * feed/, which stands above it and does the work. */
#ifndef CADENZA_ENGINE_SHARD_FEED_STATE_H
#define CADENZA_ENGINE_SHARD_FEED_STATE_H

#include "base/list.h"
#include "engine/shard/shard.h"
#include "fiber/sync.h"
#include "fiber/timer.h"

struct tenure;

struct visibility_feed {
    struct list undurable; /* struct visibility_update, by ticket */
    /* Rows from here on were not handed over, and are in the store only; 0: none. While it is set,
     * new rows stay out of memory too. At first all are unread. */
    uint64_t unread_from;
    ticket_t unread_ticket; /* of the newest step that left rows there */
    bool is_begun;          /* it is known what visibility has */
    uint64_t given;         /* newest row that was handed over, or that visibility had before */
    uint64_t handed;        /* newest row that this tenure handed over */
    uint64_t fed, safe;     /* shard_visibility_stored */
    struct timer stall;     /* pending while something is handed over and not fed */
    int64_t heard;          /* monotonic: when `fed` rose last, or the timer was started */
    bool is_stalled;        /* nothing was heard for long: something may have got lost */
    unsigned doubts;        /* how often it seemed to lack what was handed over */
    uint64_t trimmed;       /* rows up to this are gone; the shard record says so */
    bool is_without;        /* older versions wrote no rows: visibility lacks runs */
    int64_t trim_time;      /* monotonic: not before */
    /* Asked for, begun, done so often; what the last one came to. */
    uint64_t rebuilds_wanted, rebuilds_done, rebuilt_runs;
    struct fiber_cond changed;
};

void visibility_init(struct tenure *tenure);
void visibility_free(struct tenure *tenure);
/* What the shard record says; NULL: there is none yet. And the other way. */
void visibility_begin(struct tenure *tenure, const STORED(ShardRecord) *record);
void visibility_note(const struct tenure *tenure, STORED(ShardRecord) *record);
/* How a run looks after a step that is about to be submitted: handed to visibility once durable. */
void visibility_enter(struct tenure *tenure, const struct run *run, const struct domain *domain,
                      uint64_t row, struct arena *arena);
/* The run goes with this batch, before which the range was renewed: visibility is notified. */
void visibility_put_gone(struct tenure *tenure, const struct run_key *key, struct batch *batch);
void visibility_release(struct tenure *tenure, ticket_t durable);
/* Deletes by the way what visibility has safely. */
void visibility_fill(struct tenure *tenure, struct batch *batch);
/* Hands over what is in the store only, rebuilds visibility; ends with the tenure. */
void visibility_fiber(void *tenure);

#endif
