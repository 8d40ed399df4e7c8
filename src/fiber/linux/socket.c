/* socket.c - connected sockets: opening, waiting, plain reads and writes. tls.c has the other kind.
 */
#include "fiber/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/linux/inside.h"

/* A dead peer is noticed after about two minutes, though nobody sends. */
#define KEEPALIVE_IDLE_S     60
#define KEEPALIVE_INTERVAL_S 15
#define KEEPALIVE_PROBES     4

static void
set_option(int descriptor, int level, int option, int value)
{
    (void)setsockopt(descriptor, level, option, &value,
                     sizeof value); /* all are improvements only */
}

struct socket *
socket_new(int descriptor, const struct sockaddr *peer)
{
    set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    struct socket *socket = memory_zalloc(1, sizeof *socket);
    socket->descriptor = descriptor;
    socket->read_needs = SOCKET_READABLE;
    socket->write_needs = SOCKET_WRITABLE;
    address_print(peer, socket->peer);
    return socket;
}

void
socket_adopt(struct socket *socket)
{
    check_that(socket->loop == NULL, "a socket is adopted once");
    socket->loop = linux_loop_self();
    poller_open(&socket->poller, socket->descriptor);
}

/* ---- connecting ---- */

/* Waits for the kernel's word on a connection that was begun. */
static struct error *
connect_wait(struct socket *socket, int64_t deadline, struct arena *arena)
{
    poller_is_blocked(&socket->poller, SOCKET_READABLE | SOCKET_WRITABLE);
    while (poller_wait(&socket->poller, SOCKET_WRITABLE, deadline) == 0) {
        if (fiber_is_cancelled())
            return wake_error(WAKE_CANCELLED, arena, "connecting");
        int64_t now = socket->loop->loop.now;
        if (now >= deadline || now >= fiber_deadline())
            return wake_error(WAKE_DEADLINE, arena, "connecting");
    }
    int reason = 0;
    socklen_t size = sizeof reason;
    if (getsockopt(socket->descriptor, SOL_SOCKET, SO_ERROR, &reason, &size) != 0)
        reason = errno;
    if (reason == 0)
        return NULL;
    return error_new(arena, ERR_UNAVAILABLE, "%s", strerrordesc_np(reason));
}

static struct error *
connect_one(const struct addrinfo *address, int64_t deadline, struct arena *arena,
            struct socket **result)
{
    int descriptor =
        socket(address->ai_family, address->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return error_new(arena, ERR_UNAVAILABLE, "no socket: %s", strerrordesc_np(errno));
    int failed = connect(descriptor, address->ai_addr, address->ai_addrlen);
    int reason = failed != 0 ? errno : 0;
    struct socket *socket = socket_new(descriptor, address->ai_addr);
    socket_adopt(socket);
    struct error *err = NULL;
    if (reason == EINPROGRESS || reason == EINTR)
        err = connect_wait(socket, deadline, arena);
    else if (reason != 0)
        err = error_new(arena, ERR_UNAVAILABLE, "%s", strerrordesc_np(reason));
    if (err != NULL)
        socket_close(socket);
    else
        *result = socket;
    return err;
}

struct error *
socket_connect(const char *address, int64_t deadline, struct arena *arena, struct socket **socket)
{
    *socket = NULL;
    struct addrinfo *list = NULL;
    struct error *err = address_resolve(address, false, deadline, arena, &list);
    if (err != NULL)
        return err;
    for (struct addrinfo *one = list; one != NULL; one = one->ai_next) {
        err = connect_one(one, deadline, arena, socket);
        if (err == NULL || err->kind != ERR_UNAVAILABLE)
            break;
    }
    freeaddrinfo(list);
    return err == NULL ? NULL : error_wrap(err, "connect to %s", address);
}

/* ---- reading and writing ---- */

unsigned
socket_wait(struct socket *socket, unsigned want, int64_t deadline)
{
    check(want != 0 && socket->loop != NULL);
    unsigned read_needs = (want & SOCKET_READABLE) != 0 ? socket->read_needs : 0;
    unsigned write_needs = (want & SOCKET_WRITABLE) != 0 ? socket->write_needs : 0;
    unsigned ready = poller_wait(&socket->poller, read_needs | write_needs, deadline);
    return ((ready & read_needs) != 0 ? SOCKET_READABLE : 0) |
           ((ready & write_needs) != 0 ? SOCKET_WRITABLE : 0);
}

void
socket_break(struct socket *socket)
{
    socket->is_broken = true;
    socket->poller.ready = SOCKET_READABLE | SOCKET_WRITABLE;
}

/* What a failed call means: 0, or the socket is broken from now on. */
static int64_t
give_up_or_wait(struct socket *socket, unsigned event)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        poller_is_blocked(&socket->poller, event);
        return 0;
    }
    socket_break(socket);
    return SOCKET_BROKEN;
}

int64_t
socket_read(struct socket *socket, void *bytes, size_t room)
{
    check(room > 0 && socket->loop != NULL);
    if (socket->is_broken)
        return SOCKET_BROKEN;
    if (socket->ssl != NULL)
        return tls_read(socket, bytes, room);
    if (poller_would_block(&socket->poller, SOCKET_READABLE))
        return 0;
    ssize_t count;
    do
        count = recv(socket->descriptor, bytes, room, 0);
    while (count < 0 && errno == EINTR);
    if (count == 0)
        return SOCKET_END;
    if (count < 0)
        return give_up_or_wait(socket, SOCKET_READABLE);
    if ((size_t)count < room) /* the kernel had no more; what comes later makes an event */
        poller_is_blocked(&socket->poller, SOCKET_READABLE);
    return count;
}

int64_t
socket_write(struct socket *socket, const void *bytes, size_t count)
{
    check(count > 0 && socket->loop != NULL);
    if (socket->is_broken)
        return SOCKET_BROKEN;
    if (socket->ssl != NULL)
        return tls_write(socket, bytes, count);
    if (poller_would_block(&socket->poller, SOCKET_WRITABLE))
        return 0;
    ssize_t taken;
    do
        taken = send(socket->descriptor, bytes, count, MSG_NOSIGNAL);
    while (taken < 0 && errno == EINTR);
    return taken >= 0 ? taken : give_up_or_wait(socket, SOCKET_WRITABLE);
}

const char *
socket_peer(const struct socket *socket)
{
    return socket->peer;
}

/* Bytes that arrived and were not read would turn our FIN into a reset, and the peer would lose
 * what we said last. What is there now is read away; a peer that goes on sending gets its reset. */
static void
discard_input(int descriptor)
{
    char bytes[4096];
    for (int rounds = 16; rounds > 0; rounds--)
        if (recv(descriptor, bytes, sizeof bytes, MSG_DONTWAIT) <= 0)
            return;
}

void
socket_close(struct socket *socket)
{
    if (socket->ssl != NULL)
        tls_close(socket);
    if (!socket->is_broken && shutdown(socket->descriptor, SHUT_WR) == 0)
        discard_input(socket->descriptor);
    if (socket->loop != NULL) {
        poller_close(&socket->poller);
        poller_free(&socket->poller, socket);
        return;
    }
    close(socket->descriptor);
    memory_free(socket);
}
