/* bounds_test.c - what one connection may hold, and that the bound neither leaks nor locks up.
 *
 * At stake: memory of the server, and clients that behave. The bound of a test is small, the peer
 * sends by hand where it must be rude, and by the client where it must not be. */
#include "base/memory.h"
#include "fiber/contract/contract.h"
#include "fiber/sync.h"
#include "net/test_raw.h"

#define PIECE 16000

/* Bytes that this process holds; 0 where they are not counted. */
static size_t
bytes_in_use(void)
{
    struct heap *heap = heap_select(NULL);
    (void)heap_select(heap);
    return heap == NULL ? 0 : heap_bytes(heap);
}

/* A request with a message of `length` zeros. */
static void
send_large(struct raw *raw, int32_t stream, const char *path, size_t length, struct arena *arena)
{
    uint8_t *body = arena_zalloc(arena, 1, GRPC_PREFIX_SIZE + length);
    grpc_prefix_write(body, length);
    raw_headers(raw, 0, stream, raw_good_fields(path, arena));
    for (size_t at = 0; at < GRPC_PREFIX_SIZE + length; at += PIECE) {
        size_t left = GRPC_PREFIX_SIZE + length - at;
        size_t count = left < PIECE ? left : PIECE;
        raw_frame(raw, NGHTTP2_DATA, left == count ? NGHTTP2_FLAG_END_STREAM : 0, stream,
                  slice_of(body + at, count));
    }
}

/* The peer opens no window, so no answer goes and no stream is closed. */
CONTRACT(bounds, requests_of_parked_and_answered_calls_are_let_go, 1)
{
    static const char *const paths[] = {"/test/park", "/test/wake", "/test/fail"};
    for (size_t i = 0; i < array_length(paths); i++) {
        struct test_service service;
        struct raw raw;
        test_service_open(&service, &(struct grpc_server_options){.connection_bytes_max = 1 << 20},
                          arena);
        raw_open(&raw, &service);
        raw_frame(&raw, NGHTTP2_SETTINGS, 0, 0, slice_of("\0\4\0\0\0\0", 6));
        raw_read_for(&raw, 20 * NS_PER_MS);
        raw_frame(&raw, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, (struct slice){0});
        size_t before = bytes_in_use();
        for (int32_t call = 0; call < 16; call++) {
            scoped(arena_drop) struct arena *scratch = arena_new(0);
            send_large(&raw, 2 * call + 1, paths[i], 600000, scratch);
            if (!test_wait_for(&service.handled, (unsigned)call + 1))
                TEST_FAIL("%s: call %d, GOAWAY %d", paths[i], call, (int)raw.goaway_code);
        }
        size_t after = bytes_in_use();
        if (after > before + (1 << 20))
            TEST_FAIL("%s: %zu bytes are held", paths[i], after - before);
        EXPECT_EQ(raw.goaway_code, -1);
        raw_finish(&raw, &service, arena);
    }
}

/* Streams with large headers whose body never comes. */
CONTRACT(bounds, headers_count_and_streams_beyond_the_bound_are_refused, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, &(struct grpc_server_options){.connection_bytes_max = 1 << 20},
                      arena);
    raw_open(&raw, &service);
    char *large = arena_alloc(arena, 14001);
    memset(large, 'a', 14000);
    large[14000] = '\0';
    struct raw_field *good = raw_good_fields("/test/echo", arena);
    struct raw_field fields[10] = {{0}};
    memcpy(fields, good, 7 * sizeof *good);
    fields[7] = (struct raw_field){"x-large", large};
    int32_t last = 0;
    for (int32_t i = 0; i < 100; i++) {
        fields[8] = (struct raw_field){"x-number", arena_format(arena, "%d", i)};
        last = 2 * i + 1;
        raw_headers(&raw, 0, last, fields);
    }
    EXPECT(raw_wait(&raw));
    EXPECT_EQ(raw.stream, last);
    EXPECT_EQ(raw.grpc_status, GRPC_RESOURCE_EXHAUSTED);
    raw_finish(&raw, &service, arena);
}

