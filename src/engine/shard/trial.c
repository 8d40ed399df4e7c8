/* trial.c - see trial.h. */
#include "engine/shard/trial.h"

#include "fiber/sim/world.h"

#define DAY (24 * 3600 * NS_PER_S)

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
    trial->run(&rig);
    rig_close(&rig);
}

static bool
has_ended(void *context)
{
    return !host_is_running(context);
}

void
trial_run_with(void (*run)(struct rig *rig), const struct trial_options *options)
{
    for (int i = 0; i < test_seed_count(); i++) {
        struct trial trial = {.run = run, .base = memory_base_new(test_seed(i))};
        struct world *world = world_new(.seed = test_seed(i));
        struct host *host = world_add_host(world, "alone", 1);
        host_start(host, trial_fiber, &trial);
        EXPECT(world_run_until(world, has_ended, host, options->limit == 0 ? DAY : options->limit));
        EXPECT_EQ(host_heap_blocks(host), 0);
        EXPECT(options->mark == NULL || world_mark_count(world, options->mark) > 0);
        world_free(world);
        memory_base_free(trial.base);
    }
}
