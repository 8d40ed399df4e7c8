/* sites_sim.c - sites in a simulated world, where time is virtual. See sites.h. */
#include "base/test.h"
#include "domain/sites.h"
#include "fiber/clock.h"
#include "fiber/sim/world.h"

#define LIMIT (24 * 3600 * NS_PER_S) /* of virtual time */

struct scene {
    struct host *host;
    void (*test)(struct sites *sites);
};

static void
run_fiber(void *argument)
{
    struct scene *scene = argument;
    struct sites sites;
    sites_open(&sites);
    scene->test(&sites);
    sites_close(&sites);
}

static bool
is_over(void *context)
{
    const struct scene *scene = context;
    return !host_is_running(scene->host);
}

void
sites_play(void (*test)(struct sites *sites))
{
    struct world *world = world_new(.seed = test_seed(0));
    struct scene scene = {.host = world_add_host(world, "server", 2), .test = test};
    host_start(scene.host, run_fiber, &scene);
    EXPECT(world_run_until(world, is_over, &scene, LIMIT));
    EXPECT_EQ(host_heap_blocks(scene.host), 0);
    world_free(world);
}
