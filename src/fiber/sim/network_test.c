/* network_test.c - what connections promise, and what they do when things go wrong. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/sim/test_talk.h"
#include "fiber/sim/world.h"

/* Two hosts: "sender" connects to "receiver:5". What each saw is kept here, outside of both. */
struct pair {
    struct world *world;
    struct host *sender, *receiver;
    uint64_t to_send;
    int64_t pause;  /* of the receiver between two reads */
    int64_t linger; /* of the sender before it closes */
    uint64_t sent, received;
    bool is_in_order;
    bool has_connected, is_sender_done, is_receiver_done;
    int64_t sender_end, receiver_end; /* SOCKET_END, SOCKET_BROKEN; 0: none yet */
    int64_t sender_end_at, receiver_end_at;
    enum error_kind connect_error;
};

/* The stream is a counter, so that every lost, doubled or swapped byte shows. */
static uint8_t
stream_byte(uint64_t position)
{
    return (uint8_t)(position * 31 + (position >> 8));
}

static int64_t
read_until_end(struct pair *pair, struct socket *socket, uint64_t *received)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    uint8_t bytes[700];
    for (;;) {
        int64_t got = socket_read(socket, bytes, sizeof bytes);
        if (got < 0)
            return got;
        for (int64_t i = 0; i < got; i++)
            pair->is_in_order &= bytes[i] == stream_byte((*received)++);
        if (got == 0 && socket_wait(socket, SOCKET_READABLE, NEVER) == 0 && fiber_is_cancelled())
            return 0;
        if (pair->pause > 0 && fiber_sleep(pair->pause, arena) != NULL)
            return 0;
    }
}

static void
receiver_main(void *argument)
{
    struct pair *pair = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct listener *listener;
    struct socket *socket;
    EXPECT_OK(listener_open("receiver:5", arena, &listener));
    if (listener_accept(listener, arena, &socket) == NULL) {
        socket_adopt(socket);
        pair->receiver_end = read_until_end(pair, socket, &pair->received);
        pair->receiver_end_at = clock_monotonic();
        socket_close(socket);
    }
    listener_free(listener);
    pair->is_receiver_done = true;
}

static bool
write_stream(struct pair *pair, struct socket *socket)
{
    uint8_t bytes[5000];
    while (pair->sent < pair->to_send) {
        size_t count = 1 + entropy_below(sizeof bytes);
        if (count > pair->to_send - pair->sent)
            count = pair->to_send - pair->sent;
        for (size_t i = 0; i < count; i++)
            bytes[i] = stream_byte(pair->sent + i);
        if (!talk_send(socket, bytes, count))
            return false;
        pair->sent += count;
    }
    return true;
}

static void
sender_main(void *argument)
{
    struct pair *pair = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct socket *socket;
    struct error *err =
        socket_connect("receiver:5", clock_monotonic() + 20 * NS_PER_S, arena, &socket);
    if (err != NULL) {
        pair->connect_error = err->kind;
    } else {
        pair->has_connected = true;
        if (!write_stream(pair, socket) || fiber_sleep(pair->linger, arena) != NULL) {
            pair->sender_end = SOCKET_BROKEN;
            pair->sender_end_at = clock_monotonic();
        }
        socket_close(socket);
    }
    pair->is_sender_done = true;
}

static struct pair
pair_new(uint64_t seed)
{
    struct pair pair = {.world = world_new(.seed = seed), .to_send = 200000, .is_in_order = true};
    pair.sender = world_add_host(pair.world, "sender", 1);
    pair.receiver = world_add_host(pair.world, "receiver", 1);
    return pair;
}

static void
pair_start(struct pair *pair)
{
    host_start(pair->receiver, receiver_main, pair);
    world_run_for(pair->world, NS_PER_MS);
    host_start(pair->sender, sender_main, pair);
}

static bool
pair_is_done(void *context)
{
    struct pair *pair = context;
    return pair->is_sender_done && pair->is_receiver_done;
}

static bool
pair_has_received_some(void *context)
{
    return ((struct pair *)context)->received > 1000;
}

/* --- without faults -------------------------------------------------------------------------- */

/* Property: whatever the latencies, windows and chunks, the reader sees what was written, then the
 * end. */
TEST(sim_network, bytes_arrive_all_in_order_and_then_the_end)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct pair pair = pair_new(seed);
        pair_start(&pair);
        EXPECT(world_run_until(pair.world, pair_is_done, &pair, 100 * NS_PER_S));
        EXPECT(pair.is_in_order);
        EXPECT_EQ(pair.received, pair.to_send);
        EXPECT_EQ(pair.receiver_end, SOCKET_END);
        EXPECT_EQ(pair.sender_end, 0);
        world_free(pair.world);
    }
}

