/* cases_watch.c - waiting for durable news of a run. */
#include "engine/shard/inside.h"
#include "engine/test/shard_cases.h"

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
watch_run(struct shard_fixture *fixture, struct watcher *watcher, int64_t next_event_id)
{
    struct shard_fixture_run run;
    EXPECT_OK(shard_fixture_look(fixture, "wf", fixture->arena, &run));
    *watcher = (struct watcher){.watch.next_event_id = next_event_id, .watch.fire = watcher_fire};
    list_init(&watcher->watch.node);
    struct run_key key = {fixture->domain_id, "wf", run.run_id};
    shard_watch(fixture->shard, &key, &watcher->watch);
}

static void
signal_one(void *argument)
{
    struct shard_fixture *fixture = argument;
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
}

void
case_a_watch_fires_when_events_are_durable(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    struct watcher early, late, far;
    watch_run(fixture, &early, 2);
    EXPECT_EQ(early.fired, 1); /* there is something already */
    watch_run(fixture, &late, 3);
    watch_run(fixture, &far, 4);
    EXPECT_EQ(late.fired, 0);
    case_slow(fixture, 20 * NS_PER_MS);
    shard_fixture_spawn(fixture, signal_one, fixture);
    while (late.fired == 0)
        shard_fixture_sleep(NS_PER_MS / 4);
    EXPECT_EQ(shard_fixture_stored_next_event_id(fixture, "wf"), 4); /* not before */
    shard_fixture_join(fixture);
    EXPECT(late.fired == 1 && late.lost == 0 && far.fired == 0);
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
    EXPECT(late.fired == 1 && far.fired == 1);
    EXPECT_EQ(map_count(fixture->shard->tenure->watched), 0);
}

void
case_a_watch_fires_when_the_run_closes(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    struct watcher watcher, after;
    watch_run(fixture, &watcher, 1000); /* waits for the close only */
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
    EXPECT_EQ(watcher.fired, 0);
    EXPECT_OK(shard_fixture_terminate(fixture, "wf", fixture->arena));
    EXPECT(watcher.fired == 1 && watcher.lost == 0);
    watch_run(fixture, &after, 1000);
    EXPECT(after.fired == 1 && after.lost == 0);
}

void
case_a_watch_fires_when_the_shard_is_lost(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    struct watcher watcher, second, third;
    watch_run(fixture, &watcher, 1000);
    case_overtake(fixture);
    EXPECT_KIND(shard_fixture_signal(fixture, "wf", fixture->arena), ERR_SHARD_OWNERSHIP_LOST);
    EXPECT(watcher.fired == 1 && watcher.lost == 1);
    struct run_key key = {fixture->domain_id, "wf", "some-run"};
    second = (struct watcher){.watch.fire = watcher_fire};
    list_init(&second.watch.node);
    shard_watch(fixture->shard, &key, &second.watch); /* nobody owns it */
    EXPECT(second.fired == 1 && second.lost == 1);
    watch_run(fixture, &third, 1000);
    EXPECT_EQ(third.fired, 0);
    shard_close(fixture->shard);
    fixture->shard = NULL;
    EXPECT(third.fired == 1 && third.lost == 1);
}

void
case_a_watch_that_was_taken_back_is_silent(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 100, fixture->arena, NULL));
    struct watcher one, other;
    watch_run(fixture, &one, 3);
    watch_run(fixture, &other, 3);
    shard_unwatch(fixture->shard, &one.watch);
    shard_unwatch(fixture->shard, &one.watch);
    EXPECT_OK(shard_fixture_signal(fixture, "wf", fixture->arena));
    EXPECT(one.fired == 0 && other.fired == 1);
    shard_unwatch(fixture->shard, &other.watch);
    watch_run(fixture, &one, 4);
    shard_unwatch(fixture->shard, &one.watch);
    EXPECT_EQ(map_count(fixture->shard->tenure->watched), 0);
}
