/* test_server.h - for tests of sockets: a listener with fibers behind it, reads and writes that
 * wait. */
#ifndef CADENZA_FIBER_CONTRACT_TEST_SERVER_H
#define CADENZA_FIBER_CONTRACT_TEST_SERVER_H

#include "base/memory.h"
#include "fiber/contract/contract.h"
#include "fiber/socket.h"
#include "fiber/sync.h"

#define PATIENCE (30 * NS_PER_S)

/* A listener with a fiber that accepts one connection after another and starts `serve` for each. */
struct server {
    struct listener *listener;
    struct latch latch; /* the accepting fiber and all that it started */
    void (*serve)(struct server *server, struct socket *socket);
    unsigned accepted;
    enum error_kind ended_with;
    uint64_t bytes;         /* counted by serve */
    int64_t last;           /* what the last read or write returned */
    struct fiber *acceptor; /* the accepting fiber; a serve may put itself here */
};

struct service {
    struct server *server;
    struct socket *socket;
};

static maybe_unused void
serve_one(void *argument)
{
    struct service *service = argument;
    socket_adopt(service->socket);
    service->server->serve(service->server, service->socket);
    latch_done(&service->server->latch);
    memory_free(service);
}

static maybe_unused void
accept_all(void *argument)
{
    struct server *server = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (;;) {
        struct socket *socket;
        struct error *err = listener_accept(server->listener, arena, &socket);
        if (err != NULL) {
            server->ended_with = err->kind;
            break;
        }
        server->accepted++;
        struct service *service = memory_zalloc(1, sizeof *service);
        *service = (struct service){server, socket};
        latch_add(&server->latch, 1);
        fiber_start("serve", serve_one, service);
    }
    latch_done(&server->latch);
}

static maybe_unused void
server_start(struct server *server, void (*serve)(struct server *, struct socket *),
             struct arena *arena)
{
    *server = (struct server){.serve = serve};
    latch_init(&server->latch, 1);
    EXPECT_OK(listener_open("127.0.0.1:0", arena, &server->listener));
    server->acceptor = fiber_start("accept", accept_all, server);
}

static maybe_unused void
server_stop(struct server *server)
{
    listener_close(server->listener);
    latch_wait(&server->latch);
    EXPECT_EQ(server->ended_with, ERR_UNAVAILABLE);
    listener_free(server->listener);
}

static maybe_unused struct socket *
connect_to(struct server *server, struct arena *arena)
{
    struct socket *socket;
    EXPECT_OK(socket_connect(listener_address(server->listener), clock_monotonic() + PATIENCE,
                             arena, &socket));
    return socket;
}

static maybe_unused void
write_all(struct socket *socket, const void *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        int64_t taken = socket_write(socket, (const char *)bytes + done, count - done);
        EXPECT(taken >= 0);
        done += (size_t)taken;
        if (taken == 0)
            EXPECT(socket_wait(socket, SOCKET_WRITABLE, clock_monotonic() + PATIENCE) != 0);
    }
}

/* The next bytes; SOCKET_END or SOCKET_BROKEN. */
static maybe_unused int64_t
read_some(struct socket *socket, void *bytes, size_t room)
{
    for (;;) {
        int64_t count = socket_read(socket, bytes, room);
        if (count != 0)
            return count;
        EXPECT(socket_wait(socket, SOCKET_READABLE, clock_monotonic() + PATIENCE) != 0 ||
               fiber_is_cancelled());
        if (fiber_is_cancelled())
            return 0;
    }
}

static maybe_unused void
read_all(struct socket *socket, void *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        int64_t got = read_some(socket, (char *)bytes + done, count - done);
        EXPECT(got > 0);
        done += (size_t)got;
    }
}

static maybe_unused void
serve_echo(struct server *server, struct socket *socket)
{
    char bytes[4096];
    int64_t count;
    while ((count = read_some(socket, bytes, sizeof bytes)) > 0) {
        server->bytes += (uint64_t)count;
        write_all(socket, bytes, (size_t)count);
    }
    server->last = count;
    socket_close(socket);
}

#endif
