/* storm.h - workflows in a closed loop with and without a storm of questions for lists, in turns.
 */
#ifndef CADENZA_TESTS_BENCH_STORM_H
#define CADENZA_TESTS_BENCH_STORM_H

#include "workflows.h"

/* Prints a table and the ratios below it: the workflows of `options`, alone and with so many
 * questions at a time, twice each. The questions come from a loop of their own, the last one, which
 * the workflows must not use. Yields. */
void storm_run(const struct workflows_options *options, unsigned questions, struct arena *arena);

#endif
