/* config.c - a set of static settings: keeping what was given, reading it with defaults. See
 * config.h. */
#include "config/config.h"

#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "config/config_inside.h"

struct config *
config_default(void)
{
    struct arena *arena = arena_new(0);
    struct config *config = arena_make(arena, struct config);
    config->arena = arena;
    config->given = map_new();
    return config;
}

void
config_free(struct config *config)
{
    if (config == NULL)
        return;
    map_free(config->given);
    arena_free(config->arena);
}

void
config_put(struct config *config, const char *path, struct value value, bool is_old_name)
{
    check_that(path_find(path).kind == PATH_KEY, "%s is not declared", path);
    struct config_given *given = arena_make(config->arena, struct config_given);
    *given = (struct config_given){.value = value, .is_old_name = is_old_name};
    map_put(config->given, slice_text(path), given);
}

void
config_put_name(struct config *config, const char *section, const char *name)
{
    check(name[0] != '\0' && strchr(name, '.') == NULL);
    vector_each(known, &config->names) {
        if (strcmp(known->section, section) == 0 && strcmp(known->name, name) == 0)
            return;
    }
    vector_push_in(&config->names, config->arena,
                   (struct config_name){.section = arena_text(config->arena, section),
                                        .name = arena_text(config->arena, name)});
}

/* Keeps every name of the user's choice that `path` has where `declared` has a "*". */
static void
config_put_names(struct config *config, const char *declared, const char *path)
{
    const char *at = path;
    for (;;) {
        size_t length = strcspn(at, ".");
        if (strncmp(declared, "*", strcspn(declared, ".")) == 0 && at > path) {
            struct slice section = slice_of(path, (size_t)(at - path) - 1);
            config_put_name(config, arena_text_of(config->arena, section),
                            arena_text_of(config->arena, slice_of(at, length)));
        }
        declared += strcspn(declared, ".");
        at += length;
        if (*at == '\0' || *declared == '\0')
            return;
        at++;
        declared++;
    }
}

const char *
config_suggestion(const char *path, struct arena *arena)
{
    const char *nearest = path_nearest(path, arena);
    return nearest == NULL ? "" : arena_format(arena, "; did you mean %s?", nearest);
}

struct error *
config_set(struct config *config, const char *path, const char *value, struct arena *arena)
{
    const char *current = path_current(path, arena);
    struct path_place place = path_find(current);
    if (place.kind == PATH_IGNORED)
        return error_new(arena, ERR_BAD_REQUEST, "%s: is ignored by this server: %s", path,
                         place.key->sentence);
    if (place.kind != PATH_KEY)
        return error_new(arena, ERR_BAD_REQUEST, "%s: there is no such key%s", path,
                         config_suggestion(current, arena));
    struct value read;
    const char *config_error = value_of_text(&place.key->rule, value, config->arena, &read);
    if (config_error != NULL)
        return error_new(arena, ERR_BAD_REQUEST, "%s: %s", path, config_error);
    config_put(config, current, read, false);
    config_put_names(config, place.key->path, current);
    return NULL;
}

void
config_log_ignored(const struct config *config, const struct log *log)
{
    for (size_t i = 0; i < config->ignored.count; i++) {
        const struct config_ignored *ignored = &config->ignored.items[i];
        log_warn(log, "a setting of Cadence is ignored", log_text("key", ignored->path),
                 log_number("line", ignored->line), log_text("reason", ignored->reason));
    }
}

/* The row of a path that our own code names: it must be there. */
static const struct static_key *
declared_key(const char *path, enum key_type type)
{
    struct path_place place = path_find(path);
    check_that(place.kind == PATH_KEY, "%s is not declared", path);
    check_that(place.key->rule.type == type, "%s is declared with another type", path);
    return place.key;
}

static const struct config_given *
find_given(const struct config *config, const char *path)
{
    return map_get(config->given, slice_text(path));
}

/* The value given or the default of the table, parsed into `arena` (NULL: it needs none). */
static struct value
read_value(const struct config *config, const char *path, enum key_type type, struct arena *arena)
{
    const struct static_key *key = declared_key(path, type);
    const struct config_given *given = find_given(config, path);
    if (given != NULL) {
        check(given->value.type == type);
        return given->value;
    }
    struct value value = {.type = type, .text = key->default_value};
    if (type != KEY_TEXT) {
        const char *config_error = value_of_text(&key->rule, key->default_value, arena, &value);
        check_that(config_error == NULL, "default of %s: %s", path, config_error);
    }
    return value;
}

const char *
config_text(const struct config *config, const char *path)
{
    return read_value(config, path, KEY_TEXT, NULL).text;
}

int64_t
config_integer(const struct config *config, const char *path)
{
    return read_value(config, path, KEY_INTEGER, NULL).integer;
}

bool
config_flag(const struct config *config, const char *path)
{
    return read_value(config, path, KEY_FLAG, NULL).integer != 0;
}

int64_t
config_duration(const struct config *config, const char *path)
{
    return read_value(config, path, KEY_DURATION, NULL).integer;
}

bool
config_is_given(const struct config *config, const char *path)
{
    check_that(path_find(path).kind == PATH_KEY, "%s is not declared", path);
    return find_given(config, path) != NULL;
}

const char *const *
config_list(const struct config *config, const char *path, struct arena *arena)
{
    return read_value(config, path, KEY_LIST, arena).list;
}

const char *const *
config_names(const struct config *config, const char *path, struct arena *arena)
{
    check_that(path_find(arena_format(arena, "%s.*", path)).is_name, "%s has no names below", path);
    vector_of(const char *) names = {0};
    for (size_t i = 0; i < config->names.count; i++) {
        const struct config_name *known = &config->names.items[i];
        if (strcmp(known->section, path) == 0)
            vector_push_in(&names, arena, known->name);
    }
    vector_push_in(&names, arena, NULL);
    return names.items;
}
