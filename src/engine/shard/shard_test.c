/* shard_test.c - the cases of shard_cases.h on a real loop. */
#include "engine/test/shard_cases.h"
#include "fiber/linux/linux.h"

static void
on_linux(void (*run)(struct shard_fixture *fixture))
{
    struct shard_fixture_body body = {.run = run, .base = memory_base_new(0)};
    linux_run(&(struct linux_options){.loops = 1}, shard_fixture_main, &body);
    memory_base_free(body.base);
}

#define X(title)                                                                                   \
    TEST(shard, title)                                                                             \
    {                                                                                              \
        on_linux(case_##title);                                                                    \
    }
SHARD_CASES(X)
#undef X
