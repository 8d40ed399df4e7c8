/* server_connection.c - a session and its socket: one fiber that reads, waits and looks at the
 * clock.
 *
 * It does not write as long as the socket takes bytes: answers leave at the end of the tick in
 * which they were made (http2.h). The fiber is woken when the socket is full, when the server
 * closes, and when the session is over. */
#include "base/check.h"
#include "base/memory.h"
#include "net/server_inside.h"

#define READS_PER_TURN 8 /* then others get their turn */

struct connection {
    struct list node;
    struct session session;
    struct server_loop *owner_loop;
    struct fiber *fiber;
    struct socket *socket; /* the pipe's, once there is a session */
    char *peer;
};

/* False: the connection is of no use any more. */
static bool
read_some(struct connection *connection)
{
    struct session *session = &connection->session;
    for (int i = 0; i < READS_PER_TURN; i++) {
        int64_t count =
            socket_read(connection->socket, connection->owner_loop->scratch, HTTP2_SCRATCH_SIZE);
        if (count == 0)
            return true;
        if (count < 0)
            return false;
        if (!session_receive(session, slice_of(connection->owner_loop->scratch, (size_t)count)))
            return false;
        if (count < HTTP2_SCRATCH_SIZE)
            return true; /* most likely all there was: do not ask once more */
    }
    return true;
}

/* While a peer reads none of our output we stop reading its input: what it asks would only pile
 * up. */
static unsigned
wanted(const struct session *session)
{
    size_t room = session->owner_loop->server->options.connection_bytes_max;
    bool is_blocked = http2_pipe_is_blocked(&session->pipe);
    bool is_full = is_blocked &&
                   (session->answer_bytes > room / 2 || session->answer_count > UNREAD_ANSWERS_MAX);
    return (is_full ? 0 : SOCKET_READABLE) | (is_blocked ? SOCKET_WRITABLE : 0);
}

static void
serve(struct connection *connection)
{
    struct session *session = &connection->session;
    int64_t next;
    while (session_tick(session, clock_monotonic(), &next) && !session_is_over(session)) {
        uint64_t switches = fiber_switches();
        unsigned can = socket_wait(connection->socket, wanted(session), next);
        if (fiber_switches() == switches)
            fiber_yield(); /* it never has to wait: others want their turn too */
        if (fiber_is_cancelled())
            return;
        if ((can & SOCKET_WRITABLE) != 0)
            http2_pipe_flush(&session->pipe);
        if ((can & SOCKET_READABLE) != 0 && !read_some(connection))
            return;
    }
}

/* Lets the peer read what we sent last (GOAWAY): closing a socket with unread input would make the
 * kernel throw them away. A peer that just goes on sending is not waited for. */
static void
linger(struct connection *connection)
{
    struct http2_pipe *pipe = &connection->session.pipe;
    int64_t abuse_budget = connection->owner_loop->is_closing ? LINGER_CLOSING : LINGER_TIMEOUT;
    int64_t deadline = clock_monotonic() + abuse_budget, budget = LINGER_BYTES;
    http2_pipe_flush(pipe);
    while (!pipe->is_broken && !fiber_is_cancelled() && budget > 0 &&
           clock_monotonic() < deadline) {
        unsigned want = SOCKET_READABLE | (http2_pipe_is_blocked(pipe) ? SOCKET_WRITABLE : 0);
        unsigned can = socket_wait(connection->socket, want, deadline);
        if ((can & SOCKET_WRITABLE) != 0)
            http2_pipe_flush(pipe);
        if ((can & SOCKET_READABLE) == 0)
            continue;
        int64_t count =
            socket_read(connection->socket, connection->owner_loop->scratch, HTTP2_SCRATCH_SIZE);
        if (count < 0)
            return;
        budget -= count;
    }
}

static void
run_session(struct connection *connection)
{
    struct session *session = &connection->session;
    session_init(session, connection->owner_loop, connection->socket, connection->peer);
    session->pipe.fiber = fiber_self();
    serve(connection);
    linger(connection);
    session_end(session);
    connection->socket = NULL;
    while (session->handler_count > 0)
        fiber_wait_uncancellable();
    session_free(session);
}

static struct error *
start_tls(struct connection *connection, struct arena *arena)
{
    struct tls *tls = connection->owner_loop->server->options.tls;
    if (tls == NULL)
        return NULL;
    return socket_start_tls(connection->socket, tls, NULL, clock_monotonic() + HANDSHAKE_TIMEOUT,
                            arena);
}

static void
connection_run(void *argument)
{
    struct connection *connection = argument;
    struct server_loop *owner_loop = connection->owner_loop;
    {
        scoped(arena_drop) struct arena *arena = arena_new(512);
        struct error *err = start_tls(connection, arena);
        if (err != NULL) {
            /* Anybody can cause it, as often as he likes: not for a log that people read. */
            log_debug(owner_loop->server->options.log, "TLS handshake failed", log_error(err),
                      log_text("peer", connection->peer));
            socket_close(connection->socket);
            connection->socket = NULL;
        }
    }
    if (connection->socket != NULL)
        run_session(connection);
    list_remove(&connection->node);
    memory_free(connection->peer);
    memory_free(connection);
    atomic_fetch_sub(&owner_loop->server->connection_count, 1);
    level_add(owner_loop->server->metrics.connections, -1);
    latch_done(&owner_loop->open);
}

void
connection_start(struct server_loop *owner_loop, struct socket *socket)
{
    struct connection *connection = memory_zalloc(1, sizeof *connection);
    const char *peer = socket_peer(socket);
    size_t length = strlen(peer);
    connection->owner_loop = owner_loop;
    connection->socket = socket;
    connection->peer = memory_alloc(length + 1);
    memcpy(connection->peer, peer, length + 1);
    list_push_back(&owner_loop->connections, &connection->node);
    latch_add(&owner_loop->open, 1);
    level_add(owner_loop->server->metrics.connections, 1);
    connection->fiber = fiber_start("connection", connection_run, connection);
}

void
connection_close_all(struct server_loop *owner_loop, int64_t deadline)
{
    owner_loop->is_closing = true;
    owner_loop->close_deadline = deadline;
    list_each(node, &owner_loop->connections) {
        struct connection *connection = list_entry(node, struct connection, node);
        if (connection->session.pipe.fiber != NULL)
            fiber_wake(connection->fiber);
        else
            fiber_cancel(connection->fiber); /* its TLS handshake would outlast the deadline */
    }
}
