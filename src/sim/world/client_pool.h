/* client_pool.h - workers on the client host of a storm: each takes a step, pauses, and takes the
 * next. */
#ifndef CADENZA_SIM_WORLD_CLIENT_POOL_H
#define CADENZA_SIM_WORLD_CLIENT_POOL_H

#include "sim/world/calls.h"
#include "sim/world/verdict.h"

struct client_pool {
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
void client_pool_start(struct client_pool *client_pool, struct sim *sim);

#endif
