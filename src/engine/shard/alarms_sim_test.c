/* alarms_sim_test.c - alarms in simulation: never early, never lost, whatever memory holds and
 * whoever owns the shard. */
#include "engine/shard/cases.h"
#include "engine/shard/inside.h"
#include "engine/shard/trial.h"

/* --- timeouts of runs ---- */

static void
start_runs(struct rig *rig, int count, int64_t seconds_min)
{
    for (int i = 0; i < count; i++)
        EXPECT_OK(rig_start(rig, arena_format(rig->arena, "wf-%d", i), "one",
                            seconds_min + (i * 7) % count, rig->arena, NULL));
}

/* All runs are closed, none before its time, all soon after it. */
static void
expect_timed_out(struct rig *rig, int count)
{
    for (int i = 0; i < count; i++) {
        struct rig_run run;
        EXPECT_OK(rig_look(rig, arena_format(rig->arena, "wf-%d", i), rig->arena, &run));
        EXPECT(!run.is_open);
        EXPECT(run.close_time >= run.timeout_time);
        EXPECT(run.close_time < run.timeout_time + 5 * NS_PER_S);
    }
    EXPECT_EQ(rig_rows(rig, ROW_TIMER), (size_t)count); /* of their deletion */
}

static void
ring_in_time(struct rig *rig)
{
    rig_take(rig);
    start_runs(rig, 50, 10);
    rig_sleep(9 * NS_PER_S);
    EXPECT_EQ(rig_rows(rig, ROW_TIMER), 50);
    rig_sleep(60 * NS_PER_S);
    expect_timed_out(rig, 50);
}

TEST(alarms, a_run_times_out_at_its_time_and_never_before)
{
    trial_run(ring_in_time);
}

/* More alarms than memory holds: the late ones are in the store only. */
static void
ring_from_the_store(struct rig *rig)
{
    rig->options.alarms_max = 8;
    rig_take(rig);
    start_runs(rig, 60, 20);
    EXPECT(map64_count(rig->shard->tenure->alarms.by_row) <= 8);
    EXPECT_EQ(rig_rows(rig, ROW_TIMER), 60);
    rig_sleep(100 * NS_PER_S);
    expect_timed_out(rig, 60);
}

TEST(alarms, what_memory_does_not_hold_rings_from_the_store)
{
    trial_run(ring_from_the_store, .mark = "alarms_beyond_memory");
}

static void
ring_after_restart(struct rig *rig)
{
    rig->options.alarms_max = 8;
    rig_take(rig);
    start_runs(rig, 30, 20);
    rig_restart(rig);
    rig_sleep(25 * NS_PER_S); /* some have rung */
    rig_restart(rig);
    shard_close(rig->shard);
    rig_sleep(3 * NS_PER_S); /* some would have rung while nobody owned the shard */
    rig_take(rig);
    rig_sleep(60 * NS_PER_S);
    expect_timed_out(rig, 30);
}

TEST(alarms, a_new_owner_rings_what_the_old_one_left)
{
    trial_run(ring_after_restart);
}

static void
ring_though_fenced(struct rig *rig)
{
    rig->options.is_alone = true;
    rig_take(rig);
    start_runs(rig, 30, 20);
    for (int i = 0; i < 30; i++) {
        rig_sleep(NS_PER_S);
        case_overtake(rig); /* the next alarm finds out */
    }
    rig_sleep(60 * NS_PER_S);
    expect_timed_out(rig, 30);
}

TEST(alarms, an_alarm_that_lost_its_shard_rings_again)
{
    trial_run(ring_though_fenced, .mark = "shard_taken_again");
}

/* --- one alarm per run ---- */

/* A started decision has the nearest deadline; once it is completed the alarm is too early. */
static void
rearm(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 1000, rig->arena, NULL));
    rig_wait(rig->tasks.count == 1);
    EXPECT_OK(rig_start_decision(rig, rig->tasks.items[0], "poll", rig->arena));
    EXPECT_OK(rig_complete(rig, rig->tasks.items[0], 100, rig->arena));
    struct rig_run run;
    EXPECT_OK(rig_look(rig, "wf", rig->arena, &run));
    EXPECT(run.alarm_time < clock_wall() + 20 * NS_PER_S); /* the decision's timeout still stands */
    EXPECT_EQ(run.next_event_id, 6);
    rig_sleep(20 * NS_PER_S);
    EXPECT_OK(rig_look(rig, "wf", rig->arena, &run));
    EXPECT_EQ(run.next_event_id, 6); /* nothing was due */
    EXPECT(run.alarm_time > clock_wall() + 60 * NS_PER_S);
    EXPECT_EQ(rig_rows(rig, ROW_TIMER), 1);
    rig_sleep(100 * NS_PER_S);
    EXPECT_OK(rig_look(rig, "wf", rig->arena, &run));
    EXPECT_EQ(run.next_event_id, 8); /* the timer fired, and a decision came of it */
    EXPECT_EQ(run.timers, 0);
    rig_wait(rig->tasks.count == 2);
    EXPECT_OK(rig_start_decision(rig, rig->tasks.items[1], "poll", rig->arena));
    EXPECT_OK(rig_complete(rig, rig->tasks.items[1], 0, rig->arena));
    EXPECT_OK(rig_look(rig, "wf", rig->arena, &run));
    EXPECT(run.alarm_time > clock_wall() + 86000 * NS_PER_S); /* its deletion is all that is left */
    EXPECT_EQ(rig_rows(rig, ROW_TIMER), 1);
}

