/* http2_fuzz.c - a server's session fed with anything: no socket, a simulated host, virtual time.
 *
 * Byte 0: bit 0 puts preface and SETTINGS before the input, so that most inputs get past them; bits
 * 1 .. 7 are the size of the pieces (0: all at once). After the last piece time passes, so that
 * deadlines and timeouts have their turn. Whatever came, the session must end with every call freed
 * and the host's heap empty. */
#include <stdint.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/sim/world.h"
#include "net/server_inside.h"
#include "net/test_service.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char opening[] = NGHTTP2_CLIENT_MAGIC "\0\0\0\4\0\0\0\0";

struct input {
    struct slice bytes;
    size_t piece;
    bool has_opening;
};

static void
sleep_for(int64_t nanoseconds, struct arena *arena)
{
    struct error *err = fiber_sleep(nanoseconds, arena);
    check(err == NULL);
}

static bool
feed(struct session *session, struct slice bytes, size_t piece)
{
    while (bytes.length > 0) {
        size_t count = piece == 0 || piece > bytes.length ? bytes.length : piece;
        if (!session_receive(session, slice_of(bytes.data, count)))
            return false;
        bytes = slice_skip(bytes, count);
        fiber_yield(); /* handlers run, answers leave */
        if (session_is_over(session))
            return false;
    }
    return true;
}

static void
run_session(struct server_loop *owner_loop, const struct input *input, struct arena *arena)
{
    struct session *session = memory_alloc(sizeof *session);
    session_init(session, owner_loop, NULL, "fuzzer");
    session->pipe.fiber = fiber_self();
    bool is_alive = !input->has_opening || feed(session, slice_of(opening, sizeof opening), 0);
    is_alive = is_alive && feed(session, input->bytes, input->piece);
    for (int i = 0; i < 20 && is_alive; i++) { /* seconds pass */
        int64_t next;
        sleep_for(10 * NS_PER_S, arena);
        is_alive = session_tick(session, clock_monotonic(), &next) && !session_is_over(session);
    }
    session_end(session);
    while (session->handler_count > 0)
        fiber_wait_uncancellable();
    session_free(session);
    memory_free(session);
}

static void
host_main(void *argument)
{
    struct input *input = argument;
    struct test_service service;
    struct arena *arena = arena_new(0);
    struct grpc_server *server = memory_zalloc(1, sizeof *server + sizeof server->loops[0]);
    server_configure(server, &(struct grpc_server_options){
                                 .message_max = 100000,
                                 .connection_bytes_max = 200000,
                                 .streams_max = 100,
                                 .idle_ping = 30 * NS_PER_S,
                                 .service = test_service_init(&service),
                             });
    server->loop_count = 1;
    server_loop_init(&server->loops[0], server);
    run_session(&server->loops[0], input, arena);
    latch_wait(&server->loops[0].open);
    server_loop_free(&server->loops[0]);
    memory_free(server);
    arena_free(arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct input input = {
        .bytes = slice_of(data + 1, size - 1),
        .piece = data[0] >> 1,
        .has_opening = (data[0] & 1) != 0,
    };
    struct world *world = world_new(.seed = 1);
    struct host *host = world_add_host(world, "server", 1);
    host_start(host, host_main, &input);
    bool is_ended = world_run_until(world, host_has_ended, host, 3600 * NS_PER_S);
    check(is_ended);
    check_that(host_heap_blocks(host) == 0, "%zu blocks are left", host_heap_blocks(host));
    world_free(world);
    return 0;
}
