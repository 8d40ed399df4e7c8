/* cases_watch.c - waiting for durable news of a run. */
#include "engine/shard/cases.h"
#include "engine/shard/inside.h"

struct watcher {
    struct run_watch watch;
    int fired, lost;
};

static void
watcher_fire(struct run_watch *watch, bool is_lost)
{
    struct watcher *watcher = container_of(watch, struct watcher, watch);
    EXPECT(list_is_empty(&watch->node));
    watcher->fired++;
    watcher->lost += is_lost;
}

/* A watch of the current run of "wf", which must be there. */
static void
watch_run(struct rig *rig, struct watcher *watcher, int64_t next_event_id)
{
    struct rig_run run;
    EXPECT_OK(rig_look(rig, "wf", rig->arena, &run));
    *watcher = (struct watcher){.watch.next_event_id = next_event_id, .watch.fire = watcher_fire};
    list_init(&watcher->watch.node);
    struct run_key key = {rig->domain_id, "wf", run.run_id};
    shard_watch(rig->shard, &key, &watcher->watch);
}

static void
signal_one(void *argument)
{
    struct rig *rig = argument;
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
}

void
case_a_watch_fires_when_events_are_durable(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    struct watcher early, late, far;
    watch_run(rig, &early, 2);
    EXPECT_EQ(early.fired, 1); /* there is something already */
    watch_run(rig, &late, 3);
    watch_run(rig, &far, 4);
    EXPECT_EQ(late.fired, 0);
    case_slow(rig, 20 * NS_PER_MS);
    rig_spawn(rig, signal_one, rig);
    while (late.fired == 0)
        rig_sleep(NS_PER_MS / 4);
    EXPECT_EQ(rig_stored_next_event_id(rig, "wf"), 4); /* not before */
    rig_join(rig);
    EXPECT(late.fired == 1 && late.lost == 0 && far.fired == 0);
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
    EXPECT(late.fired == 1 && far.fired == 1);
    EXPECT_EQ(map_count(rig->shard->tenure->watched), 0);
}

void
case_a_watch_fires_when_the_run_closes(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    struct watcher watcher, after;
    watch_run(rig, &watcher, 1000); /* waits for the close only */
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
    EXPECT_EQ(watcher.fired, 0);
    EXPECT_OK(rig_terminate(rig, "wf", rig->arena));
    EXPECT(watcher.fired == 1 && watcher.lost == 0);
    watch_run(rig, &after, 1000);
    EXPECT(after.fired == 1 && after.lost == 0);
}

void
case_a_watch_fires_when_the_shard_is_lost(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    struct watcher watcher, second, third;
    watch_run(rig, &watcher, 1000);
    case_overtake(rig);
    EXPECT_KIND(rig_signal(rig, "wf", rig->arena), ERR_SHARD_OWNERSHIP_LOST);
    EXPECT(watcher.fired == 1 && watcher.lost == 1);
    struct run_key key = {rig->domain_id, "wf", "some-run"};
    second = (struct watcher){.watch.fire = watcher_fire};
    list_init(&second.watch.node);
    shard_watch(rig->shard, &key, &second.watch); /* nobody owns it */
    EXPECT(second.fired == 1 && second.lost == 1);
    watch_run(rig, &third, 1000);
    EXPECT_EQ(third.fired, 0);
    shard_close(rig->shard);
    rig->shard = NULL;
    EXPECT(third.fired == 1 && third.lost == 1);
}

void
case_a_watch_that_was_taken_back_is_silent(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 100, rig->arena, NULL));
    struct watcher one, other;
    watch_run(rig, &one, 3);
    watch_run(rig, &other, 3);
    shard_unwatch(rig->shard, &one.watch);
    shard_unwatch(rig->shard, &one.watch);
    EXPECT_OK(rig_signal(rig, "wf", rig->arena));
    EXPECT(one.fired == 0 && other.fired == 1);
    shard_unwatch(rig->shard, &other.watch);
    watch_run(rig, &one, 4);
    shard_unwatch(rig->shard, &one.watch);
    EXPECT_EQ(map_count(rig->shard->tenure->watched), 0);
}
