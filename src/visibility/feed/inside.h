/* inside.h - what the files of feed/ share: the feeder, and what goes between it and the places of
 * shards. */
#ifndef CADENZA_VISIBILITY_FEED_INSIDE_H
#define CADENZA_VISIBILITY_FEED_INSIDE_H

#include <stdatomic.h>

#include "base/metrics.h"
#include "fiber/sync.h"
#include "fiber/timer.h"
#include "route/tell.h"
#include "visibility/feed/feeder.h"

/* Changes that come within it go together: at the place that gathers them, and with the feeder. */
#define GATHER_DELAY NS_PER_MS
/* Of updates that a place has handed over and that are not done; so much of all places together
 * waits with the feeder. */
#define BYTES_MAX ((size_t)4 * 1024 * 1024)

/* --- values (values.c) ------------------------------------------------------------------------ */

/* Updates of one place: from there to the feeder. */
struct visibility_batch {
    struct route_value value;
    struct list node; /* with the feeder */
    unsigned place;
    uint64_t end;        /* bytes that the place has handed over, this included */
    struct list updates; /* struct visibility_update */
    size_t bytes;
};
struct visibility_batch *visibility_batch_new(unsigned place);
void visibility_batch_free(struct visibility_batch *batch);

/* How far visibility is: from the feeder to one place. */
struct visibility_levels {
    struct route_value value;
    uint64_t done; /* of the bytes that the place handed over */
    size_t count;
    struct visibility_level {
        uint32_t shard;
        uint64_t fed, safe;
    } level[];
};
struct visibility_levels *visibility_levels_new(size_t count);

/* Nothing more is taken: what a place has gathered is sent at once. */
struct visibility_flush {
    struct route_value value;
};

extern const struct route_notice visibility_updates_notice, visibility_levels_notice,
    visibility_flush_notice;

/* --- where shards are (place.c) --------------------------------------------------------------- */

/* Touched at its place only, as long as that runs. */
struct feed_place {
    struct feeder *feeder;
    struct timer timer; /* when what was gathered goes */
    struct visibility_batch *gathered;
    uint64_t given, done; /* bytes */
    int64_t heard;        /* monotonic: when `done` grew last, or there was nothing to do */
};
void place_init(struct feed_place *place, struct feeder *feeder);
/* The place does not run any more. */
void place_free(struct feed_place *place);
bool place_give(void *feeder, struct visibility_update *update);
void place_take_levels(void *feeder, struct route_value *value);
void place_take_flush(void *feeder, struct route_value *value);

/* --- the feeder (feeder.c) -------------------------------------------------------------------- */

/* What visibility has of a shard. */
struct feed_shard {
    struct list node;                   /* in unreported of its source: it does not know it yet */
    uint64_t taken;                     /* newest row that was taken, or that was there already */
    uint64_t beginning;                 /* row of the newest one that was taken */
    size_t waiting, beginnings_waiting; /* updates that are taken and not fed */
    uint64_t fed, safe;                 /* of what was taken */
};

/* Of a place. */
struct feed_source {
    struct list unreported; /* struct feed_shard */
    size_t unreported_count;
    uint64_t done, reported; /* bytes */
};

/* `places` is the places'; the rest is touched where the domains live. */
struct feeder {
    struct feeder_options options;
    struct route_service service;
    struct feed_place *places;
    atomic_bool is_stopping;
    bool is_started, is_ending;
    struct feed_source *sources;
    struct feed_shard *shards;
    struct list arrived;  /* struct visibility_batch: for the next round */
    struct list waiting;  /* of this round, not fed yet */
    size_t waiting_bytes; /* of both */
    struct latch running;
    struct fiber_cond changed;
    int64_t sync_time; /* monotonic: when it is due; NEVER: all is safe */
    size_t round;      /* changes that were fed in this round */
    struct counter *failed_count;
    struct histogram *delay;
};
void feeder_check(const struct feeder *feeder);
struct feed_shard *feeder_shard(struct feeder *feeder, uint32_t number);
void feeder_take_updates(void *feeder, struct route_value *value);

/* --- rounds.c --------------------------------------------------------------------------------- */

/* Feeds what is taken, until the feeder ends. */
void rounds_fiber(void *feeder);

#endif
