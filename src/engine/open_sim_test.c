/* open_sim_test.c - an engine is opened while answers of the domains' owner are lost: each shard is
 * taken in the end, and an opening that nobody waits for any more ends. */
#include "engine/engine.h"

#include "engine/test/shard_fixture.h"
#include "fiber/clock.h"
#include "fiber/sim/world.h"
#include "route/test_answers.h"
#include "wire/message.h"

#define SHARDS 128
#define ROUNDS 32 /* about 16 answers are lost */

static struct error *
open_engine(struct shard_fixture *fixture, struct arena *arena, struct engine **engine)
{
    struct engine_options options = {.store = fixture->store,
                                     .shard_count = SHARDS,
                                     .domains = fixture->domains,
                                     .group = fixture->options.group,
                                     .dynamic = fixture->dynamic,
                                     .tasks = fixture->options.tasks,
                                     .host = "alone",
                                     .is_alone = true};
    return engine_open(&options, arena, engine);
}

/* Each shard has missed this when it is taken next, so it asks. */
static void
change_domain(struct shard_fixture *fixture)
{
    API(UpdateDomainRequest) *request = API_NEW(fixture->arena, update_domain_request);
    char *paths[] = {"description"};
    request->name = "orders";
    request->description = "changed";
    request->update_mask = GOOGLE_NEW(fixture->arena, field_mask, .paths = paths, .n_paths = 1);
    EXPECT_MADE(domains_update(fixture->domains, request, fixture->arena, NULL));
}

static void
simulate_opening(void (*run)(struct shard_fixture *fixture), const char *probe)
{
    for (int i = 0; i < test_seed_count(); i++) {
        struct shard_fixture_body body = {.run = run, .base = memory_base_new(test_seed(i))};
        struct world *world = world_new(.seed = test_seed(i), .messages = MESSAGES_FAIL);
        struct host *host = world_add_host(world, "alone", 3);
        host_start(host, shard_fixture_main, &body);
        EXPECT(world_run_until(world, host_has_ended, host, 3600 * NS_PER_S));
        EXPECT_EQ(host_heap_blocks(host), 0);
        EXPECT(world_probe_count(world, probe) > 0);
        world_free(world);
        memory_base_free(body.base);
    }
}

static void
open_again_and_again(struct shard_fixture *fixture)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct engine *engine;
        EXPECT_OK(open_engine(fixture, fixture->arena, &engine));
        engine_close(engine);
        change_domain(fixture);
    }
}

TEST(engine_open, shards_are_taken_though_the_owner_of_the_domains_does_not_answer)
{
    simulate_opening(open_again_and_again, "shard_opening_waits");
}

/* --- nobody waits any more ---- */

struct opening {
    struct shard_fixture *fixture;
    struct latch latch;
    int64_t deadline;
    struct fiber *fiber; /* NULL: has ended */
    bool is_early;
};

static void
opening_fiber(void *argument)
{
    struct opening *opening = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct engine *engine;
    fiber_set_deadline(opening->deadline);
    struct error *err = open_engine(opening->fixture, arena, &engine);
    opening->is_early = err != NULL;
    if (err == NULL)
        engine_close(engine);
    else
        EXPECT_KIND(err, opening->deadline == NEVER ? ERR_CANCELLED : ERR_DEADLINE);
    opening->fiber = NULL;
    latch_done(&opening->latch);
}

static bool
open_for(struct shard_fixture *fixture, int64_t time, bool is_cancelled)
{
    struct opening opening = {.fixture = fixture,
                              .deadline = is_cancelled ? NEVER : clock_monotonic() + time};
    latch_init(&opening.latch, 1);
    opening.fiber = fiber_start("opening", opening_fiber, &opening);
    if (is_cancelled && !latch_wait_until(&opening.latch, clock_monotonic() + time))
        fiber_cancel(opening.fiber);
    EXPECT(latch_wait_until(&opening.latch, clock_monotonic() + NS_PER_S));
    return opening.is_early;
}

static void
open_in_a_hurry(struct shard_fixture *fixture)
{
    unsigned early[2] = {0};
    memory_base_set_delays(fixture->base, 10 * NS_PER_MS, 10 * NS_PER_MS, 10 * NS_PER_MS);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        bool is_cancelled = round % 2 == 0;
        int64_t time = (int64_t)(entropy_u64() % 200) * NS_PER_MS;
        early[is_cancelled] += open_for(fixture, time, is_cancelled);
        change_domain(fixture);
    }
    EXPECT(early[0] > 0 && early[1] > 0);
    struct engine *engine;
    EXPECT_OK(open_engine(fixture, fixture->arena, &engine));
    engine_close(engine);
}

TEST(engine_open, an_opening_that_nobody_waits_for_ends)
{
    simulate_opening(open_in_a_hurry, "domain_changes_caught_up");
}
