/* handshake.c - how a connection comes about: the client asks, the server's machine answers.
 *
 * As in TCP the server's code has no part in it: a listener with room in its backlog is connected,
 * and accepts later or never. A message that a cut swallows is sent again after 1, 2, 4 …
 * seconds. */
#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/sim/network.h"

#define BACKLOG_MAX 1024
#define TRIES_MAX   6
#define RETRY_FIRST NS_PER_S

static void
handshake_next(struct link *link, enum handshake_phase phase, const struct host *from,
               const struct host *to)
{
    struct world *world = link->ends[0].host->world;
    if (phase != link->phase)
        link->tries = 0;
    link->phase = phase;
    event_schedule(world, &link->handshake, NULL, world->now + link_latency(world, from, to));
}

void
handshake_begin(struct link *link, struct host *server, unsigned port)
{
    struct host *client = link->ends[0].host;
    link->server = server;
    link->port = port;
    link->handshake.host = client;
    handshake_next(link, HANDSHAKE_ASK, client, server);
}

static void
handshake_notify(struct link *link)
{
    struct fiber *fiber = link->connecting;
    link->connecting = NULL;
    if (fiber != NULL)
        sim_loop_wake(link->connecting_loop, fiber);
}

void
handshake_refuse(struct link *link, const char *why)
{
    struct world *world = link->ends[0].host->world;
    event_cancel(world, &link->handshake);
    link->phase = HANDSHAKE_FINISHED;
    link->refusal = why;
    handshake_notify(link);
}

static void
handshake_retry(struct world *world, struct link *link)
{
    if (link->tries == TRIES_MAX) {
        handshake_refuse(link, "connection timed out");
        return;
    }
    event_schedule(world, &link->handshake, NULL, world->now + (RETRY_FIRST << link->tries));
    link->tries++;
}

static struct listener *
find_listener(const struct host *host, unsigned port)
{
    list_each(node, &host->listeners) {
        struct listener *listener = list_entry(node, struct listener, node);
        if (listener->port == port)
            return listener;
    }
    return NULL;
}

static void
backlog_add(struct listener *listener, struct link *link)
{
    struct end *end = &link->ends[1];
    end_open(end, listener->host, END_WAITING);
    end->listener = listener;
    list_push_back(&listener->backlog, &end->backlog);
    listener->backlog_count++;
    struct surroundings before = sim_enter(listener->loop);
    fiber_cond_broadcast(&listener->arrivals); /* a signal could reach a waiter that is being
                                                * cancelled */
    sim_leave(before);
    sim_loop_plan(listener->loop);
}

void
backlog_remove(struct end *end)
{
    if (end->listener == NULL)
        return;
    check(end->listener->backlog_count > 0);
    end->listener->backlog_count--;
    list_remove(&end->backlog);
    end->listener = NULL;
}

/* The client's request has reached the server's machine. */
static void
handshake_ask(struct world *world, struct link *link)
{
    struct host *client = link->ends[0].host, *server = link->server;
    struct listener *listener = server->is_running ? find_listener(server, link->port) : NULL;
    if (listener == NULL) {
        handshake_next(link, HANDSHAKE_REFUSE, server, client);
    } else if (listener->backlog_count >= BACKLOG_MAX) {
        handshake_retry(world, link);
    } else {
        handshake_next(link, HANDSHAKE_ACCEPT, server, client);
        link->flows[1].last_at = link->handshake.node.key; /* no byte is faster than this */
        backlog_add(listener, link);
    }
}

void
handshake_fire(struct world *world, struct event *event)
{
    struct link *link = container_of(event, struct link, handshake);
    struct host *client = link->ends[0].host, *server = link->server;
    check(link->ends[0].state == END_CONNECTING || link->phase == HANDSHAKE_FINISHED);
    bool is_asking = link->phase == HANDSHAKE_ASK;
    if (server == NULL) {
        handshake_refuse(link, "no such host");
    } else if (world_is_cut(world, is_asking ? client : server, is_asking ? server : client)) {
        handshake_retry(world, link);
    } else if (is_asking) {
        handshake_ask(world, link);
    } else if (link->phase == HANDSHAKE_REFUSE) {
        handshake_refuse(link, "connection refused");
    } else {
        link->phase = HANDSHAKE_FINISHED;
        link->ends[0].state = END_OPEN;
        handshake_notify(link);
    }
}
