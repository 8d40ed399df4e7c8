/* core.h - what both platforms share, and what each must provide. Only files of fiber/ include it.
 *
 * The core (core.c, stack.c, fiber.c, sync.c, timer.c, call.c, clock.c) is the scheduler: runnable
 * fibers, timers, deferred work. It knows nothing of threads, sockets or clocks. A platform owns
 * loops (it embeds a struct loop as the first member of its own), enters the loop it runs, delivers
 * messages and socket events, then calls core_loop_tick; and it provides the port below by link.
 *
 * How a fiber moves: WAITING until somebody wakes it (or its timer, or cancel), then RUNNABLE and
 * in loop->runnable, then RUNNING while loop->current is it. One that yields sits in loop->yielded
 * until the next tick, so that sockets get their turn. */
#ifndef CADENZA_FIBER_CORE_H
#define CADENZA_FIBER_CORE_H

#include <stddef.h>

#include "base/list.h"
#include "base/priority.h"
#include "fiber/fiber.h"
#include "fiber/loop.h"
#include "fiber/timer.h"

struct loop {
    struct loop_head head;
    struct platform *platform; /* the process it belongs to; each platform defines its own struct */
    struct list runnable;      /* fibers, in order */
    struct list yielded;       /* fibers that are runnable again in the next tick */
    struct list deferred;      /* struct deferred */
    struct priority timers;    /* struct timer by due time; equals in the order they were started */
    uint64_t timer_sequence;   /* of the last timer started */
    struct list fibers;        /* all that live */
    size_t fiber_count;
    struct fiber *current;    /* NULL: on the loop's own stack */
    struct list spare_stacks; /* pool of ended fibers' stacks, newest first */
    size_t spare_stack_count;
    uint64_t switches;       /* counts every switch to a fiber, for NO_YIELD */
    uint64_t fiber_sequence; /* names fibers in traces: never an address */
    int64_t now;     /* monotonic time of this tick; a platform may refresh it before callbacks */
    bool is_ticking; /* inside core_loop_tick: no kick needed */
    void *context;   /* boost context of the loop's own stack while a fiber runs */
    struct {         /* the loop's own stack, for the sanitizers */
        const void *bottom;
        size_t size;
        void *fake_stack;
        void *thread;
    } own_stack;
};

_Static_assert(offsetof(struct loop, head) == 0, "loop_head finds it at the beginning");

enum fiber_state { FIBER_RUNNABLE, FIBER_RUNNING, FIBER_WAITING, FIBER_ENDED };

/* Lies at the top of its own stack mapping: dropping the stack drops the fiber. */
struct fiber {
    struct list node;     /* in loop->fibers; of a spare stack: in loop->spare_stacks */
    struct list run_node; /* in loop->runnable or loop->yielded */
    struct loop *loop;
    const char *name;
    uint64_t number; /* from loop->fiber_sequence */
    void (*function)(void *argument);
    void *argument;
    enum fiber_state state;
    enum wake wake; /* why it runs again; valid once it left WAITING */
    bool is_woken;  /* a wake came while it was not waiting */
    bool is_cancelled;
    bool is_uncancellable; /* its present wait cannot be cancelled */
    int64_t deadline;      /* its own */
    struct timer timer;    /* of the wait it is in */
    void *context;         /* boost context while it does not run */
    void *stack_low;       /* lowest usable byte; the guard page lies below */
    size_t stack_size;     /* usable, without this struct */
    void *fake_stack;      /* AddressSanitizer's */
    void *thread;          /* ThreadSanitizer's */
};

/* ---- the core, for platforms ---- */

void core_loop_init(struct loop *loop, struct platform *platform, unsigned index);
/* Frees stacks; no fiber may live (core_loop_discard for a crash). Pending timers and deferred work
 * are forgotten: they belong to others. */
void core_loop_free(struct loop *loop);
/* Drops every fiber without running it on: a simulated crash. Stacks are freed, spare ones too.
 * Touches no timer and no deferred work, nor the memory of the timers' queue (it may be gone with
 * the host's heap: let the loop tick with that heap selected); only core_loop_init may follow. */
