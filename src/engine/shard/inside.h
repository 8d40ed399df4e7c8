/* inside.h - a shard and its tenure: what all files that work inside of them share. Only the files
 * of shard/ and of the rooms above it (outbox/, feed/, outgoing/, failover/, incoming/, repair/)
 * include it. What a tenure is made of has a header for each part; what it has of the rooms above
 * is in outbox_state.h, reservations.h, feed_state.h, outgoing_state.h and failover_state.h.
 *
 * A *tenure* is one period of ownership: from the commit that raised the range id until the shard
 * is lost or closed. Everything that the owner knows belongs to it, so losing the shard is dropping
 * one thing. A fiber that works in a tenure has entered it (a count), and it is freed when the last
 * one has left: a fiber that comes back from a wait finds it whole, asks is_over, and goes. */
#ifndef CADENZA_ENGINE_SHARD_INSIDE_H
#define CADENZA_ENGINE_SHARD_INSIDE_H

#include "base/limit.h"
#include "engine/shard/applied_domains.h"
#include "engine/shard/checks.h"
#include "engine/shard/failover_state.h"
#include "engine/shard/feed_state.h"
#include "engine/shard/metrics.h"
#include "engine/shard/outbox_state.h"
#include "engine/shard/outgoing_state.h"
#include "engine/shard/recent.h"
#include "engine/shard/reservations.h"
#include "engine/shard/shard.h"
#include "engine/shard/wakeups.h"
#include "engine/shard/workflows.h"
#include "fiber/loop.h"
#include "fiber/sync.h"
#include "store/key.h"

#define RUNS_MAX      1024  /* runs and workflow ids in memory */
#define BATCHES_MAX   4096  /* that wait to be committed */
#define TRANSFERS_MAX 65536 /* rows of the outbox in memory */
#define WAKEUPS_MAX   16384 /* wake-up timers in memory */

/* Numbers of a range: (range id << 24) | counter. A step may use as many as are kept back. */
#define RANGE_BITS  24
#define RANGE_SPARE ((uint64_t)1 << 20)

struct tenure {
    struct shard *shard;
    struct arena *arena;  /* of the failure */
    uint64_t range_first; /* range ids of this tenure: from this one ... */
    uint64_t range_id;    /* ... to this one */
    struct row_ids ids;
    struct writer *writer;
    bool is_over;          /* lost or closed */
    struct error *failure; /* why it was lost */
    struct latch users;
    struct workflows workflows;
    struct outbox outbox;
    struct wakeups wakeups;
    struct applied_domains applied_domains;
    struct visibility_feed visibility_feed;
    struct recent recent;
    struct replicating replicating;
    struct tenure_reservations reservations;
    struct markers markers;
    struct {
        struct map *runs;   /* run id → struct failing_run */
        struct limit lines; /* of the log */
        uint64_t left_out;  /* lines since the last one */
    } failing;
    struct map *watched; /* run id → struct watched */
    struct map *queried; /* run id → struct queried */
    int64_t record_time; /* monotonic: when the shard record was last written */
    bool is_record_due;
};

struct shard {
    struct shard_options options;
    struct partition partition;
    struct random random;
    struct tenure *tenure; /* NULL: not owned */
    struct domain_listener listener;
    struct fiber_mutex taking;
    unsigned failures; /* takes in a row that came to nothing */
    int64_t take_time; /* monotonic: no take before this */
    bool is_retaking;  /* a fiber tries to take it again */
    bool is_closing;
    bool is_behind; /* the last take failed since the owner of the domains did not answer */
    struct fiber_cond changed;
    struct latch busy; /* fibers of the shard itself: burials, retaking */
    bool runs_cross_tasks;
    struct latch cross_tasks; /* fibers, of all tenures */
    struct id_limits *limits;
    struct shard_metrics shard_metrics;
    struct loop *loop;        /* that it lives on */
    unsigned archiving;       /* runs on their way into the archive */
    int64_t archive_log_time; /* monotonic: a failure is logged not before */
#ifdef CADENZA_FAULT_stale_cache_kept
    struct tenure *buried; /* the last one, not freed yet */
#endif
};

/* Begins with this range id; knows nothing yet. */
struct tenure *tenure_new(struct shard *shard, uint64_t range_id);
/* Reads what the last owner left. Yields. */
must_use struct error *tenure_read(struct tenure *tenure, struct arena *arena);
/* From now on nobody enters, and those who are in leave as soon as they run; then it is freed. */
void tenure_end(struct tenure *tenure);
/* Ends it because of a failure, and takes the shard again if nobody else may. */
void shard_lose(struct tenure *tenure, const struct error *failure);
/* Nobody is in it. Yields. */
void tenure_free(struct tenure *tenure);
/* An error of the store as callers see it. */
must_use struct error *tenure_caller_error(const struct error *failure, struct arena *arena);
/* Enters the tenure, taking the shard if `range_id` is 0; tenure_leave when done. Yields. Errors:
 * ERR_SHARD_OWNERSHIP_LOST, ERR_UNAVAILABLE. */
must_use struct error *tenure_enter(struct shard *shard, uint64_t range_id, struct arena *arena,
                                    struct tenure **tenure);
void tenure_leave(struct tenure *tenure);
/* Why a tenure that is over ended, as a caller sees it. */
must_use struct error *tenure_error(const struct tenure *tenure, struct arena *arena);
/* Waits until a ticket is durable. Yields. Errors: as a caller sees them. */
must_use struct error *tenure_wait(struct tenure *tenure, ticket_t ticket, struct arena *arena);
/* Nobody has overtaken us, at a moment after the call: what we know is all there is, and what was
 * read is ours to use; else it may be newer than what we have in memory, and nothing fits together.
 * Where there can be another owner, our writer confirms it. Yields. Errors: the shard is lost then;
 * ERR_DEADLINE, ERR_CANCELLED. */
must_use struct error *tenure_check_owned(struct tenure *tenure, struct arena *arena);
/* A whole range of numbers, for those who need many at once: *first … *end - 1. Later ones are all
 * higher. */
void tenure_reserve_range(struct tenure *tenure, uint64_t *first, uint64_t *end);
/* Begins a range of numbers if the old one is nearly used up. Before a step context is made of it.
 */
void tenure_renew_range(struct tenure *tenure);
/* A batch of this tenure, and the end of one: what is to be written by the way goes into it. */
struct batch *tenure_batch(struct tenure *tenure, struct arena *arena);
ticket_t tenure_submit(struct tenure *tenure, struct batch *batch);
/* Starts a fiber that has entered the tenure. */
void tenure_start_fiber(struct tenure *tenure, const char *name, void (*function)(void *argument),
                        void *argument);

#endif
