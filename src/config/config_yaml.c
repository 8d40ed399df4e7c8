/* config_yaml.c - from libyaml's events to a tree. See config_yaml.h.
 *
 * libyaml allocates by itself and gives all back before config_read_yaml returns; nothing here
 * yields, so a simulated host cannot crash in between. */
#include "config/config_yaml.h"

#include <string.h>
#include <yaml.h>

#include "base/check.h"
#include "base/map.h"

#define QUOTE_MAX 60

struct yaml_reader {
    yaml_parser_t parser;
    struct slice yaml; /* the whole file */
    struct config_errors *errors;
    struct arena *arena;
    unsigned depth;
    size_t parts;
    bool is_broken; /* the rest cannot be read */
};

static struct config_part *read_part(struct yaml_reader *reader, const yaml_event_t *event);

static void
map_drop(struct map **map)
{
    map_free(*map);
}

static void
reader_break(struct yaml_reader *reader, int line, const char *sentence)
{
    if (!reader->is_broken)
        config_errors_add(reader->errors, line, NULL, "%s", sentence);
    reader->is_broken = true;
}

static int
event_line(const yaml_event_t *event)
{
    return (int)event->start_mark.line + 1;
}

/* Ends of lines before `offset`. */
static size_t
count_lines(struct slice yaml, size_t offset)
{
    size_t count = 0;
    for (size_t i = 0; i < offset && i < yaml.length; i++)
        count += yaml.data[i] == '\n';
    return count;
}

/* The next event; false: there is none because the file is broken. */
static bool
next_event(struct yaml_reader *reader, yaml_event_t *event)
{
    if (reader->is_broken)
        return false;
    if (yaml_parser_parse(&reader->parser, event))
        return true;
    const yaml_parser_t *parser = &reader->parser;
    check_that(parser->error != YAML_MEMORY_ERROR, "out of memory");
    size_t line = parser->problem_mark.line;
    if (parser->error == YAML_READER_ERROR) /* has an offset and no mark */
        line = count_lines(reader->yaml, parser->problem_offset);
    const char *problem = parser->problem == NULL ? "not YAML" : parser->problem;
    const char *sentence = problem;
    if (parser->context != NULL)
        sentence = arena_format(reader->arena, "%s %s", problem, parser->context);
    reader_break(reader, (int)line + 1, sentence);
    return false;
}

/* A scalar as a C string; NULL, and a fault, if it has a NUL byte. */
static const char *
scalar_text(struct yaml_reader *reader, const yaml_event_t *event)
{
    struct slice bytes = slice_of(event->data.scalar.value, event->data.scalar.length);
    if (memchr(bytes.data, '\0', bytes.length) == NULL)
        return arena_text_of(reader->arena, bytes);
    config_errors_add(reader->errors, event_line(event), NULL, "a text with a NUL byte");
    return NULL;
}

static struct config_part *
part_new(struct yaml_reader *reader, enum part_kind kind, const yaml_event_t *event)
{
    struct config_part *part = arena_make(reader->arena, struct config_part);
    part->kind = kind;
    part->line = event_line(event);
    part->text = "";
    if (++reader->parts > CONFIG_PARTS_MAX)
        reader_break(reader, part->line, "too many values in one file");
    return part;
}

static void
read_list(struct yaml_reader *reader, struct config_part *list)
{
    for (;;) {
        scoped(yaml_event_delete) yaml_event_t event = {0};
        if (!next_event(reader, &event) || event.type == YAML_SEQUENCE_END_EVENT)
            return;
        struct config_part *part = read_part(reader, &event);
        vector_push_in(&list->children, reader->arena, part);
    }
}

/* The name of an entry; NULL, and a fault, if it can be none. */
static const char *
read_name(struct yaml_reader *reader, const yaml_event_t *event, struct map *names)
{
    if (event->type != YAML_SCALAR_EVENT) {
        config_errors_add(reader->errors, event_line(event), NULL, "a key must be a plain text");
        read_part(reader, event); /* its inside is of no interest */
        return NULL;
    }
    const char *name = scalar_text(reader, event);
    if (name == NULL)
        return NULL;
    struct config_part *before = map_get(names, slice_text(name));
    if (before != NULL) {
        config_errors_add(reader->errors, event_line(event), name,
                          "duplicate key, first given in line %d", before->line);
        return NULL;
    }
    return name;
}

