/* driver.c - where the file of runs lies: beside the embedded store, from which it can be rebuilt.
 */
#include "visibility/sqlite/driver.h"

static struct error *
open_configured(const struct visibility_settings *settings, struct arena *arena,
                struct visibility **visibility)
{
    const char *folder = config_text(settings->config, "persistence.datastores.embedded.path");
    struct visibility_options options = {
        .path = arena_format(arena, "%s/visibility.sqlite", folder),
        .log = settings->log,
        .metrics = settings->metrics,
    };
    return visibility_open_sqlite(&options, arena, visibility);
}

const struct visibility_driver sqlite_driver = {.name = "sqlite", .open = open_configured};
