/* path.h - finds the row of the static table that a path belongs to. */
#ifndef CADENZA_CONFIG_PATH_H
#define CADENZA_CONFIG_PATH_H

#include <stdbool.h>

#include "base/arena.h"
#include "config/keys.h"

enum path_kind {
    PATH_UNKNOWN,
    PATH_SECTION, /* keys are declared below it */
    PATH_KEY,     /* declared, with a value */
    PATH_IGNORED, /* declared, without a meaning */
};

struct path_place {
    enum path_kind kind;
    bool is_name;                 /* its last part is a name of the user's choice */
    const struct static_key *key; /* of PATH_KEY and PATH_IGNORED */
};

/* What the table says about a path, after path_current. */
struct path_place path_find(const char *path);
/* The path with old names replaced by those of now; itself when it has none. */
const char *path_current(const char *path, struct arena *arena);
/* The declared path that is nearest to an unknown one, NULL if none is near. */
const char *path_nearest(const char *path, struct arena *arena);

#endif
