/* server.c - opens, accepts, closes.
 *
 * One listener, on the loop that opened the server; the connections it accepts go to all loops in
 * turn, by loop message. Closing is two rounds over the loops: first every loop says GOAWAY to its
 * connections, then each is waited for, so that all drain at the same time. */
#include "net/server.h"

#include "base/check.h"
#include "base/memory.h"
#include "fiber/platform.h"
#include "net/server_inside.h"

struct adoption {
    struct loop_message message;
    struct server_loop *owner_loop;
    struct socket *socket;
};

/* ---- setting up ---- */

static int64_t
or_else(int64_t value, int64_t otherwise)
{
    return value == 0 ? otherwise : value;
}

/* A connection needs a descriptor and a fiber; the rest of the process needs some of both too. */
static unsigned
connections_possible(unsigned wanted)
{
    unsigned descriptors = platform_descriptors(), fibers = platform_fibers();
    unsigned kept = descriptors / 2 < DESCRIPTORS_KEPT ? descriptors / 2 : DESCRIPTORS_KEPT;
    unsigned possible = descriptors - kept;
    if (possible > fibers - fibers / 8 * 3)
        possible = fibers - fibers / 8 * 3;
    return wanted < possible ? wanted : possible;
}

static unsigned
runners_possible(void)
{
    unsigned possible = platform_fibers() / 4;
    return possible < RUNNERS_MAX ? possible : RUNNERS_MAX;
}

static void
set_defaults(struct grpc_server_options *options)
{
    if (options->message_max == 0)
        options->message_max = GRPC_MESSAGE_MAX_DEFAULT;
    if (options->connection_bytes_max == 0)
        options->connection_bytes_max = (64u << 20) + options->message_max;
    options->streams_max = (unsigned)or_else(options->streams_max, 100000);
    options->connections_max =
        connections_possible((unsigned)or_else(options->connections_max, 20000));
    options->default_timeout = or_else(options->default_timeout, 60 * NS_PER_S);
    options->request_timeout = or_else(options->request_timeout, 60 * NS_PER_S);
    options->idle_ping = or_else(options->idle_ping, 2 * 3600 * NS_PER_S);
    options->ping_timeout = or_else(options->ping_timeout, 20 * NS_PER_S);
    if (options->service_name == NULL)
        options->service_name = "cadence-frontend";
}

static void
find_metrics(struct server_metrics *found, struct metrics *metrics)
{
    if (metrics == NULL)
        return;
    found->connections =
        metrics_gauge(metrics, "grpc_server_connections", "Open gRPC connections", NULL);
    found->streams = metrics_gauge(metrics, "grpc_server_streams", "Open gRPC calls", NULL);
    found->handlers = metrics_gauge(metrics, "grpc_server_handlers", "Handlers that run", NULL);
    found->parked =
        metrics_gauge(metrics, "grpc_server_parked", "Calls that wait without a fiber", NULL);
    found->accepted =
        metrics_counter(metrics, "grpc_server_accepted_total", "Connections accepted", NULL);
    found->refused = metrics_counter(metrics, "grpc_server_refused_total",
                                     "Connections closed at once: too many", NULL);
    found->calls = metrics_counter(metrics, "grpc_server_calls_total", "Calls begun", NULL);
    found->bytes_in = metrics_counter(metrics, "grpc_server_received_bytes_total",
                                      "Bytes read from gRPC connections", NULL);
    found->bytes_out = metrics_counter(metrics, "grpc_server_sent_bytes_total",
                                       "Bytes written to gRPC connections", NULL);
    found->resets = metrics_counter(metrics, "grpc_server_resets_total",
                                    "Streams cancelled by their clients", NULL);
    found->protocol_errors = metrics_counter(metrics, "grpc_server_protocol_errors_total",
                                             "Violations of HTTP/2 by peers", NULL);
}

void
server_configure(struct grpc_server *server, const struct grpc_server_options *options)
{
    server->options = *options;
    set_defaults(&server->options);
    server->service_name = slice_text(server->options.service_name);
    find_metrics(&server->metrics, options->metrics);
}

void
server_loop_init(struct server_loop *owner_loop, struct grpc_server *server)
{
    *owner_loop = (struct server_loop){
        .server = server,
        .runners_max = 1 + runners_possible() / server->loop_count,
        .scratch = memory_alloc(HTTP2_SCRATCH_SIZE),
    };
    list_init(&owner_loop->runnable);
    list_init(&owner_loop->connections);
    list_init(&owner_loop->spare_calls);
    latch_init(&owner_loop->open, 0);
}