TEST(sim_network, a_slow_reader_holds_its_writer_back)
{
    struct pair pair = pair_new(4);
    pair.to_send = 10000000;
    pair.pause = 10 * NS_PER_MS;
    pair_start(&pair);
    for (unsigned i = 0; i < 200; i++) {
        world_run_for(pair.world, 10 * NS_PER_MS);
        EXPECT(pair.sent - pair.received <= 256 * 1024 + 5000);
    }
    EXPECT(pair.received > 1000 && pair.sent < pair.to_send);
    world_free(pair.world);
}

TEST(sim_network, nobody_listening_refuses_at_once)
{
    struct pair pair = pair_new(1);
    host_start(pair.sender, sender_main, &pair);
    world_run_for(pair.world, 10 * NS_PER_MS);
    EXPECT(pair.is_sender_done);
    EXPECT_EQ(pair.connect_error, ERR_UNAVAILABLE);
    world_free(pair.world);
}

static void
loopback_main(void *argument)
{
    bool *is_fine = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct listener *listener, *second;
    struct socket *client, *server;
    uint8_t byte = 7, got = 0;
    EXPECT_OK(listener_open("127.0.0.1:0", arena, &listener));
    EXPECT_KIND(listener_open(listener_address(listener), arena, &second), ERR_IO);
    EXPECT_OK(socket_connect(listener_address(listener), NEVER, arena, &client));
    EXPECT_OK(listener_accept(listener, arena, &server));
    socket_adopt(server);
    EXPECT(talk_send(client, &byte, 1) && talk_receive(server, &got, 1));
    socket_close(client); /* half: the other way still works, until a byte meets the closed end */
    EXPECT(!talk_receive(server, &got, 1));
    EXPECT_EQ(socket_write(server, &byte, 1), 1);
    EXPECT_EQ(socket_wait(server, SOCKET_READABLE, NEVER), SOCKET_READABLE);
    EXPECT_OK(fiber_sleep(NS_PER_S, arena));
    EXPECT_EQ(socket_write(server, &byte, 1), SOCKET_BROKEN);
    socket_close(server);
    listener_free(listener);
    *is_fine = got == 7;
}

TEST(sim_network, a_host_can_talk_to_itself_and_a_byte_to_a_closed_end_breaks_the_connection)
{
    bool is_fine = false;
    struct world *world = world_new(.seed = 1);
    struct host *host = world_add_host(world, "h", 1);
    host_start(host, loopback_main, &is_fine);
    world_run_for(world, 10 * NS_PER_S);
    EXPECT(is_fine);
    EXPECT_EQ(host_heap_blocks(host), 0);
    world_free(world);
}

/* --- cuts ------------------------------------------------------------------------------------ */

TEST(sim_network, bytes_into_a_cut_vanish_and_the_writer_breaks_after_thirty_seconds)
{
    struct pair pair = pair_new(2);
    pair.to_send = UINT64_MAX;
    pair_start(&pair);
    EXPECT(world_run_until(pair.world, pair_has_received_some, &pair, 10 * NS_PER_S));
    world_cut(pair.world, pair.sender, pair.receiver);
    int64_t cut_at = world_now(pair.world);
    uint64_t received = pair.received;
    world_run_for(pair.world, 29 * NS_PER_S);
    EXPECT(!pair.is_sender_done);
    EXPECT(pair.received - received <= 256 * 1024); /* what had arrived */
    world_run_for(pair.world, 2 * NS_PER_S);
    EXPECT_EQ(pair.sender_end, SOCKET_BROKEN);
    EXPECT(pair.sender_end_at - cut_at >= 30 * NS_PER_S);
    EXPECT(!pair.is_receiver_done); /* it could not know */
    world_run_for(pair.world, 3600 * NS_PER_S);
    EXPECT(!pair.is_receiver_done);
    world_heal(pair.world, pair.sender, pair.receiver);
    world_run_for(pair.world, NS_PER_S);
    EXPECT_EQ(pair.receiver_end, SOCKET_BROKEN);
    EXPECT(pair.is_in_order);
    world_free(pair.world);
}

/* Acknowledgements are lost: the bytes arrive, yet their writer gives up. */
TEST(sim_network, a_cut_of_the_way_back_breaks_the_writer_though_its_bytes_arrive)
{
    struct pair pair = pair_new(3);
    pair.to_send = UINT64_MAX;
    pair_start(&pair);
    EXPECT(world_run_until(pair.world, pair_has_received_some, &pair, 10 * NS_PER_S));
    world_cut(pair.world, pair.receiver, pair.sender);
    uint64_t received = pair.received;
    world_run_for(pair.world, 40 * NS_PER_S);
    EXPECT(pair.received > received);
    EXPECT_EQ(pair.sender_end, SOCKET_BROKEN);
    world_free(pair.world);
}

