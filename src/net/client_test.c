/* client_test.c - what a client does when the other side is missing, silent, broken or going away.
 * On either platform. */
#include "net/client.h"

#include "base/memory.h"
#include "fiber/contract/contract.h"
#include "fiber/socket.h"
#include "fiber/sync.h"
#include "net/test_service.h"

/* A server that says the same bytes to everybody, whatever it is asked. */
struct canned {
    struct listener *listener;
    struct slice answer;
    bool is_closing_at_once;
    struct latch open;
    unsigned accepted;
    uint8_t received[1024]; /* the beginning of it */
    size_t received_length;
};

struct canned_socket {
    struct canned *canned;
    struct socket *socket;
};

static void
canned_say(const struct canned *canned, struct socket *socket)
{
    struct slice left = canned->answer;
    while (left.length > 0) {
        int64_t taken = socket_write(socket, left.data, left.length);
        if (taken < 0)
            return;
        left = slice_skip(left, (size_t)taken);
        if (taken == 0)
            (void)socket_wait(socket, SOCKET_WRITABLE, NEVER);
    }
}

static void
canned_hear(struct canned *canned, const uint8_t *bytes, size_t count)
{
    size_t room = sizeof canned->received - canned->received_length;
    count = count < room ? count : room;
    memcpy(canned->received + canned->received_length, bytes, count);
    canned->received_length += count;
}

static bool
canned_has_heard_ping(const struct canned *canned)
{
    return memmem(canned->received, canned->received_length, "\0\0\10\6\0\0\0\0\0", 9) != NULL;
}

static void
canned_talk(void *argument)
{
    struct canned_socket *one = argument;
    struct canned *canned = one->canned;
    uint8_t bytes[4096];
    bool has_spoken = false;
    socket_adopt(one->socket);
    while (!canned->is_closing_at_once) {
        int64_t count = socket_read(one->socket, bytes, sizeof bytes);
        if (count < 0)
            break;
        canned_hear(canned, bytes, (size_t)count);
        if (count > 0 && !has_spoken)
            canned_say(canned, one->socket);
        has_spoken = has_spoken || count > 0;
        if (count == 0)
            (void)socket_wait(one->socket, SOCKET_READABLE, NEVER);
    }
    socket_close(one->socket);
    memory_free(one);
    latch_done(&canned->open);
}

static void
canned_accept(void *argument)
{
    struct canned *canned = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    struct socket *socket;
    while (listener_accept(canned->listener, arena, &socket) == NULL) {
        struct canned_socket *one = memory_alloc(sizeof *one);
        *one = (struct canned_socket){canned, socket};
        canned->accepted++;
        latch_add(&canned->open, 1);
        fiber_start("canned", canned_talk, one);
    }
    latch_done(&canned->open);
}

static void
canned_open(struct canned *canned, struct arena *arena)
{
    EXPECT_OK(listener_open("127.0.0.1:0", arena, &canned->listener));
    latch_init(&canned->open, 1);
    fiber_start("accept", canned_accept, canned);
}

static void
canned_close(struct canned *canned)
{
    listener_close(canned->listener);
    latch_wait(&canned->open);
    listener_free(canned->listener);
}

static struct error *
call_canned_with(struct canned *canned, struct grpc_client_options options, struct arena *arena)
{
    canned_open(canned, arena);
    options.address = listener_address(canned->listener);
    struct grpc_client *client = grpc_client_new(&options);
    struct slice response;
    fiber_set_deadline(clock_monotonic() + 20 * NS_PER_S);
    struct error *err = test_call(client, "/test/echo", slice_text("x"), arena, &response);
    fiber_set_deadline(NEVER);
    for (int i = 0; options.is_probing && !canned_has_heard_ping(canned) && i < 1000; i++)
        EXPECT_OK(fiber_sleep(10 * NS_PER_MS, arena));
    grpc_client_free(client);
    canned_close(canned);
    return err;
}

static struct error *
call_canned(struct canned *canned, int64_t keepalive, struct arena *arena)
{
    return call_canned_with(canned, (struct grpc_client_options){.keepalive = keepalive}, arena);
}

/* ---- nobody there ---- */

CONTRACT(client, without_a_server_a_call_is_unavailable_and_says_that_nothing_was_sent, 1)
{
    struct test_service service;
    struct slice response;
    test_service_open(&service, NULL, arena);
    struct grpc_client *client = test_client(&service);
    test_service_close(&service);
    for (int i = 0; i < 3; i++) { /* also while it backs off */
        struct error *err = test_call(client, "/test/echo", slice_text("x"), arena, &response);
        EXPECT_KIND(err, ERR_UNAVAILABLE);
        EXPECT(strstr(err->message, "nothing was sent") != NULL);
    }
    grpc_client_free(client);
}

