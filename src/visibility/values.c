/* values.c - the JSON bytes of custom attributes become typed values. See attributes.h.
 *
 * A value is a scalar or a list of scalars. What is nested deeper is refused before the JSON reader
 * sees it, for the reader calls itself once per level and runs on small stacks. */
#include <jansson.h>

#include "base/check.h"
#include "base/text.h"
#include "visibility/attributes.h"

#define MILLISECOND INT64_C(1000000)
#define SHOWN_MAX   ((size_t)2048) /* bytes of a bad value in its error: as much as one may have */

static void
json_drop(json_t **json)
{
    json_decref(*json);
}

/* At most one bracket open at any time, objects never? Brackets in texts do not count. */
static bool
is_flat(struct slice json)
{
    int depth = 0;
    bool is_in_text = false;
    for (size_t i = 0; i < json.length; i++) {
        uint8_t byte = json.data[i];
        if (is_in_text) {
            i += byte == '\\';
            is_in_text = byte != '"';
            continue;
        }
        is_in_text = byte == '"';
        depth += (byte == '[') - (byte == ']');
        if (byte == '{' || depth > 1)
            return false;
    }
    return true;
}

static bool
read_text(const json_t *json, struct arena *arena, struct attribute_value *value)
{
    if (!json_is_string(json))
        return false;
    struct slice text = slice_of(json_string_value(json), json_string_length(json));
    value->text = arena_slice(arena, text);
    return true;
}

static bool
read_time(const json_t *json, struct attribute_value *value)
{
    if (!json_is_string(json))
        return false;
    struct slice text = slice_of(json_string_value(json), json_string_length(json));
    return text_parse_moment(text, &value->integer);
}

static bool
read_scalar(enum attribute_type type, const json_t *json, struct arena *arena,
            struct attribute_value *value)
{
    *value = (struct attribute_value){.type = type};
    switch (type) {
    case ATTRIBUTE_STRING:
    case ATTRIBUTE_KEYWORD:
        return read_text(json, arena, value);
    case ATTRIBUTE_INT:
        value->integer = json_integer_value(json);
        return json_is_integer(json);
    case ATTRIBUTE_DOUBLE:
        value->number = json_number_value(json);
        return json_is_number(json);
    case ATTRIBUTE_BOOL:
        value->integer = json_is_true(json);
        return json_is_boolean(json);
    case ATTRIBUTE_DATETIME:
        return read_time(json, value);
    case ATTRIBUTE_TYPE_COUNT:
        break;
    }
    unreachable("attribute type %d", (int)type);
}

/* A null is not a value, alone or in a list. */
static bool
read_values(enum attribute_type type, const json_t *json, struct arena *arena,
            struct attribute_value **values, size_t *count)
{
    bool is_list = json_is_array(json);
    size_t size = is_list ? json_array_size(json) : 1;
    struct attribute_value *all = arena_zalloc(arena, size, sizeof *all);
    size_t filled = 0;
    for (size_t i = 0; i < size; i++) {
        const json_t *item = is_list ? json_array_get(json, i) : json;
        if (json_is_null(item))
            continue;
        if (!read_scalar(type, item, arena, &all[filled++]))
            return false;
    }
    *values = all;
    *count = filled;
    return true;
}

struct error *
attribute_read(const struct search_attribute *attribute, struct slice json, struct arena *arena,
               struct attribute_value **values, size_t *count)
{
    check(attribute->column == COLUMN_NONE);
    scoped(json_drop) json_t *root = NULL;
    if (json.length > 0 && is_flat(json))
        root = json_loadb((const char *)json.data, json.length, JSON_DECODE_ANY | JSON_ALLOW_NUL,
                          NULL);
    if (root != NULL && read_values(attribute->type, root, arena, values, count))
        return NULL;
    json.length = json.length < SHOWN_MAX ? json.length : SHOWN_MAX;
    return error_new(arena, ERR_BAD_REQUEST,
                     "%.*s is not a valid search attribute value for key %s", SLICE_ARG(json),
                     attribute->name);
}

int64_t
attribute_floor_time(int64_t nanoseconds)
{
    int64_t part = nanoseconds % MILLISECOND;
    bool is_below = part < 0 && nanoseconds >= INT64_MIN + MILLISECOND;
    return nanoseconds - part - (is_below ? MILLISECOND : 0);
}