TEST(alarms, an_alarm_that_rings_too_early_is_set_anew)
{
    trial_run(rearm, .mark = "alarm_rearmed");
}

/* The level follows what has rung, and a new owner finds all rows from it on. */
static void
raise_level(struct rig *rig)
{
    rig_take(rig);
    start_runs(rig, 20, 10);
    EXPECT_OK(rig_start(rig, "long", "one", 10000, rig->arena, NULL));
    rig_sleep(1000 * NS_PER_S);
    int64_t before = rig->shard->tenure->alarms.level;
    EXPECT_OK(rig_signal(rig, "long", rig->arena)); /* the record goes along */
    int64_t level = rig->shard->tenure->alarms.level;
    EXPECT(level > before && level <= clock_wall());
    rig_restart(rig);
    EXPECT(rig->shard->tenure->alarms.level >= level);
    EXPECT_EQ(map64_count(rig->shard->tenure->alarms.by_row), 21); /* 20 are closed */
    rig_sleep(10000 * NS_PER_S);
    struct rig_run run;
    EXPECT_OK(rig_look(rig, "long", rig->arena, &run));
    EXPECT(!run.is_open);
    EXPECT_EQ(rig_rows(rig, ROW_TIMER), 21);
}

TEST(alarms, the_timer_read_level_follows_and_hides_nothing)
{
    trial_run(raise_level);
}

/* --- a wall clock that is set ---- */

#define HOUR (3600 * NS_PER_S)

static void
expect_timed_out_after(struct rig *rig, const char *workflow_id, int64_t seconds)
{
    struct rig_run run;
    EXPECT_OK(rig_start(rig, workflow_id, "one", seconds, rig->arena, NULL));
    rig_sleep((seconds - 1) * NS_PER_S);
    EXPECT_OK(rig_look(rig, workflow_id, rig->arena, &run));
    EXPECT(run.is_open);
    rig_sleep(6 * NS_PER_S);
    EXPECT_OK(rig_look(rig, workflow_id, rig->arena, &run));
    EXPECT(!run.is_open);
}

/* The level is an hour ahead of the clock, in memory and in the store. */
static void
set_clock_back(struct rig *rig)
{
    rig_take(rig);
    EXPECT_OK(rig_start(rig, "long", "one", 100000, rig->arena, NULL));
    rig_sleep(1000 * NS_PER_S);
    EXPECT_OK(rig_signal(rig, "long", rig->arena)); /* the record goes along */
    clock_skip(-HOUR - 600 * NS_PER_S);
    EXPECT(rig->shard->tenure->alarms.level > clock_wall());
}

static void
ring_after_set_back(struct rig *rig)
{
    set_clock_back(rig);
    expect_timed_out_after(rig, "same owner", 4);
    clock_skip(-HOUR);
    rig_restart(rig);
    expect_timed_out_after(rig, "new owner", 4);
    clock_skip(5 * HOUR);
    expect_timed_out_after(rig, "ahead again", 4);
    clock_skip(-3 * HOUR);
    expect_timed_out_after(rig, "back again", 4);
}

TEST(alarms, a_timer_that_is_set_after_the_clock_was_set_back_rings_in_time)
{
    trial_run(ring_after_set_back, .mark = "alarm_level_lowered");
}

/* The next owner reads from the level that the store has: it went down with the row. */
static void
restart_after_set_back(struct rig *rig)
{
    set_clock_back(rig);
    EXPECT_OK(rig_start(rig, "wf", "one", 20, rig->arena, NULL));
    rig_restart(rig);
    rig_sleep(25 * NS_PER_S);
    struct rig_run run;
    EXPECT_OK(rig_look(rig, "wf", rig->arena, &run));
    EXPECT(!run.is_open);
}

TEST(alarms, a_new_owner_rings_what_was_set_after_the_clock_was_set_back)
{
    trial_run(restart_after_set_back, .mark = "alarm_level_lowered");
}

/* --- too much at once ---- */

/* No room for the step of an alarm: it is tried again. */
static void
ring_without_room(struct rig *rig)
{
    rig->options.batches_max = 1;
    rig_take(rig);
    rig_sleep(NS_PER_S);         /* the shard record is written */
    for (int i = 0; i < 20; i++) /* all at the same moment, about */
        EXPECT_OK(
            rig_start(rig, arena_format(rig->arena, "wf-%d", i), "one", 10, rig->arena, NULL));
    rig_sleep(60 * NS_PER_S);
    for (int i = 0; i < 20; i++) {
        struct rig_run run;
        EXPECT_OK(rig_look(rig, arena_format(rig->arena, "wf-%d", i), rig->arena, &run));
        EXPECT(!run.is_open && run.close_time >= run.timeout_time);
    }
    EXPECT_EQ(rig_rows(rig, ROW_TIMER), 20);
}

TEST(alarms, an_alarm_whose_step_found_no_room_is_tried_again)
{
    trial_run(ring_without_room, .mark = "alarm_delayed");
}
