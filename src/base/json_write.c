/* json_write.c - see json.h.
 *
 * The room is known before: an escaped byte takes at most six, and three bytes of base64 four. */
#include <stdio.h>

#include "base/check.h"
#include "base/json.h"
#include "base/text.h"

#define MEMBER_ROOM 64 /* name, quotes, a number */
#define ESCAPE_ROOM 6

struct json_writer
object_write_begin(struct arena *arena, size_t members, size_t payload)
{
    size_t room = members * MEMBER_ROOM + payload * ESCAPE_ROOM + 3;
    struct json_writer writer = {.bytes = arena_alloc(arena, room), .room = room};
    writer.end = writer.bytes;
    *writer.end++ = '{';
    return writer;
}

static void
put(struct json_writer *writer, const void *bytes, size_t count)
{
    check((size_t)(writer->end - writer->bytes) + count <= writer->room);
    writer->end = mempcpy(writer->end, bytes, count);
}

static inline void
put_byte(struct json_writer *writer, char byte)
{
    check((size_t)(writer->end - writer->bytes) < writer->room);
    *writer->end++ = (uint8_t)byte;
}

static void
put_name(struct json_writer *writer, const char *name)
{
    if (writer->end - writer->bytes > 1)
        put_byte(writer, ',');
    put_byte(writer, '"');
    put(writer, name, strlen(name));
    put_byte(writer, '"');
    put_byte(writer, ':');
}

/* Bytes that are not written as they are, or at least not always. Go escapes what HTML or scripts
 * could take for theirs, too. */
static const bool is_special[256] = {
    [0 ... 0x1f] = true, ['"'] = true, ['\\'] = true, ['<'] = true,
    ['>'] = true,        ['&'] = true, [0xe2] = true, /* so begin U+2028 and U+2029 */
};

/* Bytes of `text` that are written as they are. */
static size_t
plain_length(const char *text)
{
    size_t count = 0;
    for (;;) {
        while (!is_special[(uint8_t)text[count]])
            count++;
        bool is_other = (uint8_t)text[count] == 0xe2 && strncmp(text + count, "\u2028", 3) != 0 &&
                        strncmp(text + count, "\u2029", 3) != 0;
        if (!is_other)
            return count;
        count++;
    }
}

/* The escaped form of the character that `text` begins with; its bytes. */
static size_t
escape_character(const char *text, char escape[ESCAPE_ROOM + 1])
{
    static const char short_forms[] = "\"\\\n\r\t\b\f", letters[] = "\"\\nrtbf";
    const char *at = strchr(short_forms, *text);
    if (at != NULL) {
        snprintf(escape, ESCAPE_ROOM + 1, "\\%c", letters[at - short_forms]);
        return 1;
    }
    bool is_wide = (uint8_t)*text == 0xe2;
    unsigned point = !is_wide ? (uint8_t)*text : (uint8_t)text[2] == 0xa8 ? 0x2028 : 0x2029;
    snprintf(escape, ESCAPE_ROOM + 1, "\\u%04x", point);
    return is_wide ? 3 : 1;
}

/* Writes the character that `text` begins with in its escaped form; its bytes. */
static size_t
put_escaped(struct json_writer *writer, const char *text)
{
    char escape[ESCAPE_ROOM + 1];
    size_t count = escape_character(text, escape);
    put(writer, escape, strlen(escape));
    return count;
}

static void
put_text(struct json_writer *writer, const char *value)
{
    put_byte(writer, '"');
    while (*value != '\0') {
        size_t count = plain_length(value);
        put(writer, value, count);
        value += count;
        if (*value != '\0')
            value += put_escaped(writer, value);
    }
    put_byte(writer, '"');
}

void
object_write_text(struct json_writer *writer, const char *name, const char *value)
{
    put_name(writer, name);
    put_text(writer, value);
}

void
object_write_texts(struct json_writer *writer, const char *name, const char *const *values,
                   size_t count)
{
    put_name(writer, name);
    put(writer, "[", 1);
    for (size_t i = 0; i < count; i++) {
        put(writer, ",", i == 0 ? 0 : 1);
        put_text(writer, values[i]);
    }
    put(writer, "]", 1);
}

void
object_write_raw(struct json_writer *writer, const char *name, struct slice value)
{
    put_name(writer, name);
    put(writer, value.length == 0 ? "null" : (const char *)value.data,
        value.length == 0 ? 4 : value.length);
}

void
object_write_integer(struct json_writer *writer, const char *name, int64_t value)
{
    char digits[24], *end = digits + sizeof digits, *first = end;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        *--first = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0)
        *--first = '-';
    put_name(writer, name);
    put(writer, first, (size_t)(end - first));
}

void
object_write_flag(struct json_writer *writer, const char *name, bool value)
{
    put_name(writer, name);
    put(writer, value ? "true" : "false", value ? 4 : 5);
}

void
object_write_bytes(struct json_writer *writer, const char *name, struct slice value,
                   struct arena *arena)
{
    if (value.length == 0) {
        put_name(writer, name);
        put(writer, "null", 4);
        return;
    }
    struct slice text = text_base64_encode(arena, value, TEXT_BASE64_STANDARD);
    put_name(writer, name);
    put(writer, "\"", 1);
    put(writer, text.data, text.length);
    put(writer, "\"", 1);
}

struct slice
object_write_end(struct json_writer *writer)
{
    put(writer, "}", 1);
    return slice_of(writer->bytes, (size_t)(writer->end - writer->bytes));
}

/* --- at the end of a buffer ---- */

void
object_append_text(struct buffer *out, const char *text)
{
    buffer_append_u8(out, '"');
    while (*text != '\0') {
        char escape[ESCAPE_ROOM + 1];
        size_t count = plain_length(text);
        buffer_append(out, slice_of(text, count));
        text += count;
        if (*text == '\0')
            break;
        text += escape_character(text, escape);
        buffer_append_text(out, escape);
    }
    buffer_append_u8(out, '"');
}

void
object_append_bytes(struct buffer *out, struct slice bytes)
{
    scoped(arena_drop) struct arena *arena = arena_new(bytes.length * 2 + 64);
    buffer_append_u8(out, '"');
    buffer_append(out, text_base64_encode(arena, bytes, TEXT_BASE64_STANDARD));
    buffer_append_u8(out, '"');
}
