/* test_bench.h - the contract suite on a memory base, for the tests on either ground. */
#ifndef CADENZA_STORE_MEMORY_TEST_BENCH_H
#define CADENZA_STORE_MEMORY_TEST_BENCH_H

#include "store/contract.h"
#include "store/memory/memory.h"

struct bench {
    uint64_t seed; /* of the base; 0: no delays */
    struct memory_base *base;
    void (*test)(struct contract *contract);
};

/* Runs the bench's test; a fiber. The base stays: the caller frees it. */
void bench_fiber(void *argument);

#endif