static void
read_section(struct yaml_reader *reader, struct config_part *section)
{
    scoped(map_drop) struct map *names = map_new();
    for (;;) {
        scoped(yaml_event_delete) yaml_event_t key = {0};
        scoped(yaml_event_delete) yaml_event_t value = {0};
        if (!next_event(reader, &key) || key.type == YAML_MAPPING_END_EVENT)
            return;
        const char *name = read_name(reader, &key, names);
        if (!next_event(reader, &value))
            return;
        struct config_part *part = read_part(reader, &value);
        if (name == NULL)
            continue;
        part->name = name;
        part->line = event_line(&key);
        map_put(names, slice_text(name), part);
        vector_push_in(&section->children, reader->arena, part);
    }
}

/* What begins with `event`, to its end. Never NULL. */
static struct config_part *
read_part(struct yaml_reader *reader, const yaml_event_t *event)
{
    struct config_part *part = part_new(reader, PART_TEXT, event);
    if (event->type == YAML_SCALAR_EVENT) {
        const char *text = scalar_text(reader, event);
        part->text = text == NULL ? "" : text;
        part->is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        return part;
    }
    if (event->type == YAML_ALIAS_EVENT) {
        config_errors_add(reader->errors, part->line, NULL,
                          "the alias *%s is not followed; write its value here",
                          (const char *)event->data.alias.anchor);
        return part;
    }
    check(event->type == YAML_SEQUENCE_START_EVENT || event->type == YAML_MAPPING_START_EVENT);
    if (++reader->depth > CONFIG_DEPTH_MAX) {
        reader_break(reader, part->line, "nested too deeply");
        return part;
    }
    part->kind = event->type == YAML_SEQUENCE_START_EVENT ? PART_LIST : PART_SECTION;
    if (part->kind == PART_LIST)
        read_list(reader, part);
    else
        read_section(reader, part);
    reader->depth--;
    return part;
}

/* The one document between the start and the end of the stream. */
static struct config_part *
read_document(struct yaml_reader *reader)
{
    struct config_part *root = NULL;
    for (;;) {
        scoped(yaml_event_delete) yaml_event_t event = {0};
        if (!next_event(reader, &event))
            return NULL;
        if (event.type == YAML_STREAM_END_EVENT)
            return root;
        bool is_frame = event.type == YAML_STREAM_START_EVENT ||
                        event.type == YAML_DOCUMENT_START_EVENT ||
                        event.type == YAML_DOCUMENT_END_EVENT;
        if (is_frame)
            continue;
        if (root != NULL)
            reader_break(reader, event_line(&event), "a second document; one is read");
        else
            root = read_part(reader, &event);
    }
}

struct config_part *
config_read_yaml(struct slice yaml, struct config_errors *errors, struct arena *arena)
{
    if (yaml.length > CONFIG_FILE_SIZE_MAX) {
        config_errors_add(errors, 0, NULL, "has %zu bytes; the most is %d", yaml.length,
                          CONFIG_FILE_SIZE_MAX);
        return NULL;
    }
    struct yaml_reader reader = {.yaml = yaml, .errors = errors, .arena = arena};
    check_that(yaml_parser_initialize(&reader.parser), "out of memory");
    yaml_parser_set_input_string(&reader.parser, yaml.length == 0 ? (const uint8_t *)"" : yaml.data,
                                 yaml.length);
    struct config_part *root = read_document(&reader);
    yaml_parser_delete(&reader.parser);
    if (reader.is_broken)
        return NULL;
    if (root == NULL || config_part_is_null(root)) {
        root = arena_make(arena, struct config_part);
        root->kind = PART_SECTION;
        root->line = 1;
    }
    if (root->kind != PART_SECTION) {
        config_errors_add(errors, root->line, NULL, "expected sections (name: value), got %s",
                          config_part_describe(root, arena));
        return NULL;
    }
    return root;
}

bool
config_part_is_null(const struct config_part *part)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    if (part->kind != PART_TEXT || part->is_quoted)
        return false;
    for (size_t i = 0; i < array_length(words); i++) {
        if (strcmp(part->text, words[i]) == 0)
            return true;
    }
    return false;
}

const char *
config_part_describe(const struct config_part *part, struct arena *arena)
{
    if (part->kind == PART_TEXT)
        return config_part_is_null(part) ? "nothing" : config_quote(part->text, arena);
    return part->kind == PART_LIST ? "a list" : "a section";
}

const char *
config_quote(const char *text, struct arena *arena)
{
    size_t length = strlen(text);
    if (length <= QUOTE_MAX)
        return arena_format(arena, "'%s'", text);
    int cut = QUOTE_MAX;
    while (cut > 0 && ((unsigned char)text[cut] & 0xc0) == 0x80) /* not within a character */
        cut--;
    return arena_format(arena, "'%.*s...'", cut, text);
}
