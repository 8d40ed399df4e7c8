/* test_runs.h - runs made from a number, for tests and the bench. */
#ifndef CADENZA_VISIBILITY_SQLITE_TEST_RUNS_H
#define CADENZA_VISIBILITY_SQLITE_TEST_RUNS_H

#include "visibility/visibility.h"

#define TEST_DOMAIN "5a0f6f0c-1d5e-4b0e-9c39-5f1f1f6f0a01"
#define TEST_START  1700000000000000000LL /* of run 0; run n starts n ms later */

struct test_run {
    uint64_t number;
    bool is_closed;
    int status; /* of the wire, if closed */
};

/* The run with that number, closed: of one of ten types, one in a hundred failed, one in ten with
 * CustomKeywordField (one of a hundred customers) and CustomIntField (0 .. 9). */
struct test_run test_run_of(uint64_t number);
/* Its run id, a UUID that is random by the number. */
const char *test_run_id(uint64_t number, struct arena *arena);
/* As a change; shard and row are the caller's to set. Lives in the arena. */
struct visibility_change test_run_change(const struct test_run *run, struct arena *arena);

#endif
