/* loop.c - one loop: tick, poll, tick, ...
 *
 * libuv brings the events, the core decides who runs. A turn is: poll (socket events only wake
 * fibers), read the clock, deliver messages, core_loop_tick, wake those whom messages were sent to,
 * loops and workers. So a fiber runs in the same turn in which its socket became ready. The poll
 * does not block when something is runnable; otherwise it ends by a socket, by the poll timer,
 * which is set for the earliest timer of the core, or by the awakener. A poll timer that is too
 * early is left alone: it costs one empty turn, which is less than moving it each time a deadline
 * comes and goes. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/clock.h"
#include "fiber/linux/inside.h"

/* While stopping nobody sleeps longer, or a fiber that does not end would go unnoticed. */
#define STOPPING_NAP (1 * NS_PER_S)

struct linux_loop *
linux_loop_self(void)
{
    return container_of(loop_self(), struct linux_loop, loop);
}

static void
clear_awakener(uv_poll_t *awakener, int status, int events)
{
    eventfd_t count;
    (void)eventfd_read(container_of(awakener, struct linux_loop, awakener)->awakener_descriptor,
                       &count);
}

/* libuv also looks at its timers before it polls: then it must not begin to wait. */
static void
note_poll_timer(uv_timer_t *poll_timer)
{
    struct linux_loop *loop = poll_timer->data;
    loop->poll_timer_due = NEVER;
    uv_stop(&loop->uv);
}

void
linux_loop_open(struct linux_loop *loop, struct platform *platform, unsigned index)
{
    core_loop_init(&loop->loop, platform, index);
    loop->platform = platform;
    loop->poll_timer_due = NEVER;
    loop->posted_to = memory_zalloc(platform->loop_count, sizeof loop->posted_to[0]);
    int failed = uv_loop_init(&loop->uv);
    check_that(failed == 0, "no event loop: %s", uv_strerror(failed));
    linux_clock_read(loop);
    loop->awakener_descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    check_that(loop->awakener_descriptor >= 0, "no event descriptor");
    failed = uv_poll_init(&loop->uv, &loop->awakener, loop->awakener_descriptor);
    check(failed == 0);
    failed = uv_poll_start(&loop->awakener, UV_READABLE, clear_awakener);
    check(failed == 0);
    uv_timer_init(&loop->uv, &loop->poll_timer);
    loop->poll_timer.data = loop;
}

static void
count_handle(uv_handle_t *handle, void *argument)
{
    if (!uv_is_closing(handle))
        ++*(size_t *)argument;
}

void
linux_loop_close(struct linux_loop *loop)
{
    check_that(loop->open_handles == 0,
               "%zu sockets, listeners or watches of loop %u are still open", loop->open_handles,
               loop->loop.head.index);
    uv_close((uv_handle_t *)&loop->awakener, NULL);
    close(loop->awakener_descriptor);
    uv_close((uv_handle_t *)&loop->poll_timer, NULL);
    size_t left = 0;
    uv_walk(&loop->uv, count_handle, &left);
    check(left == 0);
    uv_run(&loop->uv, UV_RUN_DEFAULT); /* the closing ones */
    int failed = uv_loop_close(&loop->uv);
    check_that(failed == 0, "%s", uv_strerror(failed));
    memory_free(loop->posted_to);
    vector_free(&loop->to_wake);
    core_loop_free(&loop->loop);
}

void
linux_loop_awake(struct linux_loop *loop)
{
    int failed = eventfd_write(loop->awakener_descriptor, 1);
    check(failed == 0);
}

/* libuv counts milliseconds of the kernel's clock: rounded up, the poll timer never fires too
 * early. */
static void
set_poll_timer(struct linux_loop *loop, int64_t due)
{
    if (due >= loop->poll_timer_due)
        return;
    loop->poll_timer_due = due;
    uint64_t kernel_due = (uint64_t)(due - loop->clock_added);
    uint64_t due_ms = kernel_due / NS_PER_MS + (kernel_due % NS_PER_MS != 0);
    uint64_t now_ms = uv_now(&loop->uv);
    uv_timer_start(&loop->poll_timer, note_poll_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

static bool
is_over(struct linux_loop *loop)
{
    return atomic_load(&loop->platform->is_over);
}

static void
loop_poll(struct linux_loop *loop)
{
    int64_t due = core_loop_due(&loop->loop);
    if (loop->stopping_since != 0 && due > loop->loop.now + STOPPING_NAP)
        due = loop->loop.now + STOPPING_NAP;
    if (due <= loop->loop.now || !mailbox_fall_asleep(&loop->mailbox) || is_over(loop)) {
        uv_run(&loop->uv, UV_RUN_NOWAIT);
    } else {
        set_poll_timer(loop, due);
        uv_run(&loop->uv, UV_RUN_ONCE);
    }
    mailbox_wake_up(&loop->mailbox);
}

void
linux_loop_run(struct linux_loop *loop)
{
    struct loop *before = core_loop_enter(&loop->loop);
    while (!is_over(loop) || loop->loop.fiber_count > 0) {
        linux_clock_read(loop);
        mailbox_deliver(loop);
        core_loop_tick(&loop->loop, loop->loop.now);
        if (atomic_load(&loop->platform->is_stopping))
            linux_loop_stop_step(loop);
        mailbox_wake_owners(loop);
        worker_wake_all(loop);
        loop_poll(loop);
        linux_loop_unquiet(loop);
    }
    core_loop_enter(before);
}

/* ---- the port ---- */

struct loop *
platform_loop_at(struct platform *platform, unsigned index)
{
    return &platform->loops[index].loop;
}

unsigned
platform_loop_count(const struct platform *platform)
{
    return platform->loop_count;
}

/* Whatever happens on a loop's thread outside of a tick happens inside its poll, and a tick
 * follows. */
void
platform_kick(struct loop *loop)
{
}

void
platform_trace(struct loop *loop, const char *what, uint64_t number)
{
}

void
platform_probe(struct loop *loop, const char *name)
{
}

bool
platform_is_plain(const struct platform *platform)
{
    return true;
}

enum crossing
platform_crossing(struct loop *loop, bool may_be_lost, bool may_come_twice)
{
    return CROSSING_WHOLE;
}
