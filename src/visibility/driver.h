/* driver.h - how an engine of visibility is opened by its name. A new engine is a folder beside
 * memory/ and sqlite/ and a row in open/open.c. */
#ifndef CADENZA_VISIBILITY_DRIVER_H
#define CADENZA_VISIBILITY_DRIVER_H

#include "config/config.h"
#include "visibility/visibility.h"

/* What every engine gets; it reads its own keys of the config. */
struct visibility_settings {
    const struct config *config;
    const struct log *log;
    struct metrics *metrics;
};

struct visibility_driver {
    const char *name; /* "sqlite" */
    /* Yields. Errors: ERR_BAD_REQUEST, ERR_IO, each one clear sentence. */
    struct error *(*open)(const struct visibility_settings *settings, struct arena *arena,
                          struct visibility **visibility);
};

#endif
