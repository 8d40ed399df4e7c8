/* outbox_state.h - the rows that say what has to happen elsewhere, as a tenure has them, and what
 * shard/ asks of outbox/, which stands above it and does the work. */
#ifndef CADENZA_ENGINE_SHARD_OUTBOX_STATE_H
#define CADENZA_ENGINE_SHARD_OUTBOX_STATE_H

#include "base/map.h"
#include "base/priority.h"
#include "base/vector.h"
#include "engine/shard/shard.h"
#include "fiber/sync.h"

struct tenure;

/* Rows that are work on other workflows (outbox/cross_task_fibers.c). */
struct cross_tasks {
    struct list ready;       /* struct transfer */
    struct priority delayed; /* struct transfer, which failed, by when it is tried again */
    struct list not_active;  /* those of them that failed since a domain is not active here */
    uint64_t sequence;
    unsigned running;
    struct map *lines;     /* name → struct request_queue: who waits until others are done */
    size_t accepted_count; /* rows that wait in queues, or will */
};

/* Tasks that wait because their workflow id had too many (throttle.c). */
struct throttle {
    struct map *queues;    /* domain id, NUL, workflow id → struct throttle_queue */
    struct priority turns; /* of the queues, by when the next task may go */
    struct list unread;    /* queues whose next tasks are in the store only */
    uint64_t sequence;
    int64_t tick_time; /* monotonic: when the limits want to know the time; NEVER: they do not */
};

/* Rows that wait for long and of which memory keeps no more than the number (deferred.c). */
struct deferred_rows {
    struct map64 *rows; /* row → enum deferred_for, as a pointer */
    size_t rows_max;
    size_t waiting_long; /* known rows that wait for long */
    size_t returned;     /* known rows that were deferred */
    uint64_t low;    /* no row that is or was deferred and is not gone is lower; 0: there is none */
    uint64_t cursor; /* rows from here on are to be looked at, which may go on; 0: none */
    bool is_changed; /* a domain has, since that began */
    int64_t retry_time; /* monotonic: when those that failed may go on; NEVER: none has */
    int64_t read_time;  /* monotonic: not before, after a scan that failed */
};

struct outbox {
    struct map64 *known; /* row → struct transfer, rows rising; exactly those we may delete */
    struct list undurable, waiting, refused, held;
    size_t known_max;
    /* Rows from here on are in the store and not known; 0: none is. While it is set, new rows stay
     * out of memory too, so that a scan and a step can never both bring one in. */
    uint64_t unread_from;
    ticket_t unread_ticket; /* of the newest step that left rows there */
    int64_t read_time;      /* monotonic: not before, after a scan that failed */
    /* Rows from here on may be on their way into the store with a batch that is being submitted,
     * and are not known yet. */
    uint64_t entered_to;
    vector_of(uint64_t) deletes; /* done, and not yet in a batch */
    int64_t flush_time;          /* monotonic: when the deletes go on their own; NEVER: none */
    int64_t retry_time;          /* when refused ones are offered again; NEVER: none */
    struct cross_tasks cross_tasks;
    struct throttle throttle;
    struct deferred_rows deferred_rows;
    struct fiber_cond changed;
};

/* --- outbox.c ---- */

void outbox_init(struct tenure *tenure, size_t known_max);
void outbox_free(struct tenure *tenure);
/* Rows from `level` on are in the store: reads as many as there is room for. Yields. */
must_use struct error *outbox_begin(struct tenure *tenure, uint64_t level, struct arena *arena);
/* The row is not needed any more: it goes with this batch, if it is known. */
void outbox_drop(struct tenure *tenure, uint64_t row, struct batch *batch);
/* Rows that a submitted batch has put. */
void outbox_enter(struct tenure *tenure, const struct effects *effects, ticket_t ticket);
void outbox_release(struct tenure *tenure, ticket_t durable);
/* Puts what waits to be deleted into a batch. */
void outbox_fill(struct tenure *tenure, struct batch *batch);
/* No row is below this, nor will be. */
uint64_t outbox_level(const struct tenure *tenure);
/* Offers, reads on, deletes; ends with the tenure. */
void outbox_fiber(void *tenure);
/* Is the row in the store, or can that not be said? */
bool outbox_may_have(const struct outbox *outbox, uint64_t row);

/* --- throttle.c ---- */

/* Takes the turn of a task that goes to a worker without a row; `context` is the tenure. See
 * struct run_context. */
bool throttle_take(void *context, const char *domain_id, const char *workflow_id);

/* --- held.c: what waits for its domain to be active here; no yield ---- */

/* Keeps a task that was to be started, though its run is not active here; there is room. Returns
 * the ticket after which the list may forget it. */
ticket_t tenure_keep_task(struct tenure *tenure, const struct task *task, const struct run *run,
                          struct arena *arena);
/* The domain has changed: what waits for it goes on, or is held again. */
void held_wake(struct tenure *tenure, const struct domain *domain);
/* Entities have changed: the same for what belongs to one. */
void held_wake_entities(struct tenure *tenure);

#endif
