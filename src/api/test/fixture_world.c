/* fixture_world.c - a fixture in a simulated world. See fixture.h. */
#include "api/test/fixture.h"
#include "fiber/sim/world.h"

#define LIMIT (7 * 24 * 3600 * NS_PER_S) /* of virtual time */

struct scene {
    const struct cluster_group *group;
    void (*body)(struct fixture *fixture);
    struct host *host;
    bool is_in_group;
};

static void
run(void *argument)
{
    struct scene *scene = argument;
    struct fixture fixture;
    if (scene->is_in_group)
        fixture_open_in_group(&fixture, "server:7833");
    else
        fixture_open_in(&fixture, scene->group, "server:7833");
    scene->body(&fixture);
    fixture_close(&fixture);
}

static bool
is_over(void *context)
{
    const struct scene *scene = context;
    return !host_is_running(scene->host);
}

static void
run_scene(void (*body)(struct fixture *fixture), const struct cluster_group *group,
          bool is_in_group)
{
    for (int i = 0; i < test_seed_count(); i++) {
        struct world *world = world_new(.seed = test_seed(i));
        world_relent(world); /* what each call is answered is looked at; storms lose answers */
        struct scene scene = {
            .group = group,
            .body = body,
            .host = world_add_host(world, "server", 2),
            .is_in_group = is_in_group,
        };
        host_start(scene.host, run, &scene);
        EXPECT(world_run_until(world, is_over, &scene, LIMIT));
        EXPECT_EQ(host_heap_blocks(scene.host), 0);
        world_free(world);
    }
}

void
fixture_run(void (*body)(struct fixture *fixture))
{
    run_scene(body, NULL, false);
}

void
fixture_run_in(const struct cluster_group *group, void (*body)(struct fixture *fixture))
{
    run_scene(body, group, false);
}

void
fixture_run_in_group(void (*body)(struct fixture *fixture))
{
    run_scene(body, NULL, true);
}