/* A ping is answered, but that moves no answer. */
CONTRACT(bounds, pings_do_not_excuse_a_peer_that_opens_no_window, 1)
{
    static const char *const paths[] = {"/test/size",
                                        "/test/wake"}; /* the second answers nothing */
    for (size_t i = 0; i < array_length(paths); i++) {
        struct test_service service;
        struct raw raw;
        test_service_open(&service,
                          &(struct grpc_server_options){.request_timeout = 200 * NS_PER_MS}, arena);
        raw_open(&raw, &service);
        raw_frame(&raw, NGHTTP2_SETTINGS, 0, 0, slice_of("\0\4\0\0\0\0", 6));
        raw_request(&raw, 1, paths[i], slice_text("1000"));
        for (int ping = 0; ping < 100 && !raw.is_closed; ping++) {
            raw_frame(&raw, NGHTTP2_PING, 0, 0, slice_of("12345678", 8));
            raw_read_for(&raw, 50 * NS_PER_MS);
        }
        EXPECT(raw.is_closed);
        EXPECT_EQ(raw.data_bytes, 0);
        raw_finish(&raw, &service, arena);
    }
}

/* The ACK of a lone ping waits for an answer to go with, but not for ever. */
CONTRACT(bounds, a_ping_is_answered_with_an_answer_or_soon_without, 1)
{
    struct slice ping = slice_of("12345678", 8);
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    raw_open(&raw, &service);
    raw_frame(&raw, NGHTTP2_PING, 0, 0, ping);
    raw_request(&raw, 1, "/test/echo", slice_text("x"));
    EXPECT(raw_wait(&raw));
    EXPECT_EQ(raw.pings, 1);
    for (unsigned count = 1; count <= 3; count++) { /* nothing else is said, and nothing is lost */
        raw_forget(&raw);
        for (unsigned i = 0; i < count; i++)
            raw_frame(&raw, NGHTTP2_PING, 0, 0, ping);
        for (int i = 0; i < 1000 && raw.pings < count; i++)
            raw_read_for(&raw, NS_PER_MS);
        EXPECT_EQ(raw.pings, count);
    }
    raw_finish(&raw, &service, arena);
}

struct upload {
    struct grpc_client *client;
    struct slice message;
    struct latch *done;
    struct arena *arena;
    struct error *err;
};

static void
upload_run(void *argument)
{
    struct upload *upload = argument;
    struct slice response;
    fiber_set_deadline(clock_monotonic() + 20 * NS_PER_S);
    upload->err =
        test_call(upload->client, "/test/echo", upload->message, upload->arena, &response);
    latch_done(upload->done);
}

/* Eight requests that grow side by side need four times the bound, and none is whole before the
 * bound is reached: without an end to some of them all would wait for a window. */
CONTRACT(bounds, uploads_that_cannot_all_be_held_do_not_lock_each_other, 1)
{
    struct test_service service;
    struct upload uploads[8];
    struct latch done;
    size_t size = 2 << 20;
    unsigned good = 0;
    test_service_open(
        &service,
        &(struct grpc_server_options){.connection_bytes_max = 4 << 20, .message_max = 4 << 20},
        arena);
    struct grpc_client *client = test_client(&service);
    latch_init(&done, array_length(uploads));
    for (size_t i = 0; i < array_length(uploads); i++) {
        struct slice message = slice_of(arena_zalloc(arena, 1, size), size);
        uploads[i] = (struct upload){client, message, &done, arena_new(0), NULL};
        fiber_start("upload", upload_run, &uploads[i]);
    }
    latch_wait(&done);
    for (size_t i = 0; i < array_length(uploads); i++) {
        const struct error *err = uploads[i].err;
        if (err != NULL && strstr(err->message, "too many bytes") == NULL)
            TEST_FAIL("upload %zu: %s", i, err->message);
        good += err == NULL;
        arena_free(uploads[i].arena);
    }
    EXPECT(good > 0);
    struct slice response;
    EXPECT_OK(test_call(client, "/test/echo", slice_text("x"), arena, &response));
    grpc_client_free(client);
    test_service_close(&service);
}

/* The same by hand, four requests of a million bytes in turn, and a call that hangs: a running
 * handler is not a reason to wait. At half a million each they fill the bound, and the last to come
 * there has to go; so has the first that needs more. */
