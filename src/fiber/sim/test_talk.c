/* test_talk.c - small talk over simulated sockets, for the tests of this folder. */
#include "fiber/sim/test_talk.h"

#include <stdio.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"

static bool
must_give_up(void)
{
    return fiber_is_cancelled() || clock_monotonic() >= fiber_deadline();
}

bool
talk_send(struct socket *socket, const void *bytes, size_t count)
{
    for (const uint8_t *next = bytes; count > 0;) {
        int64_t sent = socket_write(socket, next, count);
        if (sent < 0)
            return false;
        next += sent;
        count -= (size_t)sent;
        if (sent == 0 && socket_wait(socket, SOCKET_WRITABLE, NEVER) == 0 && must_give_up())
            return false;
    }
    return true;
}

bool
talk_receive(struct socket *socket, void *bytes, size_t count)
{
    for (uint8_t *next = bytes; count > 0;) {
        int64_t got = socket_read(socket, next, count);
        if (got < 0)
            return false;
        next += got;
        count -= (size_t)got;
        if (got == 0 && socket_wait(socket, SOCKET_READABLE, NEVER) == 0 && must_give_up())
            return false;
    }
    return true;
}

struct socket *
talk_connect(const char *address)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct socket *socket;
    struct error *err = socket_connect(address, clock_monotonic() + NS_PER_S, arena, &socket);
    return err == NULL ? socket : NULL;
}

/* --- echo ------------------------------------------------------------------------------------ */

struct guest {
    struct loop_message message;
    struct socket *socket;
};

static void
guest_echo(void *argument)
{
    struct guest *guest = argument;
    socket_adopt(guest->socket);
    uint8_t bytes[256];
    for (;;) {
        int64_t got = socket_read(guest->socket, bytes, sizeof bytes);
        if (got < 0 || (got > 0 && !talk_send(guest->socket, bytes, (size_t)got)))
            break;
        if (got == 0 && socket_wait(guest->socket, SOCKET_READABLE, NEVER) == 0 && must_give_up())
            break;
    }
    socket_close(guest->socket);
    memory_free(guest);
}

static void
guest_deliver(struct loop_message *message)
{
    fiber_start("guest", guest_echo, container_of(message, struct guest, message));
}

void
talk_serve_echo(unsigned port)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct listener *listener;
    char address[32];
    snprintf(address, sizeof address, "0.0.0.0:%u", port);
    struct error *err = listener_open(address, arena, &listener);
    check_that(err == NULL, "%s", err->message);
    for (unsigned turn = 0;; turn++) {
        struct socket *socket;
        if (listener_accept(listener, arena, &socket) != NULL)
            break;
        struct guest *guest = memory_zalloc(1, sizeof *guest);
        *guest = (struct guest){.message.deliver = guest_deliver, .socket = socket};
        loop_post_answer(loop_at(turn % loop_count()), &guest->message);
    }
    listener_free(listener);
}
