/* Activities that a worker gets with the answer to its decisions: no task, no poll. */
#include "engine/command/inside.h"
#include "engine/command/test/activity_calls.h"

#define ACTIVITY CADENZA__STORAGE__V1__TRANSFER_TYPE__TRANSFER_TYPE_ACTIVITY

static const struct activity_timeouts minute = {.schedule_to_close = 60};

static API(Decision) *
local_activity_decision(struct fixture *fixture, const char *id)
{
    API(Decision) *decision = activity_decision(fixture, id, minute);
    activity_attributes(decision)->request_local_dispatch = true;
    return decision;
}

static struct task_name
local_name(const struct fixture *fixture, size_t index)
{
    EXPECT(index < fixture->completed.local_count);
    const STORED(PendingActivity) *activity = fixture->completed.local[index].activity;
    return (struct task_name){
        .schedule_id = activity->schedule_id, .attempt = activity->attempt, .activity_id = ""};
}

COMMAND_TEST(local_dispatch, the_worker_has_those_that_it_asked_for_and_the_others_go_to_their_list,
             "A-120")
{
    calls_begin(fixture, local_activity_decision(fixture, "mine"),
                activity_decision(fixture, "other", minute),
                local_activity_decision(fixture, "mine too"));
    EXPECT_HISTORY(fixture, "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                            "DecisionTaskCompleted ActivityTaskScheduled ActivityTaskScheduled "
                            "ActivityTaskScheduled ActivityTaskStarted ActivityTaskStarted");
    const API(ActivityTaskStartedEventAttributes) *started =
        fixture_event(fixture, 8)->activity_task_started_event_attributes;
    EXPECT_EQ(started->scheduled_event_id, 5);
    EXPECT_TEXT(started->identity, "worker");
    EXPECT_EQ(started->attempt, 0);
    struct uuid uuid;
    EXPECT(uuid_parse(slice_text(started->request_id), &uuid));

    EXPECT_EQ(fixture->completed.local_count, 2);
    EXPECT_TEXT(fixture->completed.local[0].activity->activity_id, "mine");
    EXPECT_EQ(fixture->completed.local[0].activity->schedule_id, 5);
    EXPECT_EQ(fixture->completed.local[0].activity->started_time, fixture->context.now);
    EXPECT_TEXT(fixture->completed.local[0].workflow_type->name, "type");
    EXPECT_TEXT(fixture->completed.local[1].activity->activity_id, "mine too");
    EXPECT_EQ(fixture->tasks.count, 1);
    EXPECT_EQ(fixture_task(fixture, ACTIVITY)->schedule_id, 6);

    EXPECT_OK(calls_complete(fixture, local_name(fixture, 0)));
    EXPECT(calls_activity(fixture, "mine") == NULL);
}

/* A client numbers the events of its decisions itself: see client.h. */
COMMAND_TEST(local_dispatch, starts_stand_behind_the_events_of_the_whole_list_and_what_was_buffered,
             "A-120")
{
    fixture_begin(fixture);
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_signal(fixture, "meanwhile", ""));
    EXPECT_OK(fixture_complete(fixture, local_activity_decision(fixture, "mine"),
                               cancel_activity_decision(fixture, "mine"),
                               fixture_timer(fixture, "t", 10)));
    EXPECT_HISTORY(fixture,
                   "WorkflowExecutionStarted DecisionTaskScheduled DecisionTaskStarted "
                   "DecisionTaskCompleted ActivityTaskScheduled ActivityTaskCancelRequested "
                   "TimerStarted WorkflowExecutionSignaled ActivityTaskStarted "
                   "DecisionTaskScheduled");
    EXPECT_EQ(calls_activity(fixture, "mine")->started_id, 9);
    bool is_cancel_requested = false;
    EXPECT_OK(calls_heartbeat(fixture, local_name(fixture, 0), "1", &is_cancel_requested));
    EXPECT(is_cancel_requested);
}

COMMAND_TEST(local_dispatch, nothing_is_written_behind_a_close, "A-089", "A-120")
{
    calls_begin(fixture, activity_decision(fixture, "waiting", minute));
    EXPECT_OK(fixture_signal(fixture, "go", ""));
    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, local_activity_decision(fixture, "mine"),
                               cancel_activity_decision(fixture, "waiting"),
                               fixture_complete_run(fixture)));
    EXPECT_EQ(calls_last_event(fixture)->attributes_case, EVENT_KIND(WORKFLOW_EXECUTION_COMPLETED));
    EXPECT_EQ(calls_last_event(fixture)->event_id, 12);
    fixture_expect_rebuilt(fixture, 0); /* what was not written did not happen */
}

COMMAND_TEST(local_dispatch, one_with_a_retry_policy_is_started_without_an_event_and_tried_again,
             "A-120")
{
    API(Decision) *decision = retried_activity_decision(fixture, "mine", 3, 60);
    activity_attributes(decision)->request_local_dispatch = true;
    calls_begin(fixture, decision);
    EXPECT_EQ(fixture->completed.local_count, 1);
    EXPECT_EQ(calls_activity(fixture, "mine")->started_id, EVENT_TRANSIENT);
    EXPECT_EQ(fixture->tasks.count, 0);
    EXPECT_OK(calls_fail(fixture, local_name(fixture, 0), "bad luck"));
    fixture_advance(fixture, 2);
    EXPECT_EQ(fixture_task(fixture, ACTIVITY)->attempt, 1); /* by its list now */
}

COMMAND_TEST(local_dispatch, one_that_is_not_answered_times_out, "A-120")
{
    calls_begin(fixture, local_activity_decision(fixture, "mine"));
    fixture_advance(fixture, 60);
    EXPECT(calls_activity(fixture, "mine") == NULL);
    (void)calls_find_event(fixture, EVENT_KIND(ACTIVITY_TASK_TIMED_OUT));
}

COMMAND_TEST(local_dispatch, none_is_given_if_the_domain_has_it_switched_off)
{
    fixture_configure(fixture, "history.enableActivityLocalDispatchByDomain: [{value: false}]\n");
    calls_begin(fixture, local_activity_decision(fixture, "mine"));
    EXPECT_EQ(fixture->completed.local_count, 0);
    EXPECT_EQ(calls_activity(fixture, "mine")->started_id, EVENT_NONE);
    EXPECT(fixture_task(fixture, ACTIVITY) != NULL);
}

COMMAND_TEST(local_dispatch, none_is_given_if_the_list_was_bad_or_has_ended_the_run)
{
    calls_begin(fixture, local_activity_decision(fixture, "mine"),
                local_activity_decision(fixture, "mine"));
    EXPECT_EQ(fixture->completed.local_count, 0);
    EXPECT(calls_activity(fixture, "mine") == NULL);
    EXPECT_EQ(fixture->tasks.count, 1); /* the next attempt of the decision */

    EXPECT(fixture_poll_decision(fixture));
    EXPECT_OK(fixture_complete(fixture, local_activity_decision(fixture, "mine"),
                               fixture_complete_run(fixture)));
    EXPECT(!run_is_open(fixture_run(fixture)));
    EXPECT_EQ(fixture->completed.local_count, 0);
    EXPECT_EQ(fixture->tasks.count, 0);
}
