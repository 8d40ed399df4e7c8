/* deferred.h - rows that wait for long: memory keeps the number of most only (deferred.c). */
#ifndef CADENZA_ENGINE_OUTBOX_DEFERRED_H
#define CADENZA_ENGINE_OUTBOX_DEFERRED_H

#include "engine/outbox/outbox.h"

struct tenure;

/* What a deferred row waits for. */
enum deferred_for {
    DEFERRED_FOR_DOMAIN = 1,
    DEFERRED_FOR_RETRY,
    DEFERRED_FOR_TURN, /* its queue knows it */
};

void deferred_init(struct outbox *outbox);
void deferred_free(struct outbox *outbox);
/* A known row, in no list, is going to wait for long. False: it was deferred, and has
 * left memory. */
must_use bool transfer_begin_long_wait(struct outbox *outbox, struct transfer *transfer,
                                       enum deferred_for why);
/* Defers it in any case. */
void transfer_defer(struct outbox *outbox, struct transfer *transfer, enum deferred_for why);
/* It no longer waits, or goes. */
void transfer_end_long_wait(struct outbox *outbox, struct transfer *transfer);
/* Is the row deferred, for this? And: it no longer is (false: it was not). */
must_use bool deferred_has(const struct outbox *outbox, uint64_t row, enum deferred_for why);
bool deferred_take(struct outbox *outbox, uint64_t row);
/* A known row that was deferred is gone. */
void deferred_forget(struct outbox *outbox);
/* A domain has changed: what is deferred for one is looked at. */
void deferred_domain_changed(struct outbox *outbox);
/* Takes back what may go on, one page. Yields. */
void deferred_work(struct tenure *tenure, struct arena *arena);
/* When it has something to do, as it stands at this moment; NEVER: nothing. */
int64_t deferred_next_time(const struct outbox *outbox);

#endif
