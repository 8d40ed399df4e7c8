/* socket_test.c - streams between two ends of one process: bytes, waiting, and the other side
 * going. */
#include "fiber/contract/test_server.h"

CONTRACT(socket, an_echo_comes_back, 1)
{
    struct server server;
    server_start(&server, serve_echo, arena);
    struct socket *socket = connect_to(&server, arena);
    EXPECT(socket_peer(socket)[0] != '\0');
    for (int i = 0; i < 100; i++) {
        char bytes[6] = "";
        write_all(socket, "hello", 5);
        read_all(socket, bytes, 5);
        EXPECT_TEXT(bytes, "hello");
    }
    socket_close(socket);
    server_stop(&server);
    EXPECT_EQ(server.last, SOCKET_END);
    EXPECT_EQ(server.accepted, 1);
}

CONTRACT(socket, many_connections_live_at_once, 1)
{
    struct server server;
    struct socket *sockets[100];
    server_start(&server, serve_echo, arena);
    for (int i = 0; i < 100; i++)
        sockets[i] = connect_to(&server, arena);
    for (int i = 0; i < 100; i++)
        write_all(sockets[i], &i, sizeof i);
    for (int i = 99; i >= 0; i--) {
        int back = -1;
        read_all(sockets[i], &back, sizeof back);
        EXPECT_EQ(back, i);
        socket_close(sockets[i]);
    }
    server_stop(&server);
    EXPECT_EQ(server.accepted, 100);
}

/* ---- a big transfer ---- */

#define BIG (8 * 1024 * 1024)

static unsigned char
byte_at(uint64_t place)
{
    return (unsigned char)((place * 2654435761u) >> 13);
}

/* Reads slowly at first, so that the writer has to wait. */
static void
serve_big(struct server *server, struct socket *socket)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    unsigned char bytes[8192];
    EXPECT_OK(fiber_sleep(20 * NS_PER_MS, arena));
    int64_t count;
    while ((count = read_some(socket, bytes, sizeof bytes)) > 0)
        for (int64_t i = 0; i < count; i++)
            EXPECT_EQ(bytes[i], byte_at(server->bytes++));
    server->last = count;
    socket_close(socket);
}

CONTRACT(socket, a_big_transfer_is_complete_and_the_writer_is_held_back, 1)
{
    struct server server;
    server_start(&server, serve_big, arena);
    struct socket *socket = connect_to(&server, arena);
    unsigned char chunk[10000];
    unsigned waits = 0;
    for (uint64_t place = 0; place < BIG;) {
        size_t count = BIG - place < sizeof chunk ? (size_t)(BIG - place) : sizeof chunk;
        for (size_t i = 0; i < count; i++)
            chunk[i] = byte_at(place + i);
        int64_t taken = socket_write(socket, chunk, count);
        EXPECT(taken >= 0);
        place += (uint64_t)taken;
        if (taken == 0) {
            waits++;
            EXPECT(socket_wait(socket, SOCKET_WRITABLE, clock_monotonic() + PATIENCE) != 0);
        }
    }
    socket_close(socket);
    server_stop(&server);
    EXPECT_EQ(server.bytes, BIG);
    EXPECT_EQ(server.last, SOCKET_END);
    EXPECT(waits > 0);
}

/* ---- the other side goes ---- */

static void
serve_goodbye(struct server *server, struct socket *socket)
{
    write_all(socket, "bye", 3);
    socket_close(socket);
}

CONTRACT(socket, what_was_said_before_closing_arrives_then_the_end, 1)
{
    struct server server;
    server_start(&server, serve_goodbye, arena);
    struct socket *socket = connect_to(&server, arena);
    char bytes[4] = "";
    read_all(socket, bytes, 3);
    EXPECT_TEXT(bytes, "bye");
    EXPECT_EQ(read_some(socket, bytes, sizeof bytes), SOCKET_END);
    EXPECT_EQ(read_some(socket, bytes, sizeof bytes), SOCKET_END);
    socket_close(socket);
    server_stop(&server);
}

