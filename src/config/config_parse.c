/* config_parse.c - from a YAML tree to settings, with all faults of a file together. See config.h.
 *
 * The tree is walked with two paths: the one that was given, for people, and the one after old
 * names were replaced, for the table. */
#include <string.h>

#include "base/check.h"
#include "config/config_inside.h"
#include "config/faults.h"
#include "config/variables.h"

struct reading {
    struct config *config;
    const struct config_environment *environment;
    struct faults faults;
    struct arena *arena; /* for the tree and paths; gone when all is read */
};

struct place {
    const char *given; /* as written; "" at the root */
    const char *path;  /* with the names of now */
};

static void read_entries(struct reading *reading, struct place place,
                         const struct config_part *section);

static const char *
path_join(const char *section, const char *name, struct arena *arena)
{
    return section[0] == '\0' ? name : arena_format(arena, "%s.%s", section, name);
}

/* Replaces the variables of a text, or of every text of a list. False: a fault. */
static bool
replace_variables(struct reading *reading, struct place place, struct config_part *part)
{
    bool is_good = true;
    for (size_t i = 0; i < part->children.count && part->kind == PART_LIST; i++)
        is_good = replace_variables(reading, place, part->children.items[i]) && is_good;
    if (part->kind != PART_TEXT)
        return is_good;
    const char *fault = NULL;
    const char *replaced =
        variables_replace(part->text, reading->environment, reading->arena, &fault);
    if (replaced == NULL) {
        faults_add(&reading->faults, part->line, place.given, "%s", fault);
        return false;
    }
    part->text = replaced;
    return true;
}

/* Was nothing said? An empty text says something only where a text is wanted. */
static bool
is_nothing(const struct key_rule *rule, const struct config_part *part)
{
    bool is_free_text = rule->type == KEY_TEXT && rule->words == NULL;
    return config_part_is_null(part) ||
           (part->kind == PART_TEXT && part->text[0] == '\0' && !is_free_text);
}

static void
read_key(struct reading *reading, struct place place, const struct static_key *key,
         struct config_part *part)
{
    if (!replace_variables(reading, place, part) || is_nothing(&key->rule, part))
        return;
    struct value value;
    const char *fault = value_of_part(&key->rule, part, reading->config->arena, &value);
    if (fault != NULL) {
        bool is_refusal = key->rule.type == KEY_FLAG && key->rule.high == 0; /* say why, too */
        faults_add(&reading->faults, part->line, place.given, "%s%s%s", fault,
                   is_refusal ? ": " : "", is_refusal ? key->sentence : "");
        return;
    }
    bool is_old_name = strcmp(place.given, place.path) != 0;
    const struct config_given *before = map_get(reading->config->given, slice_text(place.path));
    if (before != NULL && is_old_name && before->is_old_name)
        faults_add(&reading->faults, part->line, place.given, "gives %s a second time", place.path);
    if (before == NULL || !is_old_name)
        config_put(reading->config, place.path, value, is_old_name);
}

static void
note_ignored(struct reading *reading, struct place place, const struct static_key *key, int line)
{
    struct arena *arena = reading->config->arena;
    struct config_ignored ignored = {
        .path = arena_text(arena, place.given), .reason = key->sentence, .line = line};
    vector_push_in(&reading->config->ignored, arena, ignored);
}

static void
read_section(struct reading *reading, struct place place, const struct config_part *part)
{
    if (config_part_is_null(part))
        return;
    if (part->kind == PART_SECTION)
        read_entries(reading, place, part);
    else
        faults_add(&reading->faults, part->line, place.given, "expected a section, got %s",
                   config_part_describe(part, reading->arena));
}

static void
read_entry(struct reading *reading, struct place parent, struct config_part *part)
{
    check(part->name != NULL && part->line > 0);
    struct arena *arena = reading->arena;
    struct place place = {.given = path_join(parent.given, part->name, arena)};
    if (part->name[0] == '\0' || strchr(part->name, '.') != NULL) {
        faults_add(&reading->faults, part->line, place.given,
                   "a name is not empty and holds no dot; sections are written below each other");
        return;
    }
    place.path = path_current(path_join(parent.path, part->name, arena), arena);
    struct path_place found = path_find(place.path);
    if (found.is_name)
        config_put_name(reading->config, parent.path, part->name);
    switch (found.kind) {
    case PATH_KEY:
        read_key(reading, place, found.key, part);
        return;
    case PATH_IGNORED:
        note_ignored(reading, place, found.key, part->line);
        return;
    case PATH_SECTION:
        read_section(reading, place, part);
        return;
    case PATH_UNKNOWN:
        faults_add(&reading->faults, part->line, place.given, "there is no such key%s",
                   config_suggestion(place.path, arena));
    }
}

static void
read_entries(struct reading *reading, struct place place, const struct config_part *section)
{
    check(section->kind == PART_SECTION);
    for (size_t i = 0; i < section->children.count; i++)
        read_entry(reading, place, section->children.items[i]);
}

struct error *
config_parse(struct slice yaml, const char *file, const struct config_environment *environment,
             struct arena *arena, struct config **config)
{
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    struct reading reading = {
        .config = config_default(),
        .environment = environment,
        .faults = {.file = file, .arena = arena},
        .arena = scratch,
    };
    const struct config_part *root = config_read_yaml(yaml, &reading.faults, scratch);
    if (root != NULL)
        read_entries(&reading, (struct place){.given = "", .path = ""}, root);
    struct error *err = faults_error(&reading.faults);
    if (err != NULL) {
        config_free(reading.config);
        return err;
    }
    *config = reading.config;
    return NULL;
}
