/* claim.h - a poll that waits is kept for a task that is about to be: so the step that makes the
 * task records its start, too, and one commit does for both.
 *
 * A shard claims before it decides. Whoever has the polls answers; from then on the poll belongs to
 * the claim until the claim is ended: with a task, which the poll takes home, or without one, and
 * then the poll waits on as if nothing had been. Owners know this value, not each other. */
#ifndef CADENZA_ROUTE_CLAIM_H
#define CADENZA_ROUTE_CLAIM_H

#include "fiber/loop.h"
#include "route/task.h"

struct claim {
    /* Set by who claims. Texts stay until it is answered. */
    enum task_type type;
    enum list_kind kind;
    const char *domain_id, *list;
    void (*answered)(struct claim *claim); /* on the loop that claimed, no yield */
    void *context;
    /* The answer: who polls. NULL: nobody waits, or others come first; the claim is over. Stays
     * until the claim is ended. */
    const char *identity;
    /* What the poll takes home; NULL: nothing. The arena, which holds all three, goes with it. */
    struct task *task;
    const char *request_id; /* the start has this id */
    void *start;            /* what is to be known of the start; NULL: it is in doubt, so ask */
    struct arena *arena;
    /* Of whoever has the polls. */
    struct letter letter;
    struct loop *home;
    void *owner, *poll;
    int32_t partition;
};

enum claim_end {
    CLAIM_REFUSED, /* nobody waits; it is over */
    CLAIM_GRANTED, /* it has a poll: identity is set */
    CLAIM_ASKED,   /* `answered` will be called */
};

struct claim_port {
    /* Asks for a poll. `claim` comes from memory_alloc. On the claiming loop, no yield. */
    enum claim_end (*ask)(void *context, struct claim *claim);
    /* Ends a claim that was granted, and frees it. The same. */
    void (*end)(void *context, struct claim *claim);
    void *context;
};

#endif
