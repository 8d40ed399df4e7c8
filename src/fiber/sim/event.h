/* event.h - what the world does later: the queue of all that is to happen, ordered by virtual time.
 *
 * Events are members of what they are about and are never allocated. Two with the same moment
 * happen in the order they were scheduled. An event that dies with a host (it lives in the host's
 * heap or on a fiber's stack) is given that host as its owner: a crash takes all of those out
 * before it frees anything. */
#ifndef CADENZA_FIBER_SIM_EVENT_H
#define CADENZA_FIBER_SIM_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/priority.h"

struct world;
struct host;

/* X(kind, name in printed traces) */
#define STEP_KINDS(X)                                                                              \
    X(STEP_TICK, "tick")         /* a loop ran */                                                  \
    X(STEP_DUE, "due")           /* a loop's timer came, or its next tick */                       \
    X(STEP_MESSAGES, "messages") /* messages reached a mailbox */                                  \
    X(STEP_POOL, "pool")         /* blocking work was done */                                      \
    X(STEP_WORKER, "worker")     /* a worker drained its queue */                                  \
    X(STEP_DISK, "disk")         /* the disk answered */                                           \
    X(STEP_CONNECT, "connect")   /* a step of a handshake */                                       \
    X(STEP_ARRIVE, "arrive")     /* bytes reached the other side */                                \
    X(STEP_WINDOW, "window")     /* a writer learns that there is room again */                    \
    X(STEP_TIMEOUT, "timeout")   /* bytes stayed unacknowledged for too long */                    \
    X(STEP_RESET, "reset")       /* a reset reached a socket */                                    \
    X(STEP_SIGNAL, "signal")     /* a host is asked to stop */                                     \
    X(STEP_FAULT, "fault")       /* the test did something: start, crash, cut, heal, break */      \
    X(STEP_NOTE, "note")         /* the scheduler of a loop says what it did */

enum step_kind {
#define X(kind, name) kind,
    STEP_KINDS(X)
#undef X
        STEP_KIND_COUNT
};

struct event {
    struct priority_node node;
    struct list owned; /* in the owner's list while pending; in none if nobody owns it */
    void (*fire)(struct world *world, struct event *event);
    struct host *host; /* whom it is about, for the trace; NULL: the world */
    uint64_t number;   /* what it is about, for the trace: an id or a count, never an address */
    unsigned loop;     /* index of the loop that it is about, for the trace */
    enum step_kind kind;
};

void event_init(struct event *event, enum step_kind kind, struct host *host,
                void (*fire)(struct world *world, struct event *event));
/* Lets it happen at `time`, at once if that is past; a pending one is moved. `owner` may be NULL.
 */
void event_schedule(struct world *world, struct event *event, struct host *owner, int64_t time);
/* Harmless when it is not pending. */
void event_cancel(struct world *world, struct event *event);
bool event_is_pending(const struct event *event);
/* When the next one happens; NEVER if none is pending. */
int64_t event_next_time(const struct world *world);
/* Takes out the next one; there must be one. */
struct event *event_take(struct world *world);

#endif
