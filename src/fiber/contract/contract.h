/* contract.h - the promises of fiber/ as tests that do not know which platform they run on.
 *
 * The files *_test.c here use public headers only. Each is linked once with on_linux.c and once
 * with its counterpart for simulation, which provide the functions below. Bodies run as the first
 * fiber of a process. */
#ifndef CADENZA_FIBER_CONTRACT_H
#define CADENZA_FIBER_CONTRACT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"

/* Runs function(argument) as the first fiber of a process with `loops` loops; returns when it has
 * ended. Simulation does so several times, by seed. */
void contract_run(unsigned loops, void (*function)(void *argument), void *argument);
/* An empty folder for files of the test that runs; valid inside contract_run. */
const char *contract_folder(void);
/* Simulated: time is virtual and passes only when all wait. */
extern const bool contract_is_simulated;

/* A test whose body is the first fiber; `arena` lives as long as the body. Ids of what it proves
 * may follow, as in TEST. */
#define CONTRACT(suite, title, loops, ...)                                                         \
    static void contract_##suite##_##title(struct arena *arena);                                   \
    static void contract_fiber_##suite##_##title(void *unused)                                     \
    {                                                                                              \
        scoped(arena_drop) struct arena *arena = arena_new(0);                                     \
        contract_##suite##_##title(arena);                                                         \
    }                                                                                              \
    TEST(suite, title, ##__VA_ARGS__)                                                              \
    {                                                                                              \
        contract_run(loops, contract_fiber_##suite##_##title, NULL);                               \
    }                                                                                              \
    static void contract_##suite##_##title(maybe_unused struct arena *arena)

#endif
