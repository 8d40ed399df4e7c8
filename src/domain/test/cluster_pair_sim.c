/* cluster_pair_sim.c - both clusters in a simulation, where time is virtual. See cluster_pair.h. */
#include "base/test.h"
#include "domain/test/cluster_pair.h"
#include "fiber/clock.h"
#include "fiber/sim/world.h"

#define LIMIT (24 * 3600 * NS_PER_S) /* of virtual time */

struct scene {
    struct host *host;
    void (*test)(struct cluster_pair *cluster_pair);
    bool (*is_last)(enum row_kind kind, struct slice value, struct arena *arena);
    struct cluster_pair
        cluster_pair; /* outlives a crash of the host, though not what is in its memory */
    bool has_crashed;
    bool has_last; /* that row is durable */
};

/* Of a commit of west that became durable. */
static void
see_row(void *context, struct partition partition, enum row_kind kind, struct slice key,
        struct slice value)
{
    struct scene *scene = context;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    (void)partition;
    (void)key;
    if (scene->is_last != NULL && !scene->has_last)
        scene->has_last = scene->is_last(kind, value, arena);
}

static void
run_fiber(void *argument)
{
    struct scene *scene = argument;
    struct cluster_pair *cluster_pair = &scene->cluster_pair;
    if (scene->has_crashed)
        cluster_pair_restart(cluster_pair);
    else
        cluster_pair_open(cluster_pair);
    memory_base_watch(cluster_pair->side[WEST].base, (struct memory_watch){see_row, scene});
    scene->test(cluster_pair);
    cluster_pair_close(cluster_pair);
}

static bool
is_over(void *context)
{
    const struct scene *scene = context;
    return !host_is_running(scene->host);
}

static bool
has_last(void *context)
{
    const struct scene *scene = context;
    return scene->has_last || is_over(context);
}

static void
crash(struct scene *scene)
{
    uint64_t handles[2];
    for (int i = 0; i < 2; i++)
        handles[i] = memory_handle(scene->cluster_pair.side[i].store);
    host_crash(scene->host);
    for (int i = 0; i < 2; i++)
        memory_crash(scene->cluster_pair.side[i].base, handles[i]);
    scene->has_crashed = true;
}

static void
play_to_end(struct world *world, struct scene *scene)
{
    host_start(scene->host, run_fiber, scene);
    EXPECT(world_run_until(world, is_over, scene, LIMIT));
    EXPECT_EQ(host_heap_blocks(scene->host), 0);
    world_free(world);
}

void
cluster_pair_simulate(void (*test)(struct cluster_pair *cluster_pair))
{
    struct world *world = world_new(.seed = test_seed(0));
    struct scene scene = {.host = world_add_host(world, "server", 2), .test = test};
    play_to_end(world, &scene);
}

void
cluster_pair_simulate_crash(void (*before)(struct cluster_pair *cluster_pair),
                            bool (*is_last)(enum row_kind kind, struct slice value,
                                            struct arena *arena),
                            void (*after)(struct cluster_pair *cluster_pair))
{
    struct world *world = world_new(.seed = test_seed(0));
    struct scene scene = {
        .host = world_add_host(world, "server", 2), .test = before, .is_last = is_last};
    host_start(scene.host, run_fiber, &scene);
    EXPECT(world_run_until(world, has_last, &scene, LIMIT));
    EXPECT(scene.has_last && !is_over(&scene));
    crash(&scene);
    scene.test = after;
    play_to_end(world, &scene);
}
