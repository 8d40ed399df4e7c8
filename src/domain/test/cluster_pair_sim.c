/* cluster_pair_sim.c - both clusters on simulated loops, where what is asked of the owner of the
 * domains goes as bytes: what is not in the message, or not read again, is missed. See
 * cluster_pair.h. */
#include "domain/test/cluster_pair.h"

#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/sim/world.h"

#define LIMIT (24 * 3600 * NS_PER_S) /* of virtual time */

static void
run_fiber(void *argument)
{
    void (**test)(struct cluster_pair * cluster_pair) = argument;
    struct cluster_pair cluster_pair;
    cluster_pair_open(&cluster_pair);
    (*test)(&cluster_pair);
    cluster_pair_close(&cluster_pair);
}

void
cluster_pair_run(unsigned loops, void (*test)(struct cluster_pair *cluster_pair))
{
    struct world *world = world_new(.seed = test_seed(0), .messages = MESSAGES_BYTES);
    struct host *host = world_add_host(world, "host", loops);
    host_start(host, run_fiber, &test);
    EXPECT(world_run_until(world, host_has_ended, host, LIMIT));
    EXPECT_EQ(host_heap_blocks(host), 0);
    world_free(world);
}
