/* test_trial.h - one try at breaking a store: a folder, a process that fills it, what that process
 * was told. */
#ifndef CADENZA_STORE_ROCKS_TEST_TRIAL_H
#define CADENZA_STORE_ROCKS_TEST_TRIAL_H

#include <sys/types.h>

#include "store/rocks/test_load.h"

struct trial {
    struct arena *arena;
    char *folder; /* of the trial: data and what else it needs */
    char *data;
    uint32_t shards;
    uint64_t steps;
    int openings;
    size_t padding;           /* of each step, see test_load.h */
    uint64_t fresh_bytes_max; /* see rocks.h; 0: as the load has it */
    uint64_t
        acked[LOAD_SHARDS_MAX]; /* steps that the processes of this trial were told are durable */
    uint64_t acks;              /* how many times */
};

/* How a process is run. */
struct trial_run {
    const char *action; /* of the shim, see test_shim.c; NULL: without it */
    uint64_t at;
    const char *ending; /* of the new files that alone count; NULL: every call counts */
    uint64_t seed;
    uint64_t kill_after; /* acks, then kill -9; 0: let it end */
    bool has_backup;     /* see test_child.c: backs up and restores at its end */
};

enum {
    TRIAL_DONE = 0,
    TRIAL_CLOSED = 2,
    TRIAL_BROKEN = 4,
    TRIAL_LOST = 5,
    TRIAL_POWER = 99,
    TRIAL_KILLED = 1000
};

/* A trial with an empty folder; and its end, which removes it. */
void trial_begin(struct trial *trial, uint32_t shards, uint64_t steps);
void trial_end(struct trial *trial);
/* Runs a process to its end, notes what it was told; its exit code, or TRIAL_KILLED. */
int trial_run(struct trial *trial, const struct trial_run *run);
/* What its processes said on standard error, from the beginning. */
const char *trial_words(struct trial *trial);
/* The calls that the shim counted in the last run. */
uint64_t trial_calls(struct trial *trial);
/* Opens the folder in this process and judges it: NULL, or a sentence. An error of opening goes to
 * *err (may be NULL: then it is the sentence). */
const char *trial_judge(struct trial *trial, struct error **err);

#endif
