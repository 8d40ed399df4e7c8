/* log_test.c - each line is one JSON object, whatever is in it. */
#include "base/log.h"

#include <stdio.h>
#include <unistd.h>

#include "base/test.h"
#include "base/text.h"

struct catcher {
    char line[20000];
    size_t length;
    int lines;
    int64_t now;
};

static int64_t
catcher_now(void *context)
{
    return ((struct catcher *)context)->now;
}

static void
catcher_sink(void *context, const char *line, size_t length)
{
    struct catcher *catcher = context;
    EXPECT(length < sizeof catcher->line);
    memcpy(catcher->line, line, length);
    catcher->line[length] = '\0';
    catcher->length = length;
    catcher->lines++;
}

static struct log
log_to(struct catcher *catcher)
{
    *catcher = (struct catcher){.now = INT64_C(1700000000123456789)};
    return (struct log){.level = LOG_INFO,
                        .service = "cadence-history",
                        .now = catcher_now,
                        .sink = catcher_sink,
                        .context = catcher};
}

TEST(log, a_line_has_the_field_names_that_users_know)
{
    struct catcher catcher;
    struct log log = log_to(&catcher);
    log_write(&log, LOG_WARN, "/a/src/x/y.c", 12, "shard taken",
              (const struct log_field[]){log_number("shard-id", -7),
                                         log_bool("is-first", true),
                                         log_text("wf-domain-name", "orders"),
                                         {NULL}});
    EXPECT_TEXT(catcher.line,
                "{\"level\":\"warn\",\"ts\":\"2023-11-14T22:13:20.123Z\",\"msg\":\"shard taken\","
                "\"service\":\"cadence-history\",\"logging-call-at\":\"x/y.c:12\","
                "\"shard-id\":-7,\"is-first\":true,\"wf-domain-name\":\"orders\"}\n");
}

TEST(log, lines_below_the_level_and_for_no_log_are_dropped)
{
    struct catcher catcher;
    struct log log = log_to(&catcher);
    log_debug(&log, "unseen");
    log_info(NULL, "unseen");
    EXPECT_EQ(catcher.lines, 0);
    log_info(&log, "seen");
    log_fail(&log, "seen", log_text("error", NULL));
    EXPECT_EQ(catcher.lines, 2);
}

TEST(log, the_level_has_the_name_that_was_asked_for, "H-040")
{
    struct catcher catcher;
    struct log log = log_to(&catcher);
    log_warn(&log, "usual");
    EXPECT(strstr(catcher.line, "{\"level\":\"warn\",\"ts\":") == catcher.line);
    log.level_key = "severity \"";
    log_warn(&log, "other");
    EXPECT(strstr(catcher.line, "{\"severity \\\"\":\"warn\",\"ts\":") == catcher.line);
    EXPECT(strstr(catcher.line, "\"level\"") == NULL);
}

TEST(log, marks_control_bytes_and_what_is_not_utf8_are_escaped)
{
    struct catcher catcher;
    struct log log = log_to(&catcher);
    log_info(&log, "a\"b\\c\nd\te\x01"
                   "f\xff\xc3\xa9\xed\xa0\x80");
    EXPECT(strstr(catcher.line,
                  "\"a\\\"b\\\\c\\nd\\te\\u0001f\\ufffd\xc3\xa9\\ufffd\\ufffd\\ufffd\"") != NULL);
    EXPECT(text_is_utf8(slice_of(catcher.line, catcher.length), NULL));
}

/* Is it one object of texts, numbers and words, closed, with a newline? Enough of JSON for a log
 * line. */
static bool
is_object(const char *line, size_t length)
{
    bool is_inside = false;
    for (size_t i = 0; i + 1 < length; i++) {
        if (line[i] == '\\' && is_inside)
            i++;
        else if (line[i] == '"')
            is_inside = !is_inside;
        else if ((uint8_t)line[i] < 0x20)
            return false;
    }
    return !is_inside && length > 2 && line[0] == '{' && line[length - 2] == '}' &&
           line[length - 1] == '\n';
}

TEST(log, a_line_of_any_length_stays_below_16_kib_and_whole)
{
    static char text[40000];
    for (size_t length = 15900; length < 16500; length++) {
        memset(text, 'x', length);
        text[length] = '\0';
        text[length - 2] = '"';
        struct catcher catcher;
        struct log log = log_to(&catcher);
        log_info(&log, "m", log_text("long", text), log_number("last", INT64_MIN));
        EXPECT(catcher.length <= 16384);
        EXPECT(is_object(catcher.line, catcher.length));
        bool is_cut = strstr(catcher.line, "...") != NULL;
        bool has_last = strstr(catcher.line, "\"last\":-9223372036854775808") != NULL;
        EXPECT(is_cut != has_last);
        log_info(&log, text, log_number("last", 7));
        EXPECT(is_object(catcher.line, catcher.length));
        EXPECT(strstr(catcher.line, "...\"") != NULL);
        EXPECT(strstr(catcher.line, "\"service\":\"cadence-history\"") != NULL);
        EXPECT(strstr(catcher.line, "\"last\":7}\n") != NULL);
    }
}

TEST(log, the_console_form_is_for_people)
{
    struct catcher catcher;
    struct log log = log_to(&catcher);
    log.is_console = true;
    log_info(&log, "ready", log_text("grpc", "127.0.0.1:7833"), log_number("shards", 16));
    EXPECT_TEXT(catcher.line,
                "2023-11-14T22:13:20.123Z info ready grpc=127.0.0.1:7833 shards=16\n");
}

TEST(log, times_before_1970_are_right_too)
{
    struct catcher catcher;
    struct log log = log_to(&catcher);
    catcher.now = -1;
    log_info(&log, "x");
    EXPECT(strstr(catcher.line, "\"1969-12-31T23:59:59.999Z\"") != NULL);
}

TEST(log, a_level_is_read_from_its_word_and_from_nothing_else)
{
    enum log_level level = LOG_FATAL;
    EXPECT(log_level_parse("debug", &level) && level == LOG_DEBUG);
    EXPECT(log_level_parse("error", &level) && level == LOG_ERROR);
    EXPECT(!log_level_parse("Error", &level) && !log_level_parse("", &level));
    EXPECT(level == LOG_ERROR);
}

TEST(log, a_file_descriptor_gets_the_whole_line)
{
    int ends[2];
    EXPECT(pipe(ends) == 0);
    log_sink_fd(&ends[1], "line\n", 5);
    char got[8] = {0};
    EXPECT_EQ(read(ends[0], got, sizeof got), 5);
    EXPECT_TEXT(got, "line\n");
    close(ends[0]);
    close(ends[1]);
}
