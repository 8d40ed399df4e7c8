/* poll.h - a poll on its way: shared by poll.c (waiting) and poll_start.c (a task was found). */
#ifndef CADENZA_API_WORKER_POLL_H
#define CADENZA_API_WORKER_POLL_H

#include "api/worker/decision.h"
#include "matching/matching.h"

struct parked_poll {
    struct parked parked;
    struct poll poll;    /* texts in the arena */
    bool is_in_matching; /* matching has it; else it is ours */
    int64_t began;       /* monotonic */
    int64_t waited;      /* until it came back last, ns */
    struct timer held;   /* its isolation group is drained: when to look again */
};

/* Records the start of the task that it came back with, and answers. In a fiber of its own. */
void poll_start(void *argument);
/* The task was void: waits on for what is left of the poll's time. */
void poll_again(struct parked_poll *waiting);
/* Answers with what the response holds, or the error, and frees the poll. */
void poll_end(struct parked_poll *waiting, struct error *err);
/* The caller has gone: a task that is not started goes back to its list. Then as poll_end. */
void poll_gone(struct parked_poll *waiting);
/* How long it waited, for workers that adjust themselves. */
API(AutoConfigHint) *poll_hint(const struct parked_poll *waiting, struct arena *arena);

#endif
