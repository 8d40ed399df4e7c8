/* test_loops.h - tests whose body is the first fiber of a real platform. */
#ifndef CADENZA_FIBER_LINUX_TEST_LOOPS_H
#define CADENZA_FIBER_LINUX_TEST_LOOPS_H

#include "base/test.h"
#include "fiber/linux/linux.h"

/* With so many loops; the body runs on loop 0. Ids of what it proves may follow, as in TEST. */
#define LOOP_TEST(suite, title, loops_, ...)                                                       \
    TEST_IN(suite, title, maybe_unused void *argument,                                             \
            linux_run(&(struct linux_options){.loops = loops_}, body, NULL), ##__VA_ARGS__)

#endif
