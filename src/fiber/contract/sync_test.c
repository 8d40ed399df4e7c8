/* sync_test.c - mutex, condition, latch. */
#include "fiber/sync.h"

#include <string.h>

#include "fiber/contract/contract.h"

struct shared {
    struct fiber_mutex mutex;
    struct fiber_cond cond;
    struct latch latch;
    char text[64];
    unsigned inside;
    unsigned count;
    enum wake wake;
};

static void
shared_init(struct shared *shared, unsigned open)
{
    *shared = (struct shared){.count = 0};
    fiber_mutex_init(&shared->mutex);
    fiber_cond_init(&shared->cond);
    latch_init(&shared->latch, open);
}

static void
enter_and_yield(void *argument)
{
    struct shared *shared = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    for (int i = 0; i < 10; i++) {
        EXPECT_OK(fiber_mutex_lock(&shared->mutex, arena));
        maybe_unused scoped(fiber_mutex_release) struct fiber_mutex *held = &shared->mutex;
        EXPECT_EQ(shared->inside++, 0);
        fiber_yield();
        shared->inside--;
        shared->count++;
    }
    latch_done(&shared->latch);
}

CONTRACT(mutex, one_fiber_at_a_time_is_inside, 1)
{
    struct shared shared;
    shared_init(&shared, 20);
    for (int i = 0; i < 20; i++)
        fiber_start("enter", enter_and_yield, &shared);
    latch_wait(&shared.latch);
    EXPECT_EQ(shared.count, 200);
    EXPECT(shared.mutex.owner == NULL);
}

struct visitor {
    struct shared *shared;
    char message;
    int64_t deadline;
    enum error_kind failed; /* ERROR_KIND_COUNT: not */
};

static void
visit(void *argument)
{
    struct visitor *visitor = argument;
    struct shared *shared = visitor->shared;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    fiber_set_deadline(visitor->deadline);
    struct error *err = fiber_mutex_lock(&shared->mutex, arena);
    visitor->failed = err == NULL ? ERROR_KIND_COUNT : err->kind;
    if (err == NULL) {
        shared->text[strlen(shared->text)] = visitor->message;
        fiber_mutex_unlock(&shared->mutex);
    }
    latch_done(&shared->latch);
}

CONTRACT(mutex, it_is_handed_over_in_order_of_arrival, 1)
{
    struct shared shared;
    shared_init(&shared, 5);
    struct visitor visitors[5];
    EXPECT_OK(fiber_mutex_lock(&shared.mutex, arena));
    for (int i = 0; i < 5; i++) {
        visitors[i] = (struct visitor){&shared, (char)('a' + i), NEVER, 0};
        fiber_start("visit", visit, &visitors[i]);
    }
    fiber_yield();
    fiber_mutex_unlock(&shared.mutex);
    EXPECT(shared.mutex.owner != NULL); /* nobody can slip in between */
    latch_wait(&shared.latch);
    EXPECT_TEXT(shared.text, "abcde");
}

CONTRACT(mutex, waiters_that_give_up_are_skipped, 1)
{
    struct shared shared;
    shared_init(&shared, 3);
    EXPECT_OK(fiber_mutex_lock(&shared.mutex, arena));
    struct visitor late = {&shared, 'l', clock_monotonic() + NS_PER_MS, 0};
    struct visitor cancelled = {&shared, 'c', NEVER, 0};
    struct visitor patient = {&shared, 'p', NEVER, 0};
    fiber_start("visit", visit, &late);
    struct fiber *fiber = fiber_start("visit", visit, &cancelled);
    fiber_start("visit", visit, &patient);
    EXPECT_OK(fiber_sleep(3 * NS_PER_MS, arena));
    fiber_cancel(fiber);
    fiber_yield();
    fiber_mutex_unlock(&shared.mutex);
    latch_wait(&shared.latch);
    EXPECT_TEXT(shared.text, "p");
    EXPECT_EQ(late.failed, ERR_DEADLINE);
    EXPECT_EQ(cancelled.failed, ERR_CANCELLED);
}

static void
wait_for_signal(void *argument)
{
    struct shared *shared = argument;
    shared->wake = fiber_cond_wait(&shared->cond, NEVER);
    shared->count++;
    latch_done(&shared->latch);
}

CONTRACT(cond, a_signal_wakes_one_and_a_broadcast_all, 1)
{
    struct shared shared;
    shared_init(&shared, 10);
    for (int i = 0; i < 10; i++)
        fiber_start("wait", wait_for_signal, &shared);
    fiber_yield();
    fiber_cond_signal(&shared.cond);
    fiber_yield();
    EXPECT_EQ(shared.count, 1);
    fiber_cond_broadcast(&shared.cond);
    latch_wait(&shared.latch);
    EXPECT_EQ(shared.count, 10);
}

/* The signal comes when the first waiter was cancelled but has not run yet: it must reach the
 * second. */
CONTRACT(cond, a_signal_is_not_lost_on_a_cancelled_waiter, 1)
{
    struct shared first, second;
    shared_init(&first, 1);
    shared_init(&second, 1);
    struct fiber *fiber = fiber_start("wait", wait_for_signal, &first);
    fiber_yield();
    fiber_start("wait", wait_for_signal, &first);
    fiber_yield();
    latch_add(&first.latch, 1);
    fiber_cancel(fiber);
    fiber_cond_signal(&first.cond);
    latch_wait(&first.latch);
    EXPECT_EQ(first.count, 2);
}

CONTRACT(cond, a_wait_ends_at_its_deadline, 1)
{
    struct fiber_cond cond;
    fiber_cond_init(&cond);
    int64_t due = clock_monotonic() + 2 * NS_PER_MS;
    EXPECT_EQ(fiber_cond_wait(&cond, due), WAKE_DEADLINE);
    EXPECT(clock_monotonic() >= due);
    EXPECT(list_is_empty(&cond.waiters));
}

static void
done_later(void *argument)
{
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(fiber_sleep(5 * NS_PER_MS, arena));
    latch_done(argument);
}

CONTRACT(latch, it_opens_at_zero_and_not_before, 1)
{
    struct latch latch;
    latch_init(&latch, 1);
    latch_add(&latch, 1);
    fiber_start("later", done_later, &latch);
    fiber_start("later", done_later, &latch);
    EXPECT(!latch_wait_until(&latch, clock_monotonic() + NS_PER_MS));
    EXPECT_EQ(latch.open, 2);
    EXPECT(latch_wait_until(&latch, clock_monotonic() + 3600 * NS_PER_S));
    latch_wait(&latch);
}

static void
cancel_and_done(void *argument)
{
    struct shared *shared = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    EXPECT_OK(fiber_sleep(2 * NS_PER_MS, arena));
    shared->count = 1;
    latch_done(&shared->latch);
}

static void
wait_though_cancelled(void *argument)
{
    struct shared *shared = argument;
    latch_wait(&shared->latch);
    shared->inside = shared->count; /* 1: it waited for the end */
    fiber_cond_signal(&shared->cond);
}

CONTRACT(latch, waiting_cannot_be_cancelled, 1)
{
    struct shared shared;
    shared_init(&shared, 1);
    fiber_start("worker", cancel_and_done, &shared);
    struct fiber *fiber = fiber_start("waiter", wait_though_cancelled, &shared);
    fiber_yield();
    fiber_cancel(fiber);
    EXPECT_EQ(fiber_cond_wait(&shared.cond, NEVER), WAKE_READY);
    EXPECT_EQ(shared.inside, 1);
}
