/* malformed_flood_test.c - too much of everything: headers, streams, idle frames, bytes in either
 * direction. See malformed_test.c. */
#include "base/memory.h"
#include "fiber/contract/contract.h"
#include "fiber/loop.h"
#include "net/test_raw.h"

/* ---- too much ---- */

CONTRACT(malformed, too_many_or_too_large_headers_are_refused_with_a_status, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    raw_open(&raw, &service);
    struct raw_field *good = raw_good_fields("/test/echo", arena);
    struct raw_field *many = arena_zalloc(arena, 300, sizeof *many);
    for (int i = 0; i < 7; i++)
        many[i] = good[i];
    for (int i = 7; i < 200; i++)
        many[i] = (struct raw_field){arena_format(arena, "x-%d", i), "1"};
    raw_headers(&raw, NGHTTP2_FLAG_END_STREAM, 1, many);
    EXPECT(raw_wait(&raw));
    EXPECT_EQ(raw.grpc_status, GRPC_RESOURCE_EXHAUSTED);

    char *large = arena_alloc(arena, 40001);
    memset(large, 'a', 40000);
    large[40000] = '\0';
    memset(many, 0, 300 * sizeof *many);
    for (int i = 0; i < 7; i++)
        many[i] = good[i];
    many[7] = (struct raw_field){"x-one", large};
    many[8] = (struct raw_field){"x-two", large};
    struct slice block = raw_block(many, arena);
    raw_forget(&raw);
    raw.stream = 3;
    raw_frame(&raw, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 3, slice_of(block.data, 16000));
    for (size_t at = 16000; at < block.length; at += 16000) {
        size_t count = block.length - at < 16000 ? block.length - at : 16000;
        raw_frame(&raw, NGHTTP2_CONTINUATION,
                  at + count == block.length ? NGHTTP2_FLAG_END_HEADERS : 0, 3,
                  slice_of(block.data + at, count));
    }
    EXPECT(raw_wait(&raw));
    EXPECT_EQ(raw.grpc_status, GRPC_RESOURCE_EXHAUSTED);
    raw_finish(&raw, &service, arena);
}

/* Before it has acknowledged the limit a client may not know better; afterwards it does. */
CONTRACT(malformed, more_streams_than_announced_are_refused, 1)
{
    struct test_service service;
    test_service_open(&service, &(struct grpc_server_options){.streams_max = 5}, arena);
    for (int has_agreed = 0; has_agreed < 2; has_agreed++) {
        struct raw raw;
        raw_open(&raw, &service);
        raw_read_for(&raw, 20 * NS_PER_MS);
        if (has_agreed)
            raw_frame(&raw, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, (struct slice){0});
        for (int32_t i = 0; i < 6; i++)
            raw_request(&raw, 2 * i + 1, "/test/park", slice_text("x"));
        EXPECT(raw_wait(&raw));
        EXPECT_EQ(has_agreed ? raw.goaway_code : raw.reset_code,
                  has_agreed ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_REFUSED_STREAM);
        raw_close(&raw);
    }
    EXPECT(test_wait_for(&service.parked_count, 0));
    raw_expect_alive(&service, arena);
    test_service_close(&service);
}

/* What a flood repeats. */
struct flood {
    const char *what;
    unsigned type, flags;
    bool is_on_streams;
    struct slice payload;
    unsigned count;
};

static void
pour(struct raw *raw, const struct flood *flood, struct arena *arena)
{
    bool is_heard = true;
    for (unsigned i = 0; i < flood->count && is_heard && !raw->is_closed; i++) {
        int32_t stream = flood->is_on_streams ? (int32_t)(2 * i + 1) : 0;
        if (flood->type == NGHTTP2_RST_STREAM)
            raw_request(raw, stream, "/test/hang", slice_text("x"));
        if (flood->type == NGHTTP2_DATA)
            stream = 1;
        is_heard = raw_frame(raw, flood->type, flood->flags, stream, flood->payload);
        if (i % 256 == 0)
            raw_read_for(raw, 1);
    }
}

