/* wakeups_sim_test.c - wake-up timers in simulation: never early, never lost, whatever memory holds
 * and no matter who owns the shard. */
#include "engine/shard/inside.h"
#include "engine/test/shard_cases.h"
#include "engine/test/shard_simulation.h"

/* --- timeouts of runs ---- */

static void
start_runs(struct shard_fixture *fixture, int count, int64_t seconds_min)
{
    for (int i = 0; i < count; i++)
        EXPECT_OK(shard_fixture_start(fixture, arena_format(fixture->arena, "wf-%d", i), "one",
                                      seconds_min + (i * 7) % count, fixture->arena, NULL));
}

/* All runs are closed, none before its time, all soon after it. */
static void
expect_timed_out(struct shard_fixture *fixture, int count)
{
    for (int i = 0; i < count; i++) {
        struct shard_fixture_run run;
        EXPECT_OK(shard_fixture_look(fixture, arena_format(fixture->arena, "wf-%d", i),
                                     fixture->arena, &run));
        EXPECT(!run.is_open);
        EXPECT(run.close_time >= run.timeout_time);
        EXPECT(run.close_time < run.timeout_time + 5 * NS_PER_S);
    }
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TIMER), (size_t)count); /* of their deletion */
}

SHARD_TEST(wakeups, a_run_times_out_at_its_time_and_never_before, NULL, 0)
{
    shard_fixture_take(fixture);
    start_runs(fixture, 50, 10);
    shard_fixture_sleep(9 * NS_PER_S);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TIMER), 50);
    shard_fixture_sleep(60 * NS_PER_S);
    expect_timed_out(fixture, 50);
}

/* More wake-up timers than memory holds: the late ones are in the store only. */
SHARD_TEST(wakeups, what_memory_does_not_hold_fires_from_the_store, "wakeups_beyond_memory", 0)
{
    fixture->options.wakeups_max = 8;
    shard_fixture_take(fixture);
    start_runs(fixture, 60, 20);
    EXPECT(map64_count(fixture->shard->tenure->wakeups.by_row) <= 8);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TIMER), 60);
    shard_fixture_sleep(100 * NS_PER_S);
    expect_timed_out(fixture, 60);
}

SHARD_TEST(wakeups, a_new_owner_fires_what_the_old_one_left, NULL, 0)
{
    fixture->options.wakeups_max = 8;
    shard_fixture_take(fixture);
    start_runs(fixture, 30, 20);
    shard_fixture_restart(fixture);
    shard_fixture_sleep(25 * NS_PER_S); /* some have rung */
    shard_fixture_restart(fixture);
    shard_close(fixture->shard);
    shard_fixture_sleep(3 * NS_PER_S); /* some would have rung while nobody owned the shard */
    shard_fixture_take(fixture);
    shard_fixture_sleep(60 * NS_PER_S);
    expect_timed_out(fixture, 30);
}

SHARD_TEST(wakeups, a_timer_that_lost_its_shard_fires_again, "shard_taken_again", 0)
{
    fixture->options.is_alone = true;
    shard_fixture_take(fixture);
    start_runs(fixture, 30, 20);
    for (int i = 0; i < 30; i++) {
        shard_fixture_sleep(NS_PER_S);
        case_overtake(fixture); /* the next wake-up timer finds out */
    }
    shard_fixture_sleep(60 * NS_PER_S);
    expect_timed_out(fixture, 30);
}

/* --- one wake-up timer per run ---- */

/* A started decision has the nearest deadline; once it is completed the wake-up timer is too early.
 */
SHARD_TEST(wakeups, a_timer_that_fires_too_early_is_set_again, "wakeup_rearmed", 0)
{
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 1000, fixture->arena, NULL));
    shard_fixture_wait(fixture->tasks.count == 1);
    EXPECT_OK(
        shard_fixture_start_decision(fixture, fixture->tasks.items[0], "poll", fixture->arena));
    EXPECT_OK(shard_fixture_complete(fixture, fixture->tasks.items[0], 100, fixture->arena));
    struct shard_fixture_run run;
    EXPECT_OK(shard_fixture_look(fixture, "wf", fixture->arena, &run));
    EXPECT(run.alarm_time < clock_wall() + 20 * NS_PER_S); /* the decision's timeout still stands */
    EXPECT_EQ(run.next_event_id, 6);
    shard_fixture_sleep(20 * NS_PER_S);
    EXPECT_OK(shard_fixture_look(fixture, "wf", fixture->arena, &run));
    EXPECT_EQ(run.next_event_id, 6); /* nothing was due */
    EXPECT(run.alarm_time > clock_wall() + 60 * NS_PER_S);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TIMER), 1);
    shard_fixture_sleep(100 * NS_PER_S);
    EXPECT_OK(shard_fixture_look(fixture, "wf", fixture->arena, &run));
    EXPECT_EQ(run.next_event_id, 8); /* the timer fired, and a decision came of it */
    EXPECT_EQ(run.timers, 0);
    shard_fixture_wait(fixture->tasks.count == 2);
    EXPECT_OK(
        shard_fixture_start_decision(fixture, fixture->tasks.items[1], "poll", fixture->arena));
    EXPECT_OK(shard_fixture_complete(fixture, fixture->tasks.items[1], 0, fixture->arena));
    EXPECT_OK(shard_fixture_look(fixture, "wf", fixture->arena, &run));
    EXPECT(run.alarm_time > clock_wall() + 86000 * NS_PER_S); /* its deletion is all that is left */
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TIMER), 1);
}

