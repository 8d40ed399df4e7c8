/* fiber_test.c - fibers: order, waiting, waking, deadlines, cancelling. */
#include <string.h>

#include "base/memory.h"
#include "fiber/contract/contract.h"
#include "fiber/loop.h"
#include "fiber/sync.h"

/* What happened, one letter each. */
struct story {
    char text[64];
    struct latch latch;
    struct fiber *fiber;
    enum wake wake;
    int64_t woken_at;
    int64_t deadline;
};

static void
tell(struct story *story, char message)
{
    size_t length = strlen(story->text);
    check(length + 1 < sizeof story->text);
    story->text[length] = message;
}

static void
tell_a(void *argument)
{
    tell(argument, 'a');
    latch_done(&((struct story *)argument)->latch);
}

static void
tell_b(void *argument)
{
    tell(argument, 'b');
    latch_done(&((struct story *)argument)->latch);
}

CONTRACT(fiber, starts_run_in_order_after_the_starter_waits, 1)
{
    struct story story = {""};
    latch_init(&story.latch, 3);
    fiber_start("a", tell_a, &story);
    fiber_start("b", tell_b, &story);
    fiber_start("a", tell_a, &story);
    tell(&story, 'm');
    EXPECT_EQ(fiber_count(), 4);
    latch_wait(&story.latch);
    EXPECT_TEXT(story.text, "maba");
    fiber_yield();
    EXPECT_EQ(fiber_count(), 1);
}

static void
yield_twice(void *argument)
{
    struct story *story = argument;
    for (char message = '1'; message <= '3'; message++) {
        tell(story, message);
        fiber_yield();
    }
    latch_done(&story->latch);
}

CONTRACT(fiber, a_yield_lets_every_other_runnable_fiber_go_first, 1)
{
    struct story story = {""};
    latch_init(&story.latch, 2);
    fiber_start("one", yield_twice, &story);
    fiber_start("two", yield_twice, &story);
    latch_wait(&story.latch);
    EXPECT_TEXT(story.text, "112233");
}

CONTRACT(fiber, a_wake_before_the_wait_is_not_lost, 1)
{
    fiber_wake(fiber_self());
    EXPECT_EQ(fiber_wait(NEVER), WAKE_READY);
    EXPECT_EQ(fiber_wait(clock_monotonic() + NS_PER_MS), WAKE_DEADLINE); /* it was one wake */
}

static void
wait_for_wake(void *argument)
{
    struct story *story = argument;
    if (story->deadline != 0)
        fiber_set_deadline(story->deadline);
    story->wake = fiber_wait(NEVER);
    story->woken_at = clock_monotonic();
    latch_done(&story->latch);
}

CONTRACT(fiber, a_wake_ends_a_wait, 1)
{
    struct story story = {""};
    latch_init(&story.latch, 1);
    struct fiber *fiber = fiber_start("waiter", wait_for_wake, &story);
    fiber_yield();
    EXPECT_EQ(story.latch.open, 1);
    fiber_wake(fiber);
    latch_wait(&story.latch);
    EXPECT_EQ(story.wake, WAKE_READY);
}

CONTRACT(fiber, a_wait_ends_at_its_deadline_and_not_before, 1)
{
    int64_t due = clock_monotonic() + 5 * NS_PER_MS;
    EXPECT_EQ(fiber_wait(due), WAKE_DEADLINE);
    EXPECT(clock_monotonic() >= due);
    EXPECT_EQ(fiber_wait(due), WAKE_DEADLINE); /* past: at once */
}

CONTRACT(fiber, the_fibers_own_deadline_bounds_every_wait, 1)
{
    struct story story = {.deadline = clock_monotonic() + 3 * NS_PER_MS};
    latch_init(&story.latch, 1);
    fiber_start("waiter", wait_for_wake, &story);
    latch_wait(&story.latch);
    EXPECT_EQ(story.wake, WAKE_DEADLINE);
    EXPECT(story.woken_at >= story.deadline);
    EXPECT_EQ(fiber_deadline(), NEVER);
}

CONTRACT(fiber, a_sleep_takes_its_time_though_others_wake_the_fiber, 1)
{
    int64_t begin = clock_monotonic();
    fiber_wake(fiber_self());
    EXPECT_OK(fiber_sleep(4 * NS_PER_MS, arena));
    EXPECT(clock_monotonic() - begin >= 4 * NS_PER_MS);
    fiber_set_deadline(clock_monotonic() + NS_PER_MS);
    EXPECT_KIND(fiber_sleep(NS_PER_S, arena), ERR_DEADLINE);
    fiber_set_deadline(NEVER);
}

static void
sleep_long(void *argument)
{
    struct story *story = argument;
    scoped(arena_drop) struct arena *arena = arena_new(0);
    story->wake = WAKE_READY;
    for (int i = 0; i < 3; i++) { /* every wait after a cancel ends at once */
        struct error *err = fiber_sleep(3600 * NS_PER_S, arena);
        if (err != NULL && err->kind == ERR_CANCELLED)
            tell(story, 'c');
    }
    tell(story, fiber_is_cancelled() ? 'y' : 'n');
    latch_done(&story->latch);
}

CONTRACT(fiber, a_cancelled_fiber_waits_no_more, 1)
{
    struct story story = {""};
    latch_init(&story.latch, 2);
    struct fiber *sleeping = fiber_start("sleeper", sleep_long, &story);
    fiber_yield();
    fiber_cancel(sleeping);
    struct fiber *not_started = fiber_start("sleeper", sleep_long, &story);
    fiber_cancel(not_started);
    latch_wait(&story.latch);
    EXPECT_TEXT(story.text, "cccycccy");
}

