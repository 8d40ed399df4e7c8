/* config_parse.c - from a YAML tree to settings, with all faults of a file together. See config.h.
 *
 * The tree is walked with two paths: the one that was given, for people, and the one after old
 * names were replaced, for the table. */
#include <string.h>

#include "base/check.h"
#include "config/config_errors.h"
#include "config/config_inside.h"
#include "config/variables.h"

struct config_parser {
    struct config *config;
    const struct config_environment *environment;
    struct config_errors errors;
    struct arena *arena; /* for the tree and paths; freed when all is read */
};

struct key_location {
    const char *given; /* as written; "" at the root */
    const char *path;  /* with the names of now */
};

static void read_entries(struct config_parser *parser, struct key_location location,
                         const struct config_part *section);

static const char *
path_join(const char *section, const char *name, struct arena *arena)
{
    return section[0] == '\0' ? name : arena_format(arena, "%s.%s", section, name);
}

/* Replaces the variables of a text, or of every text of a list. False: a fault. */
static bool
replace_variables(struct config_parser *parser, struct key_location location,
                  struct config_part *part)
{
    bool is_good = true;
    for (size_t i = 0; i < part->children.count && part->kind == PART_LIST; i++)
        is_good = replace_variables(parser, location, part->children.items[i]) && is_good;
    if (part->kind != PART_TEXT)
        return is_good;
    const char *config_error = NULL;
    const char *replaced =
        variables_replace(part->text, parser->environment, parser->arena, &config_error);
    if (replaced == NULL) {
        config_errors_add(&parser->errors, part->line, location.given, "%s", config_error);
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
read_key(struct config_parser *parser, struct key_location location, const struct static_key *key,
         struct config_part *part)
{
    if (!replace_variables(parser, location, part) || is_nothing(&key->rule, part))
        return;
    struct value value;
    const char *config_error = value_of_part(&key->rule, part, parser->config->arena, &value);
    if (config_error != NULL) {
        bool is_refusal = key->rule.type == KEY_FLAG && key->rule.high == 0; /* say why, too */
        config_errors_add(&parser->errors, part->line, location.given, "%s%s%s", config_error,
                          is_refusal ? ": " : "", is_refusal ? key->sentence : "");
        return;
    }
    bool is_old_name = strcmp(location.given, location.path) != 0;
    const struct config_given *before = map_get(parser->config->given, slice_text(location.path));
    if (before != NULL && is_old_name && before->is_old_name)
        config_errors_add(&parser->errors, part->line, location.given, "gives %s a second time",
                          location.path);
    if (before == NULL || !is_old_name)
        config_put(parser->config, location.path, value, is_old_name);
}

static void
note_ignored(struct config_parser *parser, struct key_location location,
             const struct static_key *key, int line)
{
    struct arena *arena = parser->config->arena;
    struct config_ignored ignored = {
        .path = arena_text(arena, location.given), .reason = key->sentence, .line = line};
    vector_push_in(&parser->config->ignored, arena, ignored);
}

static void
read_section(struct config_parser *parser, struct key_location location,
             const struct config_part *part)
{
    if (config_part_is_null(part))
        return;
    if (part->kind == PART_SECTION)
        read_entries(parser, location, part);
    else
        config_errors_add(&parser->errors, part->line, location.given, "expected a section, got %s",
                          config_part_describe(part, parser->arena));
}

static void
read_entry(struct config_parser *parser, struct key_location parent, struct config_part *part)
{
    check(part->name != NULL && part->line > 0);
    struct arena *arena = parser->arena;
    struct key_location location = {.given = path_join(parent.given, part->name, arena)};
    if (part->name[0] == '\0' || strchr(part->name, '.') != NULL) {
        config_errors_add(
            &parser->errors, part->line, location.given,
            "a name is not empty and holds no dot; sections are written below each other");
        return;
    }
    location.path = path_current(path_join(parent.path, part->name, arena), arena);
    struct path_place found = path_find(location.path);
    if (found.is_name)
        config_put_name(parser->config, parent.path, part->name);
    switch (found.kind) {
    case PATH_KEY:
        read_key(parser, location, found.key, part);
        return;
    case PATH_IGNORED:
        note_ignored(parser, location, found.key, part->line);
        return;
    case PATH_SECTION:
        read_section(parser, location, part);
        return;
    case PATH_UNKNOWN:
        config_errors_add(&parser->errors, part->line, location.given, "there is no such key%s",
                          config_suggestion(location.path, arena));
    }
}

static void
read_entries(struct config_parser *parser, struct key_location location,
             const struct config_part *section)
{
    check(section->kind == PART_SECTION);
    for (size_t i = 0; i < section->children.count; i++)
        read_entry(parser, location, section->children.items[i]);
}

struct error *
config_parse(struct slice yaml, const char *file, const struct config_environment *environment,
             struct arena *arena, struct config **config)
{
    scoped(arena_drop) struct arena *scratch = arena_new(0);
    struct config_parser parser = {
        .config = config_default(),
        .environment = environment,
        .errors = {.file = file, .arena = arena},
        .arena = scratch,
    };
    const struct config_part *root = config_read_yaml(yaml, &parser.errors, scratch);
    if (root != NULL)
        read_entries(&parser, (struct key_location){.given = "", .path = ""}, root);
    struct error *err = config_errors_join(&parser.errors);
    if (err != NULL) {
        config_free(parser.config);
        return err;
    }
    *config = parser.config;
    return NULL;
}
