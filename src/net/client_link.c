/* client_link.c - one connection of a client and the fiber that lives for it: connect, serve, end.
 *
 * A peer that is lost without a word is noticed by pings, which are sent only while calls wait. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/tls.h"
#include "net/client_inside.h"

/* ---- connecting ---- */

static struct error *
connect_to(struct grpc_client *client, struct arena *arena, struct socket **socket)
{
    int64_t deadline = clock_monotonic() + client->connect_timeout;
    struct error *err = socket_connect(client->address, deadline, arena, socket);
    if (err != NULL || client->tls == NULL)
        return err;
    err = socket_start_tls(*socket, client->tls, client->server_name, deadline, arena);
    if (err != NULL)
        socket_close(*socket);
    return err;
}

/* The next attempt may come after the back-off, plus up to a fifth so that clients do not march in
 * step. */
static void
back_off(struct grpc_client *client, const char *failure)
{
    size_t size = strlen(failure) + 1;
    char *kept = memcpy(memory_alloc(size), failure, size); /* may be the one that it has */
    memory_free(client->failure);
    client->failure = kept;
    client->retry_at = clock_monotonic() + client->backoff +
                       (int64_t)entropy_below((uint64_t)client->backoff / 5 + 1);
    client->backoff = client->backoff * 8 / 5;
    if (client->backoff > BACKOFF_MAX)
        client->backoff = BACKOFF_MAX;
}

/* ---- a link ---- */

static void
link_init(struct client_link *link, struct grpc_client *client, struct socket *socket)
{
    *link = (struct client_link){.client = client, .last_received = clock_monotonic()};
    list_init(&link->streams);
    http2_pipe_init(&link->pipe, socket, client->scratch);
    link->pipe.fiber = fiber_self();

    nghttp2_option *option = http2_options();
    nghttp2_session_callbacks *callbacks = http2_callbacks();
    link_set_callbacks(callbacks);
    int failed =
        nghttp2_session_client_new3(&link->pipe.session, callbacks, link, option, http2_memory());
    check_that(failed == 0, "%s", nghttp2_strerror(failed));
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);

    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    nghttp2_session *http = link->pipe.session;
    failed = nghttp2_submit_settings(http, NGHTTP2_FLAG_NONE, settings, array_length(settings));
    check_that(failed == 0, "%s", nghttp2_strerror(failed));
    nghttp2_session_set_local_window_size(http, NGHTTP2_FLAG_NONE, 0, CLIENT_WINDOW);
    list_push_back(&client->links, &link->node);
    http2_pipe_schedule(&link->pipe);
}

static bool
read_some(struct client_link *link)
{
    uint8_t *scratch = link->client->scratch;
    int64_t count = socket_read(link->pipe.socket, scratch, HTTP2_SCRATCH_SIZE);
    if (count <= 0)
        return count == 0;
    link->last_received = clock_monotonic();
    ssize_t taken = nghttp2_session_mem_recv(link->pipe.session, scratch, (size_t)count);
    if (taken < 0)
        return false;
    if (nghttp2_session_want_write(link->pipe.session) != 0)
        http2_pipe_schedule(&link->pipe);
    return true;
}

void
link_ping(struct client_link *link)
{
    nghttp2_submit_ping(link->pipe.session, NGHTTP2_FLAG_NONE, NULL);
    http2_pipe_schedule(&link->pipe);
    link->ping_sent = clock_monotonic();
}

/* False: the peer does not answer. */
static bool
keep_alive(struct client_link *link, int64_t now, int64_t *next)
{
    int64_t keepalive = link->client->keepalive;
    *next = NEVER;
    if (link->ping_sent == 0 && link->stream_count == 0)
        return true;
    if (link->ping_sent == 0 && now - link->last_received >= keepalive)
        link_ping(link);
    *next = (link->ping_sent != 0 ? link->ping_sent : link->last_received) + keepalive;
    return link->ping_sent == 0 || now - link->ping_sent < keepalive;
}

static bool
is_over(const struct client_link *link)
{
    if (link->client->is_closing || link->pipe.is_broken)
        return true;
    return (link->is_retired && link->stream_count == 0) ||
           nghttp2_session_want_read(link->pipe.session) == 0;
}

static void
serve(struct client_link *link)
{
    int64_t next;
    while (!is_over(link) && keep_alive(link, clock_monotonic(), &next)) {
        bool is_blocked = http2_pipe_is_blocked(&link->pipe);
        uint64_t switches = fiber_switches();
        unsigned can = socket_wait(link->pipe.socket,
                                   SOCKET_READABLE | (is_blocked ? SOCKET_WRITABLE : 0), next);
        if (fiber_switches() == switches)
            fiber_yield(); /* it never has to wait: others want their turn too */
        if (fiber_is_cancelled())
            return;
        if ((can & SOCKET_WRITABLE) != 0)
            http2_pipe_flush(&link->pipe);
        if ((can & SOCKET_READABLE) != 0 && !read_some(link))
            return;
    }
}

static void
end_stream(struct client_stream *stream)
{
    struct client_call *call = stream->call;
    stream->call = NULL;
    if (call != NULL) {
        const char *what =
            stream->is_open ? "it is unknown whether the call was done" : "nothing was sent";
        struct error *err = error_new(call->arena, ERR_UNAVAILABLE, "%s: connection lost: %s",
                                      stream->link->client->address, what);
        client_call_done(call, err, !stream->is_open);
    }
    stream_free(stream);
}

static void
link_end(struct client_link *link)
{
    link_retire(link);
    if (link->client->is_closing && !link->pipe.is_broken) {
        nghttp2_session_terminate_session(link->pipe.session, NGHTTP2_NO_ERROR);
        http2_pipe_flush(&link->pipe);
    }
    while (!list_is_empty(&link->streams))
        end_stream(list_entry(link->streams.next, struct client_stream, node));
    http2_pipe_close(&link->pipe);
    list_remove(&link->node);
}

void
client_link_run(void *argument)
{
    struct grpc_client *client = argument;
    scoped(arena_drop) struct arena *arena = arena_new(512);
    struct socket *socket;
    struct error *err = connect_to(client, arena, &socket);
    client->connecting = NULL;
    if (err != NULL) {
        bool is_hurried = err->kind == ERR_CANCELLED && client->failure != NULL;
        back_off(client, is_hurried ? client->failure : err->message);
        client_drive(client); /* fails all that wait */
    } else {
        struct client_link *link = memory_alloc(sizeof *link);
        link_init(link, client, socket);
        client->link = link;
        client_drive(client);
        serve(link);
        if (link->is_proven)
            client->backoff = BACKOFF_FIRST;
        else
            back_off(client, "the server closed the connection at once");
        link_end(link);
        memory_free(link);
        client_drive(client);
    }
    latch_done(&client->busy);
}
