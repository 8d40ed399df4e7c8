/* fair_test.c - a list, or a domain, that has much to do leaves the others their turns. In
 * simulation.
 *
 * Method: everything is there at the same moment, the few behind the many. When the few are served,
 * most of the many still have to wait. */
#include "base/memory.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/sim/world.h"
#include "matching/test/fixture.h"

#define STORM 5000 /* tasks */
#define MANY  500  /* lists */

static size_t
count_back(const struct test_poll *probes, size_t count)
{
    size_t back = 0;
    for (size_t i = 0; i < count; i++)
        back += probes[i].is_back;
    return back;
}

/* How many of the many are back when the last one is; then all of them. */
static size_t
overtaken_by(struct matching_fixture *matching_fixture, struct test_poll *many,
             struct test_poll *last, size_t count)
{
    EXPECT_EQ(test_poll_wait(last), POLL_MATCHED);
    size_t back = count_back(many, count);
    test_poll_finish(matching_fixture, last);
    for (size_t i = 0; i < count; i++) {
        EXPECT_EQ(test_poll_wait(&many[i]), POLL_MATCHED);
        test_poll_finish(matching_fixture, &many[i]);
    }
    return back;
}

MATCHING_TEST(fair, a_task_does_not_wait_for_the_storm_on_another_list, fixture_run(body, NULL, 1))
{
    struct test_poll *hot = memory_zalloc(STORM, sizeof *hot), quiet;
    struct spot other = DECISIONS;
    other.list = "quiet";
    for (size_t i = 0; i < STORM; i++)
        test_poll_start(matching_fixture, DECISIONS, &hot[i], 60 * NS_PER_S);
    test_poll_start(matching_fixture, other, &quiet, 60 * NS_PER_S);
    fixture_sleep(matching_fixture, NS_PER_S);
    fixture_add(matching_fixture, DECISIONS, 1, STORM);
    fixture_add(matching_fixture, other, STORM + 1, STORM + 1);
    EXPECT(overtaken_by(matching_fixture, hot, &quiet, STORM) < STORM / 4);
    memory_free(hot);
}

static struct spot
list_of(struct matching_fixture *matching_fixture, const char *domain_id, size_t number)
{
    struct spot spot = DECISIONS;
    matching_fixture->domain_id = domain_id;
    spot.list = arena_format(matching_fixture->arena, "list %zu", number);
    return spot;
}

/* Every list of both domains has a task in the store. */
static void
store_them(struct matching_fixture *matching_fixture)
{
    for (size_t i = 0; i < MANY; i++)
        fixture_add(matching_fixture, list_of(matching_fixture, "large", i), i + 1, i + 1);
    fixture_add(matching_fixture, list_of(matching_fixture, "small", 0), MANY + 1, MANY + 1);
    fixture_sleep(matching_fixture, 10 * NS_PER_S);
    EXPECT_EQ(matching_fixture->done, MANY + 1);
}

static void
poll_them(struct matching_fixture *matching_fixture)
{
    struct test_poll *large = memory_zalloc(MANY, sizeof *large), small;
    for (size_t i = 0; i < MANY; i++)
        test_poll_start(matching_fixture, list_of(matching_fixture, "large", i), &large[i],
                        60 * NS_PER_S);
    test_poll_start(matching_fixture, list_of(matching_fixture, "small", 0), &small, 60 * NS_PER_S);
    EXPECT(overtaken_by(matching_fixture, large, &small, MANY) < MANY / 2);
    memory_free(large);
}

TEST(fair, a_domain_with_many_lists_leaves_another_its_turn_at_the_store)
{
    struct matching_fixture *matching_fixture = memory_zalloc(1, sizeof *matching_fixture);
    matching_fixture->base = memory_base_new(1);
    matching_fixture->yaml = "matching.enableSyncMatch: [{value: false}]\n"; /* all is stored */
    matching_fixture->body = store_them;
    fixture_run_on(matching_fixture, 1);
    matching_fixture->body = poll_them;
    fixture_run_on(matching_fixture, 1);
    memory_base_free(matching_fixture->base);
    memory_free(matching_fixture);
}
