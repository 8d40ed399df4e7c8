/* hold_line.h - calls about one workflow id stand in a line, on the loop of their domain. Only
 * hold.c and hold_line.c include it. */
#ifndef CADENZA_API_HOLD_LINE_H
#define CADENZA_API_HOLD_LINE_H

#include "api/hold.h"

struct hold_domain;
struct hold_line;

/* A call that waits, in its own fiber's stack. */
struct hold {
    struct api *api;
    struct arena *arena;
    struct hold_subject subject;
    struct loop *home;
    atomic_uint *held;    /* calls of such workflows that have, or take, a place */
    int64_t began, limit; /* monotonic */
    size_t count_max;
    bool is_in_line;   /* it must leave */
    bool is_passed_on; /* another cluster sent it: it goes no further */
    bool is_refused;   /* where it went first: it goes on alone */
    /* On the home loop. */
    struct list node; /* in its line */
    struct hold_domain *domain;
    struct hold_line *line;
    bool has_waited;
    const char *away_to; /* the cluster that it went to; NULL: it waits, or is answered here */
    struct fiber *fiber; /* waits there; NULL: nobody does */
    struct error *err;   /* of the last trip */
};

/* On the home loop, for loop_call. Waits until it is the call's turn, with a place in the line from
 * the start on, if it needs one; hold->err says how that ended. Yields. */
void hold_line_wait(void *hold);
/* Gives up the place: who comes next may go. No yield. */
void hold_line_leave(void *hold);
/* ERR_SERVICE_BUSY: it has waited for as long as it may. */
struct error *hold_line_too_long(const struct hold *hold);

#endif
