/* test_seeds.h - the seeds of a test program, between test.c, which reads the arguments, and
 * test_seeds.c, which hands them out. For these two alone. */
#ifndef CADENZA_BASE_TEST_SEEDS_H
#define CADENZA_BASE_TEST_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

struct test_seeds {
    int count;
    bool has_first; /* they are this one and those behind it */
    uint64_t first;
    uint64_t base;   /* else: the changing half begins here */
    int round;       /* of a test that is repeated for each seed: its first seed has this index */
    bool has_drawn;  /* the current test asked for a seed ... */
    uint64_t drawn;  /* ... this one, last */
    bool is_counted; /* it asked how many there are, or said that one is enough */
};

extern struct test_seeds test_seeds;

#endif
