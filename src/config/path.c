/* path.c - paths against the static table. See path.h.
 *
 * The table is short and read at start only: it is searched from front to end. */
#include "config/path.h"

#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/slice.h"
#include "base/text.h"
#include "base/vector.h"

enum fit { FIT_NONE, FIT_SECTION, FIT_BELOW, FIT_WHOLE };

/* The first segment of *rest, which moves to the next one; *rest is NULL behind the last. */
static struct slice
next_segment(const char **rest)
{
    const char *start = *rest;
    const char *end = strchrnul(start, '.');
    *rest = *end == '\0' ? NULL : end + 1;
    return slice_of(start, (size_t)(end - start));
}

static bool
is_literally(struct slice segment, const char *text)
{
    return slice_equal(segment, slice_text(text));
}

/* How a path fits a declared one; *is_name: its last segment is a "*". */
static enum fit
fit_of(const char *declared, const char *path, bool *is_name)
{
    *is_name = false;
    while (declared != NULL && path != NULL) {
        struct slice wanted = next_segment(&declared);
        struct slice given = next_segment(&path);
        if (is_literally(wanted, "**"))
            return FIT_BELOW;
        *is_name = is_literally(wanted, "*");
        if (*is_name ? given.length == 0 : !slice_equal(wanted, given))
            return FIT_NONE;
    }
    if (path != NULL)
        return FIT_NONE;
    if (declared == NULL)
        return FIT_WHOLE;
    return strcmp(declared, "**") == 0 ? FIT_BELOW : FIT_SECTION;
}

/* A row that fits as a whole goes before one with keys below, and that before a "**". */
struct path_place
path_find(const char *path)
{
    struct path_place place = {.kind = PATH_UNKNOWN};
    for (size_t i = 0; i < static_key_count; i++) {
        const struct static_key *key = &static_keys[i];
        bool is_name;
        enum fit fit = fit_of(key->path, path, &is_name);
        if (fit == FIT_SECTION) {
            place.kind = PATH_SECTION;
            place.is_name = place.is_name || is_name;
        } else if (fit == FIT_WHOLE) {
            enum path_kind kind = key->rule.type == KEY_IGNORED ? PATH_IGNORED : PATH_KEY;
            return (struct path_place){.kind = kind, .is_name = is_name, .key = key};
        } else if (fit == FIT_BELOW && place.kind == PATH_UNKNOWN) {
            check_that(key->rule.type == KEY_IGNORED, "%s: only ignored keys end so", key->path);
            place = (struct path_place){.kind = PATH_IGNORED, .key = key};
        }
    }
    if (place.kind == PATH_SECTION)
        place.key = NULL;
    return place;
}

const char *
path_current(const char *path, struct arena *arena)
{
    for (size_t i = 0; i < static_alias_count; i++) {
        const struct static_alias *alias = &static_aliases[i];
        size_t length = strlen(alias->from);
        if (strncmp(path, alias->from, length) != 0)
            continue;
        if (path[length] == '\0' || path[length] == '.')
            path = arena_format(arena, "%s%s", alias->to, path + length);
    }
    return path;
}

/* The first segments of a declared path, as many as `path` has, with the names of `path` for "*";
 * NULL: it has not as many. */
static const char *
candidate_of(const char *declared, const char *path, struct arena *arena)
{
    const char *candidate = NULL;
    while (path != NULL) {
        if (declared == NULL)
            return NULL;
        struct slice wanted = next_segment(&declared);
        struct slice given = next_segment(&path);
        if (is_literally(wanted, "**"))
            return NULL;
        struct slice segment = is_literally(wanted, "*") ? given : wanted;
        candidate = candidate == NULL
                        ? arena_text_of(arena, segment)
                        : arena_format(arena, "%s.%.*s", candidate, SLICE_ARG(segment));
    }
    return candidate;
}

static const char *
last_segment(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot == NULL ? path : dot + 1;
}

/* A key of that name in another section: indented wrongly, or forgotten the section. */
static const char *
same_name_elsewhere(const char *path)
{
    const char *name = last_segment(path);
    for (size_t i = 0; i < static_key_count; i++) {
        const struct static_key *key = &static_keys[i];
        if (key->rule.type != KEY_IGNORED && strcasecmp(last_segment(key->path), name) == 0)
            return key->path;
    }
    return NULL;
}

const char *
path_nearest(const char *path, struct arena *arena)
{
    const char *nearest = NULL;
    size_t name_length = strlen(last_segment(path)); /* what is before it was right mostly */
    size_t nearest_distance = (name_length < 6 ? 2 : name_length / 3) + 1; /* too far: not meant */
    for (size_t i = 0; i < static_key_count; i++) {
        const char *candidate = candidate_of(static_keys[i].path, path, arena);
        if (candidate == NULL)
            continue;
        size_t distance = text_distance(slice_text(path), slice_text(candidate));
        if (distance < nearest_distance) {
            nearest = candidate;
            nearest_distance = distance;
        }
    }
    const char *elsewhere = same_name_elsewhere(path);
    return elsewhere != NULL && nearest_distance > 2 ? elsewhere : nearest;
}
