/* mark.h - "this happened here": code that is interesting to a simulation says so when it is
 * reached.
 *
 * mark("store_fenced") counts in the world that runs the code; on linux it costs one predictable
 * branch. A scenario that passed without the mark it was written for has proven nothing. */
#ifndef CADENZA_FIBER_MARK_H
#define CADENZA_FIBER_MARK_H

/* `name` must be a literal, snake_case. */
void mark(const char *name);

#endif