static void
wait_uncancellable(void *argument)
{
    struct story *story = argument;
    fiber_wait_uncancellable();
    tell(story, 'w');
    latch_done(&story->latch);
}

CONTRACT(fiber, an_uncancellable_wait_minds_neither_cancel_nor_deadline, 1)
{
    struct story story = {""};
    latch_init(&story.latch, 1);
    struct fiber *fiber = fiber_start("uncancellable", wait_uncancellable, &story);
    fiber_yield();
    fiber_cancel(fiber);
    EXPECT_OK(fiber_sleep(2 * NS_PER_MS, arena));
    EXPECT_TEXT(story.text, "");
    fiber_wake(fiber);
    latch_wait(&story.latch);
    EXPECT_TEXT(story.text, "w");
}

static void
leave_a_fiber(void *argument)
{
    struct story *story =
        argument; /* outlives this process, which a platform may run several times */
    *story = (struct story){""};
    latch_init(&story->latch, 1);
    fiber_start("left", sleep_long, story);
    fiber_yield();
}

TEST(fiber, those_left_at_the_end_are_cancelled_and_waited_for)
{
    struct story story;
    contract_run(2, leave_a_fiber, &story);
    EXPECT_TEXT(story.text, "cccy");
}

static unsigned
recurse(unsigned depth)
{
    volatile char frame[512];
    memset((char *)frame, (int)depth, sizeof frame);
    return depth == 0 ? (unsigned)frame[0] : recurse(depth - 1) + (unsigned)frame[1];
}

static void
recurse_and_yield(void *argument)
{
    unsigned before = recurse(100);
    fiber_yield();
    check(recurse(100) == before);
    latch_done(argument);
}

/* A stack that is given twice, or overlaps, shows itself when many are used deep. */
CONTRACT(fiber, five_thousand_fibers_have_five_thousand_stacks, 1)
{
    struct latch latch;
    for (int round = 0; round < 2; round++) {
        latch_init(&latch, 5000);
        for (int i = 0; i < 5000; i++)
            fiber_start("deep", recurse_and_yield, &latch);
        latch_wait(&latch);
    }
}

CONTRACT(fiber, no_yield_counts_switches, 1)
{
    uint64_t before = fiber_switches();
    NO_YIELD
    {
        fiber_wake(fiber_self());
        EXPECT_EQ(fiber_wait(NEVER), WAKE_READY); /* returns at once: no yield */
    }
    EXPECT_EQ(fiber_switches(), before);
    fiber_yield();
    EXPECT(fiber_switches() > before);
}

/* ---- deferred work ---- */

struct late {
    struct deferred deferred;
    struct story *story;
    int again;
};

static void
run_late(struct deferred *deferred)
{
    struct late *late = container_of(deferred, struct late, deferred);
    tell(late->story, 'd');
    if (late->again-- > 0)
        loop_defer(&late->deferred);
}

CONTRACT(deferred, work_runs_once_after_all_runnable_fibers, 1)
{
    struct story story = {""};
    latch_init(&story.latch, 2);
    struct late late = {DEFERRED_INIT(late.deferred, run_late), &story, 0};
    struct late taken_back = {DEFERRED_INIT(taken_back.deferred, run_late), &story, 0};
    loop_defer(&late.deferred);
    loop_defer(&late.deferred);
    loop_defer(&taken_back.deferred);
    loop_undefer(&taken_back.deferred);
    fiber_start("a", tell_a, &story);
    fiber_start("b", tell_b, &story);
    fiber_yield();
    EXPECT_TEXT(story.text, "abd");
    late.again = 1; /* deferring from within waits for the next tick */
    loop_defer(&late.deferred);
    fiber_yield();
    EXPECT_TEXT(story.text, "abdd");
    fiber_yield();
    EXPECT_TEXT(story.text, "abddd");
}

/* ---- clock and chance ---- */

CONTRACT(clock, skipping_moves_the_wall_clock_and_no_deadline, 1)
{
    int64_t wall = clock_wall(), monotonic = clock_monotonic();
    clock_skip(3600 * NS_PER_S);
    EXPECT(clock_wall() >= wall + 3600 * NS_PER_S);
    EXPECT(clock_wall() < wall + 3700 * NS_PER_S);
    EXPECT(clock_monotonic() < monotonic + 100 * NS_PER_S);
}

CONTRACT(clock, ids_are_new_and_ordered_by_time, 1)
{
    struct uuid a = uuid_new_v7();
    EXPECT_OK(fiber_sleep(3 * NS_PER_MS, arena));
    struct uuid b = uuid_new_v7();
    EXPECT(memcmp(a.bytes, b.bytes, 16) < 0);
    struct uuid c = uuid_new_v4(), d = uuid_new_v4();
    EXPECT(memcmp(c.bytes, d.bytes, 16) != 0);
    EXPECT(clock_wall() > INT64_C(1700000000) * NS_PER_S);
}

CONTRACT(clock, entropy_below_reaches_every_number_under_its_bound, 1)
{
    unsigned seen[7] = {0};
    for (int i = 0; i < 7000; i++) {
        uint64_t number = entropy_below(7);
        EXPECT(number < 7);
        seen[number]++;
    }
    for (int i = 0; i < 7; i++)
        EXPECT(seen[i] > 700 && seen[i] < 1300);
    uint8_t large[1000] = {0};
    entropy_bytes(large, sizeof large);
    unsigned zeros = 0;
    for (size_t i = 0; i < sizeof large; i++)
        zeros += large[i] == 0;
    EXPECT(zeros < 50);
}
