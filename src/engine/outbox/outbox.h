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

/* A row is done: it goes with the next batch. Harmless when it is not known. */
void outbox_done(struct tenure *tenure, uint64_t row);
/* Is there room to read rows that are in the store only? */
bool outbox_has_room(const struct outbox *outbox);
/* A row has left memory: if there is room now, those who waited for it go on. */
void outbox_room_came(struct outbox *outbox);
/* A row that was deferred is known again, in no list. */
void outbox_return(struct tenure *tenure, struct transfer *transfer, enum transfer_state state);
/* A row as memory has it, not known yet. Errors: ERR_CORRUPT. */
must_use struct error *transfer_read(struct tenure *tenure, uint64_t row, struct slice value,
                                     struct arena *arena, struct transfer **transfer);

#endif
