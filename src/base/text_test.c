/* text_test.c - small formats: what is right is read, what is nearly right is refused. */
#include "base/text.h"

#include "base/random.h"
#include "base/test.h"

/* ---- UTF-8 ---- */

TEST(text, utf8_at_each_border_is_taken)
{
    static const char *const right[] = {
        "",
        "\x7f",
        "\xc2\x80",
        "\xdf\xbf",
        "\xe0\xa0\x80",
        "\xed\x9f\xbf",
        "\xee\x80\x80",
        "\xef\xbf\xbf",
        "\xf0\x90\x80\x80",
        "\xf4\x8f\xbf\xbf",
        "plain text of some length \xc3\xa9",
    };
    for (size_t i = 0; i < array_length(right); i++)
        EXPECT(text_is_utf8(slice_text(right[i]), NULL));
    EXPECT(text_is_utf8(slice_of("a\0b", 3), NULL));
}

TEST(text, utf8_past_each_border_is_refused_where_it_breaks)
{
    static const char *const wrong[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc2",
        "\xc2\x7f",
        "\xc2\xc0",
        "\xe0\x9f\xbf",
        "\xe1\x80",
        "\xe1\x80\x7f",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x8f\xbf\xbf",
        "\xf0\x90\x80",
        "\xf0\x90\x80\x7f",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
        "\xfe",
    };
    for (size_t i = 0; i < array_length(wrong); i++) {
        char text[64] = "twelve bytes";
        memcpy(text + 12, wrong[i], strlen(wrong[i]) + 1);
        size_t offset = 99;
        EXPECT(!text_is_utf8(slice_text(text), &offset));
        EXPECT_EQ(offset, 12);
    }
}

/* Method: all code points, encoded by arithmetic, and their neighbours that are none. */
TEST(text, each_code_point_but_surrogates_is_one_sequence)
{
    for (uint32_t point = 0x80; point < 0x120000; point++) {
        size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
        uint8_t bytes[4];
        for (size_t i = 0; i < length; i++)
            bytes[i] = (uint8_t)(0x80 | (point >> 6 * (length - 1 - i) & 0x3f));
        bytes[0] = (uint8_t)(0xf0 << (4 - length) | point >> 6 * (length - 1));
        bool is_right = point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff);
        EXPECT_EQ(text_utf8_sequence(slice_of(bytes, length)), is_right ? length : 0);
        EXPECT_EQ(text_utf8_sequence(slice_of(bytes, length - 1)), 0);
    }
}

/* ---- percent ---- */

ARENA_TEST(text, percent_encoding_leaves_plain_ascii_and_marks_the_rest)
{
    struct slice text = text_percent_encode(arena, slice_text("a b~%\n\x7f\xc3\xa9"));
    EXPECT(slice_equal(text, slice_text("a b~%25%0A%7F%C3%A9")));
    text = text_percent_encode(arena, slice_text(" a b ")); /* not at the ends of a header */
    EXPECT(slice_equal(text, slice_text("%20a b%20")));
    EXPECT(slice_equal(text_percent_encode(arena, slice_text(" ")), slice_text("%20")));
    EXPECT_EQ(text_percent_encode(arena, (struct slice){0}).length, 0);
}

ARENA_TEST(text, percent_decoding_leaves_what_is_no_escape)
{
    struct slice bytes = text_percent_decode(arena, slice_text("%41%4a%4A%%41%4%4g%zz%"));
    EXPECT(slice_equal(bytes, slice_text("AJJ%A%4%4g%zz%")));
}

/* ---- base64 ---- */

TEST(text, base64_gives_the_published_values)
{
    static const struct {
        const char *bytes, *text;
    } known[] = {/* RFC 4648, section 10 */
                 {"", ""},
                 {"f", "Zg=="},
                 {"fo", "Zm8="},
                 {"foo", "Zm9v"},
                 {"foob", "Zm9vYg=="},
                 {"fooba", "Zm9vYmE="},
                 {"foobar", "Zm9vYmFy"},
                 {"\xfb\xff", "+/8="}};
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < array_length(known); i++) {
        struct slice bytes = slice_text(known[i].bytes), text = slice_text(known[i].text), back;
        EXPECT(slice_equal(text_base64_encode(arena, bytes, TEXT_BASE64_STANDARD), text));
        EXPECT(text_base64_decode(arena, text, TEXT_BASE64_STANDARD, &back));
        EXPECT(slice_equal(back, bytes));
        while (text.length > 0 && text.data[text.length - 1] == '=')
            text.length--;
        EXPECT(text_base64_decode(arena, text, TEXT_BASE64_STANDARD, &back));
        EXPECT(slice_equal(back, bytes));
    }
    struct slice url = text_base64_encode(arena, slice_text("\xfb\xff"), TEXT_BASE64_URL);
    EXPECT(slice_equal(url, slice_text("-_8")));
}

