/* log.c - builds one line and gives it to the sink.
 *
 * A line has a fixed size. What comes from outside is escaped piece by piece; a piece that does not
 * fit cuts the text with "..." and drops the fields behind it. LINE_RESERVE bytes are kept for the
 * cut and the closing marks, so that a cut line is still one JSON object. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"

#define LINE_MAX_BYTES ((size_t)16 * 1024)
#define LINE_RESERVE   ((size_t)32)
#define FIELDS_RESERVE ((size_t)1024) /* what the message leaves for service, place and fields */
#define SECOND         INT64_C(1000000000)

struct line {
    size_t length;
    size_t limit;   /* texts end here */
    bool is_cut;    /* a text was cut */
    bool is_closed; /* no field fits any more */
    char bytes[LINE_MAX_BYTES];
};

static const char *const level_names[] = {"debug", "info", "warn", "error", "fatal"};

bool
log_level_parse(const char *word, enum log_level *level)
{
    for (size_t i = 0; i < array_length(level_names); i++) {
        if (strcmp(word, level_names[i]) == 0) {
            *level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

/* ---- pieces of a line ---- */

/* Appends marks of ours, for which there is always room. */
static void
put_mark(struct line *line, const char *mark)
{
    size_t length = strlen(mark);
    check(line->length + length <= sizeof line->bytes);
    memcpy(line->bytes + line->length, mark, length);
    line->length += length;
}

static bool
has_room(const struct line *line, size_t length)
{
    return line->length + length <= line->limit;
}

/* The next character of a text as JSON wants it, in `piece`; returns how many bytes it stood for.
 */
static size_t
escape(struct slice text, char piece[8])
{
    static const char letters[] =
        "\"\"\\\\\nn\rr\tt\bb\ff"; /* pairs: what, and after the backslash */
    uint8_t byte = text.data[0];
    for (const char *pair = letters; *pair != '\0'; pair += 2) {
        if (byte == (uint8_t)pair[0]) {
            snprintf(piece, 8, "\\%c", pair[1]);
            return 1;
        }
    }
    size_t length = text_utf8_sequence(text);
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
        snprintf(piece, 8, "\\u%04x", length == 0 ? 0xfffd : byte);
        return 1;
    }
    memcpy(piece, text.data, length);
    piece[length] = '\0';
    return length;
}

/* How many bytes at the start need no escape. */
static size_t
plain_length(struct slice text)
{
    size_t length = 0;
    while (length < text.length && text.data[length] >= 0x20 && text.data[length] < 0x7f &&
           text.data[length] != '"' && text.data[length] != '\\')
        length++;
    return length;
}

/* A text, escaped but not quoted. */
static void
put_text(struct line *line, const char *text)
{
    struct slice rest = slice_text(text);
    while (rest.length > 0) {
        size_t room = line->limit > line->length ? line->limit - line->length : 0;
        size_t plain = plain_length(slice_of(rest.data, rest.length < room ? rest.length : room));
        if (plain > 0) {
            memcpy(line->bytes + line->length, rest.data, plain);
            line->length += plain;
            rest = slice_skip(rest, plain);
            continue;
        }
        char piece[8];
        rest = slice_skip(rest, escape(rest, piece));
        if (!has_room(line, strlen(piece))) {
            put_mark(line, "...");
            line->is_cut = line->is_closed = true;
            return;
        }
        put_mark(line, piece);
    }
}

static void
put_time(struct line *line, int64_t now)
{
    int64_t second = now / SECOND - (now % SECOND < 0);
    int milliseconds = (int)((now - second * SECOND) / 1000000);
    time_t when = (time_t)second;
    struct tm parts;
    char text[64];
    gmtime_r(&when, &parts);
    size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + length, sizeof text - length, ".%03dZ", milliseconds);
    put_mark(line, text);
}

static void
put_value(struct line *line, const struct log_field *field, const char *quote)
{
    char number[24];
    switch (field->type) {
    case LOG_TEXT:
        put_mark(line, quote);
        put_text(line, field->text == NULL ? "" : field->text);
        put_mark(line, quote);
        return;
    case LOG_NUMBER:
        snprintf(number, sizeof number, "%" PRId64, field->number);
        put_mark(line, number);
        return;
    case LOG_BOOL:
        put_mark(line, field->number != 0 ? "true" : "false");
        return;
    }
    unreachable("field type %d", (int)field->type);
}

/* ,"name":value or, for people, ` name=value`. */
static void
put_field(struct line *line, const struct log_field *field, bool is_console)
{
    size_t name_worst = strlen(field->name) * 6 + 32; /* each byte as \u00xx, marks, a number */
    if (!has_room(line, name_worst))
        line->is_closed = true;
    if (line->is_closed)
        return;
    put_mark(line, is_console ? " " : ",\"");
    put_text(line, field->name);
    put_mark(line, is_console ? "=" : "\":");
    put_value(line, field, is_console ? "" : "\"");
}

/* The message may be long, but not crowd out who said it. */
static void
put_message(struct line *line, const char *message)
{
    line->limit = LINE_MAX_BYTES - FIELDS_RESERVE;
    put_text(line, message);
    line->limit = LINE_MAX_BYTES - LINE_RESERVE;
    line->is_closed = false;
}

static void
put_fields(struct line *line, const struct log_field *fields, bool is_console)
{
    for (; fields->name != NULL; fields++)
        put_field(line, fields, is_console);
}

/* ---- the two forms ---- */

static void
build_json(struct line *line, const struct log *log, enum log_level level, int64_t now,
           const char *place, const char *message, const struct log_field *fields)
{
    const struct log_field own[] = {
        log_text("service", log->service),
        log_text("logging-call-at", place),
        {.name = NULL},
    };
    put_mark(line, "{\"");
    put_text(line, log->level_key == NULL ? "level" : log->level_key);
    put_mark(line, "\":\"");
    put_mark(line, level_names[level]);
    put_mark(line, "\",\"ts\":\"");
    put_time(line, now);
    put_mark(line, "\",\"msg\":\"");
    put_message(line, message);
    put_mark(line, "\"");
    put_fields(line, own, false);
    put_fields(line, fields, false);
    if (line->is_closed && !line->is_cut)
        put_mark(line, ",\"...\":true");
    put_mark(line, "}\n");
}

static void
build_console(struct line *line, enum log_level level, int64_t now, const char *message,
              const struct log_field *fields)
{
    put_time(line, now);
    put_mark(line, " ");
    put_mark(line, level_names[level]);
    put_mark(line, " ");
    put_message(line, message);
    put_fields(line, fields, true);
    if (line->is_closed && !line->is_cut)
        put_mark(line, " ...");
    put_mark(line, "\n");
}

void
log_write(const struct log *log, enum log_level level, const char *file, int line_number,
          const char *message, const struct log_field *fields)
{
    if (log == NULL || level < log->level)
        return;
    check((size_t)level < array_length(level_names));
    int64_t now = log->now(log->context);
    struct line line;
    line.length = 0;
    line.limit = sizeof line.bytes - LINE_RESERVE;
    line.is_cut = line.is_closed = false;
    char place[256];
    snprintf(place, sizeof place, "%s:%d", check_source_path(file), line_number);
    if (log->is_console)
        build_console(&line, level, now, message, fields);
    else
        build_json(&line, log, level, now, place, message, fields);
    log->sink(log->context, line.bytes, line.length);
}

/* ---- a sink ---- */

int
log_open_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

void
log_sink_fd(void *context, const char *line, size_t length)
{
    int descriptor = *(const int *)context;
    while (length > 0) {
        ssize_t wrote = write(descriptor, line, length);
        if (wrote >= 0) {
            line += wrote;
            length -= (size_t)wrote;
        } else if (errno == EAGAIN) {
            struct pollfd wait = {.fd = descriptor, .events = POLLOUT};
            poll(&wait, 1, 1000);
        } else if (errno != EINTR) {
            return; /* nobody is left to be told */
        }
    }
}