CONTRACT(client, a_server_that_comes_back_is_found_again, 1)
{
    struct test_service service;
    struct slice response;
    test_service_open(&service, NULL, arena);
    const char *address = arena_text(arena, grpc_server_address(service.server));
    struct grpc_client *client = test_client(&service);
    for (int round = 0; round < 3; round++) {
        EXPECT_OK(test_call(client, "/test/echo", slice_text("x"), arena, &response));
        test_service_close(&service);
        EXPECT_KIND(test_call(client, "/test/echo", slice_text("x"), arena, &response),
                    ERR_UNAVAILABLE);
        test_service_open(&service, &(struct grpc_server_options){.address = address}, arena);
        EXPECT_OK(fiber_sleep(200 * NS_PER_MS, arena)); /* longer than the first back-offs */
    }
    grpc_client_free(client);
    test_service_close(&service);
}

CONTRACT(client, a_server_that_closes_at_once_makes_calls_unavailable, 1)
{
    struct canned canned = {.is_closing_at_once = true};
    EXPECT_KIND(call_canned(&canned, 0, arena), ERR_UNAVAILABLE);
    EXPECT(canned.accepted <= 3);
}

CONTRACT(client, a_silent_server_is_noticed_by_pings, 1)
{
    struct canned canned = {.answer = {0}};
    int64_t began = clock_monotonic();
    struct error *err = call_canned(&canned, 100 * NS_PER_MS, arena);
    EXPECT_KIND(err, ERR_UNAVAILABLE);
    EXPECT(strstr(err->message, "unknown whether") != NULL);
    EXPECT(clock_monotonic() - began >= 200 * NS_PER_MS);
    EXPECT(clock_monotonic() - began < 10 * NS_PER_S);
}

/* What clients in Go do; a server that took it for noise would cut them off. */
CONTRACT(client, a_client_that_pings_with_every_answer_is_served_for_long, 1)
{
    struct test_service service;
    test_service_open(&service, NULL, arena);
    struct grpc_client *client = grpc_client_new(&(struct grpc_client_options){
        .address = grpc_server_address(service.server), .is_probing = true});
    for (int i = 0; i < 20000; i++) {
        scoped(arena_drop) struct arena *own = arena_new(0);
        struct slice response;
        EXPECT_OK(test_call(client, "/test/echo", slice_text("x"), own, &response));
    }
    grpc_client_free(client);
    test_service_close(&service);
}

/* ---- strange answers ---- */

#define SETTINGS_FRAME "\0\0\0\4\0\0\0\0\0"
/* HEADERS of stream 1 with END_HEADERS and END_STREAM, `length` bytes. */
#define LAST_HEADERS(length) "\0\0" length "\1\5\0\0\0\1"

CONTRACT(client, a_ping_goes_with_an_answer_where_that_is_set, 1)
{
    static const struct slice answer = SLICE_LITERAL(
        SETTINGS_FRAME "\0\0\1\1\4\0\0\0\1\x88"
                       "\0\0\5\0\0\0\0\0\1\0\0\0\0\0" LAST_HEADERS("\17") "\0\13grpc-status\1"
                                                                          "0");
    for (int i = 0; i < 2; i++) {
        struct canned canned = {.answer = answer};
        EXPECT_OK(
            call_canned_with(&canned, (struct grpc_client_options){.is_probing = i == 1}, arena));
        EXPECT_EQ(canned_has_heard_ping(&canned), i == 1);
    }
}

CONTRACT(client, answers_that_are_no_grpc_get_the_kind_that_fits, 1)
{
#define ANSWER(text) SLICE_LITERAL(text)
    static const struct {
        struct slice answer;
        enum error_kind kind;
    } cases[] = {
        {ANSWER("HTTP/1.1 400 Bad Request\r\n\r\n"), ERR_UNAVAILABLE},
        {ANSWER(SETTINGS_FRAME LAST_HEADERS("\5") "\x48\3"
                                                  "503"),
         ERR_UNAVAILABLE},
        {ANSWER(SETTINGS_FRAME LAST_HEADERS("\5") "\x48\3"
                                                  "404"),
         ERR_UNIMPLEMENTED},
        {ANSWER(SETTINGS_FRAME LAST_HEADERS("\5") "\x48\3"
                                                  "403"),
         ERR_ACCESS_DENIED},
        {ANSWER(SETTINGS_FRAME LAST_HEADERS("\5") "\x48\3"
                                                  "500"),
         ERR_UNCATEGORISED},
        {ANSWER(SETTINGS_FRAME LAST_HEADERS("\1") "\x88"), ERR_UNAVAILABLE}, /* no status */
        {ANSWER(SETTINGS_FRAME LAST_HEADERS("\x10") "\x88\0\13grpc-status\1"
                                                    "0"),
         ERR_INTERNAL}, /* OK without a message */
        {ANSWER(SETTINGS_FRAME LAST_HEADERS("\x10") "\x88\0\13grpc-status\1"
                                                    "5"),
         ERR_UNCATEGORISED},
        {ANSWER(SETTINGS_FRAME LAST_HEADERS("\x10") "\x88\0\13grpc-status\1"
                                                    "7"),
         ERR_ACCESS_DENIED},
        /* RST_STREAM, INTERNAL_ERROR and CANCEL */
        {ANSWER(SETTINGS_FRAME "\0\0\4\3\0\0\0\0\1\0\0\0\2"), ERR_UNAVAILABLE},
        {ANSWER(SETTINGS_FRAME "\0\0\4\3\0\0\0\0\1\0\0\0\x8"), ERR_CANCELLED},
        /* GOAWAY that disowns stream 1, each time it is tried */
        {ANSWER(SETTINGS_FRAME "\0\0\x8\7\0\0\0\0\0\0\0\0\0\0\0\0\0"), ERR_UNAVAILABLE},
    };
#undef ANSWER
    for (size_t i = 0; i < array_length(cases); i++) {
        struct canned canned = {.answer = cases[i].answer};
        struct error *err = call_canned(&canned, 0, arena);
        if (err == NULL || err->kind != cases[i].kind)
            TEST_FAIL("case %zu: %s", i, err == NULL ? "no error" : err->message);
    }
}

