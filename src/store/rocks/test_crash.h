/* test_crash.h - one try at breaking a store: a folder, a process that fills it, what that process
 * was told. */
#ifndef CADENZA_STORE_ROCKS_TEST_CRASH_H
#define CADENZA_STORE_ROCKS_TEST_CRASH_H

#include <sys/types.h>

#include "store/rocks/test_load.h"

struct crash_fixture {
    struct arena *arena;
    char *folder; /* of the fixture: data and what else it needs */
    char *data;
    uint32_t shards;
    uint64_t steps;
    int openings;
    size_t padding;           /* of each step, see test_load.h */
    uint64_t fresh_bytes_max; /* see rocks.h; 0: as the load has it */
    uint64_t
        acked[LOAD_SHARDS_MAX]; /* steps that the processes of this fixture reported as durable */
    uint64_t acks;              /* how many times */
};

/* How a process is run. */
struct crash_run {
    const char *action; /* of the shim, see test_shim.c; NULL: without it */
    uint64_t at;
    const char *ending; /* of the new files that alone count; NULL: every call counts */
    uint64_t seed;
    uint64_t kill_after; /* acks, then kill -9; 0: let it end */
    bool has_backup;     /* see test_child.c: backs up and restores at its end */
};

enum {
    CRASH_DONE = 0,
    CRASH_CLOSED = 2,
    CRASH_BROKEN = 4,
    CRASH_LOST = 5,
    CRASH_POWER = 99,
    CRASH_KILLED = 1000
};

/* A fixture with an empty folder; and its end, which removes it. */
void crash_begin(struct crash_fixture *crash_fixture, uint32_t shards, uint64_t steps);
void crash_end(struct crash_fixture *crash_fixture);
/* Runs a process to its end, notes what it was told; its exit code, or CRASH_KILLED. */
int crash_run(struct crash_fixture *crash_fixture, const struct crash_run *run);
/* What its processes said on standard error, from the beginning. */
const char *crash_output(struct crash_fixture *crash_fixture);
/* The calls that the shim counted in the last run. */
uint64_t crash_calls(struct crash_fixture *crash_fixture);
/* Opens the folder in this process and judges it: NULL, or a sentence. An error of opening goes to
 * *err (may be NULL: then it is the sentence). */
const char *crash_judge(struct crash_fixture *crash_fixture, struct error **err);

#endif
