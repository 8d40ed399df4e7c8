/* limits.h - what the limits of workflow ids cost. */
#ifndef CADENZA_TESTS_BENCH_LIMITS_H
#define CADENZA_TESTS_BENCH_LIMITS_H

#include "workflows.h"

/* Runs the loop of workflows in turns with the limits on and off, and prints the server's CPU per
 * workflow of both and their ratio. Changes the server's settings by call, and restores them.
 * Yields. */
void limits_compare(const struct workflows_options *options, struct arena *arena);

#endif
