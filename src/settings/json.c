/* json.c - settings as JSON and back. See inside.h. */
#include "base/buffer.h"
#include "base/check.h"
#include "base/text.h"
#include "settings/inside.h"

#define DUMPED (JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS)

static int
append(const char *bytes, size_t size, void *buffer)
{
    buffer_append(buffer, slice_of(bytes, size));
    return 0;
}

const char *
settings_json_text(const json_t *json, struct arena *arena)
{
    struct buffer buffer = {0};
    int failed = json_dump_callback(json, append, &buffer, DUMPED);
    check(failed == 0);
    const char *text = arena_text_of(arena, buffer_slice(&buffer));
    buffer_free(&buffer);
    return text;
}

json_t *
settings_json_read(const char *text)
{
    return json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
}

struct error *
settings_json_of_constraints(const struct setting_constraint *constraints, size_t count,
                             struct arena *arena, json_t **json)
{
    *json = json_object();
    for (size_t i = 0; i < count; i++) {
        json_t *value = settings_json_read(constraints[i].json);
        if (value == NULL) {
            json_decref(*json);
            return error_new(arena, ERR_BAD_REQUEST, "constraint %s: its value is not JSON.",
                             constraints[i].name);
        }
        json_object_set_new(*json, constraints[i].name, value);
    }
    return NULL;
}

struct error *
settings_json_of(const struct setting *setting, struct arena *arena, json_t **json)
{
    *json = json_array();
    struct error *err = NULL;
    for (size_t i = 0; i < setting->count && err == NULL; i++) {
        const struct setting_entry *entry = &setting->entries[i];
        json_t *value = settings_json_read(entry->json), *constraints = NULL;
        if (value == NULL)
            err = error_new(arena, ERR_BAD_REQUEST, "%s: a value is not JSON.", setting->name);
        else
            err = settings_json_of_constraints(entry->constraints, entry->constraint_count, arena,
                                               &constraints);
        if (err == NULL)
            json_array_append_new(
                *json, json_pack("{s:o, s:o}", "value", value, "constraints", constraints));
        else
            json_decref(value);
    }
    if (err != NULL)
        json_decref(*json);
    return err;
}

static void
fill_entry(struct setting_entry *entry, const json_t *json, struct arena *arena)
{
    json_t *constraints = json_object_get(json, "constraints"), *value;
    const char *name;
    entry->json = settings_json_text(json_object_get(json, "value"), arena);
    entry->constraints =
        arena_zalloc(arena, json_object_size(constraints) + 1, sizeof *entry->constraints);
    json_object_foreach(constraints, name, value)
    {
        entry->constraints[entry->constraint_count++] =
            (struct setting_constraint){arena_text(arena, name), settings_json_text(value, arena)};
    }
}

void
settings_json_fill(struct setting *setting, const char *name, const json_t *array,
                   struct arena *arena)
{
    setting->name = arena_text(arena, name);
    setting->count = json_array_size(array);
    setting->entries = arena_zalloc(arena, setting->count + 1, sizeof *setting->entries);
    for (size_t i = 0; i < setting->count; i++)
        fill_entry(&setting->entries[i], json_array_get(array, i), arena);
}

/* As the file would have it: what looks like a number is one. */
static json_t *
map_json(const struct value_pair *pair)
{
    json_t *map = json_object();
    for (int64_t number; pair->name != NULL; pair++) {
        bool is_number = text_parse_int64(slice_text(pair->text), INT64_MIN, INT64_MAX, &number);
        json_object_set_new(map, pair->name,
                            is_number ? json_integer(number) : json_string(pair->text));
    }
    return map;
}

json_t *
settings_json_of_value(const struct value *value, struct arena *arena)
{
    switch (value->type) {
    case KEY_INTEGER:
        return json_integer(value->integer);
    case KEY_NUMBER:
        return json_real(value->number);
    case KEY_FLAG:
        return json_boolean(value->integer != 0);
    case KEY_DURATION:
        return json_string(text_format_duration(arena, value->integer));
    case KEY_TEXT:
        return json_string(value->text);
    case KEY_LIST: {
        json_t *list = json_array();
        for (const char *const *text = value->list; *text != NULL; text++)
            json_array_append_new(list, json_string(*text));
        return list;
    }
    case KEY_MAP:
        return map_json(value->map);
    case KEY_IGNORED:
        break;
    }
    unreachable("a dynamic key of type %d", (int)value->type);
}
