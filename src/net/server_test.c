/* server_test.c - our client against our server, on either platform: what a call promises.
 *
 * Linked once with the real platform and once with the simulated one. */
#include "net/server.h"

#include "base/memory.h"
#include "fiber/contract/contract.h"
#include "fiber/loop.h"
#include "fiber/sync.h"
#include "net/test_service.h"

/* A call in a fiber of its own. */
struct caller {
    struct grpc_client *client;
    const char *path;
    struct slice message;
    int64_t timeout; /* 0: none */
    struct fiber *fiber;
    struct latch *done;
    struct arena *arena;
    struct error *err;
    struct slice response;
};

static void
caller_run(void *argument)
{
    struct caller *caller = argument;
    if (caller->timeout != 0)
        fiber_set_deadline(clock_monotonic() + caller->timeout);
    caller->err =
        test_call(caller->client, caller->path, caller->message, caller->arena, &caller->response);
    latch_done(caller->done);
}

static void
caller_start(struct caller *caller, struct latch *done)
{
    latch_add(done, 1);
    caller->done = done;
    caller->arena = arena_new(256);
    caller->fiber = fiber_start("caller", caller_run, caller);
}

CONTRACT(server, a_call_is_answered_with_what_the_handler_replied, 1)
{
    struct test_service service;
    struct slice response;
    test_service_open(&service, NULL, arena);
    struct grpc_client *client = test_client(&service);
    EXPECT_OK(test_call(client, "/test/echo", slice_text("hello"), arena, &response));
    EXPECT(slice_equal(response, slice_text("hello")));
    grpc_client_free(client);
    test_service_close(&service);
}

CONTRACT(server, an_empty_message_is_a_message, 1)
{
    struct test_service service;
    struct slice response = slice_text("untouched");
    test_service_open(&service, NULL, arena);
    struct grpc_client *client = test_client(&service);
    EXPECT_OK(test_call(client, "/test/echo", (struct slice){0}, arena, &response));
    EXPECT_EQ(response.length, 0);
    grpc_client_free(client);
    test_service_close(&service);
}

CONTRACT(server, headers_of_the_client_reach_the_handler, 1)
{
    struct test_service service;
    struct slice response;
    test_service_open(&service, NULL, arena);
    const struct call_header always = {slice_text("rpc-caller"), slice_text("tester")};
    const struct call_header once = {slice_text("x-one"), slice_text("1")};
    struct grpc_client *client = grpc_client_new(&(struct grpc_client_options){
        .address = grpc_server_address(service.server), .headers = &always, .header_count = 1});
    EXPECT_OK(test_call(client, "/test/header", slice_text("rpc-caller"), arena, &response));
    EXPECT(slice_equal(response, slice_text("tester")));
    struct grpc_request request = {.path = "/test/header",
                                   .message = slice_text("x-one"),
                                   .headers = &once,
                                   .header_count = 1};
    EXPECT_OK(grpc_client_call(client, &request, arena, &response));
    EXPECT(slice_equal(response, slice_text("1")));
    EXPECT_OK(test_call(client, "/test/header", slice_text("x-one"), arena, &response));
    EXPECT_EQ(response.length, 0); /* the next call shares nothing with it */
    fiber_set_deadline(clock_monotonic() + 5 * NS_PER_S);
    EXPECT_OK(test_call(client, "/test/header", slice_text("grpc-timeout"), arena, &response));
    EXPECT(response.length >= 2);
    fiber_set_deadline(NEVER);
    grpc_client_free(client);
    test_service_close(&service);
}

CONTRACT(server, every_kind_of_error_comes_back_as_the_same_kind_with_its_detail, 1)
{
    struct test_service service;
    test_service_open(&service, NULL, arena);
    struct grpc_client *client = test_client(&service);
    for (int kind = 0; kind < ERROR_KIND_COUNT; kind++) {
        bool has_detail = error_kind_detail((enum error_kind)kind) != NULL;
        char *message =
            arena_format(arena, "%cno %d: 100%% \xc3\xa9\n", kind == 0 ? 'x' : kind, kind);
        message[0] = (char)kind;
        struct slice detail = slice_of("\n\x03"
                                       "abc",
                                       5);
        size_t length = strlen(message + 1) + 2;
        uint8_t *bytes = arena_alloc(arena, length + detail.length);
        memcpy(bytes, message, length);
        memcpy(bytes + length, detail.data, detail.length);
        struct slice response;
        struct error *err = test_call(client, "/test/fail", slice_of(bytes, length + detail.length),
                                      arena, &response);
        /* Kinds for inside come back as the public kind of their status. */
        enum error_kind wanted =
            has_detail
                ? (enum error_kind)kind
                : grpc_status_kind(error_kind_status((enum error_kind)kind), (struct slice){0});
        EXPECT_KIND(err, wanted);
        if (error_kind_status(wanted) == error_kind_status((enum error_kind)kind))
            EXPECT_TEXT(err->message, message + 1);
        EXPECT_EQ(err->detail.length, has_detail ? detail.length : 0);
        EXPECT(!has_detail || slice_equal(err->detail, detail));
    }
    grpc_client_free(client);
    test_service_close(&service);
}

