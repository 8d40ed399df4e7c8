/* fiber.c - fibers: starting, switching, waiting, waking.
 *
 * A switch always goes between the loop's own stack and one fiber, never from fiber to fiber: the
 * loop is the one place that decides who runs next. boost_context does the jump itself (about 20
 * instructions).
 *
 * 1. A fiber is in loop->runnable or loop->yielded exactly while its state is RUNNABLE.
 * 2. Its timer is pending only while it is WAITING.
 * 3. A wake while WAITING ends the wait. At any other time, also between the end of a wait and its
 * running on, it is remembered for the next wait: a wait that returns too early costs one more
 * check, a lost wake hangs its fiber for ever. */
#include "fiber/fiber.h"

#include <string.h>

#include "base/check.h"
#include "fiber/clock.h"
#include "fiber/core.h"
#include "fiber/sanitizer.h"

/* boost_context's C symbols; its own headers are C++. */
struct fiber_transfer {
    void *context; /* of the side that jumped */
    void *data;
};
struct fiber_transfer jump_fcontext(void *to, void *data);
void *make_fcontext(void *stack_top, size_t size, void (*entry)(struct fiber_transfer));

/* ---- switching ---- */

/* Back to the loop's own stack; returns when the loop resumes this fiber. */
static void
fiber_suspend(struct fiber *fiber)
{
    struct loop *loop = fiber->loop;
    sanitizer_leave(&fiber->fake_stack, loop->own_stack.bottom, loop->own_stack.size,
                    loop->own_stack.thread);
    loop->context = jump_fcontext(loop->context, fiber).context;
    sanitizer_arrive(fiber->fake_stack, &loop->own_stack.bottom, &loop->own_stack.size);
}

/* The first frame of every fiber. Its end is a jump that does not return. */
static void
fiber_enter(struct fiber_transfer transfer)
{
    struct fiber *fiber = transfer.data;
    struct loop *loop = fiber->loop;
    loop->context = transfer.context;
    sanitizer_arrive(NULL, &loop->own_stack.bottom, &loop->own_stack.size);
    fiber->function(fiber->argument);
    fiber->state = FIBER_ENDED;
    sanitizer_leave(NULL, loop->own_stack.bottom, loop->own_stack.size, loop->own_stack.thread);
    jump_fcontext(loop->context, fiber);
    unreachable("fiber %s ran on after its end", fiber->name);
}

static void
fiber_end(struct loop *loop, struct fiber *fiber)
{
    platform_trace(loop, "end", fiber->number);
    check(!timer_is_pending(&fiber->timer));
    list_remove(&fiber->node);
    loop->fiber_count--;
    sanitizer_thread_free(fiber->thread);
    stack_give(loop, fiber);
}

void
fiber_resume(struct loop *loop, struct fiber *fiber)
{
    check(loop->current == NULL && fiber->state == FIBER_RUNNABLE);
    platform_trace(loop, "run", fiber->number);
    fiber->state = FIBER_RUNNING;
    loop->current = fiber;
    loop->switches++;
    loop->own_stack.thread = sanitizer_thread_self();
    sanitizer_leave(&loop->own_stack.fake_stack, fiber->stack_low, fiber->stack_size,
                    fiber->thread);
    fiber->context = jump_fcontext(fiber->context, fiber).context;
    sanitizer_arrive(loop->own_stack.fake_stack, NULL, NULL);
    loop->current = NULL;
    if (fiber->state == FIBER_ENDED)
        fiber_end(loop, fiber);
}

/* ---- life ---- */

static void
fiber_make_runnable(struct fiber *fiber, enum wake wake)
{
    fiber->state = FIBER_RUNNABLE;
    fiber->wake = wake;
    list_push_back(&fiber->loop->runnable, &fiber->run_node);
    core_loop_kick(fiber->loop);
}

static void
fiber_end_wait(struct fiber *fiber, enum wake wake)
{
    timer_stop(&fiber->timer);
    fiber_make_runnable(fiber, wake);
}

static void
fiber_fire(struct timer *timer)
{
    struct fiber *fiber = container_of(timer, struct fiber, timer);
    check(fiber->state == FIBER_WAITING);
    fiber_make_runnable(fiber, WAKE_DEADLINE);
}

struct fiber *
fiber_start(const char *name, void (*function)(void *argument), void *argument)
{
    struct loop *loop = loop_self();
    struct fiber *fiber = stack_take(loop);
    void *stack_low = fiber->stack_low;
    size_t stack_size = fiber->stack_size;
    *fiber = (struct fiber){.loop = loop,
                            .name = name,
                            .number = ++loop->fiber_sequence,
                            .function = function,
                            .argument = argument,
                            .deadline = NEVER,
                            .stack_low = stack_low,
                            .stack_size = stack_size,
                            .thread = sanitizer_thread_new()};
    timer_init(&fiber->timer, fiber_fire);
    fiber->context = make_fcontext((char *)stack_low + stack_size, stack_size, fiber_enter);
    list_push_back(&loop->fibers, &fiber->node);
    loop->fiber_count++;
    platform_trace(loop, name, fiber->number);
    fiber_make_runnable(fiber, WAKE_READY);
    return fiber;
}

