/* trial.h - a case on a rig that is alone in a simulated world, once for each seed. For sim tests.
 */
#ifndef CADENZA_ENGINE_SHARD_TRIAL_H
#define CADENZA_ENGINE_SHARD_TRIAL_H

#include "engine/shard/rig.h"

struct trial_options {
    const char *mark; /* without which the case has proven nothing; NULL: none */
    int64_t limit;    /* of virtual time; 0: a day */
};
/* Runs run(rig); it must end in time and leave no memory behind. */
#define trial_run(run, ...) trial_run_with(run, &(struct trial_options){__VA_ARGS__})
void trial_run_with(void (*run)(struct rig *rig), const struct trial_options *options);

#endif
