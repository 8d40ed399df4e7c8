/* fiber.h - straight-line code that may wait: a stack of its own, scheduled by its loop.
 *
 * A fiber runs until it waits; nothing else of its loop runs meanwhile. "Yields" in a comment
 * means: what you read before may be old afterwards. Every wait has a deadline and can be
 * cancelled: a fiber carries a deadline (none at first) and a cancelled flag that every wait below
 * observes. A wait that ends early says so with ERR_DEADLINE or ERR_CANCELLED.
 *
 * Stacks have a guard page below them and come from a pool of the loop. A fiber whose function
 * returned is gone; keep no pointer to it past that (the function's end is the last word, use a
 * latch to wait for it). */
#ifndef CADENZA_FIBER_FIBER_H
#define CADENZA_FIBER_FIBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"

#define FIBER_STACK_SIZE (128 * 1024)
#define NEVER            INT64_MAX /* a deadline that does not come */

struct fiber;

/* Starts function(argument) as a fiber of the current loop; it first runs later in this tick.
 * `name` must be a literal; it is shown in dumps. */
struct fiber *fiber_start(const char *name, void (*function)(void *argument), void *argument);
/* The running fiber, NULL on the loop's own stack. */
struct fiber *fiber_self(void);
/* How many fibers live on this loop. */
size_t fiber_count(void);

/* Lets every other runnable fiber of the loop go first. */
void fiber_yield(void);
/* Waits until the monotonic clock has advanced by `nanoseconds`. Yields. Errors: ERR_DEADLINE (the
 * fiber's own deadline came first), ERR_CANCELLED. */
must_use struct error *fiber_sleep(int64_t nanoseconds, struct arena *arena);

/* The fiber's deadline on the monotonic clock; NEVER at first. */
int64_t fiber_deadline(void);
void fiber_set_deadline(int64_t deadline);
/* From now on every wait of that fiber ends at once with ERR_CANCELLED; one that waits now is
 * woken. Same loop only. */
void fiber_cancel(struct fiber *fiber);
bool fiber_is_cancelled(void);

/* The base of everything that waits. */
enum wake {
    WAKE_READY,     /* somebody called fiber_wake */
    WAKE_DEADLINE,  /* the given deadline, or the fiber's own, has come */
    WAKE_CANCELLED, /* fiber_cancel */
};
/* Waits until fiber_wake, `deadline` (monotonic) or cancel. Yields. A wake that comes before the
 * wait is not lost: the next wait returns at once. The caller keeps itself findable (a list, a
 * field) and takes itself out afterwards. */
must_use enum wake fiber_wait(int64_t deadline);
/* The same, but it cannot be cancelled and ignores the fiber's own deadline: for waits that own
 * memory of others. */
void fiber_wait_uncancellable(void);
/* Makes a waiting fiber runnable. Same loop only. */
void fiber_wake(struct fiber *fiber);
/* The error that belongs to a wake: NULL, ERR_DEADLINE or ERR_CANCELLED, "… while <doing>". */
must_use struct error *wake_error(enum wake wake, struct arena *arena, const char *doing);

/* Asserts that its block does not yield: NO_YIELD { decide(); adopt(); } */
#define NO_YIELD                                                                                   \
    for (uint64_t no_yield_mark = fiber_switches(), no_yield_once = 1; no_yield_once;              \
         no_yield_once = 0, fiber_check_no_yield(no_yield_mark))
uint64_t fiber_switches(void);
void fiber_check_no_yield(uint64_t mark);

#endif