/* The level follows what has fired, and a new owner finds all rows from it on. */
SHARD_TEST(wakeups, the_timer_read_level_follows_and_hides_nothing, NULL, 0)
{
    shard_fixture_take(fixture);
    start_runs(fixture, 20, 10);
    EXPECT_OK(shard_fixture_start(fixture, "long", "one", 10000, fixture->arena, NULL));
    shard_fixture_sleep(1000 * NS_PER_S);
    int64_t before = fixture->shard->tenure->wakeups.level;
    EXPECT_OK(shard_fixture_signal(fixture, "long", fixture->arena)); /* the record goes along */
    int64_t level = fixture->shard->tenure->wakeups.level;
    EXPECT(level > before && level <= clock_wall());
    shard_fixture_restart(fixture);
    EXPECT(fixture->shard->tenure->wakeups.level >= level);
    EXPECT_EQ(map64_count(fixture->shard->tenure->wakeups.by_row), 21); /* 20 are closed */
    shard_fixture_sleep(10000 * NS_PER_S);
    struct shard_fixture_run run;
    EXPECT_OK(shard_fixture_look(fixture, "long", fixture->arena, &run));
    EXPECT(!run.is_open);
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TIMER), 21);
}

/* --- a wall clock that is set ---- */

#define HOUR (3600 * NS_PER_S)

static void
expect_timed_out_after(struct shard_fixture *fixture, const char *workflow_id, int64_t seconds)
{
    struct shard_fixture_run run;
    EXPECT_OK(shard_fixture_start(fixture, workflow_id, "one", seconds, fixture->arena, NULL));
    shard_fixture_sleep((seconds - 1) * NS_PER_S);
    EXPECT_OK(shard_fixture_look(fixture, workflow_id, fixture->arena, &run));
    EXPECT(run.is_open);
    shard_fixture_sleep(6 * NS_PER_S);
    EXPECT_OK(shard_fixture_look(fixture, workflow_id, fixture->arena, &run));
    EXPECT(!run.is_open);
}

/* The level is an hour ahead of the clock, in memory and in the store. */
static void
set_clock_back(struct shard_fixture *fixture)
{
    shard_fixture_take(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "long", "one", 100000, fixture->arena, NULL));
    shard_fixture_sleep(1000 * NS_PER_S);
    EXPECT_OK(shard_fixture_signal(fixture, "long", fixture->arena)); /* the record goes along */
    clock_skip(-HOUR - 600 * NS_PER_S);
    EXPECT(fixture->shard->tenure->wakeups.level > clock_wall());
}

SHARD_TEST(wakeups, a_timer_that_is_set_after_the_clock_was_set_back_fires_in_time,
           "wakeup_level_lowered", 0)
{
    set_clock_back(fixture);
    expect_timed_out_after(fixture, "same owner", 4);
    clock_skip(-HOUR);
    shard_fixture_restart(fixture);
    expect_timed_out_after(fixture, "new owner", 4);
    clock_skip(5 * HOUR);
    expect_timed_out_after(fixture, "ahead again", 4);
    clock_skip(-3 * HOUR);
    expect_timed_out_after(fixture, "back again", 4);
}

/* The next owner reads from the level that the store has: it went down with the row. */
SHARD_TEST(wakeups, a_new_owner_fires_what_was_set_after_the_clock_was_set_back,
           "wakeup_level_lowered", 0)
{
    set_clock_back(fixture);
    EXPECT_OK(shard_fixture_start(fixture, "wf", "one", 20, fixture->arena, NULL));
    shard_fixture_restart(fixture);
    shard_fixture_sleep(25 * NS_PER_S);
    struct shard_fixture_run run;
    EXPECT_OK(shard_fixture_look(fixture, "wf", fixture->arena, &run));
    EXPECT(!run.is_open);
}

/* --- too much at once ---- */

/* No room for the step of a wake-up timer: it is tried again. */
SHARD_TEST(wakeups, a_timer_whose_step_found_no_room_is_tried_again, "wakeup_delayed", 0)
{
    fixture->options.batches_max = 1;
    shard_fixture_take(fixture);
    shard_fixture_sleep(NS_PER_S); /* the shard record is written */
    for (int i = 0; i < 20; i++)   /* all at the same moment, about */
        EXPECT_OK(shard_fixture_start(fixture, arena_format(fixture->arena, "wf-%d", i), "one", 10,
                                      fixture->arena, NULL));
    /* Their steps take longer than the starts did, so they meet; then each waits for its turn. */
    memory_base_set_delays(fixture->base, 10 * NS_PER_MS, 10 * NS_PER_MS, 0);
    shard_fixture_sleep(600 * NS_PER_S);
    for (int i = 0; i < 20; i++) {
        struct shard_fixture_run run;
        EXPECT_OK(shard_fixture_look(fixture, arena_format(fixture->arena, "wf-%d", i),
                                     fixture->arena, &run));
        EXPECT(!run.is_open && run.close_time >= run.timeout_time);
    }
    EXPECT_EQ(shard_fixture_rows(fixture, ROW_TIMER), 20);
}