CONTRACT(malformed, floods_of_idle_frames_end_with_a_request_for_calm, 1)
{
    const struct flood floods[] = {
        {"pings", NGHTTP2_PING, 0, false, slice_of("12345678", 8), 100000},
        {"settings", NGHTTP2_SETTINGS, 0, false, {0}, 100000},
        {"window updates", NGHTTP2_WINDOW_UPDATE, 0, false, slice_of("\0\0\0\1", 4), 100000},
        {"empty data", NGHTTP2_DATA, 0, false, {0}, 100000},
        {"rapid resets", NGHTTP2_RST_STREAM, 0, true, slice_of("\0\0\0\x8", 4), 100000},
    };
    struct test_service service;
    test_service_open(&service, NULL, arena);
    for (size_t i = 0; i < array_length(floods); i++) {
        struct raw raw;
        raw_open(&raw, &service);
        if (floods[i].type == NGHTTP2_DATA)
            raw_headers(&raw, 0, 1, raw_good_fields("/test/echo", arena));
        pour(&raw, &floods[i], arena);
        EXPECT(raw_wait_closed(&raw));
        if (raw.goaway_code != NGHTTP2_ENHANCE_YOUR_CALM)
            TEST_FAIL("%s: GOAWAY %d", floods[i].what, (int)raw.goaway_code);
        raw_close(&raw);
    }
    raw_expect_alive(&service, arena);
    test_service_close(&service);
}

CONTRACT(malformed, a_header_block_without_end_is_cut_off, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    raw_open(&raw, &service);
    raw_frame(&raw, NGHTTP2_HEADERS, 0, 1, (struct slice){0});
    bool is_heard = true;
    for (int i = 0; i < 5000 && is_heard; i++)
        is_heard = raw_frame(&raw, NGHTTP2_CONTINUATION, 0, 1, (struct slice){0});
    EXPECT(raw_wait_closed(&raw));
    raw_finish(&raw, &service, arena);
}

CONTRACT(malformed, a_window_that_overflows_is_a_flow_control_error, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    raw_open(&raw, &service);
    raw_frame(&raw, NGHTTP2_WINDOW_UPDATE, 0, 0, slice_of("\x7f\xff\xff\xff", 4));
    EXPECT(raw_wait_closed(&raw));
    EXPECT_EQ(raw.goaway_code, NGHTTP2_FLOW_CONTROL_ERROR);
    raw_finish(&raw, &service, arena);
}

/* At stake: memory. Requests fill the bound and their handlers keep it full; the peer goes on with
 * another one, far beyond its window. */
CONTRACT(malformed, a_peer_that_ignores_its_window_is_cut_off, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(
        &service,
        &(struct grpc_server_options){.connection_bytes_max = 1 << 20, .message_max = 64 << 20},
        arena);
    raw_open(&raw, &service);
    raw_read_for(&raw, 20 * NS_PER_MS);
    raw_frame(&raw, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, (struct slice){0});
    raw_headers(&raw, 0, 1, raw_good_fields("/test/echo", arena));
    uint8_t *piece = arena_zalloc(arena, 1, 16000);
    for (int32_t stream = 3; stream < 7; stream += 2) {
        raw_headers(&raw, 0, stream, raw_good_fields("/test/hang", arena));
        grpc_prefix_write(piece, 40 * 16000 - GRPC_PREFIX_SIZE);
        for (int i = 0; i < 40; i++) {
            raw_frame(&raw, NGHTTP2_DATA, i == 39 ? NGHTTP2_FLAG_END_STREAM : 0, stream,
                      slice_of(piece, 16000));
            memset(piece, 0, GRPC_PREFIX_SIZE);
        }
    }
    bool is_heard = true;
    size_t sent = 0;
    grpc_prefix_write(piece, 60 << 20);
    for (; is_heard && !raw.is_closed && sent < (50u << 20); sent += 16000) {
        is_heard = raw_frame(&raw, NGHTTP2_DATA, 0, 1, slice_of(piece, 16000));
        memset(piece, 0, GRPC_PREFIX_SIZE);
        raw_read_for(&raw, 1);
    }
    EXPECT(raw_wait_closed(&raw));
    EXPECT(sent < (16u << 20));
    raw_finish(&raw, &service, arena);
}

