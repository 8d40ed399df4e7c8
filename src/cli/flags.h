/* flags.h - command line flags from a table: --name value, --name=value, -name value; --help from
 * the same table.
 *
 * An unknown flag is an error that suggests the near one; a value that is missing is named. */
#ifndef CADENZA_CLI_FLAGS_H
#define CADENZA_CLI_FLAGS_H

#include <stdbool.h>

#include "base/error.h"

struct flag {
    const char *name;     /* without dashes; NULL ends a table */
    const char *argument; /* what --help calls its value: "DIR"; NULL: a switch */
    const char *help;
    const char **text; /* where the value goes; for switches NULL */
    bool *is_set;      /* switches: becomes true */
};

struct command_line {
    const char *usage;    /* "cadenza server [flags]" */
    const char *summary;  /* a paragraph */
    const char *examples; /* lines, may be NULL */
    const struct flag *flags;
    unsigned words_min, words_max; /* arguments that are no flags */
};

/* Reads arguments into the table's places; words that are no flags go to `words` (room for
 * words_max). --help, -h: *wants_help. Errors: ERR_BAD_REQUEST. */
must_use struct error *command_line_read(const struct command_line *line, int count,
                                         char **arguments, const char **words, bool *wants_help,
                                         struct arena *arena);
/* The help text. */
const char *command_line_help(const struct command_line *line, struct arena *arena);

#endif
