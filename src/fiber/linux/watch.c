/* watch.c - descriptors of others: libraries that bring their own epoll set. */
#include "base/check.h"
#include "base/memory.h"
#include "fiber/linux/inside.h"
#include "fiber/platform.h"

struct watch {
    uv_poll_t handle;
    void (*ready)(void *context);
    void *context;
};

static void
watch_event(uv_poll_t *handle, int status, int events)
{
    struct watch *watch = container_of(handle, struct watch, handle);
    struct linux_loop *loop = linux_loop_self();
    linux_clock_read(loop); /* the poll may have been long */
    watch->ready(watch->context);
}

struct watch *
watch_new(int descriptor, void (*ready)(void *context), void *context)
{
    struct linux_loop *loop = linux_loop_self();
    struct watch *watch = memory_zalloc(1, sizeof *watch);
    watch->ready = ready;
    watch->context = context;
    int failed = uv_poll_init(&loop->uv, &watch->handle, descriptor);
    check_that(failed == 0, "descriptor %d: %s", descriptor, uv_strerror(failed));
    failed = uv_poll_start(&watch->handle, UV_READABLE, watch_event);
    check(failed == 0);
    loop->open_handles++;
    return watch;
}

static void
watch_closed(uv_handle_t *handle)
{
    memory_free(container_of((uv_poll_t *)handle, struct watch, handle));
}

void
watch_free(struct watch *watch)
{
    struct linux_loop *loop = linux_loop_self();
    check(watch->handle.loop == &loop->uv && loop->open_handles > 0);
    loop->open_handles--;
    uv_close((uv_handle_t *)&watch->handle, watch_closed);
}
