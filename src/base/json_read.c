/* json_read.c - see json.h. */
#include "base/json.h"

#include <endian.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/text.h"
#include "base/vector.h"

#define WORD_OF(byte) (UINT64_C(0x0101010101010101) * (byte)) /* eight times the byte */

static bool
is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static void
skip_blanks(struct json_reader *reader)
{
    size_t count = 0;
    while (count < reader->left.length && is_blank(reader->left.data[count]))
        count++;
    reader->left = slice_skip(reader->left, count);
}

/* The next byte that is not a blank; -1 at the end. */
static int
peek(struct json_reader *reader)
{
    if (reader->left.length > 0 && is_blank(reader->left.data[0]))
        skip_blanks(reader);
    return reader->is_bad || reader->left.length == 0 ? -1 : reader->left.data[0];
}

/* Takes `byte` if it comes next. */
static bool
take(struct json_reader *reader, int byte)
{
    if (peek(reader) != byte)
        return false;
    reader->left = slice_skip(reader->left, 1);
    return true;
}

static void
need(struct json_reader *reader, int byte)
{
    if (!take(reader, byte))
        reader->is_bad = true;
}

/* Takes a word such as null if it comes next. */
static bool
take_word(struct json_reader *reader, const char *word)
{
    if (peek(reader) != word[0] || !slice_starts_with(reader->left, slice_text(word)))
        return false;
    reader->left = slice_skip(reader->left, strlen(word));
    return true;
}

/* --- texts ---- */

/* The four hex digits behind "\u"; -1: not such. */
static int32_t
read_unit(struct slice bytes)
{
    int32_t unit = 0;
    if (bytes.length < 4)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef", *at;
        int lower =
            bytes.data[i] >= 'A' && bytes.data[i] <= 'F' ? bytes.data[i] + 32 : bytes.data[i];
        if (lower == '\0' || (at = strchr(digits, lower)) == NULL)
            return -1;
        unit = unit * 16 + (int32_t)(at - digits);
    }
    return unit;
}

static size_t
put_utf8(uint8_t *to, uint32_t point)
{
    if (point < 0x80) {
        to[0] = (uint8_t)point;
        return 1;
    }
    size_t count = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = count - 1; i > 0; i--, point >>= 6)
        to[i] = (uint8_t)(0x80 | (point & 0x3f));
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    to[0] = (uint8_t)(lead[count] | point);
    return count;
}

/* Reads what follows "\u" into *to: one unit, or two that are one character. Bytes read; 0: bad. */
static size_t
read_escaped_unit(struct slice bytes, uint8_t **to)
{
    int32_t unit = read_unit(bytes);
    if (unit <= 0 || (unit >= 0xdc00 && unit <= 0xdfff))
        return 0;
    if (unit < 0xd800 || unit > 0xdfff) {
        *to += put_utf8(*to, (uint32_t)unit);
        return 4;
    }
    if (bytes.length < 10 || bytes.data[4] != '\\' || bytes.data[5] != 'u')
        return 0;
    int32_t low = read_unit(slice_skip(bytes, 6));
    if (low < 0xdc00 || low > 0xdfff)
        return 0;
    *to += put_utf8(*to, 0x10000u + (((uint32_t)unit - 0xd800) << 10) + ((uint32_t)low - 0xdc00));
    return 10;
}

