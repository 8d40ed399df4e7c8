/* held.h - rows whose run is not active here: they wait for their domain (held.c). No yield. What
 * shard/ asks of it is in shard/outbox_state.h and shard/wakeups.h. */
#ifndef CADENZA_ENGINE_OUTBOX_HELD_H
#define CADENZA_ENGINE_OUTBOX_HELD_H

#include "engine/outbox/outbox.h"

struct tenure;

/* Is the run of the row active here? */
bool transfer_is_active(const struct tenure *tenure, const struct transfer *transfer);
/* In no list; it goes on when it is. */
void transfer_hold(struct tenure *tenure, struct transfer *transfer);
/* Counts it if its domain does not say where its run is active; one of an entity once. */
void transfer_count_homeless(struct tenure *tenure, struct transfer *transfer);

#endif
