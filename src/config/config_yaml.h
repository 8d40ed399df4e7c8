/* config_yaml.h - YAML as a tree whose every part knows its line.
 *
 * Only what settings need: texts, lists, sections. A duplicate key in a section is an error; so is
 * an alias (*name), since nobody sees in such a line what the value is. Sizes are bounded. */
#ifndef CADENZA_CONFIG_CONFIG_YAML_H
#define CADENZA_CONFIG_CONFIG_YAML_H

#include <stdbool.h>

#include "base/arena.h"
#include "config/config_errors.h"

#define CONFIG_FILE_SIZE_MAX (1024 * 1024)
#define CONFIG_DEPTH_MAX     64
#define CONFIG_PARTS_MAX     65536

enum part_kind { PART_TEXT, PART_LIST, PART_SECTION };

struct config_part {
    enum part_kind kind;
    bool is_quoted; /* a text in quotes, or a block: it is text whatever it looks like */
    int line;
    const char *name; /* in a section: its key; else NULL */
    const char *text; /* of a text, without NUL bytes inside */
    vector_of(struct config_part *) children;
};

/* Reads one document; an empty one is an empty section. NULL when it cannot be read to its end:
 * then `faults` says why, and may have more in any case. The tree lives in `arena`. */
struct config_part *config_read_yaml(struct slice yaml, struct config_errors *errors,
                                     struct arena *arena);

/* Nothing was written there: empty, ~ or null. */
bool config_part_is_null(const struct config_part *part);
/* "a section", "a list", "'text'": for sentences about what was found. */
const char *config_part_describe(const struct config_part *part, struct arena *arena);
/* The same for a bare text: quoted, and cut when it is long. */
const char *config_quote(const char *text, struct arena *arena);

#endif
