/* open.h - the stores of this program, by name. */
#ifndef CADENZA_STORE_OPEN_OPEN_H
#define CADENZA_STORE_OPEN_OPEN_H

#include "store/driver.h"

#define STORE_EMBEDDED "embedded"

/* A list of drivers; that of this program is the row in open.c. */
struct store_drivers {
    const struct store_driver *const *driver;
    size_t count;
};
extern const struct store_drivers store_drivers;

/* The driver of that name. Error: ERR_BAD_REQUEST, there is none, with the names that there are. */
must_use struct error *store_driver_find(const struct store_drivers *drivers, const char *name,
                                         struct arena *arena, const struct store_driver **driver);
/* Opens the store of that name. Yields. Errors: as above, and those of the driver. */
must_use struct error *store_open(const struct store_drivers *drivers, const char *name,
                                  const struct store_settings *settings, struct arena *arena,
                                  struct store **store);

#endif
