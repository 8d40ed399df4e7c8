/* settings.c - see settings.h. In memory all keys are one JSON text, {"key": [entries], …}, as a
 * file would have them. It is parsed when it is needed, and the tree never lives across a yield. */
#include "settings/settings.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/vector.h"
#include "cadenza/internal/v1/domains.pb-c.h"
#include "cadenza/internal/v1/error.pb-c.h"
#include "fiber/fiber.h"
#include "fiber/sync.h"
#include "route/ask.h"
#include "settings/inside.h"
#include "store/key.h"
#include "wire/names.h"

#define ORIGIN   "stored settings"
#define TEXT_MAX ((size_t)1 << 20)

struct settings {
    struct route_service service;
    struct store *store;
    struct dynamic *dynamic;
    struct fiber_mutex lock; /* one change at a time */
    uint64_t guard;
    char *text; /* name → array of {value, constraints} */
};

/* --- life ---- */

/* All keys; the caller drops the reference. */
static json_t *
read_keys(const struct settings *settings)
{
    json_t *keys = settings_json_read(settings->text);
    check(json_is_object(keys));
    return keys;
}

static void
keep_text(struct settings *settings, const char *text)
{
    size_t size = strlen(text) + 1;
    memory_free(settings->text);
    settings->text = memcpy(memory_alloc(size), text, size);
}

static struct error *
add_row(json_t *keys, const struct row *row, struct arena *arena)
{
    json_t *entries = settings_json_read(arena_text_of(arena, row->value));
    struct slice key = row->key, name;
    if (!json_is_array(entries) || !key_take_text(&key, arena, &name)) {
        json_decref(entries);
        return error_new(arena, ERR_CORRUPT, "a stored setting cannot be read");
    }
    json_object_set_new(keys, arena_text_of(arena, name), entries);
    return NULL;
}

/* Reads all rows and puts them in force. Yields. */
static struct error *
read_rows(struct settings *settings, struct arena *arena)
{
    struct rows rows;
    struct scan scan = {
        .partition = PARTITION_OF_SETTINGS, .kind = ROW_SETTING, .wants_guard = true};
    struct error *err = store_scan(settings->store, &scan, arena, &rows);
    if (err != NULL)
        return err;
    settings->guard = rows.guard;
    json_t *keys = json_object();
    for (size_t i = 0; i < rows.count && err == NULL; i++)
        err = add_row(keys, &rows.row[i], arena);
    if (err == NULL)
        keep_text(settings, settings_json_text(keys, arena));
    json_decref(keys);
    return err != NULL
               ? err
               : dynamic_load_stored(settings->dynamic, slice_text(settings->text), ORIGIN, arena);
}

struct error *
settings_open(struct store *store, struct dynamic *dynamic, struct arena *arena,
              struct settings **opened)
{
    check(route_is_here(owner_of_domains()));
    struct settings *settings = memory_zalloc(1, sizeof *settings);
    settings->service.context = settings;
    settings->store = store;
    settings->dynamic = dynamic;
    keep_text(settings, "{}");
    fiber_mutex_init(&settings->lock);
    struct error *err = read_rows(settings, arena);
    if (err != NULL) {
        settings_close(settings);
        return err;
    }
    *opened = settings;
    return NULL;
}

void
settings_close(struct settings *settings)
{
    if (settings == NULL)
        return;
    check(route_is_here(owner_of_domains()));
    memory_free(settings->text);
    memory_free(settings);
}

/* --- changing: where the settings live ---- */

struct setting_change {
    struct settings *settings;
    const char *name;
    const char *entries; /* the new ones; NULL: see `without` */
    const char *without; /* entries with these constraints go; NULL: all do */
    struct arena *arena;
};

static json_t *
entries_without(json_t *entries, const char *text)
{
    json_t *left = json_array(), *constraints = settings_json_read(text), *entry;
    size_t index;
    json_array_foreach(entries, index, entry)
    {
        if (!json_equal(json_object_get(entry, "constraints"), constraints))
            json_array_append(left, entry);
    }
    json_decref(constraints);
    return left;
}