CONTRACT(socket, writing_to_a_side_that_has_gone_breaks_it, 1)
{
    struct server server;
    server_start(&server, serve_goodbye, arena);
    struct socket *socket = connect_to(&server, arena);
    int64_t taken = 1;
    for (int i = 0; i < 1000 && taken >= 0; i++) {
        taken = socket_write(socket, "hello", 5);
        EXPECT_OK(fiber_sleep(NS_PER_MS, arena));
    }
    EXPECT_EQ(taken, SOCKET_BROKEN);
    EXPECT(socket_wait(socket, SOCKET_READABLE, clock_monotonic() + PATIENCE) != 0);
    socket_close(socket);
    server_stop(&server);
}

/* ---- waiting ---- */

CONTRACT(socket, a_wait_for_bytes_ends_at_its_deadline, 1)
{
    struct server server;
    server_start(&server, serve_echo, arena);
    struct socket *socket = connect_to(&server, arena);
    char byte;
    EXPECT_EQ(socket_read(socket, &byte, 1), 0);
    int64_t due = clock_monotonic() + 3 * NS_PER_MS;
    EXPECT_EQ(socket_wait(socket, SOCKET_READABLE, due), 0);
    EXPECT(clock_monotonic() >= due);
    EXPECT_EQ(socket_wait(socket, SOCKET_WRITABLE, NEVER), SOCKET_WRITABLE);
    socket_close(socket);
    server_stop(&server);
}

static void
wake_later(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(fiber_sleep(2 * NS_PER_MS, arena));
    fiber_wake(argument);
}

CONTRACT(socket, a_wake_ends_a_wait_for_bytes, 1)
{
    struct server server;
    server_start(&server, serve_echo, arena);
    struct socket *socket = connect_to(&server, arena);
    char byte;
    EXPECT_EQ(socket_read(socket, &byte, 1), 0);
    fiber_start("wake", wake_later, fiber_self());
    EXPECT_EQ(socket_wait(socket, SOCKET_READABLE, NEVER), 0);
    write_all(socket, "x", 1); /* and the socket goes on as if nothing had been */
    read_all(socket, &byte, 1);
    EXPECT_EQ(byte, 'x');
    socket_close(socket);
    server_stop(&server);
}

static void
serve_until_cancelled(struct server *server, struct socket *socket)
{
    char byte;
    server->acceptor = fiber_self();
    server->last = read_some(socket, &byte, 1);
    server->bytes = fiber_is_cancelled();
    socket_close(socket);
}

CONTRACT(socket, cancelling_a_fiber_ends_its_wait_for_bytes, 1)
{
    struct server server;
    server_start(&server, serve_until_cancelled, arena);
    struct socket *socket = connect_to(&server, arena);
    while (server.accepted == 0)
        EXPECT_OK(fiber_sleep(NS_PER_MS, arena));
    EXPECT_OK(fiber_sleep(NS_PER_MS, arena));
    fiber_cancel(server.acceptor);
    char byte;
    EXPECT_EQ(read_some(socket, &byte, 1), SOCKET_END);
    socket_close(socket);
    server_stop(&server);
    EXPECT_EQ(server.bytes, 1);
}

/* Bytes that come while nobody waits must not be forgotten, and not burn the loop meanwhile. */
CONTRACT(socket, bytes_that_came_while_nobody_waited_are_seen_later, 1)
{
    struct server server;
    server_start(&server, serve_goodbye, arena);
    struct socket *socket = connect_to(&server, arena);
    char bytes[4] = "";
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(socket_wait(socket, SOCKET_WRITABLE, NEVER), SOCKET_WRITABLE);
        EXPECT_OK(fiber_sleep(5 * NS_PER_MS, arena));
    }
    EXPECT(socket_wait(socket, SOCKET_READABLE, clock_monotonic() + PATIENCE) != 0);
    read_all(socket, bytes, 3);
    EXPECT_TEXT(bytes, "bye");
    socket_close(socket);
    server_stop(&server);
}
