/* stop.c - how a process ends: signals that ask for it, and finding out that nothing is left to do.
 *
 * When the first fiber has returned, every loop cancels its fibers, also those that start later,
 * until all loops are quiet at once: no fiber, no letter waiting, no job in the pool. A loop says
 * that it is quiet under a lock and looks at the others; the last one ends the ground. It takes the
 * word back, under the same lock, before it does anything that could make a letter vanish from its
 * count: so "all are quiet and no mailbox has letters" is true at one moment. */
#include <signal.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/ground.h"
#include "fiber/linux/inside.h"
#include "fiber/linux/linux.h"

#define STOPPING_MAX (30 * NS_PER_S)

static bool
has_nothing_to_do(const struct linux_loop *loop)
{
    return loop->loop.fiber_count == 0 && loop->pool_jobs == 0 && core_loop_due(&loop->loop) != 0 &&
           atomic_load(&loop->mailbox.count) == 0;
}

static void
end_ground(struct ground *ground)
{
    atomic_store(&ground->is_over, true);
    for (unsigned i = 0; i < ground->loop_count; i++)
        linux_loop_awake(&ground->loops[i]);
}

/* Under the lock. */
static bool
are_all_quiet(const struct ground *ground)
{
    for (unsigned i = 0; i < ground->loop_count; i++)
        if (!ground->loops[i].is_quiet || atomic_load(&ground->loops[i].mailbox.count) != 0)
            return false;
    return true;
}

void
linux_loop_stop_step(struct linux_loop *loop)
{
    struct ground *ground = loop->ground;
    if (loop->stopping_since == 0)
        loop->stopping_since = loop->loop.now;
    core_loop_cancel_all(&loop->loop);
    if (!has_nothing_to_do(loop)) {
        if (loop->loop.now - loop->stopping_since > STOPPING_MAX) {
            core_loop_dump(&loop->loop);
            check_that(false, "%zu fibers of loop %u do not end", loop->loop.fiber_count,
                       loop->loop.index);
        }
        return;
    }
    pthread_mutex_lock(&ground->stop_lock);
    loop->is_quiet = true;
    bool is_over = are_all_quiet(ground);
    pthread_mutex_unlock(&ground->stop_lock);
    if (is_over)
        end_ground(ground);
}

void
linux_loop_unquiet(struct linux_loop *loop)
{
    if (!loop->is_quiet)
        return;
    pthread_mutex_lock(&loop->ground->stop_lock);
    loop->is_quiet = false;
    pthread_mutex_unlock(&loop->ground->stop_lock);
}

/* ---- signals ---- */

static void
hear_signal(uv_signal_t *handle, int number)
{
    struct ground *ground = handle->data;
    if (ground->stop != NULL)
        ground->stop(ground->stop_context);
    else
        ground->is_stop_unheard = true;
}

static void
hear_signal_late(struct timer *timer)
{
    struct ground *ground = container_of(timer, struct ground, stop_timer);
    if (ground->stop == NULL)
        return;
    ground->is_stop_unheard = false;
    ground->stop(ground->stop_context);
}

void
signals_open(struct ground *ground)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    timer_init(&ground->stop_timer, hear_signal_late);
    for (size_t i = 0; ground->catches_signals && i < array_length(numbers); i++) {
        uv_signal_init(&ground->loops[0].uv, &ground->signals[i]);
        ground->signals[i].data = ground;
        int failed = uv_signal_start(&ground->signals[i], hear_signal, numbers[i]);
        check_that(failed == 0, "no handler for signal %d: %s", numbers[i], uv_strerror(failed));
    }
    uv_signal_init(&ground->loops[0].uv, &ground->hangup_signal);
    ground->hangup_signal.data = ground;
}

void
signals_close(struct ground *ground)
{
    for (size_t i = 0; ground->catches_signals && i < array_length(ground->signals); i++)
        uv_close((uv_handle_t *)&ground->signals[i], NULL);
    uv_close((uv_handle_t *)&ground->hangup_signal, NULL);
}

static void
hear_hangup(uv_signal_t *handle, int number)
{
    struct ground *ground = handle->data;
    ground->hangup(ground->hangup_context);
}

void
linux_on_hangup(void (*hangup)(void *context), void *context)
{
    struct linux_loop *loop = linux_loop_self();
    struct ground *ground = loop->ground;
    check_that(loop->loop.index == 0, "signals are heard on loop 0");
    ground->hangup = hangup;
    ground->hangup_context = context;
    int failed = hangup == NULL ? uv_signal_stop(&ground->hangup_signal)
                                : uv_signal_start(&ground->hangup_signal, hear_hangup, SIGHUP);
    check_that(failed == 0, "no handler for SIGHUP: %s", uv_strerror(failed));
}

void
ground_on_stop(void (*stop)(void *context), void *context)
{
    struct linux_loop *loop = linux_loop_self();
    check_that(loop->loop.index == 0, "signals are heard on loop 0");
    loop->ground->stop = stop;
    loop->ground->stop_context = context;
    if (stop != NULL && loop->ground->is_stop_unheard)
        timer_start(&loop->ground->stop_timer, 0);
}
