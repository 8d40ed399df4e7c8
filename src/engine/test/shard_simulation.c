/* shard_simulation.c - see shard_simulation.h. */
#include "engine/test/shard_simulation.h"

#include "fiber/sim/world.h"

#define DAY (24 * 3600 * NS_PER_S)

void
simulate_shard_with(void (*run)(struct shard_fixture *fixture),
                    const struct shard_simulation_options *options)
{
    for (int i = 0; i < test_seed_count(); i++) {
        struct shard_fixture_body body = {.run = run, .base = memory_base_new(test_seed(i))};
        struct world *world = world_new(.seed = test_seed(i));
        struct host *host = world_add_host(world, "alone", 1);
        host_start(host, shard_fixture_main, &body);
        EXPECT(world_run_until(world, host_has_ended, host,
                               options->limit == 0 ? DAY : options->limit));
        EXPECT_EQ(host_heap_blocks(host), 0);
        EXPECT(options->probe == NULL || world_probe_count(world, options->probe) > 0);
        world_free(world);
        memory_base_free(body.base);
    }
}
