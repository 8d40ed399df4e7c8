/* world_test.c - time, seeds and the life of hosts. */
#include "fiber/sim/world.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/loop.h"
#include "fiber/platform.h"
#include "fiber/pool.h"
#include "fiber/probe.h"
#include "fiber/sim/test_talk.h"
#include "fiber/timer.h"

/* --- time ------------------------------------------------------------------------------------ */

static void
heartbeat_client(void *argument)
{
    uint64_t *beats = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct socket *socket = NULL;
    while (fiber_sleep(NS_PER_S, arena) == NULL) {
        uint8_t byte = 1;
        if (socket == NULL)
            socket = talk_connect("server:1");
        if (socket != NULL && talk_send(socket, &byte, 1) && talk_receive(socket, &byte, 1))
            ++*beats;
    }
    if (socket != NULL)
        socket_close(socket);
}

static void
serve_one_port(void *argument)
{
    talk_serve_echo(1);
}

/* Asserted on steps: how long a step takes is the machine's affair. */
TEST(sim_world, an_hour_of_heartbeats_takes_few_steps)
{
    uint64_t beats = 0;
    struct world *world = world_new(.seed = 3);
    struct host *client = world_add_host(world, "client", 1);
    struct host *server = world_add_host(world, "server", 2);
    host_start(server, serve_one_port, NULL);
    host_start(client, heartbeat_client, &beats);
    world_run_for(world, 3600 * NS_PER_S);
    EXPECT_EQ(world_now(world), 3600 * NS_PER_S);
    EXPECT(beats > 3400 && beats <= 3600);
    EXPECT(world_steps(world) < 20 * 3600);
    world_free(world);
}

struct times {
    int64_t asked, monotonic_before, monotonic_after, wall_before, wall_after;
};

static void
measure_sleep(void *argument)
{
    struct times *times = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    times->monotonic_before = clock_monotonic();
    times->wall_before = clock_wall();
    EXPECT_OK(fiber_sleep(times->asked, arena));
    times->monotonic_after = clock_monotonic();
    times->wall_after = clock_wall();
}

TEST(sim_world, a_sleep_is_never_early_and_the_wall_clock_begins_in_2026)
{
    struct times times = {.asked = 90 * NS_PER_S};
    struct world *world = world_new(.seed = 1);
    host_start(world_add_host(world, "h", 1), measure_sleep, &times);
    world_run_for(world, 100 * NS_PER_S);
    int64_t slept = times.monotonic_after - times.monotonic_before;
    EXPECT(slept >= times.asked && slept < times.asked + NS_PER_MS);
    EXPECT_EQ(times.wall_after - times.wall_before, slept);
    EXPECT_EQ(times.wall_before / NS_PER_S, 1767225600);
    world_free(world);
}

TEST(sim_world, wall_clocks_of_hosts_differ_by_their_skew_at_most)
{
    struct times times[2] = {{0}};
    struct world *world = world_new(.seed = 5, .clock_skew_max = 3 * NS_PER_S);
    host_start(world_add_host(world, "a", 1), measure_sleep, &times[0]);
    host_start(world_add_host(world, "b", 1), measure_sleep, &times[1]);
    world_run_for(world, NS_PER_S);
    int64_t difference = times[0].wall_before - times[1].wall_before;
    EXPECT(difference != 0);
    EXPECT(difference > -6 * NS_PER_S && difference < 6 * NS_PER_S);
    world_free(world);
}

static void
yield_for_ever(void *argument)
{
    while (!fiber_is_cancelled())
        fiber_yield();
}

TEST(sim_world, a_fiber_that_only_yields_cannot_stop_the_clock)
{
    struct world *world = world_new(.seed = 1);
    host_start(world_add_host(world, "busy", 1), yield_for_ever, NULL);
    world_run_for(world, NS_PER_MS);
    EXPECT_EQ(world_now(world), NS_PER_MS);
    world_free(world);
}

static bool
has_beaten_thrice(void *context)
{
    return *(uint64_t *)context >= 3;
}

TEST(sim_world, run_until_stops_at_its_condition_or_at_its_time)
{
    uint64_t beats = 0;
    struct world *world = world_new(.seed = 3);
    struct host *server = world_add_host(world, "server", 1);
    host_start(world_add_host(world, "client", 1), heartbeat_client, &beats);
    EXPECT(!world_run_until(world, has_beaten_thrice, &beats, 5 * NS_PER_S));
    EXPECT_EQ(world_now(world), 5 * NS_PER_S);
    host_start(server, serve_one_port, NULL);
    EXPECT(world_run_until(world, has_beaten_thrice, &beats, 100 * NS_PER_S));
    EXPECT_EQ(beats, 3);
    EXPECT(world_now(world) < 20 * NS_PER_S);
    world_free(world);
}