CONTRACT(server, an_unknown_method_is_unimplemented, 1)
{
    struct test_service service;
    struct slice response;
    test_service_open(&service, NULL, arena);
    struct grpc_client *client = test_client(&service);
    EXPECT_KIND(test_call(client, "/test/none", slice_text("x"), arena, &response),
                ERR_UNIMPLEMENTED);
    EXPECT_OK(test_call(client, "/test/echo", slice_text("x"), arena, &response));
    grpc_client_free(client);
    test_service_close(&service);
}

CONTRACT(server, messages_up_to_the_limit_pass_and_larger_ones_do_not, 1)
{
    struct test_service service;
    const size_t limit = 3 << 20;
    struct slice response;
    test_service_open(&service, &(struct grpc_server_options){.message_max = limit}, arena);
    struct grpc_client *client = grpc_client_new(&(struct grpc_client_options){
        .address = grpc_server_address(service.server), .message_max = limit});
    uint8_t *bytes = arena_alloc(arena, limit + 1);
    for (size_t i = 0; i <= limit; i++)
        bytes[i] = (uint8_t)(i ^ i >> 9);
    EXPECT_OK(test_call(client, "/test/echo", slice_of(bytes, limit), arena, &response));
    EXPECT(slice_equal(response, slice_of(bytes, limit)));
    struct error *err =
        test_call(client, "/test/echo", slice_of(bytes, limit + 1), arena, &response);
    EXPECT_KIND(err, ERR_UNCATEGORISED);
    EXPECT_TEXT(err->message, "status 8: the message is larger than the limit");
    EXPECT_OK(test_call(client, "/test/size", slice_text("3145728"), arena, &response));
    EXPECT_EQ(response.length, limit);
    EXPECT_EQ(response.data[limit - 1], (uint8_t)((limit - 1) * 7 + (limit - 1) / 251));
    EXPECT_KIND(test_call(client, "/test/size", slice_text("3145729"), arena, &response),
                ERR_UNCATEGORISED);
    EXPECT_OK(test_call(client, "/test/echo", slice_text("still here"), arena, &response));
    grpc_client_free(client);
    test_service_close(&service);
}

/* What a server takes whose configuration says nothing (config_test.c). */
CONTRACT(server, a_message_of_32_mib_passes, 1, "A-255")
{
    struct test_service service;
    const size_t limit = 32 << 20;
    struct slice response;
    test_service_open(&service, &(struct grpc_server_options){.message_max = limit}, arena);
    struct grpc_client *client = grpc_client_new(&(struct grpc_client_options){
        .address = grpc_server_address(service.server), .message_max = limit});
    struct slice bytes = slice_of(arena_zalloc(arena, 1, limit), limit);
    EXPECT_OK(test_call(client, "/test/echo", bytes, arena, &response));
    EXPECT(slice_equal(response, bytes));
    grpc_client_free(client);
    test_service_close(&service);
}

CONTRACT(server, the_deadline_ends_a_call_on_both_sides, 1)
{
    struct test_service service;
    struct slice response;
    test_service_open(&service, NULL, arena);
    struct grpc_client *client = test_client(&service);
    fiber_set_deadline(clock_monotonic() + 50 * NS_PER_MS);
    EXPECT_KIND(test_call(client, "/test/hang", slice_text("x"), arena, &response), ERR_DEADLINE);
    fiber_set_deadline(NEVER);
    EXPECT(test_wait_for(&service.handled, 1)); /* by its deadline or by the client's reset */
    EXPECT_EQ(atomic_load(&service.cancelled) + atomic_load(&service.past_deadline), 1);
    grpc_client_free(client);
    test_service_close(&service);
}

CONTRACT(server, a_parked_call_ends_at_its_deadline_without_its_keeper, 1)
{
    struct test_service service;
    struct slice response;
    test_service_open(&service, &(struct grpc_server_options){.default_timeout = 50 * NS_PER_MS},
                      arena);
    struct grpc_client *client = test_client(&service);
    struct error *err = test_call(client, "/test/park", slice_text("x"), arena, &response);
    EXPECT_KIND(err, ERR_DEADLINE); /* the server's own: the client has none */
    EXPECT_EQ(atomic_load(&service.gone_count), 1);
    EXPECT_EQ(atomic_load(&service.parked_count), 0);
    grpc_client_free(client);
    test_service_close(&service);
}

