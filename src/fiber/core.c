/* core.c - a loop's tick: timers, fibers, deferred work; and the loop as a value.
 *
 * The thread knows which loop it runs by one thread-local pointer, the only one of this folder: a
 * simulation has many loops on one thread and enters each before it lets it tick. */
#include "fiber/core.h"

#include <stdio.h>

#include "base/check.h"
#include "fiber/probe.h"
#include "fiber/sanitizer.h"

/* Switches per tick at most; then sockets and messages get their turn. */
#define TICK_SWITCHES_MAX 1024

static _Thread_local struct loop *current_loop;

struct loop *
core_loop_enter(struct loop *loop)
{
    struct loop *before = current_loop;
    current_loop = loop;
    return before;
}

struct loop *
core_loop_current(void)
{
    return current_loop;
}

struct loop *
loop_self(void)
{
    check_that(current_loop != NULL, "this code must run on a loop");
    return current_loop;
}

bool
loop_is_here(void)
{
    return current_loop != NULL;
}

struct loop *
loop_at(unsigned index)
{
    const struct loop *self = loop_self();
    check(index < self->head.count);
    return platform_loop_at(self->platform, index);
}

void
probe(const char *name)
{
    platform_probe(current_loop, name);
}

/* ---- life of a loop ---- */

void
core_loop_init(struct loop *loop, struct platform *platform, unsigned index)
{
    struct loop_head head = {index, platform_loop_count(platform), platform_is_plain(platform)};
    *loop = (struct loop){.head = head, .platform = platform};
    list_init(&loop->runnable);
    list_init(&loop->yielded);
    list_init(&loop->deferred);
    list_init(&loop->fibers);
    list_init(&loop->spare_stacks);
}

void
core_loop_free(struct loop *loop)
{
    if (loop->fiber_count != 0)
        core_loop_dump(loop);
    check_that(loop->fiber_count == 0, "%zu fibers still live on loop %u", loop->fiber_count,
               loop->head.index);
    priority_free(&loop->timers);
    stack_drop_spare(loop);
}

void
core_loop_discard(struct loop *loop)
{
    check_that(loop->current == NULL, "a loop cannot be discarded by its own fiber");
    for (struct list *node; (node = list_pop_front(&loop->fibers)) != NULL;) {
        struct fiber *fiber = list_entry(node, struct fiber, node);
        sanitizer_thread_free(fiber->thread);
        stack_drop(fiber);
    }
    loop->fiber_count = 0;
    stack_drop_spare(loop);
}

void
core_loop_cancel_all(struct loop *loop)
{
    list_each(node, &loop->fibers)
        fiber_cancel(list_entry(node, struct fiber, node));
}

void
core_loop_dump(const struct loop *loop)
{
    static const char *const words[] = {"runnable", "running", "waiting", "ended"};
    list_each(node, &loop->fibers) {
        const struct fiber *fiber = list_entry(node, struct fiber, node);
        fprintf(stderr, "loop %u: fiber %s (%llu) is %s%s%s\n", loop->head.index, fiber->name,
                (unsigned long long)fiber->number, words[fiber->state],
                fiber->is_cancelled ? ", cancelled" : "",
                fiber->is_uncancellable ? ", cannot be cancelled now" : "");
    }
}

void
core_loop_kick(struct loop *loop)
{
    if (!loop->is_ticking)
        platform_kick(loop);
}

/* ---- deferred work ---- */

void
loop_defer(struct deferred *deferred)
{
    struct loop *loop = loop_self();
    if (!list_is_empty(&deferred->node))
        return;
    list_push_back(&loop->deferred, &deferred->node);
    core_loop_kick(loop);
}

void
loop_undefer(struct deferred *deferred)
{
    list_remove(&deferred->node);
}

/* Only what was deferred before this began: work that defers itself again waits for the next tick.
 */
static void
run_deferred(struct loop *loop)
{
    struct list batch;
    list_init(&batch);
    list_splice_back(&batch, &loop->deferred);
    for (struct list *node; (node = list_pop_front(&batch)) != NULL;) {
        struct deferred *deferred = list_entry(node, struct deferred, node);
        deferred->run(deferred);
    }
}

/* ---- a tick ---- */

/* A timer that is started meanwhile is due later than `now` (timer_start sees to it), so this ends.
 */
static void
fire_timers(struct loop *loop, int64_t now)
{
    for (struct timer *timer; (timer = timer_first_due(loop, now)) != NULL;) {
        timer_stop(timer);
        timer->fire(timer);
    }
}

static void
run_fibers(struct loop *loop)
{
    for (unsigned left = TICK_SWITCHES_MAX; left > 0; left--) {
        struct list *node = list_pop_front(&loop->runnable);
        if (node == NULL)
            return;
        fiber_resume(loop, list_entry(node, struct fiber, run_node));
    }
}

bool
core_loop_tick(struct loop *loop, int64_t now)
{
    check(current_loop == loop && loop->current == NULL && !loop->is_ticking);
    check_that(now >= loop->now, "the monotonic clock went back");
    loop->now = now;
    loop->is_ticking = true;
    fire_timers(loop, now);
    list_splice_back(&loop->runnable, &loop->yielded);
    run_fibers(loop);
    run_deferred(loop);
    loop->is_ticking = false;
    return core_loop_due(loop) == 0;
}

int64_t
core_loop_due(const struct loop *loop)
{
    if (!list_is_empty(&loop->runnable) || !list_is_empty(&loop->yielded) ||
        !list_is_empty(&loop->deferred))
        return 0;
    return timer_next_due(loop);
}
