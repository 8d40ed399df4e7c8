/* config_inside.h - what config.c (reading values) and config_parse.c (reading files) share. */
#ifndef CADENZA_CONFIG_CONFIG_INSIDE_H
#define CADENZA_CONFIG_CONFIG_INSIDE_H

#include "base/map.h"
#include "base/vector.h"
#include "config/config.h"
#include "config/path.h"
#include "config/value.h"

/* A value that was given. */
struct config_given {
    struct value value;
    bool is_old_name; /* given by a name of before; gives way to the new one */
};

/* A name of the user's choice, and the section it stands in. */
struct config_name {
    const char *section;
    const char *name;
};

/* A key that was given and has no meaning. */
struct config_ignored {
    const char *path;
    const char *reason;
    int line; /* 0: not of a file */
};

struct config {
    struct arena *arena; /* all of it lives here but the map */
    struct map *given;   /* path → struct config_given */
    vector_of(struct config_name) names;
    vector_of(struct config_ignored) ignored;
};

/* Keeps a value; an earlier one of the same path is replaced. */
void config_put(struct config *config, const char *path, struct value value, bool is_old_name);
/* Keeps one such name; a second time changes nothing. */
void config_put_name(struct config *config, const char *section, const char *name);
/* "; did you mean <nearest declared path>?", or "". */
const char *config_suggestion(const char *path, struct arena *arena);

#endif