/* All keys as they will be, and the row of the one that changes; NULL: it is deleted. */
static const char *
text_after(const struct setting_change *setting_change, const char **row)
{
    check(setting_change->entries == NULL || setting_change->without == NULL);
    json_t *keys = read_keys(setting_change->settings), *entries = NULL;
    if (setting_change->entries != NULL)
        entries = settings_json_read(setting_change->entries);
    else if (setting_change->without != NULL)
        entries =
            entries_without(json_object_get(keys, setting_change->name), setting_change->without);
    *row =
        json_array_size(entries) == 0 ? NULL : settings_json_text(entries, setting_change->arena);
    if (*row == NULL)
        json_object_del(keys, setting_change->name);
    else
        json_object_set(keys, setting_change->name, entries);
    const char *text = settings_json_text(keys, setting_change->arena);
    json_decref(entries);
    json_decref(keys);
    return text;
}

static struct error *
commit(struct setting_change *setting_change, const char *row)
{
    struct settings *settings = setting_change->settings;
    struct batch *batch =
        batch_new(setting_change->arena, PARTITION_OF_SETTINGS, settings->guard + 1);
    struct slice key = key_of_text(setting_change->name, setting_change->arena);
    if (row == NULL)
        batch_delete(batch, ROW_SETTING, key);
    else
        batch_put(batch, ROW_SETTING, key, slice_text(row));
    return store_commit(settings->store, batch, settings->guard, setting_change->arena);
}

/* Locked. */
static struct error *
change_keys(struct setting_change *setting_change)
{
    check(setting_change->settings->lock.owner != NULL);
    const char *row, *text = text_after(setting_change, &row);
    struct error *err = NULL;
    if (strlen(text) > TEXT_MAX)
        err = error_new(setting_change->arena, ERR_BAD_REQUEST, "%s: too much to store.",
                        setting_change->name);
    if (err == NULL)
        err = dynamic_check(slice_text(text), ORIGIN, setting_change->arena);
    if (err != NULL)
        return err;
    err = commit(setting_change, row);
    struct error *reading =
        read_rows(setting_change->settings, setting_change->arena); /* what is true now */
    return err != NULL ? err : reading;
}

/* JSON is never empty. */
static const char *
json_or_null(const char *json)
{
    return json[0] == '\0' ? NULL : json;
}

static struct error *
serve_change(void *context, struct owner owner, const void *argument, struct arena *arena,
             void *answer)
{
    struct settings *settings = context;
    const INTERNAL(SettingChange) *request = argument;
    struct setting_change setting_change = {.settings = settings,
                                            .name = request->name,
                                            .entries = json_or_null(request->entries),
                                            .without = json_or_null(request->without),
                                            .arena = arena};
    struct error *err = fiber_mutex_lock(&settings->lock, arena);
    if (err != NULL)
        return err;
    err = change_keys(&setting_change);
    fiber_mutex_unlock(&settings->lock);
    return err;
}

/* Lost: an operator looks, or sets it again. Never twice: somebody else may have set it in
 * between. */
static const struct route_question change_question = {
    .name = "settings.change",
    .request = INTERNAL_TYPE(setting_change),
    .answer = INTERNAL_TYPE(empty),
    .serve = serve_change,
};

static struct error *
check_name(const char *name, struct arena *arena)
{
    if (dynamic_find_key(name) != DYNAMIC_KEY_COUNT)
        return NULL;
    return error_new(arena, ERR_BAD_REQUEST,
                     "%s is not a dynamic setting of this server; cadenza config keys lists them.",
                     name);
}

static struct error *
ask_for_change(struct settings *settings, const INTERNAL(SettingChange) * request,
               struct arena *arena)
{
    INTERNAL(Empty) answer = INTERNAL_VALUE(EMPTY__INIT);
    struct error *err = check_name(request->name, arena);
    return err != NULL ? err
                       : route_ask(owner_of_domains(), &settings->service, &change_question,
                                   request, arena, &answer);
}

struct error *
settings_update(struct settings *settings, const struct setting *setting, struct arena *arena)
{
    INTERNAL(SettingChange) request = INTERNAL_VALUE(SETTING_CHANGE__INIT);
    json_t *entries = NULL;
    struct error *err = settings_json_of(setting, arena, &entries);
    if (err != NULL)
        return err;
    request.name = (char *)setting->name;
    request.entries = (char *)settings_json_text(entries, arena);
    json_decref(entries);
    return ask_for_change(settings, &request, arena);
}