CONTRACT(bounds, requests_that_grow_beyond_the_bound_are_refused_though_others_run, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, &(struct grpc_server_options){.connection_bytes_max = 2 << 20},
                      arena);
    raw_open(&raw, &service);
    raw_read_for(&raw, 20 * NS_PER_MS);
    raw_frame(&raw, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, (struct slice){0});
    raw_request(&raw, 1, "/test/hang", slice_text("x"));
    for (int32_t stream = 3; stream <= 9; stream += 2)
        raw_headers(&raw, 0, stream, raw_good_fields("/test/wake", arena));
    uint8_t *body = arena_zalloc(arena, 1, GRPC_PREFIX_SIZE + 1000000);
    grpc_prefix_write(body, 1000000);
    for (size_t at = 0; at < 38 * PIECE; at += PIECE)
        for (int32_t stream = 3; stream <= 9; stream += 2)
            raw_frame(&raw, NGHTTP2_DATA, 0, stream, slice_of(body + at, PIECE));
    EXPECT(raw_wait(&raw));
    EXPECT_EQ(raw.grpc_status, GRPC_RESOURCE_EXHAUSTED); /* stream 9 */
    size_t rest = GRPC_PREFIX_SIZE + 1000000 - 38 * PIECE;
    for (size_t at = 0; at < rest; at += PIECE) {
        size_t count = rest - at < PIECE ? rest - at : PIECE;
        raw_forget(&raw);
        raw.stream = 7;
        raw_frame(&raw, NGHTTP2_DATA, count < PIECE ? NGHTTP2_FLAG_END_STREAM : 0, 7,
                  slice_of(body + 38 * PIECE + at, count));
    }
    EXPECT(raw_wait(&raw));
    EXPECT_EQ(raw.grpc_status, GRPC_OK);
    raw_finish(&raw, &service, arena);
}

/* The bound is full of one call alone that can never be whole. */
CONTRACT(bounds, a_request_above_the_bound_is_refused_and_not_waited_for, 1)
{
    struct test_service service;
    struct slice response;
    test_service_open(
        &service,
        &(struct grpc_server_options){.connection_bytes_max = 1 << 20, .message_max = 32 << 20},
        arena);
    struct grpc_client *client = test_client(&service);
    struct slice message = slice_of(arena_zalloc(arena, 1, 16 << 20), 16 << 20);
    fiber_set_deadline(clock_monotonic() + 20 * NS_PER_S);
    struct error *err = test_call(client, "/test/echo", message, arena, &response);
    EXPECT(err != NULL && strstr(err->message, "too many bytes") != NULL);
    EXPECT_OK(test_call(client, "/test/echo", slice_text("x"), arena, &response));
    fiber_set_deadline(NEVER);
    grpc_client_free(client);
    test_service_close(&service);
}

/* Fifty answers at a time, each with a window of 512 bytes that is opened by two updates whenever
 * it is used up: 30000 updates, all of them with a reason. */
CONTRACT(bounds, window_updates_that_let_answers_go_on_are_welcome, 1)
{
    enum { STREAMS = 50, ROUNDS = 300, PART = 512 };
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    raw_open(&raw, &service);
    raw_frame(&raw, NGHTTP2_SETTINGS, 0, 0, slice_of("\0\4\0\0\2\0", 6));
    raw_frame(&raw, NGHTTP2_WINDOW_UPDATE, 0, 0, slice_of("\1\0\0\0", 4));
    for (int32_t i = 0; i < STREAMS; i++)
        raw_request(&raw, 2 * i + 1, "/test/size", slice_text("1000000"));
    for (unsigned round = 1; round <= ROUNDS && !raw.is_closed; round++) {
        for (int i = 0; i < 1000 && raw.data_bytes < round * STREAMS * PART; i++)
            raw_read_for(&raw, NS_PER_MS);
        EXPECT_EQ(raw.goaway_code, -1);
        for (int32_t i = 0; i < 2 * STREAMS; i++)
            raw_frame(&raw, NGHTTP2_WINDOW_UPDATE, 0, i / 2 * 2 + 1, slice_of("\0\0\1\0", 4));
    }
    EXPECT(raw.data_bytes >= ROUNDS * STREAMS * PART);
    EXPECT_EQ(raw.goaway_code, -1);
    raw_finish(&raw, &service, arena);
}
