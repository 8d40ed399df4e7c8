/* fair_test.c - a list, or a domain, that has much to do leaves the others their turns. In
 * simulation.
 *
 * Method: everything is there at the same moment, the few behind the many. When the few are served,
 * most of the many still have to wait. */
#include "base/memory.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/sim/world.h"
#include "matching/fixture.h"

#define STORM 5000 /* tasks */
#define MANY  500  /* lists */

static size_t
count_back(const struct probe *probes, size_t count)
{
    size_t back = 0;
    for (size_t i = 0; i < count; i++)
        back += probes[i].is_back;
    return back;
}

/* How many of the many are back when the last one is; then all of them. */
static size_t
overtaken_by(struct bench *bench, struct probe *many, struct probe *last, size_t count)
{
    EXPECT_EQ(probe_wait(last), POLL_MATCHED);
    size_t back = count_back(many, count);
    probe_finish(bench, last);
    for (size_t i = 0; i < count; i++) {
        EXPECT_EQ(probe_wait(&many[i]), POLL_MATCHED);
        probe_finish(bench, &many[i]);
    }
    return back;
}

static void
storm(struct bench *bench)
{
    struct probe *hot = memory_zalloc(STORM, sizeof *hot), quiet;
    struct spot other = DECISIONS;
    other.list = "quiet";
    for (size_t i = 0; i < STORM; i++)
        probe_start(bench, DECISIONS, &hot[i], 60 * NS_PER_S);
    probe_start(bench, other, &quiet, 60 * NS_PER_S);
    bench_sleep(bench, NS_PER_S);
    bench_add(bench, DECISIONS, 1, STORM);
    bench_add(bench, other, STORM + 1, STORM + 1);
    EXPECT(overtaken_by(bench, hot, &quiet, STORM) < STORM / 4);
    memory_free(hot);
}

TEST(fair, a_task_does_not_wait_for_the_storm_on_another_list)
{
    bench_run(storm, NULL, 1);
}

static struct spot
list_of(struct bench *bench, const char *domain_id, size_t number)
{
    struct spot spot = DECISIONS;
    bench->domain_id = domain_id;
    spot.list = arena_format(bench->arena, "list %zu", number);
    return spot;
}

/* Every list of both domains has a task in the store. */
static void
store_them(struct bench *bench)
{
    for (size_t i = 0; i < MANY; i++)
        bench_add(bench, list_of(bench, "large", i), i + 1, i + 1);
    bench_add(bench, list_of(bench, "small", 0), MANY + 1, MANY + 1);
    bench_sleep(bench, 10 * NS_PER_S);
    EXPECT_EQ(bench->done, MANY + 1);
}

static void
poll_them(struct bench *bench)
{
    struct probe *large = memory_zalloc(MANY, sizeof *large), small;
    for (size_t i = 0; i < MANY; i++)
        probe_start(bench, list_of(bench, "large", i), &large[i], 60 * NS_PER_S);
    probe_start(bench, list_of(bench, "small", 0), &small, 60 * NS_PER_S);
    EXPECT(overtaken_by(bench, large, &small, MANY) < MANY / 2);
    memory_free(large);
}

TEST(fair, a_domain_with_many_lists_leaves_another_its_turn_at_the_store)
{
    struct bench *bench = memory_zalloc(1, sizeof *bench);
    bench->base = memory_base_new(1);
    bench->yaml = "matching.enableSyncMatch: [{value: false}]\n"; /* all is stored */
    bench->body = store_them;
    bench_run_on(bench, 1);
    bench->body = poll_them;
    bench_run_on(bench, 1);
    memory_base_free(bench->base);
    memory_free(bench);
}