CONTRACT(client, what_a_server_certainly_did_not_do_is_tried_again, 1)
{
    struct canned canned = {
        .answer = SLICE_LITERAL(SETTINGS_FRAME "\0\0\x8\7\0\0\0\0\0\0\0\0\0\0\0\0\0")};
    struct error *err = call_canned(&canned, 0, arena);
    EXPECT_KIND(err, ERR_UNAVAILABLE);
    EXPECT_EQ(canned.accepted, 3);
}

/* ---- many calls, few streams ---- */

struct caller {
    struct grpc_client *client;
    const char *path;
    struct slice message;
    struct latch *done;
    struct fiber *fiber;
    struct arena *arena;
    struct error *err;
};

static void
caller_run(void *argument)
{
    struct caller *caller = argument;
    struct slice response;
    caller->err =
        test_call(caller->client, caller->path, caller->message, caller->arena, &response);
    latch_done(caller->done);
}

CONTRACT(client, calls_beyond_the_limit_of_the_server_wait_their_turn, 1)
{
    enum { COUNT = 200 };
    struct test_service service;
    struct latch done;
    struct caller *callers = memory_zalloc(COUNT, sizeof *callers);
    test_service_open(&service, &(struct grpc_server_options){.streams_max = 7}, arena);
    struct grpc_client *client = test_client(&service);
    latch_init(&done, COUNT);
    for (int i = 0; i < COUNT; i++) {
        callers[i] = (struct caller){
            client, "/test/sleep", slice_text("1000000"), &done, NULL, arena_new(256), NULL};
        callers[i].fiber = fiber_start("caller", caller_run, &callers[i]);
    }
    fiber_yield();
    fiber_cancel(callers[COUNT - 1].fiber); /* one that waits gives up */
    latch_wait(&done);
    for (int i = 0; i < COUNT; i++) {
        if (i < COUNT - 1)
            EXPECT_OK(callers[i].err);
        else
            EXPECT_KIND(callers[i].err, ERR_CANCELLED);
        arena_free(callers[i].arena);
    }
    EXPECT_EQ(atomic_load(&service.handled), COUNT - 1);
    grpc_client_free(client);
    test_service_close(&service);
    memory_free(callers);
}

CONTRACT(client, a_deadline_that_has_passed_is_noticed_before_anything_else, 1)
{
    struct test_service service;
    struct slice response;
    test_service_open(&service, NULL, arena);
    struct grpc_client *client = test_client(&service);
    fiber_set_deadline(clock_monotonic() - 1);
    EXPECT_KIND(test_call(client, "/test/echo", slice_text("x"), arena, &response), ERR_DEADLINE);
    fiber_set_deadline(NEVER);
    EXPECT_OK(test_call(client, "/test/echo", slice_text("x"), arena, &response));
    grpc_client_free(client);
    test_service_close(&service);
}

CONTRACT(client, freeing_ends_calls_in_every_state, 1)
{
    struct test_service service;
    struct latch done;
    struct caller callers[3];
    static const char *const paths[] = {"/test/park", "/test/hang", "/test/park"};
    test_service_open(&service, &(struct grpc_server_options){.streams_max = 2}, arena);
    for (int round = 0; round < 2; round++) { /* while and after it has connected */
        struct grpc_client *client = test_client(&service);
        latch_init(&done, 3);
        for (int i = 0; i < 3; i++) {
            callers[i] = (struct caller){client,         paths[i], slice_text(""), &done, NULL,
                                         arena_new(256), NULL};
            callers[i].fiber = fiber_start("caller", caller_run, &callers[i]);
        }
        fiber_yield();
        if (round > 0)
            EXPECT(test_wait_for(&service.parked_count, 1));
        grpc_client_free(client);
        latch_wait(&done);
        for (int i = 0; i < 3; i++) {
            EXPECT_KIND(callers[i].err, ERR_CANCELLED);
            arena_free(callers[i].arena);
        }
    }
    test_service_close(&service);
}
