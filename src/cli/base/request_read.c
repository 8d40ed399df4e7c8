/* request_read.c - times and JSON values as people type them. See request.h. */
#include <jansson.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/text.h"
#include "base/vector.h"
#include "cli/base/request.h"

#define NS        1000000000LL
#define COUNT_MAX 999999
#define BLANKS    " \t\r\n"

/* ---- times ---- */

static const struct {
    const char *letter, *word; /* "m" is a minute, "M" a month */
    int64_t seconds;
} units[] = {
    {"s", "second", 1},           {"m", "minute", 60},      {"h", "hour", 3600},
    {"d", "day", 86400},          {"w", "week", 7 * 86400}, {"M", "month", 30 * 86400},
    {"y", "year", 365 * 86400LL},
};

static bool
read_ago(const char *text, int64_t now, int64_t *nanoseconds)
{
    size_t digits = strspn(text, "0123456789");
    int64_t count;
    if (!text_parse_int64(slice_of(text, digits), 1, COUNT_MAX, &count))
        return false;
    for (size_t i = 0; i < array_length(units); i++) {
        const char *unit = text + digits;
        if (strcmp(unit, units[i].letter) != 0 && strcmp(unit, units[i].word) != 0)
            continue;
        *nanoseconds = now - count * units[i].seconds * NS;
        return true;
    }
    return false;
}

/* "Z", "+01:00" or "-08:00"; seconds east of Greenwich. */
static bool
read_zone(const char *text, int64_t *seconds)
{
    int64_t hours, minutes;
    *seconds = 0;
    if (strcmp(text, "Z") == 0)
        return true;
    if (strlen(text) != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':' ||
        !text_parse_int64(slice_of(text + 1, 2), 0, 23, &hours) ||
        !text_parse_int64(slice_of(text + 4, 2), 0, 59, &minutes))
        return false;
    *seconds = (hours * 3600 + minutes * 60) * (text[0] == '-' ? -1 : 1);
    return true;
}

/* Behind the seconds: ".25"; moves *at past it. */
static int64_t
read_fraction(const char **at)
{
    int64_t nanoseconds = 0, unit = NS / 10;
    if (**at != '.')
        return 0;
    for (++*at; **at >= '0' && **at <= '9'; ++*at, unit /= 10)
        nanoseconds += (**at - '0') * unit;
    return nanoseconds;
}

static bool
read_date(const char *text, int64_t *nanoseconds)
{
    struct tm parts = {0};
    int64_t zone;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    if (rest == NULL)
        return false;
    int64_t fraction = read_fraction(&rest);
    if (!read_zone(rest, &zone))
        return false;
    int64_t seconds = (int64_t)timegm(&parts) - zone;
    if (seconds > INT64_MAX / NS - 1 || seconds < INT64_MIN / NS + 1)
        return false;
    *nanoseconds = seconds * NS + fraction;
    return true;
}

bool
time_read(const char *text, int64_t now, int64_t *nanoseconds)
{
    return text_parse_int64(slice_text(text), 0, INT64_MAX, nanoseconds) ||
           read_ago(text, now, nanoseconds) || read_date(text, nanoseconds);
}

/* ---- JSON ---- */

/* The end of the value that the text begins with; NULL: none. */
static const char *
value_end(const char *text, json_error_t *error)
{
    json_t *value =
        json_loads(text, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, error);
    if (value == NULL)
        return NULL;
    json_decref(value);
    return text + error->position;
}

bool
json_values_check(const char *text, struct arena *arena, const char **wrong)
{
    const char *at = text + strspn(text, BLANKS);
    if (*at == '\0') {
        *wrong = "it is empty, not JSON";
        return false;
    }
    while (*at != '\0') {
        json_error_t error;
        const char *end = value_end(at, &error);
        if (end == NULL) {
            *wrong = arena_format(arena, "not JSON at '%.20s' (%s)", at, error.text);
            return false;
        }
        at = end + strspn(end, BLANKS);
    }
    return true;
}

const char **
json_values_cut(const char *text, struct arena *arena, size_t *count)
{
    vector_of(const char *) values = {0};
    for (const char *at = text + strspn(text, BLANKS); *at != '\0'; at += strspn(at, BLANKS)) {
        json_error_t error;
        const char *end = value_end(at, &error);
        check(end != NULL);
        vector_push_in(&values, arena, arena_text_of(arena, slice_of(at, (size_t)(end - at))));
        at = end;
    }
    *count = values.count;
    return values.items;
}

const char **
words_cut(const char *text, char separator, struct arena *arena, size_t *count)
{
    const char ends[] = {separator, '\0'};
    vector_of(const char *) words = {0};
    for (const char *at = text; *at != '\0';) {
        size_t length = strcspn(at, ends);
        if (length > 0 || separator == '|')
            vector_push_in(&words, arena, arena_text_of(arena, slice_of(at, length)));
        at += length + (at[length] != '\0');
    }
    *count = words.count;
    return words.items;
}
