/* lock_sim_test.c - a start that waits for another one of the same workflow id. */
#include "engine/shard/inside.h"
#include "engine/shard/workflows.h"
#include "engine/test/shard_fixture.h"
#include "fiber/sim/world.h"

struct waiter {
    struct shard_fixture *fixture;
    bool is_start;
    int64_t patience;
    struct error *err;
    int64_t ended; /* monotonic; 0: it has not */
};

static void
wait_for_lock(void *argument)
{
    struct waiter *waiter = argument;
    struct shard_fixture *fixture = waiter->fixture;
    fiber_set_deadline(clock_monotonic() + waiter->patience);
    waiter->err = waiter->is_start
                      ? shard_fixture_start(fixture, "wf", "another", 100, fixture->arena, NULL)
                      : shard_fixture_signal(fixture, "wf", fixture->arena);
    waiter->ended = clock_monotonic();
}

/* The test itself holds the lock, as a start does while it reads from a slow store. */
static void
two_starts(void *argument)
{
    struct shard_fixture fixture;
    shard_fixture_open(&fixture, argument);
    shard_fixture_take(&fixture);
    EXPECT_OK(shard_fixture_start(&fixture, "wf", "one", 100, fixture.arena, NULL));
    struct run_key key = {.domain_id = fixture.domain_id, .workflow_id = "wf", .run_id = ""};
    struct workflow *held = NULL;
    EXPECT_OK(workflow_lock(fixture.shard->tenure, &key, fixture.arena, &held));
    struct waiter start = {.fixture = &fixture, .is_start = true, .patience = 10 * NS_PER_S};
    struct waiter signal = {.fixture = &fixture, .patience = 10 * NS_PER_S};
    struct waiter hasty = {.fixture = &fixture, .is_start = true, .patience = 100 * NS_PER_MS};
    int64_t began = clock_monotonic();
    shard_fixture_spawn(&fixture, wait_for_lock, &start);
    shard_fixture_spawn(&fixture, wait_for_lock, &signal);
    shard_fixture_spawn(&fixture, wait_for_lock, &hasty);
    shard_fixture_sleep(NS_PER_S);

    EXPECT_KIND(start.err, ERR_SERVICE_BUSY);
    EXPECT_TEXT(start.err->message, "an outstanding start workflow request is in-progress. Failed "
                                    "to acquire the resource.");
    EXPECT(start.ended >= began + 500 * NS_PER_MS && start.ended < began + 600 * NS_PER_MS);
    EXPECT_KIND(hasty.err, ERR_SERVICE_BUSY);
    EXPECT(hasty.ended < began + 200 * NS_PER_MS);
    EXPECT_EQ(signal.ended, 0); /* others wait as long as their caller does */
    workflow_unlock(fixture.shard->tenure, held);
    shard_fixture_join(&fixture);
    EXPECT_OK(signal.err);
    EXPECT_KIND(shard_fixture_start(&fixture, "wf", "another", 100, fixture.arena, NULL),
                ERR_ALREADY_STARTED);
    shard_fixture_close(&fixture);
}

TEST(shard_lock, a_start_that_cannot_get_the_lock_in_time_is_told_that_another_is_under_way,
     "A-046")
{
    struct memory_base *base = memory_base_new(1);
    struct world *world = world_new(.seed = 1);
    struct host *host = world_add_host(world, "alone", 1);
    host_start(host, two_starts, base);
    EXPECT(world_run_until(world, host_has_ended, host, 3600 * NS_PER_S));
    EXPECT_EQ(host_heap_blocks(host), 0);
    world_free(world);
    memory_base_free(base);
}
