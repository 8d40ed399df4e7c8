/* world_test.c - client and server on two simulated hosts, with everything going wrong between
 * them.
 *
 * At stake: a call must never hang, and what fails must fail with a kind that says "try again".
 * Method: hosts with latency, random cuts, broken connections and crashes of the server; clients
 * that go on calling; then every call's answer is looked at. The same seed must give the same
 * trace. */
#include <stdio.h>

#include "base/memory.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/sim/world.h"
#include "fiber/sync.h"
#include "net/test_service.h"

#define CALLERS      8
#define CALLS        60
#define CALL_TIMEOUT (3 * NS_PER_S)

/* Lives outside of both hosts: it survives crashes. */
struct scene {
    struct world *world;
    struct host *server, *client;
    unsigned answered, unavailable, past_deadline, wrong;
    unsigned callers_done;
    int64_t longest;
    char first_wrong[200];
};

static void
server_main(void *argument)
{
    struct test_service service;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    test_service_open(&service, &(struct grpc_server_options){.address = "server:7833"}, arena);
    (void)!fiber_wait(NEVER); /* until the plug is pulled */
}

static void
note(struct scene *scene, const struct error *err, int64_t took)
{
    if (took > scene->longest)
        scene->longest = took;
    if (err == NULL)
        scene->answered++;
    else if (err->kind == ERR_UNAVAILABLE)
        scene->unavailable++;
    else if (err->kind == ERR_DEADLINE)
        scene->past_deadline++;
    else if (scene->wrong++ == 0)
        snprintf(scene->first_wrong, sizeof scene->first_wrong, "%s", err->message);
}

struct caller {
    struct scene *scene;
    struct grpc_client *client;
    struct latch *done;
};

static void
one_call(struct caller *caller, struct arena *arena)
{
    static const char *const paths[] = {"/test/echo", "/test/echo", "/test/size", "/test/sleep"};
    size_t which = (size_t)entropy_below(array_length(paths));
    struct slice message = slice_text(arena_format(arena, "%d", (int)entropy_below(300000)));
    struct slice response = {0};
    int64_t began = clock_monotonic();
    fiber_set_deadline(began + CALL_TIMEOUT);
    struct error *err = test_call(caller->client, paths[which], message, arena, &response);
    note(caller->scene, err, clock_monotonic() - began);
    if (err == NULL && which < 2)
        EXPECT(slice_equal(response, message));
    fiber_set_deadline(NEVER);
    EXPECT_OK(fiber_sleep((int64_t)entropy_below(200 * NS_PER_MS), arena));
}

static void
caller_run(void *argument)
{
    struct caller *caller = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (int i = 0; i < CALLS; i++) {
        one_call(caller, arena);
        arena_reset(arena);
    }
    caller->scene->callers_done++;
    latch_done(caller->done);
}

static void
client_main(void *argument)
{
    struct scene *scene = argument;
    struct latch done;
    struct grpc_client *client = grpc_client_new(
        &(struct grpc_client_options){.address = "server:7833", .keepalive = NS_PER_S});
    struct caller caller = {scene, client, &done};
    latch_init(&done, CALLERS);
    for (int i = 0; i < CALLERS; i++)
        fiber_start("caller", caller_run, &caller);
    latch_wait(&done);
    grpc_client_free(client);
}

static bool
is_done(void *context)
{
    const struct scene *scene = context;
    return scene->callers_done == CALLERS && !host_is_running(scene->client);
}

/* One thing goes wrong, or is put right. */
static void
disturb(struct scene *scene)
{
    struct random *random = world_random(scene->world);
    switch (random_below(random, 6)) {
    case 0:
        world_cut(scene->world, scene->client, scene->server);
        break;
    case 1:
        world_cut(scene->world, scene->server, scene->client);
        break;
    case 2:
        world_break(scene->world, scene->client, scene->server);
        break;
    case 3:
        if (host_is_running(scene->server))
            host_crash(scene->server);
        break;
    default:
        world_heal(scene->world, scene->client, scene->server);
        world_heal(scene->world, scene->server, scene->client);
        if (!host_is_running(scene->server))
            host_start(scene->server, server_main, scene);
    }
}

static void
heal_all(struct scene *scene)
{
    world_heal(scene->world, scene->client, scene->server);
    world_heal(scene->world, scene->server, scene->client);
    if (!host_is_running(scene->server))
        host_start(scene->server, server_main, scene);
}

static uint64_t
play(uint64_t seed, bool is_disturbed, struct scene *scene)
{
    *scene = (struct scene){.world = world_new(.seed = seed)};
    scene->server = world_add_host(scene->world, "server", 2);
    scene->client = world_add_host(scene->world, "client", 1);
    host_start(scene->server, server_main, scene);
    world_run_for(scene->world, 10 * NS_PER_MS);
    host_start(scene->client, client_main, scene);
    for (int i = 0; i < 60 && is_disturbed; i++) {
        int64_t pause = (int64_t)random_below(world_random(scene->world), 500 * NS_PER_MS);
        if (world_run_until(scene->world, is_done, scene, pause))
            break;
        disturb(scene);
    }
    heal_all(scene);
    EXPECT(world_run_until(scene->world, is_done, scene, 600 * NS_PER_S));
    EXPECT_EQ(host_heap_blocks(scene->client), 0);
    uint64_t hash = world_trace_hash(scene->world);
    world_free(scene->world);
    return hash;
}

TEST(world, in_peace_every_call_is_answered)
{
    for (int i = 0; i < test_seed_count(); i++) {
        struct scene scene;
        play(test_seed(i), false, &scene);
        EXPECT_EQ(scene.answered, CALLERS * CALLS);
    }
}

TEST(world, in_trouble_every_call_is_answered_or_told_to_try_again_in_time)
{
    unsigned answered = 0, failed = 0;
    for (int i = 0; i < test_seed_count(); i++) {
        struct scene scene;
        play(test_seed(i), true, &scene);
        if (scene.wrong > 0)
            TEST_FAIL("%u calls failed with something else: %s", scene.wrong, scene.first_wrong);
        EXPECT_EQ(scene.answered + scene.unavailable + scene.past_deadline, CALLERS * CALLS);
        EXPECT(scene.longest <= CALL_TIMEOUT + 10 * NS_PER_MS);
        answered += scene.answered;
        failed += scene.unavailable + scene.past_deadline;
    }
    EXPECT(!test_seeds_suffice(1) ||
           (answered > 0 && failed > 0)); /* else there was no trouble, or nothing but */
}

TEST(world, the_same_seed_gives_the_same_trace)
{
    struct scene first, second;
    uint64_t seed = test_seed(0);
    uint64_t one = play(seed, true, &first), other = play(seed, true, &second);
    EXPECT(one == other);
    EXPECT_EQ(first.answered, second.answered);
    EXPECT(play(seed + 1, true, &second) != one);
}
