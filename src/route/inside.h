/* inside.h - what the files of route/ share. */
#ifndef CADENZA_ROUTE_INSIDE_H
#define CADENZA_ROUTE_INSIDE_H

#include "fiber/loop.h"
#include "route/owner.h"

/* Where the owner lives, as seen from this loop. */
struct loop *route_loop_of(struct owner owner, struct loop *self);

#endif
