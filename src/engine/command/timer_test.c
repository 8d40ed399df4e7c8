/* Timers of a run: they fire, are cancelled, and never both. */
#include "engine/command/inside.h"
#include "engine/command/test/activity_calls.h"

TEST(timer, four_in_a_row_give_four_decisions, "A-124")
{
    static const char *const ids[] = {"1", "2", "3", "4"};
    scoped(fixture_drop) struct fixture *fixture = fixture_new();
    fixture_begin(fixture);
    for (int i = 0; i < 4; i++) {
        EXPECT(fixture_poll_decision(fixture));
        EXPECT_OK(fixture_complete(fixture, fixture_timer(fixture, ids[i], 1)));
        int64_t started_id = calls_last_event(fixture)->event_id;
        int64_t begin = fixture->context.now;
        EXPECT_EQ(calls_last_event(fixture)
                      ->timer_started_event_attributes->start_to_fire_timeout->seconds,
                  1);
        fixture_advance(fixture, 1);
        API(HistoryEvent) *fired = calls_find_event(fixture, EVENT_KIND(TIMER_FIRED));
        EXPECT_EQ(fired->timer_fired_event_attributes->started_event_id, started_id);
        EXPECT_TEXT(fired->timer_fired_event_attributes->timer_id, ids[i]);
        EXPECT_EQ(fixture_event_time(fired), begin + FIXTURE_SECOND);
    }
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_complete_run(fixture)));
    EXPECT_EQ(fixture_run(fixture)->core->next_event_id - 1, 1 + 4 * 5 + 4);
}

TEST(timer, no_time_at_all_is_refused, "A-125", "A-075")
{
    for (int64_t seconds = -1; seconds <= 0; seconds++) {
        scoped(fixture_drop) struct fixture *fixture = fixture_new();
        calls_begin(fixture, fixture_timer(fixture, "t", seconds));
        calls_expect_refused(fixture, FAILED_CAUSE(BAD_START_TIMER_ATTRIBUTES),
                             seconds == 0 ? "Invalid StartToFireTimeoutSeconds: 0"
                                          : "Invalid StartToFireTimeoutSeconds: -1");
    }
    scoped(fixture_drop) struct fixture *fixture = fixture_new();
    calls_begin(fixture, fixture_timer(fixture, "", 1));
    calls_expect_refused(fixture, FAILED_CAUSE(BAD_START_TIMER_ATTRIBUTES),
                         "TimerId is not set on decision.");
}

COMMAND_TEST(timer, one_beyond_what_a_duration_holds_is_as_long_as_a_history_can_say, "A-124")
{
    calls_begin(fixture, fixture_timer(fixture, "t", INT64_MAX));
    EXPECT_EQ(
        calls_last_event(fixture)->timer_started_event_attributes->start_to_fire_timeout->seconds,
        INT32_MAX);
}

COMMAND_TEST(timer, an_id_that_is_pending_is_refused_and_one_that_fired_is_not, "A-126", "A-075")
{
    calls_begin(fixture, fixture_timer(fixture, "t", 5), fixture_timer(fixture, "t", 6));
    calls_expect_refused(fixture, FAILED_CAUSE(START_TIMER_DUPLICATE_ID), "");
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_timer(fixture, "t", 5)));
    fixture_advance(fixture, 5);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, fixture_timer(fixture, "t", 5)));
    EXPECT(run_find_timer(fixture_run(fixture), "t") != NULL);
}

COMMAND_TEST(timer, one_that_was_cancelled_never_fires, "A-127", "A-128")
{
    calls_begin(fixture, fixture_timer(fixture, "t", 20));
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, cancel_timer_decision(fixture, "t")));
    const API(TimerCanceledEventAttributes) *canceled =
        calls_last_event(fixture)->timer_canceled_event_attributes;
    EXPECT_EQ(calls_last_event(fixture)->attributes_case, EVENT_KIND(TIMER_CANCELED));
    EXPECT_EQ(canceled->started_event_id, 5);
    EXPECT_TEXT(canceled->identity, "worker");
    int64_t next_event_id = fixture_run(fixture)->core->next_event_id;
    fixture_advance(fixture, 60);
    EXPECT_EQ(fixture_run(fixture)->core->next_event_id, next_event_id);
}

