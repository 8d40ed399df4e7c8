/* shard_test.c - the cases of cases.h on a real loop. */
#include "engine/shard/cases.h"
#include "fiber/linux/linux.h"

static void
on_linux(void (*run)(struct rig *rig))
{
    struct rig_trial trial = {.run = run, .base = memory_base_new(0)};
    linux_run(&(struct linux_options){.loops = 1}, rig_trial_main, &trial);
    memory_base_free(trial.base);
}

#define X(title)                                                                                   \
    TEST(shard, title)                                                                             \
    {                                                                                              \
        on_linux(case_##title);                                                                    \
    }
SHARD_CASES(X)
#undef X
