/* stop.c - how a process ends: signals that ask for it, and finding out that nothing is left to do.
 *
 * When the first fiber has returned, every loop cancels its fibers, also those that start later,
 * until all loops are quiet at once: no fiber, no message waiting, no job in the pool. A loop says
 * that it is quiet under a lock and looks at the others; the last one ends the platform. It takes
 * that back, under the same lock, before it does anything that could make a message vanish from its
 * count: so "all are quiet and no mailbox has messages" is true at one moment. */
#include <signal.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/linux/inside.h"
#include "fiber/linux/linux.h"
#include "fiber/platform.h"

#define STOPPING_MAX (30 * NS_PER_S)

static bool
has_nothing_to_do(const struct linux_loop *loop)
{
    return loop->loop.fiber_count == 0 && loop->pool_jobs == 0 && core_loop_due(&loop->loop) != 0 &&
           atomic_load(&loop->mailbox.count) == 0;
}

static void
end_platform(struct platform *platform)
{
    atomic_store(&platform->is_over, true);
    for (unsigned i = 0; i < platform->loop_count; i++)
        linux_loop_awake(&platform->loops[i]);
}

/* Under the lock. */
static bool
are_all_quiet(const struct platform *platform)
{
    for (unsigned i = 0; i < platform->loop_count; i++)
        if (!platform->loops[i].is_quiet || atomic_load(&platform->loops[i].mailbox.count) != 0)
            return false;
    return true;
}

void
linux_loop_stop_step(struct linux_loop *loop)
{
    struct platform *platform = loop->platform;
    if (loop->stopping_since == 0)
        loop->stopping_since = loop->loop.now;
    core_loop_cancel_all(&loop->loop);
    if (!has_nothing_to_do(loop)) {
        if (loop->loop.now - loop->stopping_since > STOPPING_MAX) {
            core_loop_dump(&loop->loop);
            check_that(false, "%zu fibers of loop %u do not end", loop->loop.fiber_count,
                       loop->loop.head.index);
        }
        return;
    }
    pthread_mutex_lock(&platform->stop_lock);
    loop->is_quiet = true;
    bool is_over = are_all_quiet(platform);
    pthread_mutex_unlock(&platform->stop_lock);
    if (is_over)
        end_platform(platform);
}

void
linux_loop_unquiet(struct linux_loop *loop)
{
    if (!loop->is_quiet)
        return;
    pthread_mutex_lock(&loop->platform->stop_lock);
    loop->is_quiet = false;
    pthread_mutex_unlock(&loop->platform->stop_lock);
}

/* ---- signals ---- */

static void
on_signal(uv_signal_t *handle, int number)
{
    struct platform *platform = handle->data;
    if (platform->stop != NULL)
        platform->stop(platform->stop_context);
    else
        platform->is_stop_pending = true;
}

static void
on_signal_late(struct timer *timer)
{
    struct platform *platform = container_of(timer, struct platform, stop_timer);
    if (platform->stop == NULL)
        return;
    platform->is_stop_pending = false;
    platform->stop(platform->stop_context);
}

void
signals_open(struct platform *platform)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    timer_init(&platform->stop_timer, on_signal_late);
    for (size_t i = 0; platform->catches_signals && i < array_length(numbers); i++) {
        uv_signal_init(&platform->loops[0].uv, &platform->signals[i]);
        platform->signals[i].data = platform;
        int failed = uv_signal_start(&platform->signals[i], on_signal, numbers[i]);
        check_that(failed == 0, "no handler for signal %d: %s", numbers[i], uv_strerror(failed));
    }
    uv_signal_init(&platform->loops[0].uv, &platform->hangup_signal);
    platform->hangup_signal.data = platform;
}

void
signals_close(struct platform *platform)
{
    for (size_t i = 0; platform->catches_signals && i < array_length(platform->signals); i++)
        uv_close((uv_handle_t *)&platform->signals[i], NULL);
    uv_close((uv_handle_t *)&platform->hangup_signal, NULL);
}

static void
on_hangup(uv_signal_t *handle, int number)
{
    struct platform *platform = handle->data;
    platform->hangup(platform->hangup_context);
}

void
linux_on_hangup(void (*hangup)(void *context), void *context)
{
    struct linux_loop *loop = linux_loop_self();
    struct platform *platform = loop->platform;
    check_that(loop->loop.head.index == 0, "signals are received on loop 0");
    platform->hangup = hangup;
    platform->hangup_context = context;
    int failed = hangup == NULL ? uv_signal_stop(&platform->hangup_signal)
                                : uv_signal_start(&platform->hangup_signal, on_hangup, SIGHUP);
    check_that(failed == 0, "no handler for SIGHUP: %s", uv_strerror(failed));
}

void
platform_on_stop(void (*stop)(void *context), void *context)
{
    struct linux_loop *loop = linux_loop_self();
    check_that(loop->loop.head.index == 0, "signals are received on loop 0");
    loop->platform->stop = stop;
    loop->platform->stop_context = context;
    if (stop != NULL && loop->platform->is_stop_pending)
        timer_start(&loop->platform->stop_timer, 0);
}