struct fiber *
fiber_self(void)
{
    return loop_self()->current;
}

size_t
fiber_count(void)
{
    return loop_self()->fiber_count;
}

/* ---- waiting ---- */

/* The running fiber; only a fiber may wait. */
static struct fiber *
fiber_running(void)
{
    struct fiber *fiber = fiber_self();
    check_that(fiber != NULL, "only a fiber may wait, not a callback on the loop's own stack");
    return fiber;
}

void
fiber_yield(void)
{
    struct fiber *fiber = fiber_running();
    fiber->state = FIBER_RUNNABLE;
    list_push_back(&fiber->loop->yielded, &fiber->run_node);
    fiber_suspend(fiber);
}

static enum wake
fiber_wait_until(struct fiber *fiber, int64_t deadline)
{
    fiber->state = FIBER_WAITING;
    if (deadline != NEVER)
        timer_start(&fiber->timer, deadline);
    fiber_suspend(fiber);
    check(fiber->state == FIBER_RUNNING);
    return fiber->wake;
}

enum wake
fiber_wait(int64_t deadline)
{
    struct fiber *fiber = fiber_running();
    if (fiber->is_cancelled)
        return WAKE_CANCELLED;
    if (fiber->is_woken) {
        fiber->is_woken = false;
        return WAKE_READY;
    }
    if (deadline > fiber->deadline)
        deadline = fiber->deadline;
    if (deadline <= fiber->loop->now)
        return WAKE_DEADLINE;
    return fiber_wait_until(fiber, deadline);
}

enum wake
fiber_wait_for(bool is_uncancellable)
{
    struct fiber *fiber = fiber_running();
    if (fiber->is_cancelled && !is_uncancellable)
        return WAKE_CANCELLED;
    if (fiber->is_woken) {
        fiber->is_woken = false;
        return WAKE_READY;
    }
    fiber->is_uncancellable = is_uncancellable;
    enum wake wake = fiber_wait_until(fiber, NEVER);
    fiber->is_uncancellable = false;
    return wake;
}

void
fiber_wait_uncancellable(void)
{
    enum wake wake = fiber_wait_for(true);
    check(wake == WAKE_READY);
}

void
fiber_wake(struct fiber *fiber)
{
    check_that(fiber->loop == loop_self(), "fiber %s is of another loop", fiber->name);
    check(fiber->state != FIBER_ENDED);
    if (fiber->state == FIBER_WAITING)
        fiber_end_wait(fiber, WAKE_READY);
    else
        fiber->is_woken = true;
}

bool
fiber_is_waiting(const struct fiber *fiber)
{
    return fiber->state == FIBER_WAITING;
}

struct error *
fiber_sleep(int64_t nanoseconds, struct arena *arena)
{
    check(nanoseconds >= 0);
    int64_t now = clock_monotonic();
    int64_t due = nanoseconds > NEVER - now ? NEVER : now + nanoseconds;
    while (clock_monotonic() < due) {
        enum wake wake = fiber_wait(due);
        if (wake == WAKE_READY || (wake == WAKE_DEADLINE && clock_monotonic() >= due))
            continue; /* somebody's wake is not the end of the sleep */
        return wake_error(wake, arena, "sleeping");
    }
    return NULL;
}

/* ---- deadline, cancel ---- */

int64_t
fiber_deadline(void)
{
    return fiber_running()->deadline;
}

void
fiber_set_deadline(int64_t deadline)
{
    fiber_running()->deadline = deadline;
}

void
fiber_cancel(struct fiber *fiber)
{
    check_that(fiber->loop == loop_self(), "fiber %s is of another loop", fiber->name);
    fiber->is_cancelled = true;
    if (fiber->state == FIBER_WAITING && !fiber->is_uncancellable)
        fiber_end_wait(fiber, WAKE_CANCELLED);
}

bool
fiber_is_cancelled(void)
{
    return fiber_running()->is_cancelled;
}

struct error *
wake_error(enum wake wake, struct arena *arena, const char *doing)
{
    switch (wake) {
    case WAKE_READY:
        return NULL;
    case WAKE_DEADLINE:
        return error_new(arena, ERR_DEADLINE, "deadline exceeded while %s", doing);
    case WAKE_CANCELLED:
        return error_new(arena, ERR_CANCELLED, "cancelled while %s", doing);
    }
    unreachable("wake %d", (int)wake);
}

/* ---- NO_YIELD ---- */

uint64_t
fiber_switches(void)
{
    return loop_self()->switches;
}

void
fiber_check_no_yield(uint64_t mark)
{
    check_that(loop_self()->switches == mark, "a NO_YIELD block yielded");
}
