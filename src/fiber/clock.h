/* clock.h - time and randomness of the host that runs this code: real ones, or simulated by seed.
 */
#ifndef CADENZA_FIBER_CLOCK_H
#define CADENZA_FIBER_CLOCK_H

#include <stdint.h>

#include "base/arena.h"
#include "base/uuid.h"

#define NS_PER_US 1000LL
#define NS_PER_MS 1000000LL
#define NS_PER_S  1000000000LL

/* Nanoseconds since 1970, UTC. May jump; for what people see and what is stored. */
int64_t clock_wall(void);
/* Nanoseconds of a clock that never goes back; read once per tick, so cheap. For deadlines. */
int64_t clock_monotonic(void);

/* Moves the wall clock of this process ahead, for all its loops (or back, if negative, as tests
 * do); the monotonic clock stays, so deadlines do, and code that waits for a wall time has to be
 * notified. Threads outside of the loops keep the real one. */
void clock_skip(int64_t nanoseconds);

/* A number, bytes that nobody can guess (in simulation: by seed). */
uint64_t entropy_u64(void);
void entropy_bytes(void *bytes, size_t count);
/* Uniform in 0 .. bound - 1. */
uint64_t entropy_below(uint64_t bound);
/* New ids of this moment. */
struct uuid uuid_new_v4(void);
struct uuid uuid_new_v7(void);
/* A v4 as text, in the arena. */
char *uuid_new_text(struct arena *arena);

#endif
