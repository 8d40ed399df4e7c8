/* test_on_sim.c - runs the contract of fiber/ on the simulated platform, once for every seed of the
 * test run. */
#include "fiber/contract/contract.h"
#include "fiber/file.h"
#include "fiber/sim/world.h"

const bool contract_is_simulated = true;

struct body {
    void (*function)(void *argument);
    void *argument;
};

static void
run_body(void *argument)
{
    struct body *body = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(folder_create(contract_folder(), arena));
    body->function(body->argument);
}

/* An hour is more than any body needs; one that hangs is found without waiting for it. */
void
contract_run(unsigned loops, void (*function)(void *argument), void *argument)
{
    for (int i = 0; i < test_seed_count(); i++) {
        struct body body = {function, argument};
        struct world *world = world_new(.seed = test_seed(i));
        struct host *host = world_add_host(world, "contract", loops);
        host_start(host, run_body, &body);
        EXPECT(world_run_until(world, host_has_ended, host, 3600 * NS_PER_S));
        EXPECT_EQ(host_heap_blocks(host), 0);
        world_free(world);
    }
}

const char *
contract_folder(void)
{
    return "/contract";
}
