/* skip.h - the clock jumps when everything waits for timers: for people's own tests (`cadenza dev
 * --skip-time`).
 *
 * The rule. The wall clock jumps to the moment at which the first open run needs something, if
 *   1. at least one run waits for a moment that it chose: a timer, the next attempt of an activity,
 *      a delayed start or a schedule; timeouts of runs do not count;
 *   2. nothing is under way: no step, no cross-workflow task, no decision and no activity that a
 *      worker has or could get, whether one polls or not;
 *   3. that was so for SKIP_QUIET of real time, in which nothing happened at all.
 * Then time passes for all: timeouts and retention of other runs come in their turn. Deadlines of
 * calls and polls are real time and do not jump. */
#ifndef CADENZA_SERVER_SKIP_H
#define CADENZA_SERVER_SKIP_H

#include "engine/engine.h"
#include "fiber/clock.h"

#define SKIP_QUIET (20 * NS_PER_MS)

/* What was seen so far. All zero: nothing. */
struct skip {
    uint64_t changes;    /* as of the last observation */
    int64_t quiet_since; /* monotonic; 0: it is not quiet */
};

/* Takes an observation into account; returns how far to jump now, 0: not yet. Pure. */
int64_t skip_decide(struct skip *skip, const struct shard_idle *idle, int64_t wall,
                    int64_t monotonic);

struct skipper;
/* Looks every few milliseconds and jumps. On the only loop there is. */
struct skipper *skipper_start(struct engine *engine, const struct log *log);
/* Yields; cannot be cancelled. NULL does nothing. */
void skipper_stop(struct skipper *skipper);

#endif