/* At stake: memory again, the other way: a client that asks and asks and never reads. */
CONTRACT(malformed, a_peer_that_does_not_read_is_cut_off_and_holds_up_nobody, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service,
                      &(struct grpc_server_options){.ping_timeout = 300 * NS_PER_MS,
                                                    .connection_bytes_max = 8 << 20},
                      arena);
    raw_open(&raw, &service);
    raw_frame(&raw, NGHTTP2_SETTINGS, 0, 0, slice_of("\0\4\x7f\xff\xff\xff", 6));
    raw_frame(&raw, NGHTTP2_WINDOW_UPDATE, 0, 0, slice_of("\x7f\0\0\0", 4));
    for (int32_t i = 0; i < 40; i++)
        if (!raw_request(&raw, 2 * i + 1, "/test/size", slice_text("1000000")))
            break;
    raw_expect_alive(&service, arena);
    EXPECT_OK(fiber_sleep(2 * NS_PER_S, arena)); /* far beyond the abuse budget */
    EXPECT(raw_wait_closed(&raw));
    EXPECT(raw.data_bytes < 40 * 1000000);
    raw_finish(&raw, &service, arena);
}

CONTRACT(malformed, a_peer_that_opens_no_window_is_cut_off, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, &(struct grpc_server_options){.request_timeout = 200 * NS_PER_MS},
                      arena);
    raw_open(&raw, &service);
    raw_frame(&raw, NGHTTP2_SETTINGS, 0, 0, slice_of("\0\4\0\0\0\0", 6));
    raw_request(&raw, 1, "/test/size", slice_text("1000"));
    EXPECT(raw_wait_closed(&raw));
    EXPECT_EQ(raw.data_bytes, 0);
    raw_finish(&raw, &service, arena);
}

CONTRACT(malformed, answers_beyond_the_bound_of_a_connection_become_errors, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, &(struct grpc_server_options){.connection_bytes_max = 1 << 20},
                      arena);
    raw_open(&raw, &service);
    raw_frame(&raw, NGHTTP2_SETTINGS, 0, 0, slice_of("\0\4\0\0\0\0", 6));
    for (int32_t i = 0; i < 5; i++)
        raw_request(&raw, 2 * i + 1, "/test/size", slice_text("300000"));
    EXPECT(raw_wait(&raw));
    EXPECT_EQ(raw.grpc_status, GRPC_RESOURCE_EXHAUSTED);
    raw_finish(&raw, &service, arena);
}

CONTRACT(malformed, a_connection_that_was_silent_is_pinged_and_then_cut, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service,
                      &(struct grpc_server_options){.idle_ping = 100 * NS_PER_MS,
                                                    .ping_timeout = 100 * NS_PER_MS},
                      arena);
    raw_open(&raw, &service);
    EXPECT(raw_wait_closed(&raw)); /* we answer no ping */
    EXPECT_EQ(raw.pings, 1);
    raw_finish(&raw, &service, arena);
}

CONTRACT(malformed, frames_of_unknown_types_and_priorities_are_ignored, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    raw_open(&raw, &service);
    raw_frame(&raw, 0xbe, 0xff, 0, slice_text("whatever"));
    raw_frame(&raw, NGHTTP2_PRIORITY, 0, 9, slice_of("\0\0\0\0\7", 5));
    raw_request(&raw, 11, "/test/echo", slice_text("x"));
    EXPECT(raw_wait(&raw));
    EXPECT_EQ(raw.grpc_status, GRPC_OK);
    raw_finish(&raw, &service, arena);
}

CONTRACT(malformed, a_closing_server_says_goaway_twice, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    raw_open(&raw, &service);
    raw_request(&raw, 1, "/test/echo", slice_text("x"));
    EXPECT(raw_wait(&raw));
    raw_forget(&raw);
    grpc_server_close(service.server, clock_monotonic() + 10 * NS_PER_S);
    EXPECT(raw_wait_closed(&raw));
    EXPECT_EQ(raw.goaways, 2);
    EXPECT_EQ(raw.goaway_code, NGHTTP2_NO_ERROR);
    raw_close(&raw);
}
