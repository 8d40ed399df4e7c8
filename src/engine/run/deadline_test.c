/* deadline_test.c - when a run must be woken, and that its wake-up timer says so. */
#include "base/test.h"
#include "engine/run/test_samples.h"

#define AT(seconds) (SAMPLE_TIME + (seconds)*SECOND)

/* Each part in turn becomes the next to be due: the times of the sample are chosen apart. */
TEST(deadline, the_earliest_of_everything_pending_is_next)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    EXPECT_EQ(run_next_deadline(sample.run), AT(1000)); /* the run itself */
    sample_begin(&sample);
    sample_decision_started(&sample);
    sample_finish(&sample);
    EXPECT_EQ(run_next_deadline(sample.run), AT(10)); /* the decision's start to close */
    sample_begin(&sample);
    sample_decision_completed(&sample);
    int64_t id = sample_activity_scheduled(&sample, "a", 0);
    sample_timer_started(&sample, "t", 70);
    sample_finish(&sample);
    EXPECT_EQ(run_next_deadline(sample.run), AT(40)); /* schedule to start */
    sample_begin(&sample);
    sample_activity_started(&sample, id);
    sample_finish(&sample);
    EXPECT_EQ(run_next_deadline(sample.run), AT(20)); /* heartbeat */
    sample_begin(&sample);
    mutation_change_activity(sample.mutation, id)->heartbeat_time = AT(55);
    sample_finish(&sample);
    EXPECT_EQ(run_next_deadline(sample.run), AT(60)); /* start to close */
    sample_begin(&sample);
    sample_activity_ended(&sample, id, EVENT_KIND(ACTIVITY_TASK_COMPLETED));
    sample_finish(&sample);
    EXPECT_EQ(run_next_deadline(sample.run), AT(70)); /* the timer */
    sample_begin(&sample);
    sample_timer_fired(&sample, "t");
    sample_finish(&sample);
    EXPECT_EQ(run_next_deadline(sample.run), AT(1000));
    sample_close(&sample);
}

TEST(deadline, an_attempt_that_waits_is_due_when_its_time_comes)
{
    STORED(PendingActivity) activity;
    cadenza__storage__v1__pending_activity__init(&activity);
    activity.started_id = EVENT_NONE;
    activity.scheduled_time = AT(5);
    activity.schedule_to_start = 30;
    activity.schedule_to_close = 20;
    EXPECT_EQ(activity_next_due(&activity).time, AT(5));
    EXPECT_EQ(activity_next_due(&activity).what, DUE_DISPATCH);
    activity.row = 9; /* it was sent */
    EXPECT_EQ(activity_next_due(&activity).time, AT(25));
    EXPECT_EQ(activity_next_due(&activity).what, DUE_SCHEDULE_TO_CLOSE);
    activity.schedule_to_close = 0;
    EXPECT_EQ(activity_next_due(&activity).what, DUE_SCHEDULE_TO_START);
    activity.schedule_to_start = 0;
    EXPECT_EQ(activity_next_due(&activity).what, DUE_NOTHING);
    EXPECT_EQ(activity_next_due(&activity).time, 0);
    activity.started_id = EVENT_TRANSIENT;
    activity.started_time = AT(6);
    activity.start_to_close = INT64_MAX / 2; /* so long that it never comes */
    EXPECT_EQ(activity_next_due(&activity).time, INT64_MAX);
}

/* As in Cadence, whose timer task is always made: such a decision can only time out. */
TEST(deadline, a_started_decision_without_time_to_work_is_due_at_once)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    sample_begin(&sample);
    mutation_change_decision(sample.mutation)->timeout = 0;
    sample_decision_started(&sample);
    sample_finish(&sample);
    EXPECT_EQ(run_next_deadline(sample.run), AT(0));
    EXPECT_EQ(sample.run->core->alarm_time, AT(0));
    sample_close(&sample);
}

TEST(deadline, a_delayed_first_decision_is_due_once, "A-040")
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_begin(&sample);
    sample_started(&sample, 10);
    sample_finish(&sample);
    EXPECT_EQ(run_next_deadline(sample.run), AT(10));
    EXPECT_EQ(sample.run->core->timeout_time, AT(1010)); /* the time to wait does not count */
    EXPECT_EQ(sample.run->core->execution_time, AT(10));
    sample_wait(&sample, 10);
    sample_begin(&sample);
    sample_decision_scheduled(&sample);
    sample_finish(&sample);
    EXPECT_EQ(run_next_deadline(sample.run), AT(1010));
    sample_close(&sample);
}

/* --- the wake-up timer --- */