COMMAND_TEST(timer, an_unknown_one_cannot_be_cancelled_and_the_run_goes_on, "A-127")
{
    calls_begin(fixture, cancel_timer_decision(fixture, "t"), fixture_marker(fixture, "on"));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted CancelTimerFailed MarkerRecorded");
    const API(CancelTimerFailedEventAttributes) *failed =
        fixture_event(fixture, 5)->cancel_timer_failed_event_attributes;
    EXPECT_TEXT(failed->cause, "TIMER_ID_UNKNOWN");
    EXPECT_TEXT(failed->identity, "worker");
    scoped(fixture_drop) struct fixture *other = fixture_new();
    calls_begin(other, cancel_timer_decision(other, ""));
    calls_expect_refused(other, FAILED_CAUSE(BAD_CANCEL_TIMER_ATTRIBUTES),
                         "TimerId is not set on decision.");
}

/* It fires while the worker decides to cancel it: nobody has seen that, so it never happened. */
COMMAND_TEST(timer, one_that_fired_behind_the_decision_that_cancels_it_did_not_fire, "A-088",
             "A-128")
{
    calls_begin(fixture, fixture_timer(fixture, "t", 4), fixture_timer(fixture, "u", 4));
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT(fixture_poll_decision(fixture));
    fixture_advance(fixture, 5);
    EXPECT(run_has_buffered(fixture_run(fixture)));
    EXPECT_OK(fixture_complete(fixture, cancel_timer_decision(fixture, "t")));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted TimerStarted TimerStarted "
                            "WorkflowExecutionSignaled DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted TimerCanceled TimerFired DecisionTaskScheduled");
    EXPECT_EQ(fixture_event(fixture, 11)->timer_canceled_event_attributes->started_event_id, 5);
    EXPECT_TEXT(fixture_event(fixture, 12)->timer_fired_event_attributes->timer_id, "u");
    fixture_advance(fixture, 30);
    EXPECT(run_find_timer(fixture_run(fixture), "t") == NULL);
}

/* The list that cancels it is bad: then it has fired after all. */
COMMAND_TEST(timer, a_list_that_is_taken_back_leaves_the_fired_timer_fired, "A-088")
{
    calls_begin(fixture, fixture_timer(fixture, "t", 4));
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT(fixture_poll_decision(fixture));
    fixture_advance(fixture, 5);
    EXPECT_OK(fixture_complete(fixture, cancel_timer_decision(fixture, "t"),
                               fixture_timer(fixture, "", 1)));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted TimerStarted WorkflowExecutionSignaled "
                            "DecisionTaskScheduled DecisionTaskStarted DecisionTaskFailed "
                            "TimerFired DecisionTaskScheduled");
}

/* More than one step can have numbers for: the rest is due at once again. */
TEST(timer, very_many_at_one_moment_fire_in_several_steps)
{
    enum { COUNT = 25000, STEP_MAX = 10000 + 2 };
    scoped(fixture_drop) struct fixture *fixture = fixture_new();
    API(Decision) **timers = arena_zalloc(fixture->arena, COUNT, sizeof timers[0]);
    for (int i = 0; i < COUNT; i++)
        timers[i] = fixture_timer(fixture, arena_format(fixture->arena, "%d", i), 5);
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete_list(fixture, timers, COUNT));
    uint64_t first = fixture->ids.next;
    fixture->context.now += 5 * FIXTURE_SECOND;
    for (int step = 1; step <= 3; step++) {
        uint64_t before = fixture->ids.next;
        EXPECT_OK(fixture_step(fixture, calls_decide_wake, NULL));
        EXPECT(fixture->ids.next - before <= STEP_MAX);
        EXPECT_EQ(map_count(fixture_run(fixture)->timers), step < 3 ? COUNT - step * 10000 : 0);
    }
    EXPECT(fixture->ids.next - first > COUNT);
}
