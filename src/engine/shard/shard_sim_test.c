/* shard_sim_test.c - the cases of shard_cases.h in simulation, for every seed: other delays,
 * another order. */
#include "engine/test/shard_cases.h"
#include "engine/test/shard_simulation.h"
#include "fiber/sim/world.h"

#define X(title)                                                                                   \
    TEST(shard_sim, title)                                                                         \
    {                                                                                              \
        simulate_shard(case_##title);                                                              \
    }
SHARD_CASES(X)
#undef X

/* One row is of an attribute that the domain has, one of another that moves, one of none. */
TEST(standby, a_row_whose_attribute_is_gone_is_kept_and_worked_off_nowhere, "G-020", "G-054")
{
    simulate_shard(case_work_waits_for_the_attribute_of_its_run);
}

/* Cadence keeps tasks of a domain that is active elsewhere in its task lists; here they are rows of
 * the shard, which alone knows when they are due, or void. */
TEST(standby, tasks_of_a_domain_that_is_active_elsewhere_wait_in_the_shard_and_meet_no_poller,
     "C-031")
{
    simulate_shard(case_a_task_of_a_domain_that_moved_away_waits_until_it_is_back);
    simulate_shard(case_a_stored_task_of_a_domain_that_moved_away_comes_back_to_its_shard);
}
