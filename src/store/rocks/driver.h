/* driver.h - the embedded engine among the stores that are opened by name. */
#ifndef CADENZA_STORE_ROCKS_DRIVER_H
#define CADENZA_STORE_ROCKS_DRIVER_H

#include "store/driver.h"

extern const struct store_driver rocks_driver;

#endif
