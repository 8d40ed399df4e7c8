/* route_test.c - which shard a workflow id belongs to, and that work runs where its owner lives. */
#include "route/route.h"

#include <stdio.h>

#include "base/test.h"
#include "fiber/linux/test_loops.h"
#include "fiber/loop.h"

/* Values of the same fingerprint in other clusters of a group: they must agree, or replication
 * cannot find a run. */
TEST(route, a_workflow_id_has_the_shard_that_other_clusters_give_it)
{
    EXPECT_EQ(route_shard_of(slice_text(""), 16384), 0xdc56d17au % 16384);
    uint32_t seen = 0;
    for (int i = 0; i < 1000; i++) {
        char id[16];
        int length = snprintf(id, sizeof id, "workflow-%d", i);
        uint32_t shard = route_shard_of(slice_of(id, (size_t)length), 16);
        EXPECT(shard < 16);
        seen |= 1u << shard;
    }
    EXPECT_EQ(seen, 0xffff);
}

struct shard_call {
    unsigned loop;
};

static void
note_loop(void *argument)
{
    ((struct shard_call *)argument)->loop = loop_index(loop_self());
}

LOOP_TEST(route, work_for_a_shard_runs_on_the_loop_of_the_shard, 2)
{
    struct arena *arena = arena_new(0);
    for (uint32_t shard = 0; shard < 8; shard++) {
        struct shard_call shard_call = {.loop = 99};
        EXPECT_OK(route_to_shard(shard, note_loop, &shard_call, arena));
        EXPECT_EQ(shard_call.loop, shard % 2);
    }
    arena_free(arena);
}
