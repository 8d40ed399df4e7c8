/* mapping.c - see mapping.h. */
#include "entity/mapping.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vector.h"

/* Grows while it is read. */
struct mapping_reader {
    struct arena *arena;
    vector_of(struct mapping_entry) entries;
};

static int
compare_entries(const void *one, const void *other)
{
    const struct mapping_entry *left = one, *right = other;
    return strcmp(left->key, right->key);
}

/* In order, and each key once. */
static struct error *
finish(struct mapping_reader *mapping_reader, struct mapping *mapping)
{
    *mapping = (struct mapping){mapping_reader->entries.items, mapping_reader->entries.count};
    if (mapping->count == 0)
        return NULL;
    qsort(mapping->entries, mapping->count, sizeof *mapping->entries, compare_entries);
    for (size_t i = 1; i < mapping->count; i++) {
        if (strcmp(mapping->entries[i - 1].key, mapping->entries[i].key) == 0)
            return error_new(mapping_reader->arena, ERR_BAD_REQUEST, "the key '%s' occurs twice",
                             mapping->entries[i].key);
    }
    return NULL;
}

const struct mapping_entry *
mapping_find(const struct mapping *mapping, const char *key)
{
    struct mapping_entry wanted = {.key = key};
    if (mapping->count == 0)
        return NULL;
    return bsearch(&wanted, mapping->entries, mapping->count, sizeof *mapping->entries,
                   compare_entries);
}

/* --- JSON ------------------------------------------------------------------------------------- */

struct error *
mapping_read_object(struct slice object, struct arena *arena, struct mapping *mapping)
{
    struct mapping_reader mapping_reader = {.arena = arena};
    struct json_reader reader = object_begin(object, arena);
    const char *key = NULL;
    while (object_next(&reader, &key)) {
        const char *region = NULL;
        if (!object_null(&reader))
            object_text(&reader, &region);
        if (key[0] == '\0' || (region != NULL && region[0] == '\0'))
            return error_new(arena, ERR_BAD_REQUEST, "the key or the region of '%s' is empty", key);
        vector_push_in(&mapping_reader.entries, arena, (struct mapping_entry){key, region});
    }
    if (!object_end(&reader))
        return error_new(arena, ERR_BAD_REQUEST,
                         "it is not a JSON object of texts without \\u0000, {\"key\": "
                         "\"region\", ...}");
    return finish(&mapping_reader, mapping);
}

/* --- lines ------------------------------------------------------------------------------------ */

static struct error *
fault_at(const struct mapping_reader *mapping_reader, size_t line, const char *what)
{
    return error_new(mapping_reader->arena, ERR_BAD_REQUEST, "line %zu: %s", line, what);
}

static bool
is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

static struct slice
trim(struct slice text)
{
    while (text.length > 0 && is_blank(text.data[0]))
        text = slice_of(text.data + 1, text.length - 1);
    while (text.length > 0 && is_blank(text.data[text.length - 1]))
        text.length--;
    return text;
}

/* A text in quotes, or bare up to `end` (or a comment); *rest is what follows. False: it is
 * neither.
 */
static bool
take_scalar(struct slice line, uint8_t end, struct slice *text, struct slice *rest)
{
    bool is_quoted = line.length > 0 && (line.data[0] == '"' || line.data[0] == '\'');
    size_t at = is_quoted ? 1 : 0, from = at;
    while (at < line.length) {
        uint8_t byte = line.data[at];
        bool is_comment = byte == '#' && at > 0 && is_blank(line.data[at - 1]);
        bool is_end = byte == end && (at + 1 == line.length || is_blank(line.data[at + 1]));
        if (is_quoted ? byte == line.data[0] : is_end || is_comment)
            break;
        if (is_quoted && byte == '\\')
            return false; /* escapes are left to JSON */
        at++;
    }
    if (is_quoted && at == line.length)
        return false;
    *text = slice_of(line.data + from, at - from);
    *rest = trim(slice_of(line.data + at + is_quoted, line.length - at - is_quoted));
    if (!is_quoted)
        *text = trim(*text);
    size_t bad_offset = 0;
    return text->length > 0 && text_is_utf8(*text, &bad_offset);
}

static bool
begins_something_else(struct slice line)
{
    return line.length > 0 && strchr("-[]{}&*!|>%@`?,", line.data[0]) != NULL;
}

static struct error *
read_line(struct mapping_reader *mapping_reader, struct slice line, size_t number)
{
    struct slice key, region, rest;
    if (is_blank(line.data[0]) || begins_something_else(line))
        return fault_at(mapping_reader, number, "only 'key: region' is read, without indentation");
    if (!take_scalar(line, ':', &key, &rest) || rest.length == 0 || rest.data[0] != ':')
        return fault_at(mapping_reader, number, "'key: region' is expected");
    rest = trim(slice_of(rest.data + 1, rest.length - 1));
    if (begins_something_else(rest) || rest.length == 0 || rest.data[0] == '#')
        return fault_at(mapping_reader, number, "the region is missing, or is not plain text");
    if (!take_scalar(rest, '\0', &region, &rest) || (rest.length > 0 && rest.data[0] != '#'))
        return fault_at(mapping_reader, number, "the region is not plain text");
    if (memchr(line.data, '\0', line.length) != NULL)
        return fault_at(mapping_reader, number, "there is a NUL byte");
    struct arena *arena = mapping_reader->arena;
    struct mapping_entry entry = {
        arena_format(arena, "%.*s", (int)key.length, (const char *)key.data),
        arena_format(arena, "%.*s", (int)region.length, (const char *)region.data)};
    vector_push_in(&mapping_reader->entries, arena, entry);
    return NULL;
}

static struct error *
read_lines(struct slice text, struct arena *arena, struct mapping *mapping)
{
    struct mapping_reader mapping_reader = {.arena = arena};
    for (size_t number = 1; text.length > 0; number++) {
        const uint8_t *newline = memchr(text.data, '\n', text.length);
        size_t length = newline == NULL ? text.length : (size_t)(newline - text.data);
        struct slice line = slice_of(text.data, length);
        size_t step = newline == NULL ? length : length + 1;
        text = slice_of(text.data + step, text.length - step);
        struct slice content = trim(line);
        bool is_empty = content.length == 0 || content.data[0] == '#' ||
                        slice_equal(content, slice_text("---"));
        struct error *err = is_empty ? NULL : read_line(&mapping_reader, line, number);
        if (err != NULL)
            return err;
    }
    return finish(&mapping_reader, mapping);
}

struct error *
mapping_read(struct slice text, struct arena *arena, struct mapping *mapping)
{
    check(text.length <= MAPPING_SIZE_MAX);
    struct slice start = text;
    while (start.length > 0 && (is_blank(start.data[0]) || start.data[0] == '\n'))
        start = slice_of(start.data + 1, start.length - 1);
    if (start.length > 0 && start.data[0] == '{')
        return mapping_read_object(start, arena, mapping);
    return read_lines(text, arena, mapping);
}
