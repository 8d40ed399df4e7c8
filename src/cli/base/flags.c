/* flags.c - see flags.h. */
#include "cli/base/flags.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"

#define HELP_COLUMN 29 /* where the explanation begins */

static const struct flag help_flag = {.name = "help", .help = "Show this text.", .aliases = "h"};

/* Is `name` one of the words of `aliases`? */
static bool
has_alias(const char *aliases, struct slice name)
{
    for (const char *at = aliases; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, " ");
        if (slice_equal(slice_of(at, length), name))
            return true;
        at += length + strspn(at + length, " ");
    }
    return false;
}

static bool
is_called(const struct flag *flag, struct slice name)
{
    return slice_equal(slice_text(flag->name), name) || has_alias(flag->aliases, name);
}

const struct flag *
flag_find(const struct flag *flags, struct slice name)
{
    for (const struct flag *flag = flags; flag->name != NULL; flag++) {
        if (is_called(flag, name))
            return flag;
    }
    return NULL;
}

struct slice
flag_name(const char *argument, const char **value)
{
    struct slice name = slice_text(argument);
    while (name.length > 0 && name.data[0] == '-')
        name = slice_skip(name, 1);
    const uint8_t *equals = name.length == 0 ? NULL : memchr(name.data, '=', name.length);
    if (value != NULL)
        *value = equals == NULL ? NULL : (const char *)equals + 1;
    if (equals != NULL)
        name.length = (size_t)(equals - name.data);
    return name;
}

bool
flag_parse_bool(const char *text, bool *value)
{
    static const char on[] = "1 t T TRUE true True", off[] = "0 f F FALSE false False";
    bool is_on = has_alias(on, slice_text(text));
    if (!is_on && !has_alias(off, slice_text(text)))
        return false;
    *value = is_on;
    return true;
}

struct error *
flag_unknown(const struct flag *flags, struct slice name, const char *usage, struct arena *arena)
{
    const char *nearest = NULL;
    size_t best = 4; /* a greater distance would be a guess */
    for (const struct flag *flag = flags; flag->name != NULL; flag++) {
        size_t distance = text_distance(slice_text(flag->name), name);
        if (distance < best) {
            best = distance;
            nearest = flag->name;
        }
    }
    if (nearest != NULL)
        return error_new(arena, ERR_BAD_REQUEST, "unknown flag --%.*s; did you mean --%s?",
                         SLICE_ARG(name), nearest);
    return error_new(arena, ERR_BAD_REQUEST, "unknown flag --%.*s; see %s --help", SLICE_ARG(name),
                     usage);
}

static struct error *
read_switch(const struct flag *flag, const char *value, struct arena *arena)
{
    check(flag->is_set != NULL);
    *flag->is_set = true;
    if (value != NULL && !flag_parse_bool(value, flag->is_set))
        return error_new(arena, ERR_BAD_REQUEST, "--%s: '%s' is neither true nor false", flag->name,
                         value);
    return NULL;
}

static void
add_to_list(struct flag_list *list, const char *value, struct arena *arena)
{
    const char **items = arena_zalloc(arena, list->count + 1, sizeof *items);
    for (size_t i = 0; i < list->count; i++)
        items[i] = list->items[i];
    items[list->count] = value;
    *list = (struct flag_list){items, list->count + 1};
}

/* One flag at arguments[*at]; moves *at past a value of its own. */
static struct error *
read_flag(const struct command_line *line, int count, char **arguments, int *at, bool *wants_help,
          struct arena *arena)
{
    const char *value = NULL;
    struct slice name = flag_name(arguments[*at], &value);
    const struct flag *flag = flag_find(line->flags, name);
    if (flag == NULL && is_called(&help_flag, name)) {
        *wants_help = true;
        return NULL;
    }
    if (flag == NULL)
        return flag_unknown(line->flags, name, line->usage, arena);
    if (flag->argument == NULL)
        return read_switch(flag, value, arena);
    if (value == NULL && *at + 1 == count)
        return error_new(arena, ERR_BAD_REQUEST, "--%s needs a value: %s", flag->name,
                         flag->argument);
    value = value != NULL ? value : arguments[++*at];
    check((flag->text == NULL) != (flag->list == NULL));
    if (flag->list != NULL)
        add_to_list(flag->list, value, arena);
    else
        *flag->text = value;
    return NULL;
}

struct error *
command_line_read(const struct command_line *line, int count, char **arguments, const char **words,
                  bool *wants_help, struct arena *arena)
{
    unsigned found = 0;
    *wants_help = false;
    for (int at = 0; at < count; at++) {
        bool is_flag = arguments[at][0] == '-' && arguments[at][1] != '\0';
        if (!is_flag && found == line->words_max)
            return error_new(arena, ERR_BAD_REQUEST, "'%s' is one word too many; usage: %s",
                             arguments[at], line->usage);
        if (!is_flag) {
            words[found++] = arguments[at];
            continue;
        }
        struct error *err = read_flag(line, count, arguments, &at, wants_help, arena);
        if (err != NULL)
            return err;
    }
    if (found < line->words_min && !*wants_help)
        return error_new(arena, ERR_BAD_REQUEST, "something is missing; usage: %s", line->usage);
    return NULL;
}

/* "--domain, --do NAME" followed by its meaning, on the next line if it is long. */
static const char *
describe_flag(const struct flag *flag, struct arena *arena)
{
    const char *left = arena_format(arena, "--%s", flag->name);
    for (const char *at = flag->aliases; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, " ");
        left = arena_format(arena, "%s, %s%.*s", left, length == 1 ? "-" : "--", (int)length, at);
        at += length + strspn(at + length, " ");
    }
    if (flag->argument != NULL)
        left = arena_format(arena, "%s %s", left, flag->argument);
    if (strlen(left) + 3 > HELP_COLUMN)
        return arena_format(arena, "  %s\n%*s%s\n", left, HELP_COLUMN, "", flag->help);
    return arena_format(arena, "  %-*s%s\n", HELP_COLUMN - 2, left, flag->help);
}

const char *
command_line_help(const struct command_line *line, struct arena *arena)
{
    const char *text =
        arena_format(arena, "Usage: %s\n\n%s\n\nFlags:\n", line->usage, line->summary);
    for (const struct flag *flag = line->flags; flag->name != NULL; flag++)
        text = arena_format(arena, "%s%s", text, describe_flag(flag, arena));
    text = arena_format(arena, "%s%s", text, describe_flag(&help_flag, arena));
    if (line->examples != NULL)
        text = arena_format(arena, "%s\nExamples:\n%s", text, line->examples);
    return text;
}
