/* malformed_test.c - frames that are wrong: what the server does with peers that are broken.
 *
 * At stake, here and in the other malformed_*_test.c: one bad peer must never cost the others
 * anything. Method: frames by hand over a plain socket, each test one kind of wrong; the peer gets
 * a clear status, a reset or a GOAWAY, and afterwards a good client is served as if nothing had
 * been. */
#include "base/memory.h"
#include "fiber/contract/contract.h"
#include "fiber/loop.h"
#include "net/test_raw.h"

/* ---- what is not HTTP/2 ---- */

CONTRACT(malformed, what_is_not_http2_is_closed, 1)
{
    static const char *const openings[] = {
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n and so on",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello, more or less",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    };
    struct test_service service;
    test_service_open(&service, NULL, arena);
    for (size_t i = 0; i < array_length(openings); i++) {
        struct raw raw;
        raw_connect(&raw, &service);
        raw_send(&raw, openings[i], strlen(openings[i]));
        EXPECT(raw_wait_closed(&raw));
        EXPECT_EQ(raw.grpc_status, -1);
        raw_close(&raw);
    }
    raw_expect_alive(&service, arena);
    test_service_close(&service);
}

CONTRACT(malformed, who_says_nothing_is_closed_after_a_while, 1)
{
    struct test_service service;
    struct raw silent, slow;
    test_service_open(&service, &(struct grpc_server_options){.request_timeout = 200 * NS_PER_MS},
                      arena);
    raw_connect(&silent, &service);
    raw_connect(&slow, &service);
    raw_send(&slow, NGHTTP2_CLIENT_MAGIC, 10);
    EXPECT(raw_wait_closed(&silent));
    EXPECT(raw_wait_closed(&slow));
    raw_close(&silent);
    raw_finish(&slow, &service, arena);
}

/* ---- frames that are wrong in themselves ---- */

CONTRACT(malformed, wrong_frames_end_the_connection_with_the_code_of_the_standard, 1)
{
    static const uint8_t zeros[16500];
    const struct {
        const char *what;
        unsigned type, flags;
        int32_t stream;
        size_t length;
        int64_t code;
    } cases[] = {
        {"a frame above the size limit", NGHTTP2_DATA, 0, 1, 16385, NGHTTP2_FRAME_SIZE_ERROR},
        {"SETTINGS of 5 bytes", NGHTTP2_SETTINGS, 0, 0, 5, NGHTTP2_FRAME_SIZE_ERROR},
        {"SETTINGS on a stream", NGHTTP2_SETTINGS, 0, 1, 6, NGHTTP2_PROTOCOL_ERROR},
        {"PING of 7 bytes", NGHTTP2_PING, 0, 0, 7, NGHTTP2_FRAME_SIZE_ERROR},
        {"PING on a stream", NGHTTP2_PING, 0, 3, 8, NGHTTP2_PROTOCOL_ERROR},
        {"WINDOW_UPDATE of 3 bytes", NGHTTP2_WINDOW_UPDATE, 0, 0, 3, NGHTTP2_FRAME_SIZE_ERROR},
        {"WINDOW_UPDATE by zero", NGHTTP2_WINDOW_UPDATE, 0, 0, 4, NGHTTP2_PROTOCOL_ERROR},
        {"RST_STREAM of 3 bytes", NGHTTP2_RST_STREAM, 0, 1, 3, NGHTTP2_FRAME_SIZE_ERROR},
        {"RST_STREAM of an idle stream", NGHTTP2_RST_STREAM, 0, 1, 4, NGHTTP2_PROTOCOL_ERROR},
        {"DATA on stream 0", NGHTTP2_DATA, 0, 0, 8, NGHTTP2_PROTOCOL_ERROR},
        {"DATA on an idle stream", NGHTTP2_DATA, 0, 5, 8, NGHTTP2_PROTOCOL_ERROR},
        {"HEADERS on stream 0", NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 0, 4,
         NGHTTP2_PROTOCOL_ERROR},
        {"HEADERS on an even stream", NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 2, 4,
         NGHTTP2_PROTOCOL_ERROR},
        {"CONTINUATION out of nowhere", NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 1, 4,
         NGHTTP2_PROTOCOL_ERROR},
        {"PUSH_PROMISE of a client", NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, 1, 8,
         NGHTTP2_PROTOCOL_ERROR},
        {"GOAWAY of 4 bytes", NGHTTP2_GOAWAY, 0, 0, 4, NGHTTP2_FRAME_SIZE_ERROR},
    };
    struct test_service service;
    test_service_open(&service, NULL, arena);
    for (size_t i = 0; i < array_length(cases); i++) {
        struct raw raw;
        raw_open(&raw, &service);
        raw_frame(&raw, cases[i].type, cases[i].flags, cases[i].stream,
                  slice_of(zeros, cases[i].length));
        EXPECT(raw_wait(&raw));
        if (raw.goaway_code != cases[i].code)
            TEST_FAIL("%s: GOAWAY %d", cases[i].what, (int)raw.goaway_code);
        raw_close(&raw);
    }
    raw_expect_alive(&service, arena);
    test_service_close(&service);
}

CONTRACT(malformed, a_garbled_header_block_is_a_compression_error, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    raw_open(&raw, &service);
    raw_frame(&raw, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1,
              slice_text("\xff\xff\xff\xff\x7f"));
    EXPECT(raw_wait_closed(&raw));
    EXPECT_EQ(raw.goaway_code, NGHTTP2_COMPRESSION_ERROR);
    raw_finish(&raw, &service, arena);
}

CONTRACT(malformed, a_connection_that_ends_in_the_middle_of_anything_leaves_nothing, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    /* Every prefix of a whole conversation. */
    struct slice headers = raw_block(raw_good_fields("/test/park", arena), arena);
    size_t room = 24 + 9 + 9 + headers.length + 9 + 7, length = 0;
    uint8_t *bytes = arena_zalloc(arena, 1, room);
    memcpy(bytes, NGHTTP2_CLIENT_MAGIC, 24);
    bytes[24 + 3] = NGHTTP2_SETTINGS;
    length = 33;
    bytes[length + 2] = (uint8_t)headers.length;
    bytes[length + 3] = NGHTTP2_HEADERS;
    bytes[length + 4] = NGHTTP2_FLAG_END_HEADERS;
    bytes[length + 8] = 1;
    memcpy(bytes + length + 9, headers.data, headers.length);
    length += 9 + headers.length;
    bytes[length + 2] = 7;
    bytes[length + 4] = NGHTTP2_FLAG_END_STREAM;
    bytes[length + 8] = 1;
    bytes[length + 9 + 4] = 2;
    for (size_t cut = 0; cut <= room; cut++) {
        raw_connect(&raw, &service);
        raw_send(&raw, bytes, cut);
        if (cut == room)
            EXPECT(test_wait_for(&service.parked_count, 1));
        raw_close(&raw);
    }
    EXPECT(test_wait_for(&service.gone_count, 1));
    EXPECT(test_wait_for(&service.parked_count, 0));
    raw_expect_alive(&service, arena);
    test_service_close(&service);
}
