/* test_fixture.h - the contract suite on a memory base, for the tests on either platform. */
#ifndef CADENZA_STORE_MEMORY_TEST_FIXTURE_H
#define CADENZA_STORE_MEMORY_TEST_FIXTURE_H

#include "store/memory/memory.h"
#include "store/test/contract.h"

struct memory_fixture {
    uint64_t seed; /* of the base; 0: no delays */
    struct memory_base *base;
    void (*test)(struct contract *contract);
};

/* Runs the fixture's test; a fiber. The base stays: the caller frees it. */
void memory_fixture_fiber(void *argument);

#endif
