/* cluster_pair_linux.c - both clusters on real loops. See cluster_pair.h. */
#include "domain/test/cluster_pair.h"
#include "fiber/linux/linux.h"

static void
run_fiber(void *argument)
{
    void (**test)(struct cluster_pair * cluster_pair) = argument;
    struct cluster_pair cluster_pair;
    cluster_pair_open(&cluster_pair);
    (*test)(&cluster_pair);
    cluster_pair_close(&cluster_pair);
}

void
cluster_pair_run(unsigned loops, void (*test)(struct cluster_pair *cluster_pair))
{
    linux_run(&(struct linux_options){.loops = loops}, run_fiber, &test);
}
