/* runs_sim_test.c - the runs of a shard, listed for another cluster while its owner changes. */
#include "engine/test/incoming_simulation.h"

#define LISTINGS 100
#define STEP     (20 * 1000) /* ns, by which the run changes later each time */

struct change {
    struct shard_fixture *fixture;
    int64_t delay;
};

static void
change(void *argument)
{
    const struct change *wanted = argument;
    struct arena *arena = arena_new(0);
    shard_fixture_sleep(wanted->delay);
    struct error *err = shard_fixture_signal(wanted->fixture, "wf", arena);
    EXPECT(err == NULL || err->kind == ERR_SHARD_OWNERSHIP_LOST);
    arena_free(arena);
}

/* As another host that takes the shard, and goes: the next commit of ours fails. */
static void
overtake(struct shard_fixture *fixture, struct arena *arena)
{
    struct partition partition = PARTITION_OF_SHARD(fixture->options.number);
    uint64_t guard;
    EXPECT_OK(store_guard(fixture->store, partition, arena, &guard));
    EXPECT_OK(store_commit(fixture->store, batch_new(arena, partition, guard + 1), guard, arena));
}

/* What was seen of a change is not durable then, and never will be. */
static void
list_overtaken(struct shard_fixture *fixture, int64_t delay)
{
    struct arena *arena = arena_new(0);
    struct change late = {fixture, delay};
    struct listed_runs listed;
    const struct cluster *west = cluster_group_find(fixture->options.group, "west");
    EXPECT_OK(shard_fixture_signal(fixture, "wf", arena)); /* it is owned */
    overtake(fixture, arena);
    shard_fixture_spawn(fixture, change, &late);
    EXPECT_OK(shard_list_runs(fixture->shard, west, slice_text("\x01"), 10, arena, &listed));
    EXPECT_EQ(listed.count, 1);
    EXPECT_EQ(listed.runs[0].activity_count, 1);
    shard_fixture_join(fixture);
    arena_free(arena);
}

SCENE(an_activity_is_listed_once_though_the_shard_is_overtaken_meanwhile)
{
    struct source_history run = source_begin(fixture, "wf", "");
    source_send(&run, 1, "sd");
    source_send(&run, 1, "b");
    source_send(&run, 1, "ca");
    source_send(&run, 1, "A");
    source_move(fixture, EAST);
    for (int i = 0; i < LISTINGS; i++)
        list_overtaken(fixture, i * STEP);
}
