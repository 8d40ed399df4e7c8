/* listener_test.c - opening connections, and handing accepted ones to other loops. */
#include <string.h>

#include "fiber/contract/test_server.h"

/* ---- opening ---- */

CONTRACT(listener, connecting_where_nobody_listens_is_unavailable, 1)
{
    struct server server;
    server_start(&server, serve_echo, arena);
    char *address = arena_text(arena, listener_address(server.listener));
    server_stop(&server);
    struct socket *socket;
    struct error *err = socket_connect(address, clock_monotonic() + PATIENCE, arena, &socket);
    EXPECT_KIND(err, ERR_UNAVAILABLE);
    EXPECT(strstr(err->message, address) != NULL);
    EXPECT(socket == NULL);
    EXPECT_KIND(socket_connect("nonsense", NEVER, arena, &socket), ERR_UNAVAILABLE);
}

CONTRACT(listener, an_address_in_use_is_refused, 1)
{
    struct server server;
    server_start(&server, serve_echo, arena);
    struct listener *second;
    struct error *err = listener_open(listener_address(server.listener), arena, &second);
    EXPECT_KIND(err, ERR_IO);
    EXPECT(strstr(err->message, listener_address(server.listener)) != NULL);
    server_stop(&server);
}

static void
accept_once(void *argument)
{
    struct server *server = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct socket *socket;
    struct error *err = listener_accept(server->listener, arena, &socket);
    server->ended_with = err == NULL ? ERROR_KIND_COUNT : err->kind;
    latch_done(&server->latch);
}

CONTRACT(listener, accepting_can_be_cancelled_and_has_a_deadline, 1)
{
    struct server server = {.accepted = 0};
    EXPECT_OK(listener_open("127.0.0.1:0", arena, &server.listener));
    latch_init(&server.latch, 1);
    struct fiber *fiber = fiber_start("accept", accept_once, &server);
    fiber_yield();
    fiber_cancel(fiber);
    latch_wait(&server.latch);
    EXPECT_EQ(server.ended_with, ERR_CANCELLED);
    fiber_set_deadline(clock_monotonic() + 2 * NS_PER_MS);
    latch_init(&server.latch, 1);
    accept_once(&server);
    EXPECT_EQ(server.ended_with, ERR_DEADLINE);
    fiber_set_deadline(NEVER);
    listener_free(server.listener);
}

/* ---- adopted elsewhere ---- */

struct journey {
    struct loop_message message;
    struct server *server;
    struct socket *socket;
    struct loop *back_to;
    struct loop_message done;
};

static void
journey_ends(struct loop_message *message)
{
    struct journey *journey = container_of(message, struct journey, done);
    latch_done(&journey->server->latch);
    memory_free(journey);
}

static void
serve_elsewhere(void *argument)
{
    struct journey *journey = argument;
    char bytes[4096];
    int64_t count;
    while ((count = read_some(journey->socket, bytes, sizeof bytes)) > 0)
        write_all(journey->socket, bytes, (size_t)count);
    socket_close(journey->socket);
    loop_post_answer(journey->back_to, &journey->done);
}

static void
journey_arrives(struct loop_message *message)
{
    struct journey *journey = container_of(message, struct journey, message);
    socket_adopt(journey->socket);
    fiber_start("serve", serve_elsewhere, journey);
}

static void
accept_for_others(void *argument)
{
    struct server *server = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct socket *socket;
    struct error *err;
    while ((err = listener_accept(server->listener, arena, &socket)) == NULL) {
        struct journey *journey = memory_zalloc(1, sizeof *journey);
        *journey = (struct journey){.message.deliver = journey_arrives,
                                    .done.deliver = journey_ends,
                                    .server = server,
                                    .socket = socket,
                                    .back_to = loop_self()};
        latch_add(&server->latch, 1);
        EXPECT(loop_post(loop_at(1 + server->accepted++ % (loop_count() - 1)), &journey->message));
    }
    server->ended_with = err->kind;
    latch_done(&server->latch);
}

CONTRACT(socket, accepted_on_one_loop_it_can_live_on_another, 3)
{
    struct server server = {.accepted = 0};
    EXPECT_OK(listener_open("127.0.0.1:0", arena, &server.listener));
    latch_init(&server.latch, 1);
    fiber_start("accept", accept_for_others, &server);
    for (int i = 0; i < 10; i++) {
        struct socket *socket = connect_to(&server, arena);
        for (int round = 0; round < 50; round++) {
            int back = 0;
            write_all(socket, &round, sizeof round);
            read_all(socket, &back, sizeof back);
            EXPECT_EQ(back, round);
        }
        socket_close(socket);
    }
    server_stop(&server);
    EXPECT_EQ(server.accepted, 10);
}

/* An accepted socket that nobody adopts can be closed as it is. */
CONTRACT(socket, one_that_nobody_adopted_can_be_closed, 1)
{
    struct listener *listener;
    struct socket *near, *far;
    EXPECT_OK(listener_open("127.0.0.1:0", arena, &listener));
    EXPECT_OK(
        socket_connect(listener_address(listener), clock_monotonic() + PATIENCE, arena, &near));
    EXPECT_OK(listener_accept(listener, arena, &far));
    socket_close(far);
    char byte;
    EXPECT_EQ(read_some(near, &byte, 1), SOCKET_END);
    socket_close(near);
    listener_free(listener);
}
