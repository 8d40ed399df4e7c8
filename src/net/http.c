/* http.c - the HTTP/1.1 door, by libmicrohttpd. See http.h.
 *
 * libmicrohttpd runs without threads: it has an epoll set, the loop watches that set, and a timer
 * stands for its timeouts. So an answer is made on the loop that opened the door, between two
 * fibers.
 *
 * When the process is out of descriptors the set stays readable and nothing can be done about it.
 * So the door counts the runs in a row in which nothing happened, and after some of them looks away
 * for a while instead of keeping the loop busy. */
#include "net/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/platform.h"
#include "fiber/timer.h"

#define CONNECTIONS_MAX          256
#define CONNECTIONS_PER_PEER_MAX 64 /* one address alone cannot keep the others out */
#define IDLE_SECONDS             10
#define BODY_MAX                 (1024 * 1024)
#define IDLE_RUNS_MAX            64
#define PAUSE                    (100 * NS_PER_MS)

struct http_server {
    struct MHD_Daemon *daemon;
    struct http_routes routes;
    struct watch *watch; /* NULL during a pause */
    struct timer timer;  /* libmicrohttpd's next timeout, or the end of the pause */
    unsigned idle_runs;  /* in a row in which no connection or request came, went or moved */
    char address[128];   /* with the real port */
};

/* What is kept of a request while it arrives. */
struct http_request {
    struct buffer body;
    bool is_too_large;
};

static void
pause_watch(struct http_server *server)
{
    watch_free(server->watch);
    server->watch = NULL;
    server->idle_runs = 0;
    timer_start(&server->timer, clock_monotonic() + PAUSE);
}

/* Lets libmicrohttpd do what is due, and asks when it wants to be called again. */
static void
run(struct http_server *server)
{
    server->idle_runs++; /* set back by whatever happens */
    enum MHD_Result result = MHD_run(server->daemon);
    check(result == MHD_YES);
    if (server->idle_runs > IDLE_RUNS_MAX) {
        pause_watch(server);
        return;
    }
    MHD_UNSIGNED_LONG_LONG milliseconds = 0;
    int64_t wait = NEVER;
    if (MHD_get_timeout(server->daemon, &milliseconds) == MHD_YES)
        wait = (int64_t)milliseconds * NS_PER_MS;
    /* After the lack of descriptors it listens again only in the run after the one that closed
     * something, and asks for none. */
    if (server->idle_runs == 0 && wait > PAUSE)
        wait = PAUSE;
    if (wait < NEVER)
        timer_start(&server->timer, clock_monotonic() + wait);
    else
        timer_stop(&server->timer);
}

static void
on_ready(void *context)
{
    run(context);
}

static void
start_watch(struct http_server *server)
{
    const union MHD_DaemonInfo *epoll =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    server->watch = watch_new(epoll->epoll_fd, on_ready, server);
}

static void
on_timer(struct timer *timer)
{
    struct http_server *server = container_of(timer, struct http_server, timer);
    if (server->watch == NULL)
        start_watch(server);
    run(server);
}

static void
on_connection(void *context, struct MHD_Connection *connection, void **kept,
              enum MHD_ConnectionNotificationCode what)
{
    struct http_server *server = context;
    server->idle_runs = 0;
}

static enum MHD_Result
send_answer(struct MHD_Connection *connection, const struct http_answer *answer)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        answer->body.length, (void *)answer->body.data, MHD_RESPMEM_MUST_COPY);
    check(response != NULL);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->content_type);
    enum MHD_Result result = MHD_queue_response(connection, answer->status, response);
    MHD_destroy_response(response);
    return result;
}

