/* reservation.h - keeps a waiting poll for a task that is about to exist, so that the step that
 * makes the task also records its start: one commit for both.
 *
 * A shard reserves before it decides, and the owner of the polls answers. A granted poll belongs to
 * the reservation until that is ended: with a task, which the poll takes home, or without one; then
 * the poll goes on waiting as if nothing had happened. Owners know this value, not each other. */
#ifndef CADENZA_ROUTE_RESERVATION_H
#define CADENZA_ROUTE_RESERVATION_H

#include "fiber/timer.h"
#include "route/owner.h"
#include "route/task.h"

struct reservation {
    /* Set by the shard that reserves. Texts stay until it is answered. */
    enum task_type type;
    enum list_kind kind;
    const char *domain_id, *list;
    void (*answered)(struct reservation *reservation); /* on the loop that reserved, no yield */
    void *context;                                     /* for `answered` alone */
    /* The answer: who polls. NULL: nobody waits, or others come first, or no answer came in time;
     * the reservation is over. Stays until the reservation is ended. */
    const char *identity;
    /* What the poll takes home; NULL: nothing. The arena, which holds all three, goes with it. */
    struct task *task;
    const char *request_id; /* the start has this id */
    void *start;            /* what is to be known of the start; NULL: it is in doubt, so ask */
    struct arena *arena;
    /* Of matching, at the place of the shard. */
    uint64_t number;     /* in the table of the place; 0: it is over */
    bool is_asking;      /* the shard is not to be called: it is being asked just now */
    struct timer timer;  /* for the answer */
    void *loop_lists;    /* of the place */
    void *answer;        /* a block that holds the identity */
    struct owner owner;  /* of the poll */
    unsigned poll_place; /* whose it is */
    uint64_t poll_number;
};

enum reservation_end {
    RESERVATION_REFUSED,   /* nobody waits; it is over */
    RESERVATION_GRANTED,   /* it has a poll: identity is set */
    RESERVATION_REQUESTED, /* `answered` will be called */
};

struct reservation_port {
    /* Asks for a poll. `reservation` comes from memory_alloc. On the loop that reserves, no yield.
     */
    enum reservation_end (*ask)(void *context, struct reservation *reservation);
    /* Ends a reservation that was granted, and frees it. The same. */
    void (*end)(void *context, struct reservation *reservation);
    void *context;
};

#endif
