/* poller.c - waiting for a descriptor with as few system calls as possible.
 *
 * epoll is asked for reading once and left so: a busy connection then costs no epoll_ctl. The price
 * is an event for which nobody waits; it switches the asking off until the next wait. What is ready
 * is remembered until a call says that it would block (poller_is_blocked), so a wait right after a
 * full read returns at once; and what blocks is remembered while epoll watches it, so a read right
 * before a wait costs no system call either. */
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "fiber/linux/inside.h"
#include "fiber/socket.h"

#define BOTH (SOCKET_READABLE | SOCKET_WRITABLE)

static void poller_event(uv_poll_t *handle, int status, int events);

static void
poller_arm(struct fd_poller *poller, unsigned events)
{
    int bits = ((events & SOCKET_READABLE) != 0 ? UV_READABLE : 0) |
               ((events & SOCKET_WRITABLE) != 0 ? UV_WRITABLE : 0);
    int failed = events == 0 ? uv_poll_stop(&poller->handle)
                             : uv_poll_start(&poller->handle, bits, poller_event);
    check_that(failed == 0, "%s", uv_strerror(failed));
    poller->armed = events;
}

static void
poller_event(uv_poll_t *handle, int status, int bits)
{
    struct fd_poller *poller = container_of(handle, struct fd_poller, handle);
    unsigned events = ((bits & UV_READABLE) != 0 ? SOCKET_READABLE : 0) |
                      ((bits & UV_WRITABLE) != 0 ? SOCKET_WRITABLE : 0);
    if (status < 0) { /* an error on the descriptor; libuv has stopped polling it */
        poller->armed = 0;
        events = BOTH;
    }
    bool is_changed = (poller->ready & poller->wanted) == 0;
    poller->ready |= events;
    if (poller->waiter != NULL && is_changed && (poller->ready & poller->wanted) != 0)
        fiber_wake(poller->waiter);
    unsigned unwanted = events & poller->armed & ~poller->wanted;
    if (unwanted != 0)
        poller_arm(poller, poller->armed & ~unwanted);
}

void
poller_open(struct fd_poller *poller, int descriptor)
{
    struct linux_loop *loop = linux_loop_self();
    *poller = (struct fd_poller){.descriptor = descriptor, .ready = SOCKET_WRITABLE};
    int failed = uv_poll_init(&loop->uv, &poller->handle, descriptor);
    check_that(failed == 0, "descriptor %d: %s", descriptor, uv_strerror(failed));
    loop->open_handles++;
}

unsigned
poller_wait(struct fd_poller *poller, unsigned events, int64_t deadline)
{
    if (fiber_is_cancelled())
        return 0;
    if ((poller->ready & events) != 0)
        return poller->ready & events;
    if ((events & ~poller->armed) != 0)
        poller_arm(poller, poller->armed | events);
    check_that(poller->waiter == NULL, "two fibers wait for one descriptor");
    poller->waiter = fiber_self();
    poller->wanted = events;
    enum wake wake = fiber_wait(deadline);
    poller->waiter = NULL;
    poller->wanted = 0;
    return wake == WAKE_CANCELLED ? 0 : poller->ready & events;
}

bool
poller_would_block(const struct fd_poller *poller, unsigned event)
{
    return (poller->ready & event) == 0 && (poller->armed & event) != 0;
}

void
poller_is_blocked(struct fd_poller *poller, unsigned events)
{
    poller->ready &= ~events;
}

static void
poller_closed(uv_handle_t *handle)
{
    struct fd_poller *poller = container_of((uv_poll_t *)handle, struct fd_poller, handle);
    poller->is_gone = true;
    memory_free(poller->owner);
}

void
poller_close(struct fd_poller *poller)
{
    struct linux_loop *loop = linux_loop_self();
    check(poller->handle.loop == &loop->uv && loop->open_handles > 0);
    loop->open_handles--;
    uv_close((uv_handle_t *)&poller->handle, poller_closed);
    close(poller->descriptor); /* allowed once uv_close was called */
}

void
poller_free(struct fd_poller *poller, void *owner)
{
    check_that(poller->waiter == NULL, "freed while a fiber waits for it");
    if (poller->is_gone)
        memory_free(owner);
    else
        poller->owner = owner;
}
