/* socket.c - sockets and listeners as host code sees them (socket.h), on simulated connections. */
#include "fiber/socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/sim/network.h"

#define PORT_MAX 65535

/* --- addresses ------------------------------------------------------------------------------- */

struct address {
    const char *name;
    size_t name_length;
    unsigned port;
};

/* "name:port", "[name]:port". */
static bool
address_parse(const char *text, struct address *address)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL || colon[1] < '0' || colon[1] > '9')
        return false;
    char *rest;
    unsigned long port = strtoul(colon + 1, &rest, 10);
    if (*rest != '\0' || port > PORT_MAX)
        return false;
    *address = (struct address){text, (size_t)(colon - text), (unsigned)port};
    if (address->name_length >= 2 && text[0] == '[' && colon[-1] == ']') {
        address->name++;
        address->name_length -= 2;
    }
    return true;
}

static bool
address_is_local(const struct address *address)
{
    static const char *const names[] = {"127.0.0.1", "::1", "localhost", "0.0.0.0", "::", ""};
    for (size_t i = 0; i < array_length(names); i++)
        if (strlen(names[i]) == address->name_length &&
            memcmp(names[i], address->name, address->name_length) == 0)
            return true;
    return false;
}

/* --- listening ------------------------------------------------------------------------------- */

static bool
port_is_taken(const struct host *host, unsigned port)
{
    list_each(node, &host->listeners) {
        if (list_entry(node, struct listener, node)->port == port)
            return true;
    }
    return false;
}

static unsigned
port_take_free(struct host *host)
{
    do
        host->port_next = host->port_next == PORT_MAX ? PORT_MAX / 2 : host->port_next + 1;
    while (port_is_taken(host, host->port_next));
    return host->port_next;
}

struct error *
listener_open(const char *text, struct arena *arena, struct listener **result)
{
    struct host *host = sim_host_self();
    struct address address;
    *result = NULL;
    if (!address_parse(text, &address))
        return error_new(arena, ERR_IO, "listen on %s: no address", text);
    job_pause(STEP_CONNECT, world_between(host->world, 1000, 20000));
    unsigned port = address.port == 0 ? port_take_free(host) : address.port;
    if (port_is_taken(host, port))
        return error_new(arena, ERR_IO, "listen on %s: address already in use", text);
    struct listener *listener = memory_zalloc(1, sizeof *listener);
    *listener = (struct listener){.host = host, .loop = sim_loop_self(), .port = port};
    snprintf(listener->address, sizeof listener->address, "%.*s:%u",
             (int)(strrchr(text, ':') - text), text, port);
    list_init(&listener->backlog);
    fiber_cond_init(&listener->arrivals);
    list_push_back(&host->listeners, &listener->node);
    *result = listener;
    return NULL;
}

const char *
listener_address(const struct listener *listener)
{
    return listener->address;
}

static struct socket *
socket_new(struct end *end, struct sim_loop *loop, const char *peer, unsigned peer_port)
{
    struct socket *socket = memory_zalloc(1, sizeof *socket);
    *socket = (struct socket){.end = end, .loop = loop};
    snprintf(socket->peer, sizeof socket->peer, "%s:%u", peer, peer_port);
    check(end->socket == NULL);
    end->socket = socket;
    return socket;
}

struct error *
listener_accept(struct listener *listener, struct arena *arena, struct socket **socket)
{
    check_that(listener->loop == sim_loop_self(), "a listener belongs to the loop that opened it");
    *socket = NULL;
    while (!listener->is_closed && list_is_empty(&listener->backlog)) {
        enum wake wake = fiber_cond_wait(&listener->arrivals, NEVER);
        if (wake != WAKE_READY)
            return wake_error(wake, arena, "accepting a connection");
    }
    if (listener->is_closed)
        return error_new(arena, ERR_UNAVAILABLE, "%s is closed", listener->address);
    struct end *end = list_entry(listener->backlog.next, struct end, backlog);
    backlog_remove(end);
    end->state = END_OPEN;
    *socket = socket_new(end, NULL, end->link->ends[0].host->name, end->link->client_port);
    return NULL;
}

