/* grpc_test.c - the pure part: timeouts, frames, statuses, pieces of messages. */
#include "net/grpc.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/test.h"
#include "base/text.h"
#include "net/inbox.h"

/* ---- timeouts ---- */

TEST(timeout, every_unit_is_read)
{
    static const struct {
        const char *text;
        int64_t nanoseconds;
    } cases[] = {
        {"1H", 3600000000000},
        {"1M", 60000000000},
        {"1S", 1000000000},
        {"1m", 1000000},
        {"1u", 1000},
        {"1n", 1},
        {"0n", 0},
        {"00000007u", 7000},
        {"2994398u", 2994398000},
        {"60100m", 60100000000},
        {"99999999n", 99999999},
        {"99999999H", INT64_MAX},
        {"2562047H", 9223369200000000000},
        {"2562048H", INT64_MAX},
    };
    for (size_t i = 0; i < array_length(cases); i++) {
        int64_t nanoseconds = -1;
        EXPECT(grpc_timeout_parse(slice_text(cases[i].text), &nanoseconds));
        EXPECT_EQ(nanoseconds, cases[i].nanoseconds);
    }
}

TEST(timeout, what_has_another_form_is_refused)
{
    static const char *const cases[] = {"",    "1",    "S",    "1s",   "1h",  "123456789n",
                                        "-1S", "+1S",  "1 S",  " 1S",  "1S ", "1SS",
                                        "S1",  "1.5S", "0x1S", "\xffS"};
    for (size_t i = 0; i < array_length(cases); i++) {
        int64_t nanoseconds;
        if (grpc_timeout_parse(slice_text(cases[i]), &nanoseconds))
            TEST_FAIL("\"%s\" was taken", cases[i]);
    }
}

/* Every text of two bytes: exactly digit and unit pass. */
TEST(timeout, of_all_texts_of_two_bytes_sixty_are_timeouts)
{
    int passed = 0;
    for (int text = 0; text < 65536; text++) {
        uint8_t bytes[2] = {(uint8_t)(text >> 8), (uint8_t)text};
        int64_t nanoseconds;
        passed += grpc_timeout_parse(slice_of(bytes, 2), &nanoseconds);
    }
    EXPECT_EQ(passed, 60);
}

TEST(timeout, the_shortest_exact_form_is_written)
{
    static const struct {
        int64_t nanoseconds;
        const char *text;
    } cases[] = {
        {-5, "0n"},
        {0, "0n"},
        {1, "1n"},
        {999, "999n"},
        {1000, "1u"},
        {1500, "1500n"},
        {1000000, "1m"},
        {60000000000, "1M"},
        {90000000000, "90S"},
        {3600000000000, "1H"},
        {99999999, "99999999n"},
        {100000001, "100001u"},    /* rounded up, never down */
        {123456789012, "123457m"}, /* nine digits of microseconds do not fit */
        {INT64_MAX, "2562048H"},
    };
    struct arena *arena = arena_new(0);
    for (size_t i = 0; i < array_length(cases); i++)
        EXPECT_TEXT(grpc_timeout_format(cases[i].nanoseconds, arena), cases[i].text);
    arena_free(arena);
}

TEST(timeout, what_was_written_is_read_as_the_same_or_slightly_more)
{
    struct random random;
    struct arena *arena = arena_new(0);
    random_seed(&random, test_seed(0));
    for (int i = 0; i < 100000; i++) {
        int64_t before = (int64_t)(random_next(&random) >> (1 + random_below(&random, 62)));
        int64_t after;
        EXPECT(grpc_timeout_parse(slice_text(grpc_timeout_format(before, arena)), &after));
        EXPECT(after >= before);
        EXPECT(after - before <= before / 20000); /* a step of at least 5 digits */
        arena_reset(arena);
    }
    arena_free(arena);
}

/* ---- frames ---- */

TEST(frame, every_first_byte_has_its_meaning)
{
    for (int flag = 0; flag < 256; flag++) {
        uint8_t bytes[GRPC_PREFIX_SIZE] = {(uint8_t)flag, 0, 0, 0, 1};
        size_t length;
        enum grpc_frame wanted = flag == 0   ? GRPC_FRAME_OK
                                 : flag == 1 ? GRPC_FRAME_COMPRESSED
                                             : GRPC_FRAME_BAD_FLAG;
        EXPECT_EQ(grpc_prefix_parse(bytes, 100, &length), wanted);
        EXPECT_EQ(length, 1);
    }
}

