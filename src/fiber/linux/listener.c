/* listener.c - accepting connections. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/linux/inside.h"
#include "fiber/socket.h"

#define BACKLOG             4096
#define NO_DESCRIPTOR_PAUSE (100 * NS_PER_MS)

struct listener {
    struct fd_poller poller;
    bool is_closed;
    struct fiber *acceptor; /* that waits now; NULL: none */
    char address[ADDRESS_TEXT_SIZE];
};

static struct listener *
listener_new(int descriptor)
{
    struct sockaddr_storage storage;
    socklen_t size = sizeof storage;
    int failed = getsockname(descriptor, (struct sockaddr *)&storage, &size);
    check(failed == 0);
    struct listener *listener = memory_zalloc(1, sizeof *listener);
    address_print((struct sockaddr *)&storage, listener->address);
    poller_open(&listener->poller, descriptor);
    return listener;
}

static struct error *
listen_on(const struct addrinfo *address, struct arena *arena, struct listener **listener)
{
    int descriptor =
        socket(address->ai_family, address->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return error_new(arena, ERR_IO, "no socket: %s", strerrordesc_np(errno));
    int yes = 1;
    (void)setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(descriptor, address->ai_addr, address->ai_addrlen) != 0 ||
        listen(descriptor, BACKLOG) != 0) {
        struct error *err = error_new(arena, ERR_IO, "%s", strerrordesc_np(errno));
        close(descriptor);
        return err;
    }
    *listener = listener_new(descriptor);
    return NULL;
}

struct error *
listener_open(const char *address, struct arena *arena, struct listener **listener)
{
    *listener = NULL;
    struct addrinfo *list = NULL;
    struct error *err = address_resolve(address, true, NEVER, arena, &list);
    if (err != NULL)
        return error_new(arena, err->kind == ERR_UNAVAILABLE ? ERR_IO : err->kind, "listen on %s",
                         err->message);
    err = listen_on(list, arena, listener);
    freeaddrinfo(list);
    return err == NULL ? NULL : error_wrap(err, "listen on %s", address);
}

const char *
listener_address(const struct listener *listener)
{
    return listener->address;
}

/* A connection that is there, or the reason why not: 0 means that we have to wait. */
static int
accept_now(struct listener *listener, struct socket **accepted)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    int descriptor = accept4(listener->poller.descriptor, (struct sockaddr *)&peer, &size,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
        *accepted = socket_new(descriptor, (struct sockaddr *)&peer);
        return 0;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        poller_is_blocked(&listener->poller, SOCKET_READABLE);
        return 0;
    }
    return errno;
}

/* Those of a connection that died in the queue are not about the listener; try the next. */
static bool
is_lack_of_room(int reason)
{
    return reason == EMFILE || reason == ENFILE || reason == ENOBUFS || reason == ENOMEM;
}

/* Why an accept that was woken with nothing must end; NULL: it need not. */
static struct error *
accept_must_end(struct listener *listener, struct arena *arena)
{
    if (listener->is_closed)
        return error_new(arena, ERR_UNAVAILABLE, "%s is closed", listener->address);
    if (fiber_is_cancelled())
        return wake_error(WAKE_CANCELLED, arena, "waiting for a connection");
    if (clock_monotonic() >= fiber_deadline())
        return wake_error(WAKE_DEADLINE, arena, "waiting for a connection");
    return NULL;
}

/* Waits for a connection, or for room when there was none. */
static void
accept_wait(struct listener *listener, int reason)
{
    listener->acceptor = fiber_self();
    if (is_lack_of_room(reason)) {
        enum wake wake = fiber_wait(clock_monotonic() + NO_DESCRIPTOR_PAUSE);
        (void)wake; /* the caller checks all that it can mean */
    } else if (reason == 0) {
        poller_wait(&listener->poller, SOCKET_READABLE, NEVER);
    }
    listener->acceptor = NULL;
}

struct error *
listener_accept(struct listener *listener, struct arena *arena, struct socket **socket)
{
    *socket = NULL;
    check_that(listener->acceptor == NULL, "one fiber at a time accepts");
    for (;;) {
        struct error *err = accept_must_end(listener, arena);
        if (err != NULL)
            return err;
        int reason = accept_now(listener, socket);
        if (*socket != NULL)
            return NULL;
        accept_wait(listener, reason);
    }
}

void
listener_close(struct listener *listener)
{
    if (listener->is_closed)
        return;
    listener->is_closed = true;
    if (listener->acceptor != NULL)
        fiber_wake(listener->acceptor);
    poller_close(&listener->poller);
}

void
listener_free(struct listener *listener)
{
    check_that(listener->acceptor == NULL, "freed while a fiber accepts");
    listener_close(listener);
    poller_free(&listener->poller, listener);
}