TEST(sim_world, a_world_without_anything_to_do_says_so)
{
    struct world *world = world_new(.seed = 1);
    world_add_host(world, "idle", 1);
    EXPECT(!world_step(world));
    world_run_for(world, NS_PER_S);
    EXPECT_EQ(world_now(world), NS_PER_S);
    world_free(world);
}

/* --- ends of hosts --------------------------------------------------------------------------- */

struct server {
    struct fiber *main;
    bool is_notified;
};

static void
server_notified(void *context)
{
    struct server *server = context;
    server->is_notified = true;
    fiber_cancel(server->main);
}

/* Talks to its own server, so that everything is in use when it is asked to stop. */
static void
server_client(void *argument)
{
    uint8_t bytes[300] = {0};
    struct socket *socket = talk_connect("localhost:7000");
    while (socket != NULL && talk_send(socket, bytes, sizeof bytes) &&
           talk_receive(socket, bytes, sizeof bytes))
        probe("echo");
    if (socket != NULL)
        socket_close(socket);
}

static void
server_client_late(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(fiber_sleep(NS_PER_MS, arena));
    server_client(NULL);
}

static void
server_main(void *argument)
{
    struct server *server = argument;
    server->main = fiber_self();
    platform_on_stop(server_notified, server);
    fiber_start("client", server_client_late, NULL);
    fiber_start("yields", yield_for_ever, NULL);
    talk_serve_echo(7000);
    platform_on_stop(NULL, NULL);
}

TEST(sim_world, a_stopped_host_has_given_back_all_its_memory)
{
    for (int i = 0; i < test_seed_count(); i++) {
        struct server server = {0};
        struct world *world = world_new(.seed = test_seed(i));
        struct host *host = world_add_host(world, "h0", 2);
        host_start(host, server_main, &server);
        world_run_for(world, 20 * NS_PER_MS);
        EXPECT(host_heap_blocks(host) > 0);
        host_stop(host);
        EXPECT(world_run_until(world, host_has_ended, host, 10 * NS_PER_S));
        EXPECT(server.is_notified && world_probe_count(world, "echo") > 0);
        EXPECT_EQ(host_heap_blocks(host), 0);
        world_free(world);
    }
}

static void
leak_main(void *argument)
{
    void *lost = memory_alloc(100);
    (void)lost;
}

TEST(sim_world, a_leak_of_a_stopped_host_is_seen_and_gone_with_the_next_start)
{
    struct world *world = world_new(.seed = 1);
    struct host *host = world_add_host(world, "h", 1);
    for (unsigned i = 0; i < 3; i++) {
        host_start(host, leak_main, NULL);
        EXPECT(world_run_until(world, host_has_ended, host, NS_PER_S));
        EXPECT_EQ(host_heap_blocks(host), 1);
    }
    world_free(world);
}

static void
stop_late_main(void *argument)
{
    struct server *server = argument;
    server->main = fiber_self();
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(fiber_sleep(NS_PER_S, arena));
    platform_on_stop(server_notified, server);
    EXPECT_KIND(fiber_sleep(NS_PER_S, arena), ERR_CANCELLED);
}

TEST(sim_world, a_stop_before_anybody_listens_is_told_later)
{
    struct server server = {0};
    struct world *world = world_new(.seed = 1);
    struct host *host = world_add_host(world, "h", 1);
    host_start(host, stop_late_main, &server);
    host_stop(host);
    world_run_for(world, 100 * NS_PER_MS);
    EXPECT(!server.is_notified);
    EXPECT(world_run_until(world, host_has_ended, host, 3 * NS_PER_S));
    EXPECT(server.is_notified);
    world_free(world);
}

/* --- probes ----------------------------------------------------------------------------------- */

static void
probe_in_pool(void *argument)
{
    probe("from_the_pool");
}

static void
probe_main(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    probe("from_a_fiber");
    probe("from_a_fiber");
    EXPECT_OK(pool_run(probe_in_pool, NULL, arena));
}

TEST(sim_world, marks_are_counted_by_name_wherever_they_come_from)
{
    struct world *world = world_new(.seed = 1);
    host_start(world_add_host(world, "h", 1), probe_main, NULL);
    world_probe(world, "from_the_test");
    world_run_for(world, NS_PER_S);
    EXPECT_EQ(world_probe_count(world, "from_a_fiber"), 2);
    EXPECT_EQ(world_probe_count(world, "from_the_pool"), 1);
    EXPECT_EQ(world_probe_count(world, "from_the_test"), 1);
    EXPECT_EQ(world_probe_count(world, "never"), 0);
    world_free(world);
}
