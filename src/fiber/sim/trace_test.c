/* trace_test.c - one seed, one trace: a small town of hosts that talk and suffer, run twice. */
#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/loop.h"
#include "fiber/pool.h"
#include "fiber/sim/test_talk.h"
#include "fiber/sim/world.h"

/* --- a busy town: three hosts of two loops that talk to each other --------------------------- */

struct town {
    struct world *world;
    struct host *hosts[3];
    uint64_t answers; /* counted outside of all hosts: survives crashes */
};

static void
do_blocking_work(void *argument)
{
    ++*(uint64_t *)argument;
}

/* Asks a neighbour for an echo, again and again, on whatever loop it runs. */
static void
town_client(void *argument)
{
    struct town *town = argument;
    for (;;) {
        scoped(arena_drop) struct arena *arena = arena_new(0);
        if (fiber_sleep((int64_t)entropy_below(200 * NS_PER_MS), arena) != NULL)
            return;
        char address[16];
        snprintf(address, sizeof address, "h%u:7000", (unsigned)entropy_below(3));
        struct socket *socket = talk_connect(address);
        if (socket == NULL)
            continue;
        fiber_set_deadline(clock_monotonic() + 2 * NS_PER_S);
        uint8_t question[1000], answer[1000];
        size_t count = 1 + entropy_below(sizeof question);
        entropy_bytes(question, count);
        if (talk_send(socket, question, count) && talk_receive(socket, answer, count)) {
            EXPECT(memcmp(question, answer, count) == 0);
            struct error *err = pool_run(do_blocking_work, &town->answers, arena);
            EXPECT_OK(err);
        }
        fiber_set_deadline(NEVER);
        socket_close(socket);
    }
}

static void
town_client_elsewhere(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct error *err = loop_call(loop_at(1), town_client, argument, arena);
    (void)err;
}

static void
town_main(void *argument)
{
    fiber_start("client", town_client, argument);
    fiber_start("client elsewhere", town_client_elsewhere, argument);
    talk_serve_echo(7000);
}

static void
town_begin(struct town *town, uint64_t seed)
{
    *town = (struct town){.world = world_new(.seed = seed, .clock_skew_max = NS_PER_S)};
    for (unsigned i = 0; i < 3; i++) {
        char name[4];
        snprintf(name, sizeof name, "h%u", i);
        town->hosts[i] = world_add_host(town->world, name, 2);
        host_start(town->hosts[i], town_main, town);
    }
}

/* One thing that goes wrong, drawn from the test's own generator. */
static void
town_suffer(struct town *town)
{
    struct random *random = world_random(town->world);
    struct host *one = town->hosts[random_below(random, 3)];
    struct host *other = town->hosts[random_below(random, 3)];
    switch (random_below(random, 5)) {
    case 0:
        host_crash(one);
        break;
    case 1:
        if (one != other)
            world_cut(town->world, one, other);
        break;
    case 2:
        if (one != other)
            world_heal(town->world, one, other);
        break;
    case 3:
        world_break(town->world, one, other);
        break;
    default:
        if (!host_is_running(one))
            host_start(one, town_main, town);
    }
}

static uint64_t
town_hash_after(uint64_t seed, uint64_t *answers)
{
    struct town town;
    town_begin(&town, seed);
    for (unsigned i = 0; i < 60; i++) {
        world_run_for(town.world, 500 * NS_PER_MS);
        town_suffer(&town);
    }
    uint64_t hash = world_trace_hash(town.world);
    *answers = town.answers;
    world_free(town.world);
    return hash;
}

/* The promise that makes every failure repeatable. */
TEST(sim_trace, the_same_seed_gives_the_same_trace_through_cuts_crashes_and_restarts)
{
    for (int i = 0; i < test_seed_count(); i++) {
        uint64_t first_answers, second_answers;
        uint64_t first = town_hash_after(test_seed(i), &first_answers);
        uint64_t second = town_hash_after(test_seed(i), &second_answers);
        EXPECT(first == second);
        EXPECT_EQ(first_answers, second_answers);
        EXPECT(first_answers > 10); /* or it has shown nothing */
    }
}

TEST(sim_trace, different_seeds_give_different_traces)
{
    uint64_t hashes[4], answers;
    for (uint64_t seed = 0; seed < 4; seed++) {
        hashes[seed] = town_hash_after(seed, &answers);
        for (uint64_t earlier = 0; earlier < seed; earlier++)
            EXPECT(hashes[earlier] != hashes[seed]);
    }
}

/* The test's own draws must not disturb what the world does in between. */
TEST(sim_trace, drawing_from_the_tests_generator_changes_nothing_else)
{
    uint64_t hashes[2];
    for (unsigned round = 0; round < 2; round++) {
        struct town town;
        town_begin(&town, 7);
        for (unsigned i = 0; i < round; i++)
            random_next(world_random(town.world));
        world_run_for(town.world, NS_PER_S);
        hashes[round] = world_trace_hash(town.world);
        world_free(town.world);
    }
    EXPECT(hashes[0] == hashes[1]);
}

/* --- what the hash sees ---------------------------------------------------------------------- */

struct message {
    uint8_t bytes[20];
    size_t count;
};

static void
send_message(void *argument)
{
    struct message *message = argument;
    struct socket *socket = talk_connect("server:1");
    EXPECT(socket != NULL && talk_send(socket, message->bytes, message->count));
    socket_close(socket);
}

static void
serve_messages(void *argument)
{
    talk_serve_echo(1);
}

static uint64_t
hash_of_message(struct message message)
{
    struct world *world = world_new(.seed = 9);
    host_start(world_add_host(world, "server", 1), serve_messages, NULL);
    world_run_for(world, NS_PER_MS);
    host_start(world_add_host(world, "client", 1), send_message, &message);
    world_run_for(world, NS_PER_S);
    uint64_t hash = world_trace_hash(world);
    world_free(world);
    return hash;
}

/* What the promise above is worth: a program that is not the same twice must be found out. */
TEST(sim_trace, one_different_byte_gives_another_trace)
{
    uint64_t hash = hash_of_message((struct message){.count = 20});
    EXPECT(hash == hash_of_message((struct message){.count = 20}));
    EXPECT(hash != hash_of_message((struct message){.count = 19}));
    EXPECT(hash != hash_of_message((struct message){.bytes[3] = 1, .count = 20}));
    EXPECT(hash != hash_of_message((struct message){.bytes[19] = 1, .count = 20}));
}