/* Called once for the headers, then for each piece of the body, then at the end. */
static enum MHD_Result
on_request(void *context, struct MHD_Connection *connection, const char *path, const char *method,
           const char *version, const char *piece, size_t *piece_length, void **kept)
{
    struct http_server *server = context;
    struct http_request *request = *kept;
    server->idle_runs = 0;
    if (request == NULL) {
        *kept = memory_zalloc(1, sizeof *request);
        return MHD_YES;
    }
    if (*piece_length > 0) {
        request->is_too_large =
            request->is_too_large || request->body.length + *piece_length > BODY_MAX;
        if (!request->is_too_large)
            buffer_append(&request->body, slice_of(piece, *piece_length));
        *piece_length = 0;
        return MHD_YES;
    }
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct http_answer answer = {
        .status = request->is_too_large ? MHD_HTTP_CONTENT_TOO_LARGE : MHD_HTTP_NOT_FOUND,
        .content_type = "text/plain",
    };
    /* A HEAD is a GET whose body libmicrohttpd leaves out. */
    const char *meant = strcmp(method, "HEAD") == 0 ? "GET" : method;
    if (!request->is_too_large)
        server->routes.answer(server->routes.context, meant, path, buffer_slice(&request->body),
                              arena, &answer);
    return send_answer(connection, &answer);
}

static void
on_completed(void *context, struct MHD_Connection *connection, void **kept,
             enum MHD_RequestTerminationCode why)
{
    struct http_request *request = *kept;
    if (request == NULL)
        return;
    buffer_free(&request->body);
    memory_free(request);
    *kept = NULL;
}

/* --- opening -------------------------------------------------------------------------------------
 */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* "127.0.0.1:8088", "[::1]:8088", "localhost:8088". */
static bool
read_address(const char *text, union address *address, struct arena *arena)
{
    const char *colon = strrchr(text, ':');
    uint64_t port = 0;
    if (colon == NULL || !text_parse_uint64(slice_text(colon + 1), 0, 65535, &port))
        return false;
    struct slice host = slice_of(text, (size_t)(colon - text));
    bool is_v6 = host.length >= 2 && host.data[0] == '[' && host.data[host.length - 1] == ']';
    const char *name = is_v6 ? arena_text_of(arena, slice_of(host.data + 1, host.length - 2))
                             : arena_text_of(arena, host);
    if (strcmp(name, "localhost") == 0)
        name = "127.0.0.1";
    memset(address, 0, sizeof *address);
    if (is_v6) {
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, name, &address->v6.sin6_addr) == 1;
    }
    address->v4.sin_family = AF_INET;
    address->v4.sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, name, &address->v4.sin_addr) == 1;
}

static struct MHD_Daemon *
start_daemon(struct http_server *server, const union address *address)
{
    unsigned flags = MHD_USE_EPOLL | (address->any.sa_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    return MHD_start_daemon(flags, 0, NULL, NULL, on_request, server, MHD_OPTION_SOCK_ADDR,
                            &address->any, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
                            MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)CONNECTIONS_PER_PEER_MAX,
                            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_END);
}

struct error *
http_server_open(const char *address, const struct http_routes *routes, struct arena *arena,
                 struct http_server **server)
{
    union address bound;
    if (!read_address(address, &bound, arena))
        return error_new(arena, ERR_IO,
                         "%s: not an address for the HTTP door; it looks like 127.0.0.1:8088",
                         address);
    struct http_server *opened = memory_zalloc(1, sizeof *opened);
    opened->routes = *routes;
    timer_init(&opened->timer, on_timer);
    errno = 0;
    opened->daemon = start_daemon(opened, &bound);
    if (opened->daemon == NULL) {
        struct error *err =
            error_new(arena, ERR_IO, "cannot listen on %s: %s", address, strerror(errno));
        memory_free(opened);
        return err;
    }
    const union MHD_DaemonInfo *port =
        MHD_get_daemon_info(opened->daemon, MHD_DAEMON_INFO_BIND_PORT);
    const char *colon = strrchr(address, ':');
    snprintf(opened->address, sizeof opened->address, "%.*s:%u", (int)(colon - address), address,
             port->port);
    start_watch(opened);
    *server = opened;
    return NULL;
}

const char *
http_server_address(const struct http_server *server)
{
    return server->address;
}

void
http_server_close(struct http_server *server)
{
    timer_stop(&server->timer);
    if (server->watch != NULL)
        watch_free(server->watch);
    MHD_stop_daemon(server->daemon);
    memory_free(server);
}
