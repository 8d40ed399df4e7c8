/* render_text.c - JSON, times and spans of time as text. See render.h. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "base/check.h"
#include "base/text.h"
#include "cli/output/render.h"
#include "cli/output/table.h"

#define NS   1000000000LL
#define MS   1000000LL
#define SIZE 64

const char *
render_text(const json_t *json, struct arena *arena)
{
    size_t flags = JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15);
    size_t length = json_dumpb(json, NULL, 0, flags);
    char *text = arena_alloc(arena, length + 2);
    size_t written = json_dumpb(json, text, length, flags);
    check(written == length);
    memcpy(text + length, "\n", 2);
    return text;
}

const char *
render_compact(const json_t *json, struct arena *arena)
{
    size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15);
    size_t length = json_dumpb(json, NULL, 0, flags);
    char *text = arena_alloc(arena, length + 1);
    (void)json_dumpb(json, text, length, flags);
    text[length] = '\0';
    return text;
}

/* A text without its quotes. */
static const char *
compact(const json_t *json, struct arena *arena)
{
    return json_is_string(json) ? json_string_value(json) : render_compact(json, arena);
}

/* At most `length_max` bytes, never within a character. */
static const char *
cut(const char *text, size_t length_max, struct arena *arena)
{
    if (length_max == 0 || strlen(text) <= length_max)
        return text;
    while (length_max > 0 && ((unsigned char)text[length_max] & 0xc0) == 0x80)
        length_max--;
    return arena_format(arena, "%.*s…", (int)length_max, text);
}

const char *
render_line(const json_t *json, size_t length_max, struct arena *arena)
{
    struct buffer line = {0};
    const char *name;
    json_t *value;
    if (!json_is_object(json))
        return cut(show_text(compact(json, arena), arena), length_max, arena);
    json_object_foreach((json_t *)json, name, value)
    {
        const char *shown = cut(show_text(compact(value, arena), arena), length_max, arena);
        buffer_append_format(&line, "%s%s: %s", line.length == 0 ? "" : ", ", name, shown);
    }
    const char *kept = arena_text_of(arena, buffer_slice(&line));
    buffer_free(&line);
    return kept;
}

const char *
render_time(int64_t nanoseconds, struct arena *arena)
{
    char text[SIZE], fraction[16] = "";
    struct tm parts;
    int64_t seconds = nanoseconds / NS, rest = nanoseconds % NS;
    if (rest < 0) {
        seconds--;
        rest += NS;
    }
    time_t moment = (time_t)seconds;
    if (gmtime_r(&moment, &parts) == NULL ||
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts) == 0)
        return arena_format(arena, "%lld ns", (long long)nanoseconds);
    if (rest != 0) {
        snprintf(fraction, sizeof fraction, ".%09lld", (long long)rest);
        for (size_t end = strlen(fraction) - 1; fraction[end] == '0'; end--)
            fraction[end] = '\0';
    }
    return arena_format(arena, "%s%sZ", text, fraction);
}

const char *
render_span(int64_t nanoseconds, struct arena *arena)
{
    int64_t seconds = nanoseconds / NS;
    if (nanoseconds < 0)
        return arena_format(arena, "-%s", render_span(-nanoseconds, arena));
    if (nanoseconds < NS)
        return nanoseconds < MS ? "0s"
                                : arena_format(arena, "%lldms", (long long)(nanoseconds / MS));
    if (seconds < 60)
        return arena_format(arena, "%lld.%llds", (long long)seconds,
                            (long long)(nanoseconds % NS / (NS / 10)));
    if (seconds < 3600)
        return arena_format(arena, "%lldm%llds", (long long)(seconds / 60),
                            (long long)(seconds % 60));
    if (seconds < 86400)
        return arena_format(arena, "%lldh%lldm", (long long)(seconds / 3600),
                            (long long)(seconds / 60 % 60));
    return arena_format(arena, "%lldd%lldh", (long long)(seconds / 86400),
                        (long long)(seconds / 3600 % 24));
}
