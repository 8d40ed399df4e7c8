/* driver.h - the embedded engine among those that are opened by name. */
#ifndef CADENZA_VISIBILITY_SQLITE_DRIVER_H
#define CADENZA_VISIBILITY_SQLITE_DRIVER_H

#include "visibility/driver.h"

extern const struct visibility_driver sqlite_driver;

#endif
