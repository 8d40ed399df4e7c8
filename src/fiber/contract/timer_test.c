/* timer_test.c - timers: order, moving, stopping, and a million of them. */
#include "fiber/timer.h"

#include "base/memory.h"
#include "base/random.h"
#include "fiber/contract/contract.h"

struct alarm_clock {
    struct timer timer;
    struct record *record;
    int64_t due;
    int name;
};

/* What all alarms of a test wrote down. */
struct record {
    int names[16];
    int count;
    int64_t last_due;
    bool is_in_order;
    bool is_early;
    struct fiber *waiter;
    int awaited;
};

static void
ring(struct timer *timer)
{
    struct alarm_clock *alarm = container_of(timer, struct alarm_clock, timer);
    struct record *record = alarm->record;
    if (record->count < 16)
        record->names[record->count] = alarm->name;
    record->count++;
    record->is_in_order &= alarm->due >= record->last_due;
    record->is_early |= clock_monotonic() < alarm->due;
    record->last_due = alarm->due;
    if (record->count == record->awaited)
        fiber_wake(record->waiter);
}

static void
alarm_set(struct alarm_clock *alarm, struct record *record, int name, int64_t due)
{
    alarm->record = record;
    alarm->name = name;
    alarm->due = due;
    timer_init(&alarm->timer, ring);
    timer_start(&alarm->timer, due);
}

static void
record_wait(struct record *record, int awaited)
{
    record->waiter = fiber_self();
    record->awaited = awaited;
    while (record->count < awaited)
        fiber_wait_uncancellable();
}

CONTRACT(timer, equal_moments_fire_in_the_order_of_starting, 1)
{
    struct record record = {.is_in_order = true};
    struct alarm_clock alarms[8];
    int64_t now = clock_monotonic();
    for (int i = 0; i < 8; i++)
        alarm_set(&alarms[i], &record, i, now + (i % 2 == 0 ? 2 : 1) * NS_PER_MS);
    record_wait(&record, 8);
    static const int wanted[] = {1, 3, 5, 7, 0, 2, 4, 6};
    for (int i = 0; i < 8; i++)
        EXPECT_EQ(record.names[i], wanted[i]);
    EXPECT(!record.is_early);
}

CONTRACT(timer, a_started_timer_can_be_moved_and_stopped, 1)
{
    struct record record = {.is_in_order = true};
    struct alarm_clock moved, stopped, other;
    int64_t now = clock_monotonic();
    alarm_set(&moved, &record, 1, now + NS_PER_MS);
    alarm_set(&stopped, &record, 2, now + NS_PER_MS);
    alarm_set(&other, &record, 3, now + 2 * NS_PER_MS);
    EXPECT(timer_is_pending(&stopped.timer));
    timer_stop(&stopped.timer);
    timer_stop(&stopped.timer);
    EXPECT(!timer_is_pending(&stopped.timer));
    moved.due = now + 3 * NS_PER_MS;
    timer_start(&moved.timer, moved.due);
    record_wait(&record, 2);
    EXPECT_EQ(record.names[0], 3);
    EXPECT_EQ(record.names[1], 1);
    EXPECT(!timer_is_pending(&moved.timer));
}

CONTRACT(timer, a_past_moment_fires_in_the_next_tick, 1)
{
    struct record record = {.is_in_order = true};
    struct alarm_clock alarm;
    alarm_set(&alarm, &record, 1, 0);
    EXPECT_EQ(record.count, 0); /* not from within timer_start */
    record_wait(&record, 1);
}

static void
ring_again(struct timer *timer)
{
    struct alarm_clock *alarm = container_of(timer, struct alarm_clock, timer);
    alarm->record->count++;
    timer_start(timer, 0);
}

/* A timer that restarts itself for a past moment must not keep fibers from running. */
CONTRACT(timer, one_that_restarts_itself_starves_nobody, 1)
{
    struct record record = {.count = 0};
    struct alarm_clock alarm = {.record = &record};
    timer_init(&alarm.timer, ring_again);
    timer_start(&alarm.timer, 0);
    EXPECT_OK(fiber_sleep(NS_PER_MS, arena));
    EXPECT(record.count >= 1);
    timer_stop(&alarm.timer);
}

/* Sampled due times within a second; half are stopped or moved again. What fires must fire in
 * order, none early, all. */
CONTRACT(timer, a_million_can_be_pending, 1)
{
    enum { COUNT = 1000000 };
    struct record record = {.is_in_order = true};
    struct alarm_clock *alarms = memory_zalloc(COUNT, sizeof *alarms);
    struct random random;
    random_seed(&random, test_seed(0));
    int64_t now = clock_monotonic();
    for (int i = 0; i < COUNT; i++)
        alarm_set(&alarms[i], &record, i, now + (int64_t)random_below(&random, NS_PER_S));
    int stopped = 0;
    for (int i = 0; i < COUNT; i += 2) {
        if (i % 4 == 0) {
            timer_stop(&alarms[i].timer);
            stopped++;
        } else {
            alarms[i].due = now + (int64_t)random_below(&random, NS_PER_S);
            timer_start(&alarms[i].timer, alarms[i].due);
        }
    }
    EXPECT_EQ(record.count, 0);
    record_wait(&record, COUNT - stopped);
    EXPECT(!record.is_early);
    EXPECT(record.is_in_order);
    memory_free(alarms);
}
