/* net_park_bench.c - many parked calls: what each costs the server, and whether it still answers.
 *
 *   net_park_bench [streams] [connections] [address pid]
 *
 * With an address, the server is another process (net_bench serve) and the memory is its own; else
 * it is in this process and the memory is that of both sides. The client does without fibers per
 * call: it submits streams to nghttp2 directly, one fiber per connection. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "fiber/clock.h"
#include "fiber/linux/linux.h"
#include "fiber/sync.h"
#include "net/bench_service.h"
#include "net/http2.h"
#include "net/load.h"

#define MESSAGE_SIZE 120 /* about what a poll for a decision task weighs */

struct bench {
    unsigned streams, connections;
    int server_pid;
    const char *address;
    bool is_over;
    struct latch connected, ended;
    uint8_t *scratch;
};

struct link {
    struct http2_pipe pipe;
    struct bench *bench;
    unsigned streams;
};

/* ---- streams that wait ---- */

/* The window may be too small for all of it: the source's number says how far we are. */
static ssize_t
read_body(nghttp2_session *session, int32_t stream_id, uint8_t *buffer, size_t room,
          uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    uint8_t body[GRPC_PREFIX_SIZE + MESSAGE_SIZE];
    grpc_prefix_write(body, MESSAGE_SIZE);
    memset(body + GRPC_PREFIX_SIZE, 'x', MESSAGE_SIZE);
    size_t left = sizeof body - (size_t)source->fd;
    size_t count = left < room ? left : room;
    memcpy(buffer, body + source->fd, count);
    source->fd += (int)count;
    if (count == left)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)count;
}

static void
submit_streams(struct link *link)
{
    nghttp2_nv fields[] = {
        http2_field(":method", slice_text("POST"), NV_LIVES),
        http2_field(":scheme", slice_text("http"), NV_LIVES),
        http2_field(":path", slice_text("/bench/park"), NV_LIVES),
        http2_field(":authority", slice_text(link->bench->address), NV_LIVES),
        http2_field("te", slice_text("trailers"), NV_LIVES),
        http2_field("content-type", slice_text("application/grpc"), NV_LIVES),
        http2_field("rpc-service", slice_text("cadence-frontend"), NV_LIVES),
        http2_field("rpc-caller", slice_text("bench"), NV_LIVES),
        http2_field("rpc-encoding", slice_text("proto"), NV_LIVES),
        http2_field("cadence-client-feature-version", slice_text("1.7.0"), NV_LIVES),
        http2_field("cadence-client-name", slice_text("uber-go"), NV_LIVES),
        http2_field("grpc-timeout", slice_text("1H"), NV_LIVES),
    };
    nghttp2_data_provider provider = {.read_callback = read_body};
    for (unsigned i = 0; i < link->streams; i++) {
        int32_t id = nghttp2_submit_request(link->pipe.session, NULL, fields, array_length(fields),
                                            &provider, NULL);
        check(id > 0);
    }
}

static void
link_open(struct link *link, struct socket *socket)
{
    http2_pipe_init(&link->pipe, socket, link->bench->scratch);
    link->pipe.fiber = fiber_self();
    nghttp2_option *option = http2_options();
    nghttp2_session_callbacks *callbacks = http2_callbacks();
    nghttp2_option_set_peer_max_concurrent_streams(option, 1000000);
    int failed =
        nghttp2_session_client_new3(&link->pipe.session, callbacks, link, option, http2_memory());
    check(failed == 0);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    nghttp2_submit_settings(link->pipe.session, NGHTTP2_FLAG_NONE, NULL, 0);
    submit_streams(link);
}

static void
link_run(void *argument)
{
    struct link *link = argument;
    struct bench *bench = link->bench;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct socket *socket;
    struct error *err =
        socket_connect(bench->address, clock_monotonic() + 5 * NS_PER_S, arena, &socket);
    check_that(err == NULL, "%s", err->message);
    link_open(link, socket);
    latch_done(&bench->connected);
    while (!bench->is_over && !link->pipe.is_broken) {
        http2_pipe_flush(&link->pipe);
        bool is_blocked = http2_pipe_is_blocked(&link->pipe);
        unsigned can = socket_wait(socket, SOCKET_READABLE | (is_blocked ? SOCKET_WRITABLE : 0),
                                   clock_monotonic() + 100 * NS_PER_MS);
        int64_t count = (can & SOCKET_READABLE) != 0
                            ? socket_read(socket, bench->scratch, HTTP2_SCRATCH_SIZE)
                            : 0;
        check(count >= 0);
        ssize_t taken = nghttp2_session_mem_recv(link->pipe.session, bench->scratch, (size_t)count);
        check(taken == count);
    }
    http2_pipe_close(&link->pipe);
    memory_free(link);
    latch_done(&bench->ended);
}

