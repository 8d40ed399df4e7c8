/* stage.c - see stage.h. */
#include "engine/shard/stage.h"

#include "fiber/sim/world.h"

struct trial {
    void (*run)(struct rig *rig);
    struct memory_base *base;
};

static void
trial_fiber(void *argument)
{
    struct trial *trial = argument;
    struct rig rig;
    rig_open(&rig, trial->base);
    feed_open(&rig);
    trial->run(&rig);
    rig_close(&rig);
}

static bool
has_ended(void *context)
{
    return !host_is_running(context);
}

void
stage_run(void (*run)(struct rig *rig))
{
    struct trial trial = {.run = run, .base = memory_base_new(test_seed(0))};
    struct world *world = world_new(.seed = test_seed(0));
    struct host *host = world_add_host(world, "east", 1);
    host_start(host, trial_fiber, &trial);
    EXPECT(world_run_until(world, has_ended, host, 3600 * NS_PER_S));
    world_free(world);
    memory_base_free(trial.base);
}
