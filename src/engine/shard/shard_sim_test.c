/* shard_sim_test.c - the cases of cases.h in simulation, for every seed: other delays, another
 * order. */
#include "engine/shard/cases.h"
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
    trial->run(&rig);
    rig_close(&rig);
}

static bool
has_ended(void *context)
{
    return !host_is_running(context);
}

static void
on_sim(void (*run)(struct rig *rig))
{
    for (int i = 0; i < test_seed_count(); i++) {
        struct trial trial = {.run = run, .base = memory_base_new(test_seed(i))};
        struct world *world = world_new(.seed = test_seed(i));
        struct host *host = world_add_host(world, "alone", 1);
        host_start(host, trial_fiber, &trial);
        EXPECT(world_run_until(world, has_ended, host, 3600 * NS_PER_S));
        EXPECT_EQ(host_heap_blocks(host), 0);
        world_free(world);
        memory_base_free(trial.base);
    }
}

#define X(title)                                                                                   \
    TEST(shard_sim, title)                                                                         \
    {                                                                                              \
        on_sim(case_##title);                                                                      \
    }
SHARD_CASES(X)
#undef X

/* Cadence keeps tasks of a domain that is active elsewhere in its task lists; here they are rows of
 * the shard, which alone knows when they are due, or void. */
TEST(standby, tasks_of_a_domain_that_is_active_elsewhere_wait_in_the_shard_and_meet_no_poller,
     "C-031")
{
    on_sim(case_a_task_of_a_domain_that_moved_away_waits_until_it_is_back);
    on_sim(case_a_stored_task_of_a_domain_that_moved_away_comes_back_to_its_shard);
}