/* ---- measuring ---- */

static int
parked_count(struct grpc_client *client)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct slice response;
    struct grpc_request request = {.path = "/bench/count"};
    struct error *err = grpc_client_call(client, &request, arena, &response);
    check_that(err == NULL, "%s", err->message);
    uint64_t number;
    bool is_good = text_parse_uint64(response, 0, INT32_MAX, &number);
    check(is_good);
    return (int)number;
}

static void
wait_for_parked(struct grpc_client *client, int wanted)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    while (parked_count(client) != wanted) {
        struct error *err = fiber_sleep(10 * NS_PER_MS, arena);
        check(err == NULL);
    }
}

static uint64_t
server_memory(const struct bench *bench, struct arena *arena)
{
    uint64_t bytes;
    struct error *err = load_process_memory(bench->server_pid, arena, &bytes);
    check_that(err == NULL, "%s", err->message);
    return bytes;
}

static void
fill_request(void *context, uint64_t count, struct arena *arena, struct grpc_request *request)
{
    request->path = "/bench/echo";
    request->message = slice_text("are you there?");
}

static void
show_responsiveness(const struct bench *bench, const char *when, struct arena *arena)
{
    struct load_result result;
    struct error *err = load_run(
        &(struct load_options){
            .address = bench->address,
            .in_flight = 1,
            .warm_up = 100 * NS_PER_MS,
            .duration = NS_PER_S,
            .request = fill_request,
        },
        arena, &result);
    check_that(err == NULL, "%s", err->message);
    printf("%s: echo p50 %.0f us, p99 %.0f us, max %.0f us, %llu errors\n", when,
           (double)result.p50 / NS_PER_US, (double)result.p99 / NS_PER_US,
           (double)result.max / NS_PER_US, (unsigned long long)result.errors);
}

static void
open_links(struct bench *bench)
{
    latch_init(&bench->connected, bench->connections);
    latch_init(&bench->ended, bench->connections);
    for (unsigned i = 0; i < bench->connections; i++) {
        struct link *link = memory_zalloc(1, sizeof *link);
        link->bench = bench;
        link->streams =
            bench->streams / bench->connections + (i < bench->streams % bench->connections ? 1 : 0);
        fiber_start("link", link_run, link);
    }
    latch_wait(&bench->connected);
}

static void
measure(struct bench *bench, struct arena *arena)
{
    struct grpc_client *client =
        grpc_client_new(&(struct grpc_client_options){.address = bench->address});
    bench->scratch = memory_alloc(HTTP2_SCRATCH_SIZE);
    show_responsiveness(bench, "nothing parked", arena);
    uint64_t before = server_memory(bench, arena);
    int64_t began = clock_monotonic();
    open_links(bench);
    wait_for_parked(client, (int)bench->streams);
    int64_t took = clock_monotonic() - began;
    uint64_t after = server_memory(bench, arena);
    printf("%u calls parked on %u connections in %.0f ms: %.0f bytes of server memory each, %.1f "
           "MB in all\n",
           bench->streams, bench->connections, (double)took / NS_PER_MS,
           (double)(after - before) / bench->streams, (double)after / 1e6);
    show_responsiveness(bench, "all parked", arena);
    began = clock_monotonic();
    bench->is_over = true;
    latch_wait(&bench->ended);
    wait_for_parked(client, 0);
    printf("all gone %.0f ms after their clients\n",
           (double)(clock_monotonic() - began) / NS_PER_MS);
    memory_free(bench->scratch);
    grpc_client_free(client);
}

static void
run(void *argument)
{
    struct bench *bench = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct bench_service service;
    bool is_own = bench->address == NULL;
    if (is_own) {
        bench_service_open(&service, "127.0.0.1:0", arena);
        bench->address = grpc_server_address(service.server);
        bench->server_pid = getpid();
    }
    measure(bench, arena);
    if (is_own)
        bench_service_close(&service);
}

int
main(int count, char **words)
{
    struct bench bench = {
        .streams = bench_number(count, words, 1, 100000),
        .connections = bench_number(count, words, 2, 50),
        .address = count > 3 ? words[3] : NULL,
        .server_pid = (int)bench_number(count, words, 4, 0),
    };
    linux_run(&(struct linux_options){.loops = 1}, run, &bench);
    return 0;
}
