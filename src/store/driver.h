/* driver.h - how an engine is opened by its name. A new engine is a folder beside memory/ and
 * rocks/ and a row in open/open.c. */
#ifndef CADENZA_STORE_DRIVER_H
#define CADENZA_STORE_DRIVER_H

#include "base/log.h"
#include "base/metrics.h"
#include "config/config.h"
#include "store/admin.h"

/* What every engine gets; it reads its own keys of the config. */
struct store_settings {
    const struct config *config;
    const struct log *log;
    struct metrics *metrics; /* may be NULL */
};

struct store_driver {
    const char *name; /* "embedded" */
    /* Yields. Errors, each one clear sentence with what was found and expected: ERR_BUSY,
     * ERR_BAD_REQUEST, ERR_CORRUPT, ERR_IO. */
    struct error *(*open)(const struct store_settings *settings, struct arena *arena,
                          struct store **store);
    /* Of a store that nobody has open, where it lies (a folder). NULL: the engine has none. Yield.
     * Errors as for open. */
    /* Reads it and changes nothing in it. */
    struct error *(*info)(const char *place, struct arena *arena, struct store_info *info);
    /* Walks everything. Problems are results, not errors. */
    struct error *(*verify)(const char *place, struct arena *arena, struct store_check *check);
    /* Makes `place`, which must be missing or empty, a store from a backup. */
    struct error *(*restore)(const char *backup, const char *place, struct arena *arena);
};

#endif
