/* sync.c - mutex, condition and latch: lists of waiters that live on their fibers' stacks.
 *
 * A mutex is handed over: unlock makes the first waiter the owner at once, so nobody can slip in
 * between and a waiter that finds itself the owner has it, whatever woke it. A signal of a
 * condition skips waiters that a deadline or cancel has woken already: it would be lost on them. */
#include "fiber/sync.h"

#include "base/check.h"
#include "fiber/core.h"

struct sync_waiter {
    struct list node;
    struct fiber *fiber;
};

/* The first waiter, taken out; NULL: nobody. */
static struct sync_waiter *
waiter_pop(struct list *waiters)
{
    struct list *node = list_pop_front(waiters);
    return node == NULL ? NULL : list_entry(node, struct sync_waiter, node);
}

/* ---- mutex ---- */

void
fiber_mutex_init(struct fiber_mutex *mutex)
{
    mutex->owner = NULL;
    list_init(&mutex->waiters);
}

struct error *
fiber_mutex_lock(struct fiber_mutex *mutex, struct arena *arena)
{
    struct sync_waiter self = {.fiber = fiber_self()};
    check(self.fiber != NULL);
    check_that(mutex->owner != self.fiber, "the fiber has this mutex already");
    if (mutex->owner == NULL) {
        mutex->owner = self.fiber;
        return NULL;
    }
    list_push_back(&mutex->waiters, &self.node);
    enum wake wake = WAKE_READY;
    while (mutex->owner != self.fiber && wake == WAKE_READY)
        wake = fiber_wait(NEVER);
    if (mutex->owner == self.fiber)
        return NULL;
    list_remove(&self.node);
    return wake_error(wake, arena, "waiting for a lock");
}

void
fiber_mutex_unlock(struct fiber_mutex *mutex)
{
    check_that(mutex->owner == fiber_self(), "only the owner may unlock");
    struct sync_waiter *next = waiter_pop(&mutex->waiters);
    mutex->owner = next == NULL ? NULL : next->fiber;
    if (next != NULL)
        fiber_wake(next->fiber);
}

void
fiber_mutex_release(struct fiber_mutex **mutex)
{
    if (*mutex != NULL)
        fiber_mutex_unlock(*mutex);
}

/* ---- condition ---- */

void
fiber_cond_init(struct fiber_cond *cond)
{
    list_init(&cond->waiters);
}

enum wake
fiber_cond_wait(struct fiber_cond *cond, int64_t deadline)
{
    struct sync_waiter self = {.fiber = fiber_self()};
    list_push_back(&cond->waiters, &self.node);
    enum wake wake = fiber_wait(deadline);
    list_remove(&self.node);
    return wake;
}

void
fiber_cond_signal(struct fiber_cond *cond)
{
    for (struct sync_waiter *waiter; (waiter = waiter_pop(&cond->waiters)) != NULL;) {
        if (!fiber_is_waiting(waiter->fiber))
            continue;
        fiber_wake(waiter->fiber);
        return;
    }
}

void
fiber_cond_broadcast(struct fiber_cond *cond)
{
    for (struct sync_waiter *waiter; (waiter = waiter_pop(&cond->waiters)) != NULL;)
        if (fiber_is_waiting(waiter->fiber))
            fiber_wake(waiter->fiber);
}

/* ---- latch ---- */

void
latch_init(struct latch *latch, unsigned open)
{
    latch->open = open;
    fiber_cond_init(&latch->zero);
}

void
latch_add(struct latch *latch, unsigned more)
{
    latch->open += more;
    check(latch->open >= more);
}

void
latch_done(struct latch *latch)
{
    check(latch->open > 0);
    if (--latch->open == 0)
        fiber_cond_broadcast(&latch->zero);
}

void
latch_wait(struct latch *latch)
{
    while (latch->open > 0) {
        struct sync_waiter self = {.fiber = fiber_self()};
        list_push_back(&latch->zero.waiters, &self.node);
        fiber_wait_uncancellable();
        list_remove(&self.node);
    }
}

bool
latch_wait_until(struct latch *latch, int64_t deadline)
{
    while (latch->open > 0)
        if (fiber_cond_wait(&latch->zero, deadline) != WAKE_READY)
            break;
    return latch->open == 0;
}