TEST(deadline, a_timer_that_is_too_early_is_left_and_set_again_when_it_fired)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_started_run(&sample); /* due in 10 s */
    uint64_t row = sample.run->core->alarm_row;
    EXPECT_EQ(sample.run->core->alarm_time, AT(10));

    sample_wait(&sample, 1);
    sample_begin(&sample);
    sample_decision_completed(&sample); /* nothing is due before AT(1000) any more */
    sample_finish(&sample);
    EXPECT_EQ(sample.run->core->alarm_row, row);
    EXPECT_EQ(sample.effects.alarm_row, 0);
    EXPECT_EQ(sample.effects.alarm_row_old, 0);

    sample_wait(&sample, 9); /* it fires; nothing is to be done */
    sample_begin(&sample);
    sample_finish(&sample);
    EXPECT_EQ(sample.effects.alarm_row_old, row);
    EXPECT_EQ(sample.effects.alarm_time, AT(1000));
    EXPECT(!sample.effects.has_new_events);
    EXPECT_EQ(sample.batch->count, 1); /* the core, which names the timer row */
    sample_close(&sample);
}

TEST(deadline, the_wake_up_timer_moves_when_something_is_due_earlier)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_started_run(&sample);
    uint64_t row = sample.run->core->alarm_row;
    sample_begin(&sample);
    sample_decision_completed(&sample);
    sample_timer_started(&sample, "t", 7);
    sample_finish(&sample);
    EXPECT_EQ(sample.effects.alarm_time, AT(7));
    EXPECT_EQ(sample.effects.alarm_time_old, AT(10));
    EXPECT_EQ(sample.effects.alarm_row, sample.run->core->alarm_row);
    EXPECT(sample.effects.alarm_row_old == row && sample.effects.alarm_row != row);
    sample_close(&sample);
}

/* A start that comes soon writes no wake-up timer: that of the step before is early enough. */
TEST(deadline, the_start_of_a_decision_is_foreseen)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    EXPECT_EQ(run_next_deadline(sample.run), AT(1000));
    EXPECT_EQ(sample.effects.alarm_time, AT(10));
    uint64_t row = sample.run->core->alarm_row;
    sample_wait(&sample, 3);
    sample_begin(&sample);
    sample_decision_started(&sample);
    sample_finish(&sample);
    EXPECT_EQ(run_next_deadline(sample.run), AT(13));
    EXPECT_EQ(sample.run->core->alarm_row, row);
    EXPECT_EQ(sample.effects.alarm_row, 0);
    sample_close(&sample);
}

TEST(deadline, a_decision_that_waits_for_long_fires_one_timer_for_nothing)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    sample_wait(&sample, 10);
    sample_begin(&sample); /* it fires */
    sample_finish(&sample);
    EXPECT(!sample.effects.has_new_events);
    EXPECT_EQ(sample.effects.alarm_time, AT(1000));
    sample_wait(&sample, 10);
    sample_begin(&sample);
    sample_decision_started(&sample);
    sample_finish(&sample);
    EXPECT_EQ(sample.effects.alarm_time, AT(30));
    sample_close(&sample);
}

TEST(deadline, the_wake_up_timer_of_a_closed_run_is_its_deletion, "A-256")
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_scheduled_run(&sample);
    uint64_t row = sample.run->core->alarm_row;
    EXPECT(row != 0);
    sample_begin(&sample);
    sample_plain(&sample, EVENT_KIND(WORKFLOW_EXECUTION_TERMINATED));
    sample_finish(&sample);
    EXPECT_EQ(sample.effects.alarm_row_old, row);
    int64_t end = sample.run->core->delete_time, day = AT(86400) - AT(0);
    EXPECT(end >= sample.run->core->close_time + day);
    EXPECT(end < sample.run->core->close_time + day + (AT(3600) - AT(0)));
    EXPECT(sample.effects.alarm_row != 0 && sample.effects.alarm_row != row);
    EXPECT_EQ(sample.run->core->alarm_time, end);
    EXPECT_EQ(run_next_deadline(sample.run), end);
    EXPECT(sample.effects.is_closed_now);
    sample_close(&sample);
}

/* What became due long ago fires now: the shard no longer looks at what is before its read level.
 */
TEST(deadline, no_wake_up_timer_is_set_before_the_shards_read_level)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_started_run(&sample);
    sample_wait(&sample, 60);
    sample.context.wakeup_time_min = AT(55);
    sample_begin(&sample);
    mutation_core(sample.mutation)->alarm_row = 0; /* it was lost */
    mutation_core(sample.mutation)->alarm_time = 0;
    sample_finish(&sample);
    EXPECT_EQ(run_next_deadline(sample.run), AT(10));
    EXPECT_EQ(sample.effects.alarm_time, AT(55));
    sample_close(&sample);
}

TEST(deadline, a_wake_up_timer_that_is_due_is_not_moved_by_a_busy_run)
{
    struct sample sample;
    sample_open(&sample, 1);
    sample_started_run(&sample);
    uint64_t row = sample.run->core->alarm_row;
    for (int i = 0; i < 5; i++) {
        sample_wait(&sample, 5);
        sample.context.wakeup_time_min = sample.context.now;
        sample_begin(&sample);
        sample_signaled(&sample, "s", "");
        sample_finish(&sample);
        EXPECT_EQ(sample.run->core->alarm_row, row); /* due since the second round */
    }
    sample_close(&sample);
}
