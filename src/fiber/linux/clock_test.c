/* clock_test.c - a monotonic clock that is faked: it begins before 0, and goes back.
 *
 * Method: this program has a clock_gettime of its own, as libraries that fake the time do, which
 * libuv gets too. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/test.h"
#include "fiber/clock.h"
#include "fiber/fiber.h"
#include "fiber/linux/linux.h"
#include "fiber/pool.h"

#define HOUR (3600 * NS_PER_S)

static _Atomic int64_t faked; /* added to the monotonic clocks */

int
clock_gettime(clockid_t id, struct timespec *time)
{
    if (syscall(SYS_clock_gettime, id, time) != 0)
        return -1;
    if (id == CLOCK_REALTIME)
        return 0;
    int64_t moment = (int64_t)time->tv_sec * NS_PER_S + time->tv_nsec + atomic_load(&faked);
    time->tv_nsec = (moment % NS_PER_S + NS_PER_S) % NS_PER_S;
    time->tv_sec = (moment - time->tv_nsec) / NS_PER_S;
    return 0;
}

/* Sleeps several times; the clock that is asked for must show at least that each time. */
static void
sleep_often(struct arena *arena)
{
    for (int i = 0; i < 5; i++) {
        int64_t before = clock_monotonic();
        EXPECT(before > 0);
        EXPECT_OK(fiber_sleep(3 * NS_PER_MS, arena));
        EXPECT(clock_monotonic() >= before + 3 * NS_PER_MS);
    }
}

static void
set_back(void *argument)
{
    atomic_fetch_sub(&faked, HOUR);
}

static void
sleep_while_it_goes_back(void *argument)
{
    struct arena *arena = arena_new(0);
    sleep_often(arena);
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(pool_run(set_back, NULL, arena)); /* it ends the loop's sleep, as a call does */
        sleep_often(arena);
    }
    arena_free(arena);
}

TEST(linux_clock, deadlines_come_though_the_monotonic_clock_goes_back)
{
    linux_run(&(struct linux_options){.loops = 2}, sleep_while_it_goes_back, NULL);
}

TEST(linux_clock, a_monotonic_clock_may_begin_before_0)
{
    atomic_store(&faked, -100000 * HOUR);
    linux_run(&(struct linux_options){.loops = 2}, sleep_while_it_goes_back, NULL);
}
