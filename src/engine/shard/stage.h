/* stage.h - one test of a shard that gets events of other clusters, in simulation: a function of
 * the rig, which is a shard of the cluster east (feed.h).
 *
 *     SCENE(title, "E-001") { feed_send(...); } */
#ifndef CADENZA_ENGINE_SHARD_STAGE_H
#define CADENZA_ENGINE_SHARD_STAGE_H

#include "domain/samples.h"
#include "engine/shard/feed.h"

void stage_run(void (*scene)(struct rig *rig));

#define SCENE(title, ...)                                                                          \
    static void scene_##title(struct rig *rig);                                                    \
    TEST(ndc, title, ##__VA_ARGS__)                                                                \
    {                                                                                              \
        stage_run(scene_##title);                                                                  \
    }                                                                                              \
    static void scene_##title(struct rig *rig)

#endif