CONTRACT(server, cancelling_a_call_removes_it_from_where_it_is_parked, 1)
{
    struct test_service service;
    struct latch done;
    latch_init(&done, 0);
    test_service_open(&service, NULL, arena);
    struct grpc_client *client = test_client(&service);
    struct caller parked = {.client = client, .path = "/test/park"};
    struct caller hanging = {.client = client, .path = "/test/hang"};
    caller_start(&parked, &done);
    caller_start(&hanging, &done);
    EXPECT(test_wait_for(&service.parked_count, 1));
    fiber_cancel(parked.fiber);
    fiber_cancel(hanging.fiber);
    latch_wait(&done);
    EXPECT_KIND(parked.err, ERR_CANCELLED);
    EXPECT_KIND(hanging.err, ERR_CANCELLED);
    EXPECT(test_wait_for(&service.gone_count, 1));
    EXPECT(test_wait_for(&service.cancelled, 1));
    arena_free(parked.arena);
    arena_free(hanging.arena);
    grpc_client_free(client);
    test_service_close(&service);
}

CONTRACT(server, a_lost_connection_removes_what_is_parked, 1)
{
    struct test_service service;
    struct latch done;
    latch_init(&done, 0);
    test_service_open(&service, NULL, arena);
    struct grpc_client *client = test_client(&service);
    struct caller callers[10];
    for (int i = 0; i < 10; i++) {
        callers[i] = (struct caller){.client = client, .path = "/test/park"};
        caller_start(&callers[i], &done);
    }
    EXPECT(test_wait_for(&service.parked_count, 10));
    grpc_client_free(client);
    latch_wait(&done);
    for (int i = 0; i < 10; i++) {
        EXPECT_KIND(callers[i].err, ERR_CANCELLED);
        arena_free(callers[i].arena);
    }
    EXPECT(test_wait_for(&service.gone_count, 10));
    test_service_close(&service);
}

CONTRACT(server, thousands_of_streams_live_on_one_connection, 1)
{
    enum { COUNT = 3000 };
    struct test_service service;
    struct latch done;
    latch_init(&done, 0);
    test_service_open(&service, NULL, arena);
    struct grpc_client *client = test_client(&service);
    struct caller *callers = memory_zalloc(COUNT, sizeof *callers);
    for (int i = 0; i < COUNT; i++) {
        callers[i] = (struct caller){.client = client, .path = "/test/park"};
        caller_start(&callers[i], &done);
    }
    EXPECT(test_wait_for(&service.parked_count, COUNT));
    struct slice response;
    EXPECT_OK(test_call(client, "/test/echo", slice_text("quick"), arena, &response));
    EXPECT_OK(test_call(client, "/test/wake", slice_text(""), arena, &response));
    latch_wait(&done);
    for (int i = 0; i < COUNT; i++) {
        EXPECT_OK(callers[i].err);
        arena_free(callers[i].arena);
    }
    memory_free(callers);
    grpc_client_free(client);
    test_service_close(&service);
}

CONTRACT(server, closing_lets_running_calls_finish_and_cuts_the_rest, 1)
{
    struct test_service service;
    struct latch done;
    latch_init(&done, 0);
    test_service_open(&service, NULL, arena);
    struct grpc_client *client = test_client(&service);
    struct caller quick = {
        .client = client, .path = "/test/sleep", .message = slice_text("100000000")};
    struct caller endless = {.client = client, .path = "/test/hang"};
    caller_start(&quick, &done);
    caller_start(&endless, &done);
    EXPECT_OK(fiber_sleep(20 * NS_PER_MS, arena));
    int64_t began = clock_monotonic();
    grpc_server_close(service.server, began + 500 * NS_PER_MS);
    latch_wait(&done);
    EXPECT_OK(quick.err);
    EXPECT(endless.err != NULL);
    EXPECT_KIND(endless.err, ERR_UNAVAILABLE);
    EXPECT_EQ(atomic_load(&service.cancelled), 1);
    arena_free(quick.arena);
    arena_free(endless.arena);
    grpc_client_free(client);
}