TEST(text, base64_that_is_not_is_refused)
{
    static const char *const wrong[] = {
        "Z",     "Zg=",  "Zg===", "Z===",     "====",   "=",
        "Zm9vY", "Zm 9", "Zm9\n", "-_8=",     "Zg==Zg", "Zh==",
        "Zm9=",  "Z=g=", "Zm8==", "Zm9v====", "Zm9v=",  "\xff\xff\xff\xff"};
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < array_length(wrong); i++) {
        struct slice bytes = {.length = 77};
        EXPECT(!text_base64_decode(arena, slice_text(wrong[i]), TEXT_BASE64_STANDARD, &bytes));
        EXPECT_EQ(bytes.length, 77);
    }
}

TEST(text, what_was_encoded_is_decoded_to_the_same_bytes)
{
    for (int s = 0; s < test_seed_count(); s++) {
        struct random random;
        random_seed(&random, test_seed(s));
        for (int i = 0; i < 300; i++) {
            scoped(arena_drop) struct arena *arena = arena_new(0);
            uint8_t bytes[100];
            size_t length = random_below(&random, sizeof bytes);
            for (size_t j = 0; j < length; j++)
                bytes[j] = (uint8_t)random_next(&random);
            struct slice whole = slice_of(bytes, length), back;
            for (int alphabet = 0; alphabet < 2; alphabet++) {
                struct slice text = text_base64_encode(arena, whole, (enum text_base64)alphabet);
                EXPECT(text_base64_decode(arena, text, (enum text_base64)alphabet, &back));
                EXPECT(slice_equal(back, whole));
            }
            back = text_percent_decode(arena, text_percent_encode(arena, whole));
            EXPECT(slice_equal(back, whole));
        }
    }
}

/* ---- numbers ---- */

TEST(text, numbers_are_read_up_to_their_limits_and_not_past_them)
{
    int64_t number = 0;
    uint64_t natural = 0;
    EXPECT(text_parse_int64(slice_text("-9223372036854775808"), INT64_MIN, INT64_MAX, &number));
    EXPECT(number == INT64_MIN);
    EXPECT(text_parse_int64(slice_text("9223372036854775807"), INT64_MIN, INT64_MAX, &number));
    EXPECT(number == INT64_MAX);
    EXPECT(!text_parse_int64(slice_text("9223372036854775808"), INT64_MIN, INT64_MAX, &number));
    EXPECT(!text_parse_int64(slice_text("-9223372036854775809"), INT64_MIN, INT64_MAX, &number));
    EXPECT(text_parse_uint64(slice_text("18446744073709551615"), 0, UINT64_MAX, &natural));
    EXPECT(natural == UINT64_MAX);
    EXPECT(!text_parse_uint64(slice_text("18446744073709551616"), 0, UINT64_MAX, &natural));
    EXPECT(text_parse_int64(slice_text("65535"), 1, 65535, &number) && number == 65535);
    EXPECT(!text_parse_int64(slice_text("65536"), 1, 65535, &number));
    EXPECT(!text_parse_int64(slice_text("0"), 1, 65535, &number) && number == 65535);
}

TEST(text, what_only_begins_like_a_number_is_refused)
{
    static const char *const wrong[] = {"",   "-",   "+1",  " 1",  "1 ",
                                        "1x", "0x1", "--1", "1.0", "1e3"};
    for (size_t i = 0; i < array_length(wrong); i++) {
        int64_t number;
        EXPECT(!text_parse_int64(slice_text(wrong[i]), INT64_MIN, INT64_MAX, &number));
    }
}

/* ---- durations ---- */

TEST(text, durations_mean_what_they_mean_in_go)
{
    static const struct {
        const char *text;
        int64_t nanoseconds;
    } known[] = {
        {"0", 0},
        {"-0", 0},
        {"0s", 0},
        {"10s", INT64_C(10000000000)},
        {"+5s", INT64_C(5000000000)},
        {"-1.5h", INT64_C(-5400000000000)},
        {"1h30m", INT64_C(5400000000000)},
        {"100ms", 100000000},
        {"1.5us", 1500},
        {"2\xc2\xb5s", 2000},
        {"2\xce\xbcs", 2000},
        {".5s", 500000000},
        {"5.s", INT64_C(5000000000)},
        {"1m1m", INT64_C(120000000000)},
        {"0.3333333333333333333h", INT64_C(1200000000000)},
        {"0.100000000000000000000h", INT64_C(360000000000)},
        {"9223372036854775807ns", INT64_MAX},
        {"-9223372036854775808ns", INT64_MIN},
        {"2562047h47m16.854775807s", INT64_MAX},
    };
    for (size_t i = 0; i < array_length(known); i++) {
        int64_t nanoseconds = -1;
        EXPECT(text_parse_duration(slice_text(known[i].text), &nanoseconds));
        EXPECT_EQ(nanoseconds, known[i].nanoseconds);
    }
}

