/* flags.c - see flags.h. */
#include "cli/flags.h"

#include <string.h>

#include "base/text.h"

static const struct flag help_flag = {"help", NULL, "Show this text.", NULL, NULL};

static const struct flag *
find(const struct flag *flags, struct slice name)
{
    for (const struct flag *flag = flags; flag->name != NULL; flag++) {
        if (slice_equal(slice_text(flag->name), name))
            return flag;
    }
    bool is_help = slice_equal(name, slice_text("help")) || slice_equal(name, slice_text("h"));
    return is_help ? &help_flag : NULL;
}

static struct error *
unknown(const struct command_line *line, struct slice name, struct arena *arena)
{
    const char *nearest = NULL;
    size_t best = 4; /* further away it would be a guess */
    for (const struct flag *flag = line->flags; flag->name != NULL; flag++) {
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
                     line->usage);
}

/* One flag at arguments[*at]; moves *at past a value of its own. */
static struct error *
read_flag(const struct command_line *line, int count, char **arguments, int *at, bool *wants_help,
          struct arena *arena)
{
    struct slice name = slice_text(arguments[*at]);
    while (name.length > 0 && name.data[0] == '-')
        name = slice_skip(name, 1);
    const char *value = NULL;
    const uint8_t *equals = name.length == 0 ? NULL : memchr(name.data, '=', name.length);
    if (equals != NULL) {
        value = (const char *)equals + 1;
        name.length = (size_t)(equals - name.data);
    }
    const struct flag *flag = find(line->flags, name);
    if (flag == NULL)
        return unknown(line, name, arena);
    if (flag->argument == NULL) {
        if (value != NULL)
            return error_new(arena, ERR_BAD_REQUEST, "--%s takes no value", flag->name);
        *(flag == &help_flag ? wants_help : flag->is_set) = true;
        return NULL;
    }
    if (value == NULL && *at + 1 >= count)
        return error_new(arena, ERR_BAD_REQUEST, "--%s needs a value: %s", flag->name,
                         flag->argument);
    *flag->text = value != NULL ? value : arguments[++*at];
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

const char *
command_line_help(const struct command_line *line, struct arena *arena)
{
    const char *text =
        arena_format(arena, "Usage: %s\n\n%s\n\nFlags:\n", line->usage, line->summary);
    for (const struct flag *flag = line->flags; flag->name != NULL; flag++) {
        const char *left = flag->argument == NULL
                               ? arena_format(arena, "--%s", flag->name)
                               : arena_format(arena, "--%s %s", flag->name, flag->argument);
        text = arena_format(arena, "%s  %-26s %s\n", text, left, flag->help);
    }
    text = arena_format(arena, "%s  %-26s %s\n", text, "--help", help_flag.help);
    if (line->examples != NULL)
        text = arena_format(arena, "%s\nExamples:\n%s", text, line->examples);
    return text;
}
