/* throttle.h - tasks that wait for the turn of their workflow id (throttle.c). */
#ifndef CADENZA_ENGINE_OUTBOX_THROTTLE_H
#define CADENZA_ENGINE_OUTBOX_THROTTLE_H

#include "engine/outbox/outbox.h"

struct tenure;

void throttle_init(struct tenure *tenure);
void throttle_free(struct tenure *tenure);
/* Is a task that was never offered to wait for the limit of its workflow id? Then it is in a queue
 * there. */
bool throttle_holds(struct tenure *tenure, struct transfer *transfer);
/* Moves those whose turn it is to `waiting`, as TRANSFER_WAITING. */
void throttle_wake(struct tenure *tenure);
/* When the next one's is, as it stands at this moment; NEVER: none waits. */
int64_t throttle_next_time(const struct throttle *throttle);
/* Reads the next tasks of queues whose tasks are deferred. Yields. */
void throttle_read_next(struct tenure *tenure, struct arena *arena);

#endif
