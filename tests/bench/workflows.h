/* workflows.h - a closed loop of workflows: start, decision, activity, decision, complete.
 *
 * The workers are part of the generator and decide without replaying, so that the server is what is
 * measured. Otherwise the server sees what the Go client would send: its headers, and each request
 * when it comes. */
#ifndef CADENZA_TESTS_BENCH_WORKFLOWS_H
#define CADENZA_TESTS_BENCH_WORKFLOWS_H

#include <stdint.h>

#include "base/arena.h"

/* A backlog needs a part of their life at a time: all are started, then all decide, then the rest.
 */
enum workflows_step { STEP_WHOLE, STEP_START, STEP_DECIDE, STEP_END };

struct workflows_options {
    const char *address;
    enum workflows_step step;
    const char *list; /* name of the task list; NULL: a new one */
    int server_pid;
    unsigned count;       /* workflows in all */
    unsigned in_flight;   /* at a time */
    unsigned pollers;     /* of decisions, and as many of activities */
    unsigned connections; /* each on a loop of its own */
    size_t payload;       /* bytes of input and results */
    unsigned activities;  /* of each, one after the other, with a sticky list; 0: one, without */
    int64_t due;          /* wall clock; not 0: a timer instead, due in the second after this */
};

struct workflows_result {
    uint64_t done, failures, repeats; /* repeats: what was done more than once */
    char first_error[256];            /* "": none */
    int64_t elapsed;                  /* ns */
    int64_t server_cpu;               /* ns */
    uint64_t server_memory;
    /* ns; with timers, ends count from when each was due to its decision in a worker's hands */
    int64_t start_p50, start_p99, end_p50, end_p99;
};

/* Runs the loop to its end, in a domain of its own. Yields. */
void workflows_run(const struct workflows_options *options, struct arena *arena,
                   struct workflows_result *result);

#endif
