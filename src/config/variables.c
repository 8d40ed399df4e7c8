/* variables.c - replaces ${NAME:default}. See variables.h.
 *
 * What a variable holds is taken as it is, not searched for more variables: the environment cannot
 * make this loop. Defaults are, and become shorter each time. */
#include "config/variables.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "config/config_yaml.h"

#define NESTING_MAX 8

struct replacing {
    const struct config_environment *environment;
    struct arena *arena;
    const char *config_error; /* NULL: none yet */
    unsigned depth;
};

static const char *
get_of_process(void *context, const char *name)
{
    return getenv(name);
}

const struct config_environment config_environment_of_process = {.get = get_of_process};

static const char *replace(struct replacing *replacing, struct slice text);

/* How far it is from behind a "${" to the brace that closes it; -1: none does. */
static ptrdiff_t
find_end(struct slice rest)
{
    unsigned open = 1;
    for (size_t i = 0; i < rest.length; i++) {
        if (rest.data[i] == '{' && i > 0 && rest.data[i - 1] == '$')
            open++;
        if (rest.data[i] == '}' && --open == 0)
            return (ptrdiff_t)i;
    }
    return -1;
}

static bool
is_name(const char *name)
{
    if (name[0] == '\0' || isdigit((unsigned char)name[0]))
        return false;
    for (const char *at = name; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) && *at != '_')
            return false;
    }
    return true;
}

/* What stands for the inside of "${...}"; NULL: a fault. */
static const char *
value_of(struct replacing *replacing, struct slice inside)
{
    struct arena *arena = replacing->arena;
    const uint8_t *colon = inside.length == 0 ? NULL : memchr(inside.data, ':', inside.length);
    size_t name_length = colon == NULL ? inside.length : (size_t)(colon - inside.data);
    const char *name = arena_text_of(arena, slice_of(inside.data, name_length));
    if (!is_name(name)) {
        replacing->config_error =
            arena_format(arena, "%s is not a valid variable name", config_quote(name, arena));
        return NULL;
    }
    const struct config_environment *environment = replacing->environment;
    const char *value =
        environment->get == NULL ? NULL : environment->get(environment->context, name);
    if (value != NULL)
        return value;
    if (colon == NULL) {
        replacing->config_error = arena_format(
            arena, "the variable %s is not set; ${%s:value} gives a default", name, name);
        return NULL;
    }
    struct slice standby = slice_skip(inside, name_length + 1);
    if (slice_equal(standby, slice_text("\"\"")))
        return "";
    return replace(replacing, standby);
}

static const char *
join(struct replacing *replacing, const char *before, struct slice text, const char *value)
{
    if (strlen(before) + text.length + strlen(value) <= VARIABLES_TEXT_MAX)
        return arena_format(replacing->arena, "%s%.*s%s", before, SLICE_ARG(text), value);
    replacing->config_error = "too long when its variables are replaced";
    return NULL;
}

/* The next "${" in the text; NULL: none. */
static const uint8_t *
find_start(struct slice text)
{
    return text.length < 2 ? NULL : memmem(text.data, text.length, "${", 2);
}

static const char *
replace(struct replacing *replacing, struct slice text)
{
    if (++replacing->depth > NESTING_MAX) {
        replacing->config_error = "variables nested too deeply";
        return NULL;
    }
    const char *done = "";
    const uint8_t *start;
    while (done != NULL && (start = find_start(text)) != NULL) {
        struct slice before = slice_of(text.data, (size_t)(start - text.data));
        struct slice rest = slice_skip(text, before.length + 2);
        if (before.length > 0 && start[-1] == '$') { /* $${: not a variable */
            before.length--;
            done = join(replacing, done, before, "${");
            text = rest;
            continue;
        }
        ptrdiff_t end = find_end(rest);
        if (end < 0) {
            replacing->config_error = arena_format(replacing->arena, "${%s has no closing brace",
                                                   arena_text_of(replacing->arena, rest));
            return NULL;
        }
        const char *value = value_of(replacing, slice_of(rest.data, (size_t)end));
        done = value == NULL ? NULL : join(replacing, done, before, value);
        text = slice_skip(rest, (size_t)end + 1);
    }
    replacing->depth--;
    return done == NULL ? NULL : join(replacing, done, text, "");
}

const char *
variables_replace(const char *text, const struct config_environment *environment,
                  struct arena *arena, const char **config_error)
{
    if (strstr(text, "${") == NULL)
        return text;
    struct replacing replacing = {.environment = environment, .arena = arena};
    const char *replaced = replace(&replacing, slice_text(text));
    check((replaced == NULL) == (replacing.config_error != NULL));
    if (replaced == NULL)
        *config_error = replacing.config_error;
    return replaced;
}
