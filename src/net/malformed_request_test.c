/* malformed_request_test.c - whole frames that make a wrong request: bodies, time, cancellation.
 * See malformed_test.c; malformed_headers_test.c has the headers. */
#include "base/memory.h"
#include "fiber/contract/contract.h"
#include "fiber/loop.h"
#include "net/test_raw.h"

/* ---- requests that are wrong ---- */

CONTRACT(malformed, each_wrong_body_gets_its_status, 1)
{
#define BODY(text, status)                                                                         \
    {                                                                                              \
        SLICE_LITERAL(text), status                                                                \
    }
    static const struct {
        struct slice body;
        int status;
    } cases[] = {
        BODY("\0\0\0\0\0", 0),
        BODY("\0\0\0\0\3abc", 0),
        BODY("", GRPC_INVALID_ARGUMENT),
        BODY("\0", GRPC_INVALID_ARGUMENT),
        BODY("\0\0\0\0", GRPC_INVALID_ARGUMENT),
        BODY("\0\0\0\0\4abc", GRPC_INVALID_ARGUMENT),
        BODY("\0\0\0\0\2abc", GRPC_INVALID_ARGUMENT),
        BODY("\0\0\0\0\1a\0\0\0\0\1b", GRPC_INVALID_ARGUMENT),
        BODY("\0\0\0\0\0\0\0\0\0\0", GRPC_INVALID_ARGUMENT),
        BODY("\1\0\0\0\1a", GRPC_UNIMPLEMENTED),
        BODY("\7\0\0\0\1a", GRPC_INTERNAL),
        BODY("\0\0\1\0\1a", GRPC_RESOURCE_EXHAUSTED),
        BODY("\0\xff\xff\xff\xff", GRPC_RESOURCE_EXHAUSTED),
    };
#undef BODY
    struct test_service service;
    struct raw raw;
    test_service_open(&service, &(struct grpc_server_options){.message_max = 65536}, arena);
    raw_open(&raw, &service);
    for (size_t i = 0; i < array_length(cases) * 2; i++) {
        bool is_cut = i % 2 == 1; /* the same bytes one by one */
        struct slice body = cases[i / 2].body;
        int32_t stream = (int32_t)(2 * i + 1);
        raw_forget(&raw);
        raw_headers(&raw, 0, stream, raw_good_fields("/test/echo", arena));
        for (size_t at = 0; is_cut && at < body.length; at++)
            raw_frame(&raw, NGHTTP2_DATA, 0, stream, slice_of(body.data + at, 1));
        raw_frame(&raw, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream,
                  is_cut ? (struct slice){0} : body);
        EXPECT(raw_wait(&raw));
        if (raw.grpc_status != cases[i / 2].status)
            TEST_FAIL("case %zu: gRPC %d, reset %d, GOAWAY %d", i, raw.grpc_status,
                      (int)raw.reset_code, (int)raw.goaway_code);
    }
    raw_finish(&raw, &service, arena);
}

CONTRACT(malformed, a_request_that_will_be_refused_is_stopped_early, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, &(struct grpc_server_options){.message_max = 1000}, arena);
    raw_open(&raw, &service);
    raw_headers(&raw, 0, 1, raw_good_fields("/test/echo", arena));
    raw_frame(&raw, NGHTTP2_DATA, 0, 1, slice_of("\0\0\1\0\0abc", 8));
    EXPECT(raw_wait(&raw));
    raw_read_for(&raw, 20 * NS_PER_MS);
    EXPECT_EQ(raw.grpc_status, GRPC_RESOURCE_EXHAUSTED);
    EXPECT_EQ(raw.reset_code, NGHTTP2_NO_ERROR); /* stop sending, all is said */
    raw_forget(&raw);
    raw_frame(&raw, NGHTTP2_DATA, 0, 1, slice_of("more", 4)); /* was under way: thrown away */
    raw_request(&raw, 3, "/test/echo", slice_text("next"));
    EXPECT(raw_wait(&raw));
    EXPECT_EQ(raw.grpc_status, GRPC_OK);
    raw_finish(&raw, &service, arena);
}

CONTRACT(malformed, data_after_the_end_of_a_request_does_not_reach_it, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    raw_open(&raw, &service);
    raw_request(&raw, 1, "/test/park", slice_text("x"));
    raw_frame(&raw, NGHTTP2_DATA, 0, 1, slice_of("more", 4));
    EXPECT(raw_wait(&raw));
    EXPECT(raw.reset_code == NGHTTP2_STREAM_CLOSED || raw.goaway_code == NGHTTP2_STREAM_CLOSED);
    EXPECT(test_wait_for(&service.parked_count, 0));
    raw_finish(&raw, &service, arena);
}

/* ---- time and cancellation ---- */

CONTRACT(malformed, a_request_that_does_not_end_is_ended, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, &(struct grpc_server_options){.request_timeout = 100 * NS_PER_MS},
                      arena);
    raw_open(&raw, &service);
    raw_headers(&raw, 0, 1, raw_good_fields("/test/echo", arena));
    for (int i = 0; i < 4 && raw.grpc_status == -1; i++) { /* a byte now and then does not help */
        raw_frame(&raw, NGHTTP2_DATA, 0, 1, slice_of("\0", 1));
        raw_read_for(&raw, 40 * NS_PER_MS);
    }
    EXPECT(raw_wait(&raw));
    EXPECT_EQ(raw.grpc_status, GRPC_DEADLINE_EXCEEDED);
    raw_finish(&raw, &service, arena);
}

CONTRACT(malformed, a_reset_in_the_middle_cancels_the_handler, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    raw_open(&raw, &service);
    raw_request(&raw, 1, "/test/hang", slice_text("x"));
    raw_request(&raw, 3, "/test/park", slice_text("x"));
    raw_headers(&raw, 0, 5, raw_good_fields("/test/echo", arena));
    EXPECT(test_wait_for(&service.parked_count, 1));
    for (int32_t stream = 1; stream <= 5; stream += 2)
        raw_frame(&raw, NGHTTP2_RST_STREAM, 0, stream, slice_of("\0\0\0\x8", 4));
    EXPECT(test_wait_for(&service.cancelled, 1));
    EXPECT(test_wait_for(&service.gone_count, 1));
    raw_request(&raw, 7, "/test/echo", slice_text("x"));
    EXPECT(raw_wait(&raw));
    EXPECT_EQ(raw.grpc_status, GRPC_OK);
    raw_finish(&raw, &service, arena);
}
