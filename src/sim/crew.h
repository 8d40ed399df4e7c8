/* crew.h - workers on the client host of a storm: each takes a step, pauses, and takes the next. */
#ifndef CADENZA_SIM_CREW_H
#define CADENZA_SIM_CREW_H

#include "sim/calls.h"
#include "sim/verdict.h"

struct crew {
    unsigned count;    /* of workers */
    int64_t think_max; /* pause between two steps of a worker, ns */
    void (*step)(void *load, unsigned worker, struct load_clients *clients);
    void *load;
    const struct verdict *verdict; /* of the load: a violation ends the work */
    bool is_over;                  /* set by the test: the workers end */
    struct sim *sim;
    unsigned begun, running;
};

/* Starts the client host of `sim`, which stops when the last worker has ended. */
void crew_start(struct crew *crew, struct sim *sim);

#endif
