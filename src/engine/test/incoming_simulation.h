/* incoming_simulation.h - one test of a shard that gets events of other clusters, in simulation: a
 * function of the fixture, which is a shard of the cluster east (source_history.h).
 *
 *     SCENE(title, "E-001") { source_send(...); } */
#ifndef CADENZA_ENGINE_TEST_INCOMING_SIMULATION_H
#define CADENZA_ENGINE_TEST_INCOMING_SIMULATION_H

#include "domain/test/samples.h"
#include "engine/test/source_history.h"
#include "fiber/sim/world.h"

void simulate_incoming(void (*scene)(struct shard_fixture *fixture), enum world_messages messages);

#define SCENE(title, ...) SCENE_BY(MESSAGES_BY_SEED, title, ##__VA_ARGS__)
/* The same with messages between owners as it says. */
#define SCENE_BY(messages, title, ...)                                                             \
    static void scene_##title(struct shard_fixture *fixture);                                      \
    TEST(ndc, title, ##__VA_ARGS__)                                                                \
    {                                                                                              \
        simulate_incoming(scene_##title, messages);                                                \
    }                                                                                              \
    static void scene_##title(struct shard_fixture *fixture)

#endif