TEST(frame, length_and_limit_are_compared_exactly)
{
    uint8_t bytes[5];
    for (size_t length = 0; length < (size_t)1 << 32; length = length * 3 + 1) {
        size_t read;
        grpc_prefix_write(bytes, length);
        EXPECT_EQ(grpc_prefix_parse(bytes, length, &read), GRPC_FRAME_OK);
        EXPECT_EQ(read, length);
        if (length > 0)
            EXPECT_EQ(grpc_prefix_parse(bytes, length - 1, &read), GRPC_FRAME_TOO_LARGE);
    }
}

/* ---- the same in pieces ---- */

/* Any way to cut a body gives the same verdict and message. */
TEST(inbox, a_message_may_come_in_any_pieces)
{
    struct random random;
    struct arena *arena = arena_new(0);
    random_seed(&random, test_seed(0));
    for (int round = 0; round < 300; round++) {
        size_t length = (size_t)random_below(&random, round % 3 == 0 ? 40000 : 30);
        uint8_t *bytes = memory_alloc(length + 5);
        grpc_prefix_write(bytes, length);
        for (size_t i = 0; i < length; i++)
            bytes[5 + i] = (uint8_t)random_next(&random);
        struct inbox inbox = {0};
        for (size_t at = 0; at < length + 5;) {
            size_t count = 1 + (size_t)random_below(&random, length + 5 - at);
            EXPECT_EQ(inbox_end(&inbox), at == 0 ? INBOX_EMPTY : INBOX_SHORT);
            EXPECT_EQ(inbox_add(&inbox, slice_of(bytes + at, count), 50000, 1000, arena), INBOX_OK);
            at += count;
        }
        EXPECT_EQ(inbox_end(&inbox), INBOX_OK);
        EXPECT(slice_equal(slice_of(inbox.bytes, inbox.length), slice_of(bytes + 5, length)));
        EXPECT_EQ(inbox_add(&inbox, slice_of("x", 1), 50000, 1000, arena), INBOX_SURPLUS);
        inbox_clear(&inbox);
        memory_free(bytes);
        arena_reset(arena);
    }
    arena_free(arena);
}

TEST(inbox, a_lie_about_the_length_reserves_nothing)
{
    struct arena *arena = arena_new(0);
    struct inbox inbox = {0};
    size_t before = arena_footprint(arena);
    EXPECT_EQ(inbox_add(&inbox,
                        slice_of("\0\1\xff\xff\xff"
                                 "abc",
                                 8),
                        32 << 20, 4096, arena),
              INBOX_OK);
    EXPECT(inbox.room <= 16384);
    EXPECT_EQ(arena_footprint(arena), before);
    inbox_clear(&inbox);
    arena_free(arena);
}

/* ---- statuses ---- */

static void
expect_round_trip(int code, const char *message, const char *type, struct slice detail)
{
    struct arena *arena = arena_new(0);
    struct slice header = grpc_status_details_encode(code, message, type, detail, arena);
    struct slice read_message, read_type, read_detail;
    int read_code;
    EXPECT(header.length > 0 && header.data[header.length - 1] != '=');
    EXPECT(grpc_status_details_decode(header, arena, &read_code, &read_message, &read_type,
                                      &read_detail));
    EXPECT_EQ(read_code, code);
    EXPECT(slice_equal(read_message, slice_text(message)));
    EXPECT(slice_equal(read_type, slice_text(type)));
    EXPECT(slice_equal(read_detail, detail));
    arena_free(arena);
}

TEST(status, details_come_back_as_they_went)
{
    struct arena *arena = arena_new(0);
    uint8_t *large = arena_alloc(arena, 70000);
    memset(large, 0xa5, 70000);
    expect_round_trip(5, "not here", "uber.cadence.api.v1.EntityNotExistsError", (struct slice){0});
    expect_round_trip(0, "", "", (struct slice){0});
    expect_round_trip(200, "\xc3\xa9", "x", slice_of("\0\1\2", 3));
    for (size_t length = 0; length < 300; length++)
        expect_round_trip(9, "message", "a.B", slice_of(large, length));
    expect_round_trip(16, "large", "a.B", slice_of(large, 70000));
    arena_free(arena);
}

/* Made with protoc --encode: code 5, message "m", one Any of type.googleapis.com/a.B with value
 * 0a01. */
TEST(status, the_bytes_are_those_of_google_rpc_status)
{
    struct arena *arena = arena_new(0);
    struct slice header = grpc_status_details_encode(5, "m", "a.B", slice_of("\n\1", 2), arena);
    struct slice bytes;
    EXPECT(text_base64_decode(arena, header, TEXT_BASE64_STANDARD, &bytes));
    EXPECT(slice_equal(bytes, slice_of("\x08\x05\x12\x01m\x1a\x1d\x0a\x17type.googleapis.com/a.B"
                                       "\x12\x02\n\x01",
                                       36)));
    EXPECT_TEXT(arena_text_of(arena, header), "CAUSAW0aHQoXdHlwZS5nb29nbGVhcGlzLmNvbS9hLkISAgoB");
    arena_free(arena);
}