void
listener_close(struct listener *listener)
{
    check_that(listener->loop == sim_loop_self(), "a listener belongs to the loop that opened it");
    listener->is_closed = true;
    list_remove(&listener->node);
    while (!list_is_empty(&listener->backlog))
        end_close(list_entry(listener->backlog.next, struct end, backlog), true);
    fiber_cond_broadcast(&listener->arrivals);
}

void
listener_free(struct listener *listener)
{
    if (!listener->is_closed)
        listener_close(listener);
    check_that(list_is_empty(&listener->arrivals.waiters), "somebody still accepts on %s",
               listener->address);
    memory_free(listener);
}

/* --- connecting ------------------------------------------------------------------------------ */

/* Waits for the end of the handshake; what it says if that does not come in time. */
static enum wake
connect_wait(struct link *link, int64_t deadline)
{
    while (link->phase != HANDSHAKE_FINISHED) {
        link->connecting = fiber_self();
        enum wake wake = fiber_wait(deadline);
        link->connecting = NULL;
        if (wake != WAKE_READY && link->phase != HANDSHAKE_FINISHED)
            return wake;
    }
    return WAKE_READY;
}

struct error *
socket_connect(const char *text, int64_t deadline, struct arena *arena, struct socket **socket)
{
    struct sim_loop *loop = sim_loop_self();
    struct host *host = loop->host;
    struct address address;
    *socket = NULL;
    if (!address_parse(text, &address))
        return error_new(arena, ERR_UNAVAILABLE, "connect to %s: no address", text);
    struct link *link = link_new(host);
    link->connecting_loop = loop;
    link->client_port = port_take_free(host);
    struct host *server = world_find_host(host->world, address.name, address.name_length);
    handshake_begin(link, address_is_local(&address) ? host : server, address.port);
    enum wake wake = connect_wait(link, deadline);
    if (wake == WAKE_READY && link->refusal == NULL) {
        *socket = socket_new(&link->ends[0], loop, link->server->name, address.port);
        return NULL;
    }
    const char *refusal = link->refusal;
    end_close(&link->ends[0], true);
    if (wake != WAKE_READY)
        return error_wrap(wake_error(wake, arena, "connecting"), "%s", text);
    return error_new(arena, ERR_UNAVAILABLE, "connect to %s: %s", text, refusal);
}

/* --- sockets --------------------------------------------------------------------------------- */

static void
socket_check_owner(const struct socket *socket)
{
    check_that(socket->loop == sim_loop_self(), "the socket of %s belongs to another loop",
               socket->peer);
}

void
socket_adopt(struct socket *socket)
{
    check_that(socket->loop == NULL, "the socket of %s has an owner", socket->peer);
    socket->loop = sim_loop_self();
    check(socket->loop->host == socket->end->host);
}

unsigned
socket_wait(struct socket *socket, unsigned want, int64_t deadline)
{
    socket_check_owner(socket);
    check_that(socket->waiter == NULL, "two fibers wait for the socket of %s", socket->peer);
    unsigned can = end_can(socket->end) & want;
    if (can != 0)
        return can;
    if (want & SOCKET_WRITABLE)
        end_want_room(socket->end);
    socket->waiter = fiber_self();
    socket->want = want;
    enum wake wake = fiber_wait(deadline);
    (void)wake; /* the caller checks the clock and fiber_is_cancelled */
    socket->waiter = NULL;
    return end_can(socket->end) & want;
}

int64_t
socket_read(struct socket *socket, void *bytes, size_t room)
{
    socket_check_owner(socket);
    return end_read(socket->end, bytes, room);
}

int64_t
socket_write(struct socket *socket, const void *bytes, size_t count)
{
    socket_check_owner(socket);
    return end_write(socket->end, bytes, count);
}

const char *
socket_peer(const struct socket *socket)
{
    return socket->peer;
}

void
socket_close(struct socket *socket)
{
    check_that(socket->waiter == NULL, "somebody waits for the socket of %s", socket->peer);
    check(socket->loop == NULL || socket->loop == sim_loop_self());
    end_close(socket->end, false);
    memory_free(socket);
}
