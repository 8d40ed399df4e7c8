/* trial.c - see trial.h. */
#include "engine/shard/trial.h"

#include "fiber/sim/world.h"

#define DAY (24 * 3600 * NS_PER_S)

static bool
has_ended(void *context)
{
    return !host_is_running(context);
}

void
trial_run_with(void (*run)(struct rig *rig), const struct trial_options *options)
{
    for (int i = 0; i < test_seed_count(); i++) {
        struct rig_trial trial = {.run = run, .base = memory_base_new(test_seed(i))};
        struct world *world = world_new(.seed = test_seed(i));
        struct host *host = world_add_host(world, "alone", 1);
        host_start(host, rig_trial_main, &trial);
        EXPECT(world_run_until(world, has_ended, host, options->limit == 0 ? DAY : options->limit));
        EXPECT_EQ(host_heap_blocks(host), 0);
        EXPECT(options->mark == NULL || world_mark_count(world, options->mark) > 0);
        world_free(world);
        memory_base_free(trial.base);
    }
}
