/* tell.h - values that go from one owner to another, one way.
 *
 * A value is one block of memory, or one with an arena of its own, that belongs to the one who has
 * it: the sender until it is told, then the way, then the owner that takes it. It holds no pointer
 * to anything else; who is to answer is named by a place and a number (route_here). Within the
 * process the block itself goes; a simulation sends it as bytes, so that a pointer that was
 * forgotten in it is found (loop_crossing), and loses it or lets it come twice where its contract
 * allows that. */
#ifndef CADENZA_ROUTE_TELL_H
#define CADENZA_ROUTE_TELL_H

#include "base/arena.h"
#include "base/compiler.h"
#include "fiber/loop.h"
#include "route/owner.h"

struct route_value;

/* One row for each kind of value, static and const, beside what takes it. */
struct route_notice {
    const char *name; /* "list.offer" */
    struct slice (*encode)(const struct route_value *value, struct arena *arena);
    struct route_value *(*decode)(struct slice bytes);
    void (*free)(struct route_value *value);
    /* On the owner's loop; no yield. The value is the taker's. */
    void (*take)(void *context, struct route_value *value);
    /* Its contract. Lost: who sent it, or who waits for what comes of it, notices and does without
     * or sends it again. Twice: the second one changes nothing. */
    bool may_be_lost, may_come_twice;
};

/* The beginning of each value. */
struct route_value {
    struct loop_message message;
    const struct route_notice *notice;
    struct route_service *service;
};

/* Sends a value. If its owner lives here it is taken at once, before this returns. False: too much
 * is on its way there; the value is the sender's still. Any loop; no yield. */
must_use bool route_tell(struct owner owner, struct route_service *service,
                         const struct route_notice *notice, struct route_value *value);
/* The same for answers, and whatever else is bounded by something that was let in: never refused.
 */
void route_tell_surely(struct owner owner, struct route_service *service,
                       const struct route_notice *notice, struct route_value *value);
/* The same, but never before this returns: for those who may not be called back from where they
 * are. */
void route_tell_later(struct owner owner, struct route_service *service,
                      const struct route_notice *notice, struct route_value *value);

#endif
