/* flags.h - command line flags from a table: --name value, --name=value, -name value; --help from
 * the same table.
 *
 * A flag may have shorter names. A switch is on by its name alone, on or off by =true and =false.
 * Of a value given twice the last one counts, but a list keeps all. An unknown flag is an error
 * that suggests the near one; a value that is missing is named. */
#ifndef CADENZA_CLI_BASE_FLAGS_H
#define CADENZA_CLI_BASE_FLAGS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"

/* What a flag that may be given several times was given, in that order. */
struct flag_list {
    const char **items;
    size_t count;
};

struct flag {
    const char *name;     /* without dashes; NULL ends a table */
    const char *argument; /* what --help calls its value: "DIR"; NULL: a switch */
    const char *help;
    const char **text;      /* where the value goes; NULL for switches and lists */
    bool *is_set;           /* switches: becomes true */
    const char *aliases;    /* other names, with blanks between: "ad a"; NULL: none */
    struct flag_list *list; /* where every value goes; NULL: not a list */
};

struct command_line {
    const char *usage;    /* "cadenza server [flags]" */
    const char *summary;  /* a paragraph */
    const char *examples; /* lines, may be NULL */
    const struct flag *flags;
    unsigned words_min, words_max; /* arguments that are not flags */
};

/* Reads arguments into the table's places; words that are not flags go to `words` (room for
 * words_max). --help, -h: *wants_help. Errors: ERR_BAD_REQUEST. */
must_use struct error *command_line_read(const struct command_line *line, int count,
                                         char **arguments, const char **words, bool *wants_help,
                                         struct arena *arena);
/* The flag that has this name or alias, without dashes and value; NULL: none. */
const struct flag *flag_find(const struct flag *flags, struct slice name);
/* "--domain=d" → "domain"; *value (may be NULL) is "d", or NULL when there is no '='. */
struct slice flag_name(const char *argument, const char **value);
/* "true" and "false" in the spellings of Go, which scripts made for cadence use: 1, t, T, TRUE, …
 */
must_use bool flag_parse_bool(const char *text, bool *value);
/* Refuses a flag that no table has, and suggests the nearest of `flags`. `usage` is where to look
 * if none is near. */
must_use struct error *flag_unknown(const struct flag *flags, struct slice name, const char *usage,
                                    struct arena *arena);
/* The help text. */
const char *command_line_help(const struct command_line *line, struct arena *arena);

#endif