/* Reads what follows a backslash. Bytes read; 0: bad. */
static size_t
read_escape(struct slice bytes, uint8_t **to)
{
    static const char from[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (bytes.length == 0 || bytes.data[0] == '\0')
        return 0;
    if (bytes.data[0] == 'u') {
        size_t count = read_escaped_unit(slice_skip(bytes, 1), to);
        return count == 0 ? 0 : count + 1;
    }
    const char *at = strchr(from, bytes.data[0]);
    if (at == NULL)
        return 0;
    *(*to)++ = (uint8_t)meant[at - from];
    return 1;
}

/* The high bit of each byte that is zero; above the lowest such byte others may be marked, too. */
static uint64_t
mark_zeros(uint64_t word)
{
    return (word - WORD_OF(0x01)) & ~word & WORD_OF(0x80);
}

static bool
is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* How many bytes from here on stand for themselves: most texts are nothing else, so eight at a time
 * are looked at. */
static size_t
plain_length(struct slice bytes)
{
    size_t length = 0;
    for (uint64_t word; length + sizeof word <= bytes.length; length += sizeof word) {
        memcpy(&word, bytes.data + length, sizeof word);
        word = le64toh(word);
        uint64_t low = (word - WORD_OF(0x20)) & ~word;
        uint64_t others = mark_zeros(word ^ WORD_OF('"')) | mark_zeros(word ^ WORD_OF('\\'));
        uint64_t marks = ((low | word) & WORD_OF(0x80)) | others;
        if (marks != 0)
            return length + (size_t)__builtin_ctzll(marks) / 8;
    }
    while (length < bytes.length && is_plain(bytes.data[length]))
        length++;
    return length;
}

/* The text that comes next. An escape is never shorter than what it means, so its room suffices. */
static const char *
read_text(struct json_reader *reader)
{
    need(reader, '"');
    struct slice left = reader->left;
    size_t plain = plain_length(left), at = plain, length = plain;
    while (length < left.length && left.data[length] != '"')
        length += left.data[length] == '\\' ? 2 : 1;
    if (reader->is_bad || length >= left.length) {
        reader->is_bad = true;
        return "";
    }
    uint8_t *text = arena_alloc(reader->arena, length + 1);
    uint8_t *to = mempcpy(text, left.data, plain);
    while (at < length) {
        uint8_t byte = left.data[at];
        size_t count = byte == '\\'
                           ? read_escape(slice_of(left.data + at + 1, length - at - 1), &to)
                           : text_utf8_sequence(slice_of(left.data + at, length - at));
        if (count == 0 || byte < 0x20) {
            reader->is_bad = true;
            return "";
        }
        if (byte != '\\')
            to = (uint8_t *)mempcpy(to, left.data + at, count);
        at += byte == '\\' ? count + 1 : count;
    }
    check((size_t)(to - text) <= length);
    *to = '\0';
    reader->left = slice_skip(left, length + 1);
    return (const char *)text;
}

/* --- values ---- */

void
object_text(struct json_reader *reader, const char **value)
{
    if (take_word(reader, "null"))
        return;
    const char *text = read_text(reader);
    if (!reader->is_bad)
        *value = text;
}

static bool
is_of_number(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || byte == '+' || byte == '-' || byte == '.' ||
           byte == 'e' || byte == 'E';
}

static struct slice
read_number(struct json_reader *reader)
{
    size_t count = 0;
    skip_blanks(reader);
    while (count < reader->left.length && is_of_number(reader->left.data[count]))
        count++;
    struct slice number = slice_of(reader->left.data, count);
    reader->left = slice_skip(reader->left, count);
    reader->is_bad = reader->is_bad || count == 0;
    return number;
}

void
object_integer(struct json_reader *reader, int64_t *value)
{
    if (take_word(reader, "null"))
        return;
    struct slice number = read_number(reader);
    if (!reader->is_bad && !text_parse_int64(number, INT64_MIN, INT64_MAX, value))
        reader->is_bad = true;
}

void
object_flag(struct json_reader *reader, bool *value)
{
    if (take_word(reader, "null"))
        return;
    bool is_true = take_word(reader, "true");
    if (!is_true && !take_word(reader, "false"))
        reader->is_bad = true;
    else
        *value = is_true;
}

void
object_bytes(struct json_reader *reader, struct slice *value)
{
    const char *text = "";
    object_text(reader, &text);
    if (!reader->is_bad &&
        !text_base64_decode(reader->arena, slice_text(text), TEXT_BASE64_STANDARD, value))
        reader->is_bad = true;
}

static void skip_value(struct json_reader *reader, int depth);

/* What stands in brackets or braces. */
static void
skip_inside(struct json_reader *reader, int depth, bool has_names, int closing)
{
    if (depth >= JSON_DEPTH_MAX)
        reader->is_bad = true;
    if (take(reader, closing))
        return;
    do {
        if (has_names) {
            (void)read_text(reader);
            need(reader, ':');
        }
        skip_value(reader, depth + 1);
    } while (take(reader, ','));
    need(reader, closing);
}

static void
skip_value(struct json_reader *reader, int depth)
{
    int next = peek(reader);
    if (next == '{' || next == '[') {
        need(reader, next);
        skip_inside(reader, depth, next == '{', next == '{' ? '}' : ']');
    } else if (next == '"') {
        (void)read_text(reader);
    } else if (!take_word(reader, "null") && !take_word(reader, "true") &&
               !take_word(reader, "false")) {
        (void)read_number(reader);
    }
}

void
object_skip(struct json_reader *reader)
{
    skip_value(reader, 1);
}

bool
object_null(struct json_reader *reader)
{
    return take_word(reader, "null");
}

int
object_peek(struct json_reader *reader)
{
    return peek(reader);
}

void
object_number(struct json_reader *reader, double *value)
{
    if (take_word(reader, "null"))
        return;
    struct slice number = read_number(reader);
    char digits[64], *end = digits;
    if (reader->is_bad || number.length >= sizeof digits) {
        reader->is_bad = true;
        return;
    }
    *(char *)mempcpy(digits, number.data, number.length) = '\0';
    *value = strtod(digits, &end);
    reader->is_bad = *end != '\0' || end == digits;
}

/* --- values in values ---- */

bool
object_enter(struct json_reader *reader)
{
    bool outer = reader->has_members;
    need(reader, '{');
    reader->has_members = false;
    return outer;
}

void
object_leave(struct json_reader *reader, bool outer)
{
    reader->has_members = outer;
}

void
array_enter(struct json_reader *reader)
{
    need(reader, '[');
}

bool
array_next(struct json_reader *reader, size_t *count)
{
    if (reader->is_bad || take(reader, ']'))
        return false;
    if ((*count)++ > 0)
        need(reader, ',');
    return !reader->is_bad && peek(reader) >= 0;
}

/* Bytes of the text that begins here, with its quotes; 0: it does not end. */
static size_t
measure_text(struct slice bytes)
{
    size_t at = 1;
    while (at < bytes.length && bytes.data[at] != '"')
        at += bytes.data[at] == '\\' ? 2 : 1;
    return at < bytes.length ? at + 1 : 0;
}

size_t
object_measure(struct slice bytes)
{
    int depth = 0;
    for (size_t at = 0; at < bytes.length;) {
        uint8_t byte = bytes.data[at];
        size_t length = byte == '"' ? measure_text(slice_skip(bytes, at)) : 1;
        depth += byte == '{' || byte == '[' ? 1 : byte == '}' || byte == ']' ? -1 : 0;
        at += length;
        if (length == 0 || depth > JSON_DEPTH_MAX)
            return 0;
        if (depth <= 0)
            return depth == 0 && (byte == '}' || byte == ']') ? at : 0;
    }
    return 0;
}

void
object_raw(struct json_reader *reader, struct slice *value)
{
    skip_blanks(reader);
    struct slice before = reader->left;
    if (take_word(reader, "null"))
        return;
    skip_value(reader, 1);
    if (!reader->is_bad)
        *value = slice_of(before.data, before.length - reader->left.length);
}

void
object_texts(struct json_reader *reader, const char ***values, size_t *count)
{
    vector_of(const char *) texts = {0};
    if (take_word(reader, "null"))
        return;
    need(reader, '[');
    bool is_empty = take(reader, ']');
    while (!is_empty && !reader->is_bad) {
        const char *text = read_text(reader);
        vector_push_in(&texts, reader->arena, text);
        if (!take(reader, ',')) {
            need(reader, ']');
            break;
        }
    }
    if (reader->is_bad)
        return;
    *values = texts.items;
    *count = texts.count;
}

/* --- the object ---- */

struct json_reader
object_begin(struct slice bytes, struct arena *arena)
{
    struct json_reader reader = {.arena = arena, .left = bytes};
    need(&reader, '{');
    return reader;
}

/* Takes `name` in its quotes if it comes next just so. */
static bool
take_name(struct json_reader *reader, const char *name)
{
    size_t length = strlen(name);
    if (peek(reader) != '"' || reader->left.length < length + 2)
        return false;
    const uint8_t *text = reader->left.data + 1;
    if (text[length] != '"' || memcmp(text, name, length) != 0)
        return false;
    reader->left = slice_skip(reader->left, length + 2);
    return true;
}

bool
object_next_likely(struct json_reader *reader, const char *likely, const char **name)
{
    if (reader->is_bad || take(reader, '}'))
        return false;
    if (reader->has_members)
        need(reader, ',');
    reader->has_members = true;
    *name = take_name(reader, likely) ? likely : read_text(reader);
    need(reader, ':');
    return !reader->is_bad;
}

bool
object_next(struct json_reader *reader, const char **name)
{
    return object_next_likely(reader, "", name);
}

bool
object_end(struct json_reader *reader)
{
    return peek(reader) < 0 && !reader->is_bad;
}