TEST(text, what_go_refuses_as_a_duration_is_refused)
{
    static const char *const wrong[] = {
        "",
        "3",
        "-",
        "s",
        ".",
        "-.",
        ".s",
        "+.s",
        "1d",
        "1 s",
        "1s ",
        "1S",
        "1mss",
        "--1s",
        "1..s",
        "3000000h",
        "1h-1m",
        "9223372036854775808ns",
        "9223372036854775.808us",
        "9223372036854ms775us808ns",
    };
    for (size_t i = 0; i < array_length(wrong); i++) {
        int64_t nanoseconds = 7;
        EXPECT(!text_parse_duration(slice_text(wrong[i]), &nanoseconds));
        EXPECT_EQ(nanoseconds, 7);
    }
}

TEST(text, durations_are_written_as_go_writes_them)
{
    static const struct {
        int64_t nanoseconds;
        const char *text;
    } known[] = {
        {0, "0s"},
        {1, "1ns"},
        {1100, "1.1\xc2\xb5s"},
        {2200000, "2.2ms"},
        {INT64_C(3300000000), "3.3s"},
        {INT64_C(245000000000), "4m5s"},
        {INT64_C(245001000000), "4m5.001s"},
        {INT64_C(18367001000000), "5h6m7.001s"},
        {INT64_C(3600000000000), "1h0m0s"},
        {INT64_C(-480000000001), "-8m0.000000001s"},
        {INT64_MAX, "2562047h47m16.854775807s"},
        {INT64_MIN, "-2562047h47m16.854775808s"},
    };
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < array_length(known); i++) {
        char *text = text_format_duration(arena, known[i].nanoseconds);
        EXPECT_TEXT(text, known[i].text);
        int64_t back;
        EXPECT(text_parse_duration(slice_text(text), &back));
        EXPECT_EQ(back, known[i].nanoseconds);
    }
}

TEST(text, the_distance_of_two_words_counts_edits)
{
    EXPECT_EQ(text_distance(slice_text("address"), slice_text("adress")), 1);
    EXPECT_EQ(text_distance(slice_text("kitten"), slice_text("sitting")), 3);
    EXPECT_EQ(text_distance(slice_text("Data"), slice_text("data")), 0);
    EXPECT_EQ(text_distance(slice_text(""), slice_text("abc")), 3);
    char room[TEXT_DISTANCE_LENGTH_MAX + 1] = {0};
    EXPECT(text_distance(slice_of(room, sizeof room), slice_text("a")) == SIZE_MAX);
}

TEST(text, a_moment_is_written_as_go_does_and_read_again)
{
    static const struct {
        int64_t nanoseconds;
        const char *text;
    } known[] = {
        {0, "1970-01-01T00:00:00Z"},
        {-1, "1969-12-31T23:59:59.999999999Z"},
        {INT64_C(1582934400120000000), "2020-02-29T00:00:00.12Z"},
        {INT64_C(1767225599999999999), "2025-12-31T23:59:59.999999999Z"},
        {INT64_MAX, "2262-04-11T23:47:16.854775807Z"},
    };
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < array_length(known); i++) {
        int64_t back;
        EXPECT_TEXT(text_format_moment(arena, known[i].nanoseconds), known[i].text);
        EXPECT(text_parse_moment(slice_text(known[i].text), &back));
        EXPECT_EQ(back, known[i].nanoseconds);
    }
}

/* ---- addresses ---- */

TEST(text, an_address_has_a_host_and_a_port_that_exists)
{
    static const char *const right[] = {"127.0.0.1:0", "h:65535", ":7833", "[::1]:1", "[::]:7833"};
    static const char *const wrong[][2] = {
        {"", "'' is not an address of the form host:port"},
        {"host", "'host' is not an address of the form host:port"},
        {"host:", "'host:' is not an address of the form host:port"},
        {"::1:7833", "'::1:7833' is not an address: IPv6 is written [host]:port"},
        {"h:65536", "'h:65536' is not an address: port '65536' is not a number from 0 to 65535"},
        {"h:99999", "'h:99999' is not an address: port '99999' is not a number from 0 to 65535"},
        {"h:-1", "'h:-1' is not an address: port '-1' is not a number from 0 to 65535"},
        {"h:http", "'h:http' is not an address: port 'http' is not a number from 0 to 65535"},
        {"h:18446744073709551617", "'h:18446744073709551617' is not an address: port "
                                   "'18446744073709551617' is not a number from 0 to 65535"},
    };
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (size_t i = 0; i < array_length(right); i++)
        EXPECT(text_address_fault(right[i], arena) == NULL);
    for (size_t i = 0; i < array_length(wrong); i++)
        EXPECT_TEXT(text_address_fault(wrong[i][0], arena), wrong[i][1]);
}
