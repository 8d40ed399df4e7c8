/* open.h - the engines of visibility in this program, by name. */
#ifndef CADENZA_VISIBILITY_OPEN_OPEN_H
#define CADENZA_VISIBILITY_OPEN_OPEN_H

#include "visibility/driver.h"

#define VISIBILITY_EMBEDDED "sqlite"

/* Yields. Errors: ERR_BAD_REQUEST, there is no engine of that name; those of the driver. */
must_use struct error *visibility_open(const char *name, const struct visibility_settings *settings,
                                       struct arena *arena, struct visibility **visibility);

#endif