TEST(sim_network, an_idle_connection_survives_a_cut_and_one_that_lost_bytes_is_reset_by_healing)
{
    for (unsigned is_busy = 0; is_busy < 2; is_busy++) {
        struct pair pair = pair_new(6);
        pair.to_send = is_busy ? UINT64_MAX : 1;
        pair.linger = 7 * NS_PER_S; /* past the cut */
        pair_start(&pair);
        world_run_for(pair.world, NS_PER_S);
        EXPECT(pair.has_connected && pair.received > 0);
        world_cut(pair.world, pair.sender, pair.receiver);
        world_run_for(pair.world, 5 * NS_PER_S);
        EXPECT(!pair.is_receiver_done);
        world_heal(pair.world, pair.sender, pair.receiver);
        world_run_for(pair.world, 3 * NS_PER_S);
        EXPECT_EQ(pair.receiver_end, is_busy ? SOCKET_BROKEN : SOCKET_END);
        EXPECT_EQ(pair.sender_end, is_busy ? SOCKET_BROKEN : 0);
        world_free(pair.world);
    }
}

/* A connect into a cut is tried again until the way is healed. */
TEST(sim_network, a_connect_waits_for_a_cut_to_heal_or_for_its_deadline)
{
    for (unsigned is_healed = 0; is_healed < 2; is_healed++) {
        struct pair pair = pair_new(8);
        host_start(pair.receiver, receiver_main, &pair);
        world_cut(pair.world, pair.sender, pair.receiver);
        host_start(pair.sender, sender_main, &pair);
        world_run_for(pair.world, 5 * NS_PER_S);
        EXPECT(!pair.has_connected && !pair.is_sender_done);
        if (is_healed)
            world_heal(pair.world, pair.sender, pair.receiver);
        world_run_for(pair.world, 30 * NS_PER_S);
        EXPECT_EQ(pair.has_connected, is_healed);
        if (!is_healed)
            EXPECT_EQ(pair.connect_error, ERR_DEADLINE);
        world_free(pair.world);
    }
}

/* --- breaks and crashes ---------------------------------------------------------------------- */

TEST(sim_network, a_break_resets_both_sides)
{
    struct pair pair = pair_new(9);
    pair.to_send = UINT64_MAX;
    pair_start(&pair);
    EXPECT(world_run_until(pair.world, pair_has_received_some, &pair, 10 * NS_PER_S));
    world_break(pair.world, pair.receiver, pair.sender);
    world_run_for(pair.world, 20 * NS_PER_MS);
    EXPECT_EQ(pair.receiver_end, SOCKET_BROKEN);
    EXPECT_EQ(pair.sender_end, SOCKET_BROKEN);
    EXPECT(pair.is_in_order);
    world_free(pair.world);
}

TEST(sim_network, a_crash_is_seen_by_the_peer_soon_but_through_a_cut_only_after_healing)
{
    for (unsigned is_cut = 0; is_cut < 2; is_cut++) {
        struct pair pair = pair_new(10);
        pair.to_send = UINT64_MAX;
        pair_start(&pair);
        EXPECT(world_run_until(pair.world, pair_has_received_some, &pair, 10 * NS_PER_S));
        if (is_cut)
            world_cut(pair.world, pair.sender, pair.receiver);
        host_crash(pair.sender);
        world_run_for(pair.world, 20 * NS_PER_MS);
        EXPECT_EQ(pair.is_receiver_done, !is_cut);
        if (is_cut) {
            world_run_for(pair.world, 100 * NS_PER_S);
            EXPECT(!pair.is_receiver_done);
            world_heal(pair.world, pair.sender, pair.receiver);
            world_run_for(pair.world, 20 * NS_PER_MS);
        }
        EXPECT_EQ(pair.receiver_end, SOCKET_BROKEN);
        world_free(pair.world);
    }
}

/* Faults at any moment: the reader may see less, never something else. */
TEST(sim_network, whatever_breaks_a_reader_sees_a_prefix_of_what_was_written)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct pair pair = pair_new(seed);
        struct random *random = world_random(pair.world);
        pair_start(&pair);
        world_run_for(pair.world, (int64_t)random_below(random, 100 * NS_PER_MS));
        switch (random_below(random, 3)) {
        case 0:
            host_crash(pair.sender);
            break;
        case 1:
            world_break(pair.world, pair.sender, pair.receiver);
            break;
        default:
            world_cut(pair.world, pair.sender, pair.receiver);
            world_run_for(pair.world, (int64_t)random_below(random, NS_PER_S));
            world_heal(pair.world, pair.sender, pair.receiver);
        }
        world_run_for(pair.world, 100 * NS_PER_S);
        EXPECT(pair.is_in_order);
        EXPECT(pair.received <= pair.to_send);
        world_free(pair.world);
    }
}
