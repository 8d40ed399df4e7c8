/* shard_simulation.h - a case on a fixture that is alone in a simulated world, once for each seed.
 * For sim tests.
 */
#ifndef CADENZA_ENGINE_TEST_SHARD_SIMULATION_H
#define CADENZA_ENGINE_TEST_SHARD_SIMULATION_H

#include "engine/test/shard_fixture.h"

struct shard_simulation_options {
    const char *probe; /* without which the case has proven nothing; NULL: none */
    int64_t limit;     /* of virtual time; 0: a day */
};
/* Runs run(fixture); it must end in time and leave no memory behind. */
#define simulate_shard(run, ...)                                                                   \
    simulate_shard_with(run, &(struct shard_simulation_options){__VA_ARGS__})
void simulate_shard_with(void (*run)(struct shard_fixture *fixture),
                         const struct shard_simulation_options *options);
/* A test that runs so, with these options. */
#define SHARD_TEST(suite, title, probe_, limit_, ...)                                              \
    TEST_IN(suite, title, struct shard_fixture *fixture,                                           \
            simulate_shard(body, .probe = probe_, .limit = limit_), ##__VA_ARGS__)

#endif
