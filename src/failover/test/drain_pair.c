/* drain_pair.c - see drain_pair.h. */
#include "failover/test/drain_pair.h"

#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/sim/world.h"

#define LIMIT (24 * 3600 * NS_PER_S) /* of virtual time */

struct scene {
    struct host *host;
    void (*test)(struct cluster_pair *cluster_pair);
    bool (*is_last)(enum row_kind kind, struct slice value, struct arena *arena);
    struct cluster_pair
        cluster_pair; /* outlives a crash of the host, though not what is in its memory */
    struct drains *drains[2];
    bool has_crashed;
    bool has_last; /* that row is durable */
};

struct drains *
drain_pair_drains(struct cluster_pair *cluster_pair, int side)
{
    return container_of(cluster_pair, struct scene, cluster_pair)->drains[side];
}

static void
open_drains(struct cluster_pair *cluster_pair, int side)
{
    struct scene *scene = container_of(cluster_pair, struct scene, cluster_pair);
    const struct side *of = &cluster_pair->side[side];
    scene->drains[side] =
        drains_open(&(struct drains_options){.domains = of->domains,
                                             .store = of->store,
                                             .group = &of->group,
                                             .metrics = side == WEST ? cluster_pair->metrics : NULL,
                                             .is_alone = true});
}

struct drains *
drain_pair_open_twin(struct cluster_pair *cluster_pair, int side, struct domains *domains,
                     struct store *store)
{
    return drains_open(&(struct drains_options){
        .domains = domains, .store = store, .group = &cluster_pair->side[side].group});
}

void
drain_pair_reopen(struct cluster_pair *cluster_pair, int side)
{
    drains_close(drain_pair_drains(cluster_pair, side));
    cluster_pair_reopen(cluster_pair, side);
    open_drains(cluster_pair, side);
}

void
drain_pair_stop(struct cluster_pair *cluster_pair, int side)
{
    drains_close(drain_pair_drains(cluster_pair, side));
    domains_close(cluster_pair->side[side].domains);
}

void
drain_pair_start(struct cluster_pair *cluster_pair, int side)
{
    struct side *of = &cluster_pair->side[side];
    struct domains_options options = {
        .store = of->store, .group = &of->group, .dynamic = cluster_pair->dynamic};
    EXPECT_OK(domains_open(&options, cluster_pair->arena, &of->domains));
    open_drains(cluster_pair, side);
}

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
    for (int side = EAST; side <= WEST; side++)
        open_drains(cluster_pair, side);
    scene->test(cluster_pair);
    for (int side = EAST; side <= WEST; side++)
        drains_close(scene->drains[side]);
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
drain_pair_simulate(void (*test)(struct cluster_pair *cluster_pair))
{
    struct world *world = world_new(.seed = test_seed(0));
    struct scene scene = {.host = world_add_host(world, "server", 2), .test = test};
    play_to_end(world, &scene);
}

void
drain_pair_simulate_crash(void (*before)(struct cluster_pair *cluster_pair),
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