CONTRACT(server, an_idle_server_closes_at_once, 2)
{
    struct test_service service;
    struct slice response;
    test_service_open(&service, NULL, arena);
    struct grpc_client *clients[4];
    for (int i = 0; i < 4; i++) {
        clients[i] = test_client(&service);
        EXPECT_OK(test_call(clients[i], "/test/echo", slice_text("x"), arena, &response));
    }
    int64_t began = clock_monotonic();
    grpc_server_close(service.server, began + 60 * NS_PER_S);
    EXPECT(clock_monotonic() - began < 5 * NS_PER_S);
    EXPECT_KIND(test_call(clients[0], "/test/echo", slice_text("x"), arena, &response),
                ERR_UNAVAILABLE);
    for (int i = 0; i < 4; i++)
        grpc_client_free(clients[i]);
}

/* ---- several loops ---- */

struct loop_load {
    const struct test_service *service;
    unsigned calls;
    atomic_uint answered;
};

static void
load_from_one_loop(void *argument)
{
    struct loop_load *load = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct grpc_client *clients[4];
    struct slice response;
    for (int i = 0; i < 4; i++)
        clients[i] = test_client(load->service);
    for (unsigned i = 0; i < load->calls; i++) {
        EXPECT_OK(test_call(clients[i % 4], "/test/echo", slice_text("abc"), arena, &response));
        EXPECT_EQ(response.length, 3);
        atomic_fetch_add(&load->answered, 1);
        arena_reset(arena);
    }
    for (int i = 0; i < 4; i++)
        grpc_client_free(clients[i]);
}

struct loop_task {
    struct loop_load *load;
    unsigned loop;
    struct latch *done;
};

static void
visit_loop(void *argument)
{
    struct loop_task *task = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(loop_call(loop_at(task->loop), load_from_one_loop, task->load, arena));
    latch_done(task->done);
}

CONTRACT(server, connections_are_served_by_all_loops, 3)
{
    struct test_service service;
    struct latch done;
    struct loop_task tasks[3];
    struct loop_load load = {.service = &service, .calls = contract_is_simulated ? 40 : 400};
    latch_init(&done, 3);
    test_service_open(&service, NULL, arena);
    for (unsigned i = 0; i < 3; i++) {
        tasks[i] = (struct loop_task){&load, i, &done};
        fiber_start("visit", visit_loop, &tasks[i]);
    }
    latch_wait(&done);
    EXPECT_EQ(atomic_load(&load.answered), 3 * load.calls);
    EXPECT_EQ(atomic_load(&service.handled), 3 * load.calls);
    test_service_close(&service);
}

CONTRACT(server, more_connections_than_allowed_are_refused, 1)
{
    struct test_service service;
    struct slice response;
    test_service_open(&service, &(struct grpc_server_options){.connections_max = 2}, arena);
    struct grpc_client *clients[3];
    for (int i = 0; i < 3; i++)
        clients[i] = test_client(&service);
    EXPECT_OK(test_call(clients[0], "/test/echo", slice_text("x"), arena, &response));
    EXPECT_OK(test_call(clients[1], "/test/echo", slice_text("x"), arena, &response));
    EXPECT_KIND(test_call(clients[2], "/test/echo", slice_text("x"), arena, &response),
                ERR_UNAVAILABLE);
    EXPECT_OK(test_call(clients[0], "/test/echo", slice_text("x"), arena, &response));
    for (int i = 0; i < 3; i++)
        grpc_client_free(clients[i]);
    test_service_close(&service);
}

CONTRACT(server, metrics_count_what_happens, 1)
{
    struct test_service service;
    struct slice response;
    struct metrics *metrics = metrics_new();
    test_service_open(&service, &(struct grpc_server_options){.metrics = metrics}, arena);
    struct grpc_client *client = test_client(&service);
    for (int i = 0; i < 5; i++)
        EXPECT_OK(test_call(client, "/test/echo", slice_text("x"), arena, &response));
    EXPECT_EQ(
        counter_value(metrics_counter(metrics, "grpc_server_calls_total", "Calls begun", NULL)), 5);
    EXPECT_EQ(gauge_value(
                  metrics_gauge(metrics, "grpc_server_connections", "Open gRPC connections", NULL)),
              1);
    grpc_client_free(client);
    test_service_close(&service);
    EXPECT_EQ(gauge_value(
                  metrics_gauge(metrics, "grpc_server_connections", "Open gRPC connections", NULL)),
              0);
    EXPECT_EQ(gauge_value(metrics_gauge(metrics, "grpc_server_streams", "Open gRPC calls", NULL)),
              0);
    EXPECT(counter_value(metrics_counter(metrics, "grpc_server_received_bytes_total",
                                         "Bytes read from gRPC connections", NULL)) > 100);
    EXPECT(counter_value(metrics_counter(metrics, "grpc_server_sent_bytes_total",
                                         "Bytes written to gRPC connections", NULL)) > 100);
    metrics_free(metrics);
}
