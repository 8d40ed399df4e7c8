/* hold_queue.h - calls about one workflow id in a queue, on the loop of their domain. Only hold.c
 * and hold_queue.c include it. */
#ifndef CADENZA_API_FORWARD_HOLD_QUEUE_H
#define CADENZA_API_FORWARD_HOLD_QUEUE_H

#include "api/forward/hold.h"

struct hold_domain;
struct hold_queue;

/* A call that waits, in its own fiber's stack. */
struct hold {
    struct api *api;
    struct arena *arena;
    struct hold_subject subject;
    struct loop *owner_loop;
    atomic_uint *held;    /* of the api: calls of this hash that have, or take, a place */
    int64_t began, limit; /* monotonic */
    size_t count_max;
    bool is_queued;    /* it must leave */
    bool is_passed_on; /* another cluster sent it: it goes no further */
    bool is_refused;   /* where it went first: it goes on alone */
    /* Touched on owner_loop alone. */
    struct list node; /* in its queue */
    struct hold_domain *domain;
    struct hold_queue *queue;
    bool has_waited;
    const char *sent_to; /* the cluster that it went to; NULL: it waits, or is answered here */
    struct fiber *fiber; /* that waits there; NULL: none does */
    struct error *err;   /* of the last trip */
};

/* On owner_loop, for loop_call. Waits until it is the call's turn, with a place in the queue if it
 * needs one; hold->err says how that ended. Yields. */
void hold_queue_wait(void *hold);
/* Gives up the place: the next call may go. No yield. */
void hold_queue_leave(void *hold);
/* ERR_SERVICE_BUSY: it has waited for as long as it may. */
struct error *hold_queue_too_long(const struct hold *hold);

#endif
