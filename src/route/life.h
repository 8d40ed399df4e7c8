/* life.h - what a process does where its owners live, when they come and go. */
#ifndef CADENZA_ROUTE_LIFE_H
#define CADENZA_ROUTE_LIFE_H

#include "route/owner.h"

/* Runs function(argument) in a fiber where an owner of this process lives, and waits until it has
 * returned. For the life of what a process has (it opens and closes its shards), and for nothing
 * that one owner wants of another: that is a question (ask.h) or a value (tell.h). Never refused.
 * Yields; ignores cancellation. */
void route_within_process(struct owner owner, void (*function)(void *argument), void *argument);

#endif
