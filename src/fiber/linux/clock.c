/* clock.c - the real clocks, and randomness from the kernel, fetched in portions.
 *
 * The kernel's monotonic clock never goes back, but what a process is shown may: libraries that
 * fake the time for tests, and virtual machines that were moved. Then the clock of the loops goes
 * on from where it was, for all of them by the same amount; a loop notices when it next wakes up
 * (libuv would sleep on by the faked clock, if nothing but its timer is to wake it). It begins
 * above 0, which stands for "not yet" in many places. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/linux/inside.h"

static int64_t
clock_read(clockid_t id)
{
    struct timespec time;
    int failed = clock_gettime(id, &time);
    check(failed == 0);
    return (int64_t)time.tv_sec * NS_PER_S + time.tv_nsec;
}

void
linux_clock_read(struct linux_loop *loop)
{
    int64_t least = loop->loop.now > 0 ? loop->loop.now : NS_PER_S;
    int64_t now = clock_read(CLOCK_MONOTONIC);
    int64_t added = atomic_load_explicit(&loop->platform->clock_added, memory_order_relaxed);
    while (now + added < least &&
           !atomic_compare_exchange_weak(&loop->platform->clock_added, &added, least - now))
        continue;
    added = now + added < least ? least - now : added;
    if (added != loop->clock_added) { /* the poll timer was set by the clock of before */
        loop->poll_timer_due = NEVER;
        uv_update_time(&loop->uv);
    }
    loop->clock_added = added;
    loop->loop.now = now + added;
}

int64_t
platform_clock_wall(struct loop *loop)
{
    if (loop == NULL)
        return clock_read(CLOCK_REALTIME);
    return clock_read(CLOCK_REALTIME) +
           atomic_load_explicit(&loop->platform->wall_skipped, memory_order_relaxed);
}

void
platform_clock_skip(struct loop *loop, int64_t nanoseconds)
{
    atomic_fetch_add_explicit(&loop->platform->wall_skipped, nanoseconds, memory_order_relaxed);
}

static void
entropy_fetch(void *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t got = getrandom((char *)bytes + done, count - done, 0);
        check_that(got > 0 || errno == EINTR, "the kernel gives no randomness");
        if (got > 0)
            done += (size_t)got;
    }
}

void
platform_entropy(struct loop *core, void *bytes, size_t count)
{
    struct linux_loop *loop = core == NULL ? NULL : container_of(core, struct linux_loop, loop);
    if (loop == NULL || count > sizeof loop->entropy) {
        entropy_fetch(bytes, count);
        return;
    }
    if (loop->entropy_left < count) {
        entropy_fetch(loop->entropy, sizeof loop->entropy);
        loop->entropy_left = sizeof loop->entropy;
    }
    unsigned char *next = loop->entropy + sizeof loop->entropy - loop->entropy_left;
    memcpy(bytes, next, count);
    memset(next, 0, count); /* nobody shall read old ids' bytes out of memory */
    loop->entropy_left -= count;
}