TEST(status, only_the_first_detail_is_read_and_unknown_fields_are_skipped)
{
    struct arena *arena = arena_new(0);
    const struct slice bytes = slice_of("\x08\x05\x12\x01m\x1a\x05\x0a\x03/a1\x1a\x05\x0a\x03/a2"
                                        "\x20\x07\x2d"
                                        "abcd\x31"
                                        "abcdefgh",
                                        35);
    struct slice header = text_base64_encode(arena, bytes, TEXT_BASE64_STANDARD);
    struct slice message, type, detail;
    int code;
    EXPECT(grpc_status_details_decode(header, arena, &code, &message, &type, &detail));
    EXPECT(slice_equal(type, slice_text("a1")));
    arena_free(arena);
}

/* Cut anywhere, details are refused or read, never read past. */
TEST(status, details_that_are_cut_do_no_harm)
{
    struct arena *arena = arena_new(0);
    struct slice whole =
        grpc_status_details_encode(5, "message", "a.B", slice_of("12345", 5), arena);
    for (size_t length = 0; length < whole.length; length++) {
        uint8_t *copy = memory_alloc(length + 1);
        memcpy(copy, whole.data, length);
        struct slice message, type, detail;
        int code;
        (void)!grpc_status_details_decode(slice_of(copy, length), arena, &code, &message, &type,
                                          &detail);
        memory_free(copy);
    }
    struct slice message, type, detail;
    int code;
    EXPECT(!grpc_status_details_decode(slice_text("!!"), arena, &code, &message, &type, &detail));
    EXPECT(!grpc_status_details_decode(slice_text("Cg"), arena, &code, &message, &type, &detail));
    arena_free(arena);
}

TEST(status, each_kind_with_a_detail_is_found_by_status_and_detail)
{
    for (int kind = 0; kind < ERROR_KIND_COUNT; kind++) {
        const char *detail = error_kind_detail((enum error_kind)kind);
        int status = error_kind_status((enum error_kind)kind);
        if (detail == NULL)
            continue;
        EXPECT_EQ(grpc_status_kind(status, slice_text(detail)), kind);
        EXPECT(grpc_status_kind(status == 16 ? 15 : 16, slice_text(detail)) !=
               (enum error_kind)kind);
    }
}

TEST(status, a_status_without_detail_is_a_plain_kind_or_uncategorised)
{
    static const enum error_kind wanted[17] = {
        [0] = ERR_UNCATEGORISED,  [1] = ERR_CANCELLED,      [2] = ERR_UNCATEGORISED,
        [3] = ERR_BAD_REQUEST,    [4] = ERR_DEADLINE,       [5] = ERR_UNCATEGORISED,
        [6] = ERR_UNCATEGORISED,  [7] = ERR_ACCESS_DENIED,  [8] = ERR_UNCATEGORISED,
        [9] = ERR_UNCATEGORISED,  [10] = ERR_UNCATEGORISED, [11] = ERR_UNCATEGORISED,
        [12] = ERR_UNIMPLEMENTED, [13] = ERR_INTERNAL,      [14] = ERR_UNAVAILABLE,
        [15] = ERR_UNCATEGORISED, [16] = ERR_UNCATEGORISED,
    };
    for (int status = 0; status < 17; status++) {
        EXPECT_EQ(grpc_status_kind(status, (struct slice){0}), wanted[status]);
        EXPECT_EQ(grpc_status_kind(status, slice_text("no.such.Error")), wanted[status]);
    }
}

TEST(status, messages_are_made_fit_for_the_wire)
{
    struct arena *arena = arena_new(0);
    EXPECT(
        slice_equal(grpc_message_clean("fine \xc3\xa9\n", arena), slice_text("fine \xc3\xa9\n")));
    EXPECT(slice_equal(grpc_message_clean("bad \xff\xc3 end", arena), slice_text("bad ?? end")));
    EXPECT_EQ(grpc_message_clean("", arena).length, 0);
    char *large = arena_alloc(arena, 5001);
    for (int i = 0; i < 5000; i += 2)
        memcpy(large + i, "\xc3\xa9", 2);
    large[5000] = '\0';
    struct slice cut = grpc_message_clean(large, arena);
    EXPECT(cut.length <= 1024 && cut.length > 1000);
    EXPECT(text_is_utf8(cut, NULL)); /* never inside a character */
    arena_free(arena);
}