void core_loop_discard(struct loop *loop);
/* Makes `loop` the current one of this thread (NULL: none); returns the one before. */
struct loop *core_loop_enter(struct loop *loop);
/* The current loop of this thread or NULL, without the check of loop_self. */
struct loop *core_loop_current(void);
/* One tick at time `now`: due timers, then runnable fibers (those runnable at the start and those
 * they wake, up to a bound, so that sockets are not starved), then deferred work. The loop must be
 * the current one. True if something is still runnable or deferred. */
bool core_loop_tick(struct loop *loop, int64_t now);
/* When the next timer is due; NEVER if none. 0 if a fiber is runnable or work is deferred. */
int64_t core_loop_due(const struct loop *loop);
/* Cancels all fibers. */
void core_loop_cancel_all(struct loop *loop);
/* Prints the names of all living fibers to standard error, for the check at the end. */
void core_loop_dump(const struct loop *loop);

/* ---- inside the core ---- */

#define SPARE_STACKS_MAX 256 /* kept per loop */
#define STACK_MAPPINGS   2   /* the stack and its guard page */
/* A fiber on a stack of the loop's pool, or a new one; only the stack's fields are set. */
struct fiber *stack_take(struct loop *loop);
/* Gives the stack of an ended (or dropped) fiber back to the pool. */
void stack_give(struct loop *loop, struct fiber *fiber);
/* Unmaps all spare stacks. */
void stack_drop_spare(struct loop *loop);
/* Unmaps one stack, with the struct fiber on it. */
void stack_drop(struct fiber *fiber);
/* The earliest timer if it is due at `now`, still pending; NULL: none. */
struct timer *timer_first_due(struct loop *loop, int64_t now);
/* When the earliest timer is due; NEVER: none. */
int64_t timer_next_due(const struct loop *loop);
/* Runs a fiber until it waits, yields or ends. From the loop's own stack only. */
void fiber_resume(struct loop *loop, struct fiber *fiber);
/* fiber_wait that ends by wake or, unless it is uncancellable, by cancel; deadlines are ignored. */
enum wake fiber_wait_for(bool is_uncancellable);
/* Is it waiting, i.e. has nobody and nothing woken it yet? */
bool fiber_is_waiting(const struct fiber *fiber);
/* Something is to be done that a tick must see; kicks the platform unless a tick is running. */
void core_loop_kick(struct loop *loop);

/* ---- the port: each platform provides these by link ---- */

/* `loop` is NULL when called from a thread that is no loop (pool, worker); simulation has no such
 * thread. */
int64_t platform_clock_wall(struct loop *loop);
/* Moves the wall clock of the loop's process further ahead, from now on. */
void platform_clock_skip(struct loop *loop, int64_t nanoseconds);
void platform_entropy(struct loop *loop, void *bytes, size_t count);
struct loop *platform_loop_at(struct platform *platform, unsigned index);
unsigned platform_loop_count(const struct platform *platform);
/* Does loop_crossing say CROSSING_WHOLE, whatever is asked? */
bool platform_is_plain(const struct platform *platform);
/* See loop_crossing. */
enum crossing platform_crossing(struct loop *loop, bool may_be_lost, bool may_come_twice);
/* Puts a message into the mailbox of `to`; `is_bounded` obeys LOOP_MAILBOX_MAX (false: full). Any
 * thread. */
bool platform_post(struct loop *to, struct loop_message *message, bool is_bounded);
/* Unbounded, for all messages of the list; empties it. */
void platform_post_all(struct loop *to, struct list *messages);
/* Outside of a tick a fiber became runnable, work was deferred or a timer was started: make sure
 * that a tick comes, and call core_loop_due again. */
void platform_kick(struct loop *loop);
/* One step of interest for traces: simulation hashes it, linux ignores it. */
void platform_trace(struct loop *loop, const char *what, uint64_t number);
/* `loop` may be NULL, see above. */
void platform_probe(struct loop *loop, const char *name);

#endif
