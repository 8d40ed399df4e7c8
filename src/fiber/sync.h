/* sync.h - mutex, condition and latch between fibers of one loop. No thread is ever blocked by
 * them.
 *
 * First come, first served. All are plain values: initialise, use, forget; when they go away nobody
 * may wait. */
#ifndef CADENZA_FIBER_SYNC_H
#define CADENZA_FIBER_SYNC_H

#include "base/error.h"
#include "base/list.h"
#include "fiber/fiber.h"

struct fiber_mutex {
    struct fiber *owner; /* NULL: free */
    struct list waiters;
};
void fiber_mutex_init(struct fiber_mutex *mutex);
/* Takes the mutex, in order of arrival. Yields. Errors: ERR_DEADLINE, ERR_CANCELLED (not taken). */
must_use struct error *fiber_mutex_lock(struct fiber_mutex *mutex, struct arena *arena);
/* Hands it to the first waiter. Only the owner may. */
void fiber_mutex_unlock(struct fiber_mutex *mutex);
/* For scoped(fiber_mutex_release) struct fiber_mutex *held = ...; NULL is fine. */
void fiber_mutex_release(struct fiber_mutex **mutex);

struct fiber_cond {
    struct list waiters;
};
void fiber_cond_init(struct fiber_cond *cond);
/* Waits for a signal. Yields. Check your condition again afterwards. */
must_use enum wake fiber_cond_wait(struct fiber_cond *cond, int64_t deadline);
void fiber_cond_signal(struct fiber_cond *cond);    /* wakes the first waiter */
void fiber_cond_broadcast(struct fiber_cond *cond); /* wakes all present waiters */

/* Counts open work down to zero: start n things, wait for all. */
struct latch {
    unsigned open;
    struct fiber_cond zero;
};
void latch_init(struct latch *latch, unsigned open);
void latch_add(struct latch *latch, unsigned more);
void latch_done(struct latch *latch);
/* Waits until none is open. Yields; cannot be cancelled. */
void latch_wait(struct latch *latch);
/* The same until a deadline; false: still open. */
must_use bool latch_wait_until(struct latch *latch, int64_t deadline);

#endif
