/* outbox.h - a row of the outbox in memory, and what the files of outbox/ ask of outbox.c. */
#ifndef CADENZA_ENGINE_OUTBOX_OUTBOX_H
#define CADENZA_ENGINE_OUTBOX_OUTBOX_H

#include "engine/shard/outbox_state.h"

struct tenure;

enum transfer_state {
    TRANSFER_UNDURABLE, /* in outbox.undurable, by ticket */
    TRANSFER_WAITING,   /* in outbox.waiting */
    TRANSFER_REFUSED,   /* in outbox.refused */
    TRANSFER_HELD,      /* in outbox.held: its run is not active here */
    TRANSFER_DELAYED,   /* in the queue of its workflow id (throttle.c) */
    TRANSFER_OFFERED,   /* in no list */
};

struct transfer {
    struct list node;
    enum transfer_state state;
    ticket_t ticket;
    struct task task; /* its texts lie behind it; of a cross-workflow task only the row and the
                         run's domain */
    const char *attribute_scope, *attribute_name; /* of the run; NULL: none */
    int64_t event_version;                        /* of the run when the row was written */
    bool is_cross_task;
    bool runs_anywhere;   /* its run need not be active here */
    bool notifies_parent; /* ... where workflows of the domain are active in several clusters */
    bool had_turn;        /* of a task: it has waited for its turn */
    bool is_waiting_long; /* counted as such (deferred.c) */
    bool is_counted;      /* as one of an entity whose region its domain does not have */
    bool was_deferred;
    bool is_repeat;    /* of a cross-workflow task: it was begun before, or may have been */
    unsigned attempts; /* that came to nothing: it failed, or was refused */
    struct priority_node retry; /* in cross_tasks.delayed; by monotonic time */
    uint64_t cursor;            /* where its next portion begins */
    struct slice request_queue; /* names the queue that it waits in, lies behind it; empty: none */
};

/* --- outbox.c ---- */

/* A row that is not known and in no list is known from now on, undurable or waiting. */
void outbox_know(struct outbox *outbox, struct transfer *transfer, enum transfer_state state);
/* A row is done: it goes with the next batch. Harmless when it is not known. */
void outbox_done(struct tenure *tenure, uint64_t row);
/* Is there room to read rows that are in the store only? */
bool outbox_has_room(const struct outbox *outbox);
/* A row has left memory: if there is room now, those who waited for it go on. */
void outbox_room_came(struct outbox *outbox);
/* A row that was deferred is known again, in no list. */
void outbox_return(struct tenure *tenure, struct transfer *transfer, enum transfer_state state);

/* --- transfer.c ---- */

/* A row as memory has it, not known yet. */
struct transfer *transfer_new(struct tenure *tenure, uint64_t row,
                              const STORED(TransferRow) *stored);
/* The same from the store. Errors: ERR_CORRUPT. */
must_use struct error *transfer_read(struct tenure *tenure, uint64_t row, struct slice value,
                                     struct arena *arena, struct transfer **transfer);

/* --- offer.c ---- */

/* Offers the rows that wait, but for what must not go on yet. */
void outbox_offer(struct tenure *tenure);
/* The same, those that were refused first. */
void outbox_offer_refused(struct tenure *tenure);
/* A task that nothing keeps goes to its list before its step is durable: where a poll waits, its
 * start is decided on what is in memory and gathers into the same group, and the poller hears of it
 * when both are durable. If the step fails the tenure ends, and the start with it. Cross-workflow
 * tasks act on other workflows and wait; so does what would have to rest, since only durable rows
 * are deferred. */
void outbox_offer_early(struct tenure *tenure, struct transfer *transfer);

/* --- read.c ---- */

typedef struct error *take_row_function(struct tenure *tenure, uint64_t row, struct slice value,
                                        struct arena *arena);

/* One page of the rows from `from` on, each given to `take`, until the tenure is over. `next`:
 * where the next page begins, 0: there is none. Yields. */
must_use struct error *outbox_read_page(struct tenure *tenure, uint64_t from,
                                        take_row_function *take, struct arena *arena,
                                        uint64_t *next);
/* Is there something that is in the store only, and room for it? */
bool outbox_may_read(const struct outbox *outbox);
/* One page of that. Yields. */
void outbox_read_on(struct tenure *tenure, struct arena *arena);

#endif
