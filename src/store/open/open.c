/* open.c - see open.h. */
#include "store/open/open.h"

#include <string.h>

#include "store/rocks/driver.h"

static const struct store_driver *const of_this_program[] = {&rocks_driver};
const struct store_drivers store_drivers = {of_this_program, array_length(of_this_program)};

static struct error *
refuse_unknown(const struct store_drivers *drivers, const char *name, struct arena *arena)
{
    const char *names = "";
    for (size_t i = 0; i < drivers->count; i++)
        names = arena_format(arena, "%s%s%s", names, i == 0 ? "" : ", ", drivers->driver[i]->name);
    return error_new(arena, ERR_BAD_REQUEST, "there is no store '%s'; this program has: %s", name,
                     names);
}

struct error *
store_driver_find(const struct store_drivers *drivers, const char *name, struct arena *arena,
                  const struct store_driver **driver)
{
    for (size_t i = 0; i < drivers->count; i++) {
        if (strcmp(drivers->driver[i]->name, name) == 0) {
            *driver = drivers->driver[i];
            return NULL;
        }
    }
    return refuse_unknown(drivers, name, arena);
}

struct error *
store_open(const struct store_drivers *drivers, const char *name,
           const struct store_settings *settings, struct arena *arena, struct store **store)
{
    const struct store_driver *driver = NULL;
    struct error *err = store_driver_find(drivers, name, arena, &driver);
    return err != NULL ? err : driver->open(settings, arena, store);
}
