/* ndc_sim_test.c - events of other clusters, written by hand, come into a shard: histories that
 * grow, fork and win (E-001 … E-023). Every batch is sent twice. */
#include "domain/samples.h"
#include "engine/shard/feed.h"
#include "fiber/sim/world.h"

/* ---- the stage ---- */

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
    feed_open(&rig);
    trial->run(&rig);
    rig_close(&rig);
}

static bool
has_ended(void *context)
{
    return !host_is_running(context);
}

static void
on_stage(void (*run)(struct rig *rig))
{
    struct trial trial = {.run = run, .base = memory_base_new(test_seed(0))};
    struct world *world = world_new(.seed = test_seed(0));
    struct host *host = world_add_host(world, "east", 1);
    host_start(host, trial_fiber, &trial);
    EXPECT(world_run_until(world, has_ended, host, 3600 * NS_PER_S));
    world_free(world);
    memory_base_free(trial.base);
}

/* A test is a function of the rig: SCENE(title, ids...) { ... } */
#define SCENE(title, ...)                                                                          \
    static void scene_##title(struct rig *rig);                                                    \
    TEST(ndc, title, ##__VA_ARGS__)                                                                \
    {                                                                                              \
        on_stage(scene_##title);                                                                   \
    }                                                                                              \
    static void scene_##title(struct rig *rig)

/* ---- one history ---- */

SCENE(a_run_of_another_cluster_is_here_with_its_times_and_its_rows, "E-001", "E-013", "E-023")
{
    struct feed feed = feed_begin(rig, "wf", "");
    int64_t began = feed.time + NS_PER_MS;
    feed_send(&feed, 1, "sd");
    feed_send(&feed, 1, "b");
    feed_send(&feed, 1, "cam");
    struct feed_view view = feed_look(rig, &feed.key);
    EXPECT_TEXT(view.branches, "(6,1)");
    EXPECT(view.is_open && view.is_current && !view.is_zombie && view.has_alarm);
    EXPECT_EQ(view.start_time, began);
    EXPECT_EQ(view.activities, 1);
    EXPECT_EQ(view.timers, 1);
    EXPECT_TEXT(feed_read(rig, &feed.key, 0), "sdbcam");
    EXPECT_EQ(rig->tasks.count, 0); /* it is not active here */
    feed_send(&feed, 1, "AxM");
    feed_send(&feed, 11, "dbcE");
    view = feed_look(rig, &feed.key);
    EXPECT_TEXT(view.branches, "(9,1)(13,11)");
    EXPECT(!view.is_open && view.activities == 0);
    rig_restart(rig);
    EXPECT_TEXT(feed_look(rig, &feed.key).branches, "(9,1)(13,11)");
    EXPECT_TEXT(feed_read(rig, &feed.key, 0), "sdbcamAxMdbcE");
}
