/* open.c - see open.h. */
#include "visibility/open/open.h"

#include <string.h>

#include "visibility/sqlite/driver.h"

static const struct visibility_driver *const drivers[] = {&sqlite_driver};

struct error *
visibility_open(const char *name, const struct visibility_settings *settings, struct arena *arena,
                struct visibility **visibility)
{
    for (size_t i = 0; i < array_length(drivers); i++)
        if (strcmp(drivers[i]->name, name) == 0)
            return drivers[i]->open(settings, arena, visibility);
    return error_new(arena, ERR_BAD_REQUEST, "this program has no visibility store '%s'", name);
}
