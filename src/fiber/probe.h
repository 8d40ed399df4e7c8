/* probe.h - "this was reached": a named place in the code that a simulation counts.
 *
 * probe("store_fenced") counts in the world that runs the code; on linux it costs one predictable
 * branch. A scenario that passed without reaching the probe it was written for has proven
 * nothing. */
#ifndef CADENZA_FIBER_PROBE_H
#define CADENZA_FIBER_PROBE_H

/* `name` must be a literal, snake_case. */
void probe(const char *name);

#endif
