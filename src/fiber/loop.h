/* loop.h - one thread with an event loop and its fibers; and the way between loops.
 *
 * A shard, a task list and a connection each live on one loop; their code takes no locks. What one
 * loop wants from another it sends by mailbox. Everything here acts on the current loop unless it
 * says otherwise; code that runs on no loop (main before the platform runs) must not call it.
 *
 * One tick of a loop: messages that arrived, timers that are due, sockets that are ready, fibers
 * that became runnable, then what was deferred to the end of the tick. Callbacks (messages, timers,
 * deferred work) run on the loop's own stack and must not yield; work that has to wait starts a
 * fiber. */
#ifndef CADENZA_FIBER_LOOP_H
#define CADENZA_FIBER_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"

struct loop;

/* The beginning of each loop: what stays the same for its life. */
struct loop_head {
    unsigned index, count; /* of the loops of this process */
    bool is_plain;         /* every message of it crosses as it is (loop_crossing) */
};
static inline const struct loop_head *
loop_head(const struct loop *loop)
{
    return (const struct loop_head *)loop;
}

/* The loop that runs this code. */
struct loop *loop_self(void);
/* Is this code on a loop at all? */
bool loop_is_here(void);
/* Loops of this process, 0 .. loop_count() - 1. */
static inline unsigned
loop_count(void)
{
    return loop_head(loop_self())->count;
}
struct loop *loop_at(unsigned index);
static inline unsigned
loop_index(const struct loop *loop)
{
    return loop_head(loop)->index;
}

/* Work for the end of this tick, after all runnable fibers ran: e.g. writing what several replies
 * left in a buffer. Intrusive; deferring twice in one tick runs once. Not for yielding. */
struct deferred {
    struct list node; /* list_init before first use, or use DEFERRED_INIT */
    void (*run)(struct deferred *deferred);
};
#define DEFERRED_INIT(deferred, function)                                                          \
    {                                                                                              \
        .node = LIST_INIT((deferred).node), .run = (function)                                      \
    }
void loop_defer(struct deferred *deferred);
/* Takes it back if it has not run yet. */
void loop_undefer(struct deferred *deferred);

/* A message to another loop (or to this one). Embedded in what it carries; from loop_post until
 * `deliver` is called it belongs to the mailbox. `deliver` runs on the receiving loop and must not
 * yield. */
struct loop_message {
    struct list node;
    void (*deliver)(struct loop_message *message);
};

/* Posts a new request. False: that mailbox is full (LOOP_MAILBOX_MAX messages wait), nothing
 * happened. Callable from any loop of the process. Messages of one sender arrive in order. */
#define LOOP_MAILBOX_MAX 65536
must_use bool loop_post(struct loop *to, struct loop_message *message);
/* Posts an answer to a request that was accepted; never refused, since requests are bounded. Also
 * callable from worker threads (pool.h). */
void loop_post_answer(struct loop *to, struct loop_message *message);
/* The same for all messages of a list, which it empties: their loop is woken once, for all. */
void loop_post_answers(struct loop *to, struct list *messages);

/* How a value goes from one owner to another just now (route/): in a process as it is. A simulation
 * lets it go as it would between hosts. */
enum crossing {
    CROSSING_WHOLE, /* as it is */
    CROSSING_BYTES, /* written and read again; what was there before is gone */
    CROSSING_LOST,  /* the same, and nobody hears of it */
    CROSSING_TWICE, /* the same, and it comes again */
};
enum crossing loop_crossing_now(struct loop *self, bool may_be_lost, bool may_come_twice);
/* Of the loop that runs this code. Lost and twice only where the value may be. No yield. */
static inline enum crossing
loop_crossing(struct loop *self, bool may_be_lost, bool may_come_twice)
{
    return loop_head(self)->is_plain ? CROSSING_WHOLE
                                     : loop_crossing_now(self, may_be_lost, may_come_twice);
}

/* Runs function(argument) as a fiber on another loop and waits until it has returned. Yields. The
 * other fiber inherits this one's deadline; cancelling this one cancels the other, and then still
 * waits for it: so `argument` may point to this stack. If `to` is this loop the function is simply
 * called. Errors: ERR_BUSY (mailbox full, nothing ran). The function's own result travels in
 * `argument`. */
must_use struct error *loop_call(struct loop *to, void (*function)(void *argument), void *argument,
                                 struct arena *arena);
/* The same for what has to be done: while the mailbox is full, it tries again. Yields. */
void loop_call_surely(struct loop *to, void (*function)(void *argument), void *argument);
/* The same on every loop of the process, one after the other, this one too. Yields. */
void loop_call_every(void (*function)(void *argument), void *argument);

#endif