struct error *
settings_restore(struct settings *settings, const char *name,
                 const struct setting_constraint *constraints, size_t count, struct arena *arena)
{
    INTERNAL(SettingChange) request = INTERNAL_VALUE(SETTING_CHANGE__INIT);
    json_t *without = NULL;
    struct error *err = NULL;
    if (constraints != NULL)
        err = settings_json_of_constraints(constraints, count, arena, &without);
    if (err != NULL)
        return err;
    request.name = (char *)name;
    if (without != NULL)
        request.without = (char *)settings_json_text(without, arena);
    json_decref(without);
    return ask_for_change(settings, &request, arena);
}

/* --- reading ---- */

static struct error *
serve_list(void *context, struct owner owner, const void *argument, struct arena *arena,
           void *result)
{
    const struct settings *settings = context;
    const INTERNAL(SettingsQuery) *query = argument;
    INTERNAL(SettingsText) *answer = result;
    if (query->name[0] == '\0') {
        answer->text = arena_text(arena, settings->text);
        return NULL;
    }
    json_t *keys = read_keys(settings), *one = json_object();
    json_t *entries = json_object_get(keys, query->name);
    if (entries != NULL)
        json_object_set(one, query->name, entries);
    answer->text = (char *)settings_json_text(one, arena);
    json_decref(one);
    json_decref(keys);
    return NULL;
}

/* Reads. Lost: the operator asks again. */
static const struct route_question list_question = {
    .name = "settings.list",
    .request = INTERNAL_TYPE(settings_query),
    .answer = INTERNAL_TYPE(settings_text),
    .serve = serve_list,
    .may_come_twice = true,
};

static int
compare_names(const void *one, const void *other)
{
    return strcmp(((const struct setting *)one)->name, ((const struct setting *)other)->name);
}

struct error *
settings_list(struct settings *settings, const char *name, struct arena *arena,
              struct setting **found, size_t *count)
{
    INTERNAL(SettingsQuery) query = INTERNAL_VALUE(SETTINGS_QUERY__INIT);
    INTERNAL(SettingsText) answer = INTERNAL_VALUE(SETTINGS_TEXT__INIT);
    query.name = (char *)name;
    struct error *err =
        route_ask(owner_of_domains(), &settings->service, &list_question, &query, arena, &answer);
    if (err != NULL)
        return err;
    json_t *keys = settings_json_read(answer.text), *array;
    const char *key;
    *found = arena_zalloc(arena, json_object_size(keys) + 1, sizeof **found);
    *count = 0;
    json_object_foreach(keys, key, array)
        settings_json_fill(&(*found)[(*count)++], key, array, arena);
    json_decref(keys);
    qsort(*found, *count, sizeof **found, compare_names);
    return NULL;
}

/* A constraint in the form that dynamic_filter_set takes: texts without quotes. */
static const char *
plain_text(const char *json, struct arena *arena)
{
    json_t *value = settings_json_read(json);
    const char *text = arena_text(arena, json_is_string(value) ? json_string_value(value) : json);
    json_decref(value);
    return text;
}

struct error *
settings_get(const struct settings *settings, const char *name,
             const struct setting_constraint *constraints, size_t count, struct arena *arena,
             const char **json)
{
    struct error *err = check_name(name, arena);
    struct dynamic_filter filter = DYNAMIC_NO_FILTER;
    for (size_t i = 0; i < count && err == NULL; i++)
        if (!dynamic_filter_set(&filter, constraints[i].name,
                                plain_text(constraints[i].json, arena)))
            err = error_new(arena, ERR_BAD_REQUEST,
                            "%s is not a constraint, or its value is not valid.",
                            constraints[i].name);
    if (err != NULL)
        return err;
    json_t *value = settings_json_of_value(
        dynamic_value(settings->dynamic, dynamic_find_key(name), &filter), arena);
    *json = settings_json_text(value, arena);
    json_decref(value);
    return NULL;
}