void
server_loop_free(struct server_loop *owner_loop)
{
    check(list_is_empty(&owner_loop->connections) && owner_loop->runners == 0);
    for (struct list *node; (node = list_pop_front(&owner_loop->spare_calls)) != NULL;) {
        struct grpc_call *call = list_entry(node, struct grpc_call, node);
        arena_free(call->arena);
        memory_free(call);
    }
    memory_free(owner_loop->scratch);
}

/* ---- accepting ---- */

static void
adopt(struct server_loop *owner_loop, struct socket *socket)
{
    socket_adopt(socket);
    connection_start(owner_loop, socket);
}

static void
adopt_by_message(struct loop_message *message)
{
    struct adoption *adoption = container_of(message, struct adoption, message);
    struct server_loop *owner_loop = adoption->owner_loop;
    struct socket *socket = adoption->socket;
    memory_free(adoption);
    adopt(owner_loop, socket);
}

static void
refuse(struct grpc_server *server, struct socket *socket)
{
    socket_adopt(socket);
    socket_close(socket);
    count_add(server->metrics.refused, 1);
}

/* Gives the socket to the next loop. */
static void
hand_out(struct grpc_server *server, struct socket *socket)
{
    unsigned index = server->next_loop++ % server->loop_count;
    if (loop_at(index) == server->owner_loop) {
        adopt(&server->loops[index], socket);
        return;
    }
    struct adoption *adoption = memory_alloc(sizeof *adoption);
    *adoption = (struct adoption){
        .message.deliver = adopt_by_message,
        .owner_loop = &server->loops[index],
        .socket = socket,
    };
    if (loop_post(loop_at(index), &adoption->message))
        return;
    memory_free(adoption);
    atomic_fetch_sub(&server->connection_count, 1);
    refuse(server, socket);
}

static void
accept_connections(void *argument)
{
    struct grpc_server *server = argument;
    scoped(arena_drop) struct arena *arena = arena_new(512);
    struct socket *socket;
    while (listener_accept(server->listener, arena, &socket) == NULL) {
        arena_reset(arena);
        count_add(server->metrics.accepted, 1);
        if (atomic_load(&server->connection_count) >= server->options.connections_max) {
            refuse(server, socket);
            continue;
        }
        atomic_fetch_add(&server->connection_count, 1);
        hand_out(server, socket);
    }
    latch_done(&server->accepting);
}

/* ---- every loop in turn ---- */

struct server_closing {
    struct grpc_server *server;
    int64_t deadline;
};

static void
begin_close(void *argument)
{
    struct server_closing *closing = argument;
    connection_close_all(&closing->server->loops[loop_index(loop_self())], closing->deadline);
}

static void
finish_close(void *argument)
{
    struct server_closing *closing = argument;
    struct server_loop *loop = &closing->server->loops[loop_index(loop_self())];
    latch_wait(&loop->open);
    server_loop_free(loop);
}

/* ---- the public part ---- */

struct error *
grpc_server_open(const struct grpc_server_options *options, struct arena *arena,
                 struct grpc_server **result)
{
    struct listener *listener;
    check(options->service.find != NULL && options->service.handle != NULL);
    struct error *err = listener_open(options->address, arena, &listener);
    if (err != NULL)
        return error_wrap(err, "open the gRPC server");
    unsigned loops = loop_count();
    struct grpc_server *server = memory_zalloc(1, sizeof *server + loops * sizeof server->loops[0]);
    server_configure(server, options);
    server->owner_loop = loop_self();
    server->listener = listener;
    server->loop_count = loops;
    for (unsigned i = 0; i < loops; i++)
        server_loop_init(&server->loops[i], server);
    latch_init(&server->accepting, 1);
    fiber_start("accept", accept_connections, server);
    *result = server;
    return NULL;
}

const char *
grpc_server_address(const struct grpc_server *server)
{
    return listener_address(server->listener);
}

void
grpc_server_close(struct grpc_server *server, int64_t deadline)
{
    check_that(loop_self() == server->owner_loop, "close the server on the loop that opened it");
    int64_t own_deadline = fiber_deadline();
    fiber_set_deadline(NEVER);
    listener_close(server->listener);
    latch_wait(&server->accepting);
    struct server_closing closing = {.server = server, .deadline = deadline};
    loop_call_every(begin_close, &closing);
    loop_call_every(finish_close, &closing);
    listener_free(server->listener);
    memory_free(server);
    fiber_set_deadline(own_deadline);
}
