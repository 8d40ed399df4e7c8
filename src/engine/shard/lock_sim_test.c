/* lock_sim_test.c - a start that waits for another one of the same workflow id. */
#include "engine/shard/inside.h"
#include "engine/shard/rig.h"
#include "fiber/sim/world.h"

struct waiter {
    struct rig *rig;
    bool is_start;
    int64_t patience;
    struct error *err;
    int64_t ended; /* monotonic; 0: it has not */
};

static void
wait_for_lock(void *argument)
{
    struct waiter *waiter = argument;
    struct rig *rig = waiter->rig;
    fiber_set_deadline(clock_monotonic() + waiter->patience);
    waiter->err = waiter->is_start ? rig_start(rig, "wf", "another", 100, rig->arena, NULL)
                                   : rig_signal(rig, "wf", rig->arena);
    waiter->ended = clock_monotonic();
}

/* The test itself holds the lock, as a start does while it reads from a slow store. */
static void
two_starts(void *argument)
{
    struct rig rig;
    rig_open(&rig, argument);
    rig_take(&rig);
    EXPECT_OK(rig_start(&rig, "wf", "one", 100, rig.arena, NULL));
    struct run_key key = {.domain_id = rig.domain_id, .workflow_id = "wf", .run_id = ""};
    struct workflow *held = NULL;
    EXPECT_OK(workflow_lock(rig.shard->tenure, &key, rig.arena, &held));
    struct waiter start = {.rig = &rig, .is_start = true, .patience = 10 * NS_PER_S};
    struct waiter signal = {.rig = &rig, .patience = 10 * NS_PER_S};
    struct waiter hasty = {.rig = &rig, .is_start = true, .patience = 100 * NS_PER_MS};
    int64_t began = clock_monotonic();
    rig_spawn(&rig, wait_for_lock, &start);
    rig_spawn(&rig, wait_for_lock, &signal);
    rig_spawn(&rig, wait_for_lock, &hasty);
    rig_sleep(NS_PER_S);

    EXPECT_KIND(start.err, ERR_SERVICE_BUSY);
    EXPECT_TEXT(start.err->message, "an outstanding start workflow request is in-progress. Failed "
                                    "to acquire the resource.");
    EXPECT(start.ended >= began + 500 * NS_PER_MS && start.ended < began + 600 * NS_PER_MS);
    EXPECT_KIND(hasty.err, ERR_SERVICE_BUSY);
    EXPECT(hasty.ended < began + 200 * NS_PER_MS);
    EXPECT_EQ(signal.ended, 0); /* others wait as long as their caller does */
    workflow_unlock(rig.shard->tenure, held);
    rig_join(&rig);
    EXPECT_OK(signal.err);
    EXPECT_KIND(rig_start(&rig, "wf", "another", 100, rig.arena, NULL), ERR_ALREADY_STARTED);
    rig_close(&rig);
}

static bool
has_ended(void *context)
{
    return !host_is_running(context);
}

TEST(shard_lock, a_start_that_cannot_get_the_lock_in_time_is_told_that_another_is_under_way,
     "A-046")
{
    struct memory_base *base = memory_base_new(1);
    struct world *world = world_new(.seed = 1);
    struct host *host = world_add_host(world, "alone", 1);
    host_start(host, two_starts, base);
    EXPECT(world_run_until(world, has_ended, host, 3600 * NS_PER_S));
    EXPECT_EQ(host_heap_blocks(host), 0);
    world_free(world);
    memory_base_free(base);
}
