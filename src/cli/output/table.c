/* table.c - see table.h. */
#include "cli/output/table.h"

#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "base/check.h"
#include "base/vector.h"

#define GAP 2 /* blanks between two columns */

void
table_add_row(struct table *table, const char *const *cells, size_t count)
{
    check(count == table->columns);
    for (size_t i = 0; i < count; i++)
        vector_push_in(table, table->arena, show_text(cells[i], table->arena));
}

/* Characters, not bytes: continuation bytes of UTF-8 take no room. */
static size_t
width(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += (*text & 0xc0) != 0x80;
    return count;
}

static size_t
column_width(const struct table *table, size_t column)
{
    size_t widest = 0;
    check(column < table->columns);
    for (size_t at = column; at < table->count; at += table->columns) {
        size_t needed = width(table->items[at]);
        widest = needed > widest ? needed : widest;
    }
    return widest;
}

const char *
table_text(const struct table *table)
{
    struct buffer text = {0};
    check(table->columns > 0 && table->count % table->columns == 0);
    size_t *widths = arena_zalloc(table->arena, table->columns, sizeof *widths);
    for (size_t column = 0; column < table->columns; column++)
        widths[column] = column_width(table, column);
    for (size_t at = 0; at < table->count; at++) {
        size_t column = at % table->columns;
        const char *cell = table->items[at];
        bool is_last = column + 1 == table->columns;
        size_t blanks = is_last ? 0 : widths[column] - width(cell) + GAP;
        buffer_append_format(&text, "%s%*s%s", cell, (int)blanks, "", is_last ? "\n" : "");
    }
    const char *kept = arena_text_of(table->arena, buffer_slice(&text));
    buffer_free(&text);
    return kept;
}

const char *
show_text(const char *text, struct arena *arena)
{
    char *shown = arena_text(arena, text);
    for (char *at = shown; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte < 0x20 || byte == 0x7f)
            *at = '?';
        /* U+0080 .. U+009F are control characters too; in UTF-8 they begin with 0xc2. */
        if (byte == 0xc2 && (unsigned char)at[1] >= 0x80 && (unsigned char)at[1] < 0xa0)
            at[0] = at[1] = '?';
    }
    return shown;
}

const char *
show_or_dash(const char *text, struct arena *arena)
{
    return text == NULL || text[0] == '\0' ? "-" : show_text(text, arena);
}

const char *
show_time(const GOOGLE(Timestamp) *time, struct arena *arena)
{
    char text[64];
    struct tm parts;
    if (time == NULL)
        return "-";
    time_t seconds = (time_t)time->seconds;
    if (gmtime_r(&seconds, &parts) == NULL ||
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        return arena_format(arena, "%lld s", (long long)time->seconds);
    return arena_text(arena, text);
}

const char *
show_enum(const ProtobufCEnumDescriptor *type, const char *prefix, int value, struct arena *arena)
{
    const ProtobufCEnumValue *found = protobuf_c_enum_descriptor_get_value(type, value);
    if (found == NULL)
        return arena_format(arena, "%d", value);
    size_t length = strlen(prefix);
    return strncmp(found->name, prefix, length) == 0 ? found->name + length : found->name;
}
