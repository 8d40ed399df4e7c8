/* life.c - see life.h. */
#include "route/life.h"

#include "route/inside.h"

void
route_within_process(struct owner owner, void (*function)(void *argument), void *argument)
{
    loop_call_surely(route_loop_of(owner, loop_self()), function, argument);
}
