/* value.c - reads values by their rules. See value.h. */
#include "config/value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/text.h"

const char *
value_wanted(const struct key_rule *rule, struct arena *arena)
{
    switch (rule->type) {
    case KEY_TEXT:
        return rule->words == NULL ? "a text" : arena_format(arena, "one of: %s", rule->words);
    case KEY_INTEGER:
        if (rule->low == INT64_MIN && rule->high == INT64_MAX)
            return "an integer";
        if (rule->high == INT64_MAX)
            return arena_format(arena, "an integer from %lld up", (long long)rule->low);
        return arena_format(arena, "an integer from %lld to %lld", (long long)rule->low,
                            (long long)rule->high);
    case KEY_NUMBER:
        return "a number";
    case KEY_FLAG:
        return rule->high == 0 ? "false" : "true or false";
    case KEY_DURATION:
        return "a duration such as 10s or 1h30m";
    case KEY_LIST:
        return "a list of texts";
    case KEY_MAP:
        return "a section of names and texts";
    case KEY_IGNORED:
        break;
    }
    unreachable("nothing is wanted of an ignored key");
}

static bool
read_flag(const struct key_rule *rule, const char *text, int64_t *flag)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (size_t i = 0; i < array_length(words); i++) {
        if (strcasecmp(text, words[i]) == 0 && (int64_t)(i % 2) <= rule->high) {
            *flag = (int64_t)(i % 2);
            return true;
        }
    }
    return false;
}

static bool
read_duration(const struct key_rule *rule, const char *text, int64_t *duration)
{
    int64_t nanoseconds;
    if (!text_parse_duration(slice_text(text), &nanoseconds))
        return false;
    if (nanoseconds < rule->low || nanoseconds > rule->high)
        return false;
    *duration = nanoseconds;
    return true;
}

static bool
read_number(const char *text, double *number)
{
    if (text[0] == '\0' || strspn(text, "0123456789+-.eE") != strlen(text)) /* no inf, no hex */
        return false;
    char *end;
    double parsed = strtod(text, &end);
    if (*end != '\0' || !isfinite(parsed))
        return false;
    *number = parsed;
    return true;
}

/* The next word at *rest, which moves behind it; empty at the end. */
static struct slice
next_word(const char **rest, char separator)
{
    const char *start = *rest;
    const char *end = strchrnul(start, separator);
    *rest = *end == '\0' ? end : end + 1;
    return slice_of(start, (size_t)(end - start));
}

/* The word of the rule that `text` is, whatever its case; NULL: none. */
static const char *
read_word(const struct key_rule *rule, const char *text, struct arena *arena)
{
    for (const char *rest = rule->words; *rest != '\0';) {
        const char *word = arena_text_of(arena, next_word(&rest, ' '));
        if (strcasecmp(word, text) == 0)
            return word;
    }
    return NULL;
}

/* "a,b" as a list; "" is the empty one. */
static const char *const *
split_list(const char *text, struct arena *arena)
{
    vector_of(const char *) list = {0};
    for (const char *rest = text; *rest != '\0';)
        vector_push_in(&list, arena, arena_text_of(arena, next_word(&rest, ',')));
    vector_push_in(&list, arena, NULL);
    return list.items;
}

/* Only the empty one has a form as a text. */
static bool
read_map(const char *text, struct arena *arena, struct value *value)
{
    value->map = arena_zalloc(arena, 1, sizeof *value->map);
    return text[0] == '\0';
}

static bool
read_text(const struct key_rule *rule, const char *text, struct arena *arena, struct value *value)
{
    switch (rule->type) {
    case KEY_TEXT:
        value->text = rule->words == NULL ? arena_text(arena, text) : read_word(rule, text, arena);
        return value->text != NULL;
    case KEY_INTEGER:
        return text_parse_int64(slice_text(text), rule->low, rule->high, &value->integer);
    case KEY_NUMBER:
        return read_number(text, &value->number);
    case KEY_FLAG:
        return read_flag(rule, text, &value->integer);
    case KEY_DURATION:
        return read_duration(rule, text, &value->integer);
    case KEY_LIST:
        value->list = split_list(text, arena);
        return true;
    case KEY_MAP:
        return read_map(text, arena, value);
    case KEY_IGNORED:
        break;
    }
    unreachable("an ignored key has no value");
}

static const char *
refuse(const struct key_rule *rule, const char *got, struct arena *arena)
{
    return arena_format(arena, "expected %s, got %s", value_wanted(rule, arena), got);
}

const char *
value_of_text(const struct key_rule *rule, const char *text, struct arena *arena,
              struct value *value)
{
    struct value read = {.type = rule->type};
    if (!read_text(rule, text, arena, &read))
        return refuse(rule, config_quote(text, arena), arena);
    check(read.type == rule->type);
    *value = read;
    return NULL;
}

static const char *
list_of_part(const struct key_rule *rule, const struct config_part *part, struct arena *arena,
             struct value *value)
{
    vector_of(const char *) list = {0};
    for (size_t i = 0; i < part->children.count; i++) {
        const struct config_part *child = part->children.items[i];
        if (child->kind != PART_TEXT) {
            const char *got = arena_format(arena, "%s inside", config_part_describe(child, arena));
            return refuse(rule, got, arena);
        }
        vector_push_in(&list, arena, arena_text(arena, child->text));
    }
    vector_push_in(&list, arena, NULL);
    *value = (struct value){.type = KEY_LIST, .list = list.items};
    return NULL;
}

static const char *
map_of_part(const struct key_rule *rule, const struct config_part *part, struct arena *arena,
            struct value *value)
{
    struct value_pair *pairs = arena_zalloc(arena, part->children.count + 1, sizeof pairs[0]);
    for (size_t i = 0; i < part->children.count; i++) {
        const struct config_part *child = part->children.items[i];
        if (child->kind != PART_TEXT || config_part_is_null(child)) {
            const char *got = arena_format(arena, "%s in %s", config_part_describe(child, arena),
                                           config_quote(child->name, arena));
            return refuse(rule, got, arena);
        }
        pairs[i] =
            (struct value_pair){arena_text(arena, child->name), arena_text(arena, child->text)};
    }
    *value = (struct value){.type = KEY_MAP, .map = pairs};
    return NULL;
}

const char *
value_of_part(const struct key_rule *rule, const struct config_part *part, struct arena *arena,
              struct value *value)
{
    if (rule->type == KEY_LIST && part->kind == PART_LIST)
        return list_of_part(rule, part, arena, value);
    if (rule->type == KEY_MAP && part->kind == PART_SECTION)
        return map_of_part(rule, part, arena, value);
    if (rule->type == KEY_LIST || rule->type == KEY_MAP || part->kind != PART_TEXT)
        return refuse(rule, config_part_describe(part, arena), arena);
    return value_of_text(rule, part->text, arena, value);
}
