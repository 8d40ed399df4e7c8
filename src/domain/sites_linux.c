/* sites_linux.c - sites on real loops. See sites.h. */
#include "domain/sites.h"
#include "fiber/linux/linux.h"

static void
run_fiber(void *argument)
{
    void (**test)(struct sites * sites) = argument;
    struct sites sites;
    sites_open(&sites);
    (*test)(&sites);
    sites_close(&sites);
}

void
sites_run(unsigned loops, void (*test)(struct sites *sites))
{
    linux_run(&(struct linux_options){.loops = loops}, run_fiber, &test);
}
