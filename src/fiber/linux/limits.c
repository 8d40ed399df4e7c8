/* limits.c - what the kernel allows this process: descriptors and mappings.
 *
 * Both are shared by everybody in the process, and neither can be taken back from its holders: a
 * store that cannot open its next file fails, a fiber without a stack is the end. So code that
 * takes them on behalf of clients (connections, handlers) asks here how many there are and leaves a
 * reserve. */
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/check.h"
#include "fiber/linux/inside.h"
#include "fiber/platform.h"

#define MAPPINGS_DEFAULT 65530 /* the kernel's, if it cannot be read */
#define MAPPINGS_KEPT    8192  /* for libraries, threads and large blocks of memory */
#define FIBERS_MIN       64    /* with less nothing works */

static unsigned
raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1024;
    if (limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    return limit.rlim_cur > INT_MAX ? INT_MAX : (unsigned)limit.rlim_cur;
}

static unsigned long
mappings_max(void)
{
    unsigned long count = 0;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
    bool is_read = file != NULL && fscanf(file, "%lu", &count) == 1;
    if (file != NULL)
        fclose(file);
    return is_read ? count : MAPPINGS_DEFAULT;
}

static unsigned
count_fibers(unsigned loops)
{
    unsigned long mappings = mappings_max();
    unsigned long kept = mappings / 4 < MAPPINGS_KEPT ? mappings / 4 : MAPPINGS_KEPT;
    unsigned long stacks = (mappings - kept) / STACK_MAPPINGS;
    unsigned long spare = (unsigned long)loops * SPARE_STACKS_MAX; /* one loop's help no other */
    if (stacks < spare + FIBERS_MIN)
        return FIBERS_MIN;
    return stacks - spare > INT_MAX ? INT_MAX : (unsigned)(stacks - spare);
}

void
limits_open(struct platform *platform)
{
    platform->descriptors = raise_descriptors();
    platform->fibers = count_fibers(platform->loop_count);
}

unsigned
platform_descriptors(void)
{
    return linux_loop_self()->platform->descriptors;
}

unsigned
platform_fibers(void)
{
    return linux_loop_self()->platform->fibers;
}
