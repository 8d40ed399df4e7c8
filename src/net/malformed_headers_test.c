/* malformed_headers_test.c - header blocks that are wrong, one field at a time. See
 * malformed_test.c.
 */
#include "fiber/contract/contract.h"
#include "net/test_raw.h"

struct wrong_header {
    const char *name;  /* of the good request; NULL: add one */
    const char *added; /* its new name; NULL: the same */
    const char *value; /* NULL: leave it out */
    int http_status, grpc_status;
    int64_t reset_code;
};

/* The fields of a good request with one change. */
static struct raw_field *
fields_with(const struct wrong_header *change, struct arena *arena)
{
    struct raw_field *good = raw_good_fields("/test/echo", arena);
    struct raw_field *fields = arena_zalloc(arena, 16, sizeof *fields);
    size_t count = 0;
    for (; good->name != NULL; good++) {
        bool is_it = change->name != NULL && strcmp(change->name, good->name) == 0;
        if (!is_it)
            fields[count++] = *good;
        else if (change->value != NULL)
            fields[count++] = (struct raw_field){change->added == NULL ? good->name : change->added,
                                                 change->value};
    }
    if (change->name == NULL)
        fields[count++] = (struct raw_field){change->added, change->value};
    return fields;
}

static const struct wrong_header wrong_headers[] = {
    {NULL, "x-fine", "1", 200, 0, -1},
    {"te", NULL, NULL, 200, 0, -1},
    {"content-type", NULL, "application/grpc+proto", 200, 0, -1},
    {"content-type", NULL, "application/grpc;charset=utf-8", 200, 0, -1},
    {"rpc-encoding", NULL, NULL, 200, 0, -1},
    {NULL, "rpc-service", "cadence-frontend", 200, 0, -1},
    {NULL, "rpc-service", "cadence-history", 200, GRPC_UNIMPLEMENTED, -1},
    {"rpc-encoding", NULL, "json", 200, GRPC_UNIMPLEMENTED, -1},
    {"content-type", NULL, "application/grpc+json", 200, GRPC_UNIMPLEMENTED, -1},
    {"content-type", NULL, NULL, 415, -1, -1},
    {"content-type", NULL, "application/json", 415, -1, -1},
    {"content-type", NULL, "application/grpcx", 415, -1, -1},
    {":method", NULL, "GET", 405, -1, -1},
    {":path", NULL, "/test/nothing", 200, GRPC_UNIMPLEMENTED, -1},
    {NULL, "rpc-encoding", "proto", 200, GRPC_INVALID_ARGUMENT, -1},
    {NULL, "te", "trailers", 200, GRPC_INVALID_ARGUMENT, -1},
    {NULL, "grpc-timeout", "1S", 200, 0, -1},
    {NULL, "grpc-timeout", "fast", 200, GRPC_INVALID_ARGUMENT, -1},
    {NULL, "grpc-timeout", "123456789S", 200, GRPC_INVALID_ARGUMENT, -1},
    {NULL, "grpc-timeout", "", 200, GRPC_INVALID_ARGUMENT, -1},
    {":path", NULL, "", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":path", NULL, NULL, -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":method", NULL, NULL, -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, ":path", "/test/echo", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, ":strange", "x", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "connection", "close", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "content-length", "999", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "content-length", "6", 200, 0, -1},
    {NULL, "content-length", "5", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "content-length", "-6", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "content-length", "", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "content-length", "six", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":scheme", NULL, NULL, -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":scheme", NULL, "", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":scheme", NULL, "1http", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":scheme", NULL, "ht tp", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":scheme", NULL, "HTTPS", 200, 0, -1},
    {":scheme", NULL, "a+b-c.1", 200, 0, -1},
    {":scheme", ":method", "POST", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":path", NULL, "test/echo", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":path", NULL, "*", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":path", NULL, "/test/ echo", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":path", ":scheme", "http", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":method", NULL, "", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":method", NULL, "PO ST", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":method", NULL, "CONNECT", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":method", NULL, "OPTIONS", 405, -1, -1},
    {":authority", NULL, NULL, -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":authority", NULL, "a b", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":authority", "host", "test", 200, 0, -1},
    {":authority", "host", "a b", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":authority", ":protocol", "websocket", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":authority", ":Authority", "test", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {":authority", ":", "test", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "host", "a b", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {"te", NULL, "gzip", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {"te", NULL, "Trailers", 200, 0, -1},
    {"te", NULL, " trailers", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "keep-alive", "1", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "proxy-connection", "1", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "transfer-encoding", "chunked", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "upgrade", "h3", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "upgrade", " h3", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "x-Upper", "1", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "x space", "1", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "", "1", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "x-empty", "", 200, 0, -1},
    {NULL, "x-control", "a\x01", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {NULL, "x-high", "\xff\x80", 200, 0, -1},
    {"rpc-encoding", NULL, "proto ", -1, -1, NGHTTP2_PROTOCOL_ERROR},
    {"te", ":path", "/test/echo", -1, -1, NGHTTP2_PROTOCOL_ERROR},
};

CONTRACT(malformed, each_wrong_header_gets_its_status, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    raw_open(&raw, &service);
    for (size_t i = 0; i < array_length(wrong_headers) * 2; i++) {
        const struct wrong_header *wrong =
            &wrong_headers[i / 2]; /* each twice: then its fields are known */
        int32_t stream = (int32_t)(2 * i + 1);
        raw_forget(&raw);
        raw_headers(&raw, 0, stream, fields_with(wrong, arena));
        raw_frame(&raw, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream, slice_of("\0\0\0\0\1x", 6));
        EXPECT(raw_wait(&raw));
        /* A refusal that overtakes the body is followed by a reset. */
        bool is_early = raw.http_status > 0 && raw.reset_code == NGHTTP2_NO_ERROR;
        bool is_right = raw.http_status == wrong->http_status &&
                        raw.grpc_status == wrong->grpc_status &&
                        (raw.reset_code == wrong->reset_code || is_early) && raw.goaway_code == -1;
        if (!is_right)
            TEST_FAIL("%s %s %s: HTTP %d, gRPC %d, reset %d, GOAWAY %d",
                      wrong->name == NULL ? "" : wrong->name,
                      wrong->added == NULL ? "" : wrong->added,
                      wrong->value == NULL ? "" : wrong->value, raw.http_status, raw.grpc_status,
                      (int)raw.reset_code, (int)raw.goaway_code);
    }
    raw_finish(&raw, &service, arena);
}

CONTRACT(malformed, a_timeout_given_twice_is_refused, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    raw_open(&raw, &service);
    const struct raw_field fields[] = {
        {":method", "POST"},
        {":scheme", "http"},
        {":path", "/test/echo"},
        {":authority", "test"},
        {"content-type", "application/grpc"},
        {"grpc-timeout", "1S"},
        {"grpc-timeout", "1S"},
        {NULL, NULL},
    };
    raw_headers(&raw, NGHTTP2_FLAG_END_STREAM, 1, fields);
    EXPECT(raw_wait(&raw));
    EXPECT_EQ(raw.grpc_status, GRPC_INVALID_ARGUMENT);
    raw_finish(&raw, &service, arena);
}

CONTRACT(malformed, a_pseudo_field_behind_the_timeout_is_an_error, 1)
{
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    raw_open(&raw, &service);
    const struct raw_field fields[] = {
        {":method", "POST"},    {":scheme", "http"},    {":path", "/x"},
        {"grpc-timeout", "1S"}, {":authority", "test"}, {"content-type", "application/grpc"},
        {NULL, NULL},
    };
    raw_headers(&raw, NGHTTP2_FLAG_END_STREAM, 1, fields);
    EXPECT(raw_wait(&raw));
    EXPECT_EQ(raw.reset_code, NGHTTP2_PROTOCOL_ERROR);
    raw_finish(&raw, &service, arena);
}

CONTRACT(malformed, trailers_of_a_request_mean_nothing_but_must_be_good, 1)
{
    static const struct {
        struct raw_field field;
        unsigned flags;
        int64_t reset_code;
    } cases[] = {
        {{"x-checksum", "1"}, NGHTTP2_FLAG_END_STREAM, -1},
        {{"grpc-timeout", "x"}, NGHTTP2_FLAG_END_STREAM, -1},
        {{"x space", "1"}, NGHTTP2_FLAG_END_STREAM, NGHTTP2_PROTOCOL_ERROR},
        {{"x-checksum", "1"}, 0, NGHTTP2_PROTOCOL_ERROR},
        {{":path", "/test/echo"}, NGHTTP2_FLAG_END_STREAM, NGHTTP2_PROTOCOL_ERROR},
        {{"connection", "close"}, NGHTTP2_FLAG_END_STREAM, NGHTTP2_PROTOCOL_ERROR},
        {{"X-Upper", "1"}, NGHTTP2_FLAG_END_STREAM, NGHTTP2_PROTOCOL_ERROR},
    };
    struct test_service service;
    struct raw raw;
    test_service_open(&service, NULL, arena);
    raw_open(&raw, &service);
    for (size_t i = 0; i < array_length(cases); i++) {
        int32_t stream = (int32_t)(2 * i + 1);
        const struct raw_field trailers[] = {cases[i].field, {NULL, NULL}};
        raw_forget(&raw);
        raw_headers(&raw, 0, stream, raw_good_fields("/test/echo", arena));
        raw_frame(&raw, NGHTTP2_DATA, 0, stream, slice_of("\0\0\0\0\1x", 6));
        raw_headers(&raw, cases[i].flags, stream, trailers);
        EXPECT(raw_wait(&raw));
        EXPECT_EQ(raw.reset_code, cases[i].reset_code);
        EXPECT_EQ(raw.grpc_status, cases[i].reset_code == -1 ? 0 : -1);
    }
    raw_finish(&raw, &service, arena);
}
