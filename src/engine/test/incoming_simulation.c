/* incoming_simulation.c - see incoming_simulation.h. */
#include "engine/test/incoming_simulation.h"

struct simulated_case {
    void (*run)(struct shard_fixture *fixture);
    struct memory_base *base;
};

static void
simulated_case_fiber(void *argument)
{
    struct simulated_case *simulated_case = argument;
    struct shard_fixture fixture;
    shard_fixture_open(&fixture, simulated_case->base);
    source_open(&fixture);
    simulated_case->run(&fixture);
    shard_fixture_close(&fixture);
}

void
simulate_incoming(void (*run)(struct shard_fixture *fixture), enum world_messages messages)
{
    struct simulated_case simulated_case = {.run = run, .base = memory_base_new(test_seed(0))};
    struct world *world = world_new(.seed = test_seed(0), .messages = messages);
    struct host *host = world_add_host(world, "east", 1);
    host_start(host, simulated_case_fiber, &simulated_case);
    EXPECT(world_run_until(world, host_has_ended, host, 3600 * NS_PER_S));
    world_free(world);
    memory_base_free(simulated_case.base);
}
