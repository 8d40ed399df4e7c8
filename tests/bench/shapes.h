/* shapes.h - single shapes of load, each printed as one line of JSON: for tools/budgets. */
#ifndef CADENZA_TESTS_BENCH_SHAPES_H
#define CADENZA_TESTS_BENCH_SHAPES_H

#include "workflows.h"

/* Workflows as the options say. Yields. */
void shape_workflows(const struct workflows_options *options, struct arena *arena);
/* Durable signals to one workflow id, for so many nanoseconds. Yields. */
void shape_signals(const char *address, int server_pid, int64_t duration, struct arena *arena);
/* So many timers of as many workflows that are due in one second. Yields. */
void shape_timers(const char *address, int server_pid, unsigned count, struct arena *arena);

#endif
