/* shard_test.c - the cases of cases.h on a real loop. */
#include "engine/shard/cases.h"
#include "fiber/linux/linux.h"

struct trial {
    void (*run)(struct rig *rig);
    struct memory_base *base;
};

static void
trial_fiber(void *argument)
{
    struct trial *trial = argument;
    struct rig rig;
    rig_open(&rig, trial->base);
    trial->run(&rig);
    rig_close(&rig);
}

static void
on_linux(void (*run)(struct rig *rig))
{
    struct trial trial = {.run = run, .base = memory_base_new(0)};
    linux_run(&(struct linux_options){.loops = 1}, trial_fiber, &trial);
    memory_base_free(trial.base);
}

#define X(title)                                                                                   \
    TEST(shard, title)                                                                             \
    {                                                                                              \
        on_linux(case_##title);                                                                    \
    }
SHARD_CASES(X)
#undef X
